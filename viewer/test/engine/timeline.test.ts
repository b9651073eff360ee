// The timeline: events in order, lanes without overlaps, windows that leave out nothing.

import { describe, expect, test } from 'vitest';
import { KIND, ordered, type Events, type Track } from '../../src/engine/timeline/events.ts';
import { busyLane, busyUntil, firstAfter, lanesOf, type Lane } from '../../src/engine/timeline/lanes.ts';
import { placeOf, shortName } from '../../src/engine/timeline/titles.ts';
import { SELECTED, SEVERAL, windowOf } from '../../src/engine/timeline/window.ts';
import { Texts } from '../../src/wire/table.ts';
import type { Pools } from '../../src/wire/capture.ts';

const TRACKS: Track[] = [
  { name: 'thread', isStream: false, device: -1, leftOut: 0 },
  { name: 'stream', isStream: true, device: 0, leftOut: 0 },
];

type Row = [track: number, start: number, end: number, kind?: number, node?: number];

function events(rows: Row[]): Events {
  const column = (pick: (row: Row) => number) => rows.map(pick);
  return ordered(
    {
      start: Float64Array.from(column((row) => row[1])),
      end: Float64Array.from(column((row) => row[2])),
      track: Int32Array.from(column((row) => row[0])),
      name: Int32Array.from(rows.map(() => 0)),
      kind: Uint8Array.from(column((row) => row[3] ?? KIND.operator)),
      delay: new Float64Array(rows.length).fill(NaN),
      launchedOn: new Int32Array(rows.length).fill(-1),
      stage: new Int32Array(rows.length),
      by: new Uint8Array(rows.length).fill(1),
      index: Int32Array.from(column((row) => row[4] ?? 0)),
    },
    TRACKS,
    Texts.of(['event']),
  );
}

/** Modules 1 and 2 inside of the root, 3 inside of 1. */
const POOLS = { scopes: { parent: Int32Array.from([0, 0, 0, 1]), name: Texts.of(['', 'a', 'b', 'c']) } } as unknown as Pools;

const plain = (lane: Lane) => [...lane.start].map((start, i) => [start, lane.end[i]!]);
const titled = { tone: () => 0, title: () => 'x', lit: () => null };

describe('events', () => {
  test('come by track, then by beginning, what is around others first', () => {
    const found = events([
      [1, 5, 6],
      [0, 2, 3],
      [0, 0, 1],
      [0, 0, 9],
    ]);
    expect([...found.start]).toEqual([0, 0, 2, 5]);
    expect([...found.end]).toEqual([9, 1, 3, 6]);
    expect([...found.from]).toEqual([0, 3, 4]);
    expect(found.span).toBe(9);
  });

  test('are sorted exactly, however near they are', () => {
    const starts = Array.from({ length: 3000 }, (_, i) => ((i * 7919) % 3000) * 1e-9 + (i % 7) * 0.5);
    const found = events(starts.map((start) => [0, start, start + 1e-10]));
    expect([...found.start]).toEqual([...starts].sort((a, b) => a - b));
  });
});

describe('lanes', () => {
  const nested = events([
    [0, 0, 10],
    [0, 1, 4, KIND.call],
    [0, 2, 3, KIND.launch],
    [0, 5, 12, KIND.call], // outlives what is around it
    [0, 11, 13],
    [1, 3, 5, KIND.kernel],
    [1, 6, 8, KIND.kernel],
  ]);
  const belonging = { scope: Int32Array.from([3, 0, 0, 0, 2, 3, 3]), phase: Int8Array.from([1, -1, -1, -1, 1, 1, 1]) };

  test('hold everything once, and nothing overlaps in one', () => {
    const lanes = lanesOf(nested, belonging, POOLS, false).filter(({ kind }) => kind === 'event');
    expect(lanes.reduce((sum, lane) => sum + lane.ref.length, 0)).toBe(7);
    for (const lane of lanes) for (let i = 1; i < lane.start.length; i++) expect(lane.start[i]!).toBeGreaterThanOrEqual(lane.end[i - 1]!);
  });

  test('have streams first, and modules from their first to their last operator', () => {
    const lanes = lanesOf(nested, belonging, POOLS, false);
    expect(lanes[0]!.track).toBe(1);
    const modules = lanes.filter(({ track, kind }) => track === 1 && kind === 'module');
    expect(modules.map((lane) => [...lane.ref])).toEqual([[1], [3]]);
    expect(plain(modules[1]!)).toEqual([[3, 8]]);
  });

  test('leave out functions of Python, unless they are wanted', () => {
    const found = events([
      [0, 0, 10, KIND.python],
      [0, 1, 2],
    ]);
    const none = { scope: new Int32Array(2), phase: new Int8Array(2).fill(-1) };
    const count = (python: boolean) => lanesOf(found, none, POOLS, python).reduce((sum, lane) => sum + lane.ref.length, 0);
    expect([count(false), count(true)]).toEqual([1, 2]);
    expect(busyLane(found, 0).busy.at(-1)).toBe(1);
  });

  test('know how long something ran until a time', () => {
    const lane = lanesOf(nested, belonging, POOLS, false).find(({ track, kind }) => track === 1 && kind === 'event')!;
    expect([2, 4, 5.5, 7, 100].map((time) => busyUntil(lane, time))).toEqual([0, 1, 2, 3, 4]);
    expect([0, 5, 9].map((time) => firstAfter(lane, time))).toEqual([0, 1, 2]);
  });
});

describe('a window', () => {
  const many = events(Array.from({ length: 10_000 }, (_, i): Row => [1, i, i + 0.5, KIND.kernel, i]));
  const none = { scope: new Int32Array(10_000), phase: new Int8Array(10_000).fill(-1) };
  const [lane] = lanesOf(many, none, POOLS, false) as [Lane];

  test('has few rectangles, and every span is in one of them', () => {
    const found = windowOf([lane], titled, [0, 10_000], 500, [0, 1]);
    expect(found.x.length).toBeLessThanOrEqual(250);
    expect(found.count.reduce((sum, n) => sum + n, 0)).toBe(10_000);
    expect([...found.flags].every((flags) => flags & SEVERAL)).toBe(true);
  });

  test('shows each span by itself where there is room', () => {
    const found = windowOf([lane], titled, [100, 110], 500, [0, 1]);
    expect([...found.span]).toEqual([100, 101, 102, 103, 104, 105, 106, 107, 108, 109]);
    expect([...found.x].map(Math.round)).toEqual([0, 50, 100, 150, 200, 250, 300, 350, 400, 450]);
    expect([...found.width]).toEqual(Array(10).fill(25));
    expect(found.labels).toEqual(['x']);
  });

  test('does not lose one that is selected among many', () => {
    const selected = new Int32Array(10_001).fill(1, 5001);
    const lit = { selected, found: new Int32Array(10_001) };
    const found = windowOf([lane], { ...titled, lit: () => lit }, [0, 10_000], 100, [0, 1]);
    const at = [...found.flags].findIndex((flags) => flags & SELECTED);
    expect(found.span[at]!).toBeLessThanOrEqual(5000);
    expect(found.span[at]! + found.count[at]!).toBeGreaterThan(5000);
    expect([...found.flags].filter((flags) => flags & SELECTED)).toHaveLength(1);
  });
});

describe('titles', () => {
  test.each([
    [
      'void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, float)',
      'vectorized_elementwise_kernel',
    ],
    ['aten::addmm', 'addmm'],
    ['nn.Module: Linear_3', 'Linear_3'],
    ['llama.py(26): forward', 'llama.py(26): forward'],
    ['autograd::engine::evaluate_function: AddmmBackward0', 'AddmmBackward0'],
    ['Memcpy HtoD (Pageable -> Device)', 'Memcpy HtoD (Pageable -> Device)'],
    ['void cutlass::Kernel2<cutlass_75_tensorop_bf16>(cutlass_75_tensorop_bf16::Params)', 'cutlass_75_tensorop_bf16'],
    ['cudaLaunchKernel', 'cudaLaunchKernel'],
  ])('%s', (name, short) => expect(shortName(name)).toBe(short));

  test('say where a function is', () => {
    expect(placeOf('llama.py(26): forward')).toEqual(['llama.py', 26]);
    expect(placeOf('aten::mm')).toBeNull();
  });
});
