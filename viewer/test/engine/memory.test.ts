import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Storages } from '../../src/engine/cost.ts';
import { MEMORY_CLASSES } from '../../src/wire/facts.ts';
import { plain, shortNumber } from '../../src/text/figures.ts';
import { standing } from '../../src/engine/roofs.ts';
import { runs, MemoryUse } from '../../src/engine/memory.ts';

type Row = [bytes: number, cls: (typeof MEMORY_CLASSES)[number], born: number, dies: number];

function storages(rows: Row[]): Storages {
  const column = (pick: (row: Row) => number) => Float64Array.from(rows, pick);
  return {
    value: Int32Array.from(rows, (_, i) => i),
    bytes: column((row) => row[0]),
    cls: column((row) => MEMORY_CLASSES.indexOf(row[1])),
    born: column((row) => row[2]),
    dies: column((row) => row[3]),
  };
}

const ROWS: Row[] = [
  [100, 'parameter', 0, 5],
  [10, 'activation', 1, 3],
  [20, 'activation', 2, 2],
  [50, 'temporary', 4, 4],
];

describe('memory along the execution', () => {
  it('is stacked by class, with the peak', () => {
    const line = new MemoryUse(storages(ROWS), 6);
    expect(line.classes.map((place) => MEMORY_CLASSES[place])).toEqual(['parameter', 'activation', 'temporary']);
    expect([...line.total]).toEqual([100, 110, 130, 110, 150, 100]);
    expect([...line.live[1]!]).toEqual([0, 10, 30, 10, 0, 0]);
    expect(line.peak).toBe(4);
  });

  it('says what is alive, the largest first', () => {
    const line = new MemoryUse(storages(ROWS), 6);
    expect(line.alive(2, 2)).toEqual({ places: [0, 2], count: 3, bytes: 130 });
    expect(line.alive(4, 10).places).toEqual([0, 3]);
  });

  it('keeps the highest operator of every column', () => {
    const line = new MemoryUse(storages(ROWS), 6);
    expect([...line.columns(0, 6, 2)]).toEqual([2, 4]);
    expect([...line.columns(0, 6, 100)]).toEqual([0, 1, 2, 3, 4, 5]);
    expect([...line.columns(3, 5, 1)]).toEqual([4]);
    expect([...new MemoryUse(storages([]), 0).columns(0, 0, 10)]).toEqual([]);
  });

  it('agrees with counting one by one', () => {
    const row = fc.tuple(fc.integer({ min: 1, max: 1000 }), fc.constantFrom(...MEMORY_CLASSES), fc.nat(29), fc.nat(29));
    fc.assert(
      fc.property(fc.array(row, { maxLength: 300 }), fc.nat(29), (rows, step) => {
        const all = storages(rows.map(([bytes, cls, a, b]): Row => [bytes, cls, Math.min(a, b), Math.max(a, b)]));
        const line = new MemoryUse(all, 30);
        const there = [...all.bytes.keys()].filter((i) => all.born[i]! <= step && all.dies[i]! >= step);
        expect(line.total[step]).toBe(there.reduce((sum, i) => sum + all.bytes[i]!, 0));
        const found = line.alive(step, 5);
        expect(found.bytes).toBe(line.total[step]);
        expect(found.places.map((i) => all.bytes[i])).toEqual(
          there
            .map((i) => all.bytes[i]!)
            .sort((a, b) => b - a)
            .slice(0, 5),
        );
        const columns = line.columns(0, 30, 7);
        expect(Math.max(...Array.from(columns, (at) => line.total[at]!))).toBe(Math.max(...line.total));
      }),
    );
  });
});

it('operators as runs', () => {
  expect(runs([1, 2, 3, 7, 9, 10])).toEqual([1, 3, 7, 7, 9, 10]);
  expect(runs([])).toEqual([]);
});

it('stands under the roof', () => {
  const device = { name: 'd', title: '', peaks: { float32: 100, float16: 400 }, other: 50, bandwidth: 10, memory: 0, source: '' };
  expect(standing({ macs: 500, other: 0, bytes: 10, dtype: 'float32' }, device)).toEqual({
    intensity: 100,
    speed: 100,
    seconds: 10,
    byMemory: false,
  });
  expect(standing({ macs: 500, other: 0, bytes: 10, dtype: 'float16' }, device).seconds).toBe(2.5);
  expect(standing({ macs: 0, other: 10, bytes: 100, dtype: 'float32' }, device)).toEqual({
    intensity: 0.1,
    speed: 1,
    seconds: 10,
    byMemory: true,
  });
});

it('figures as people read them', () => {
  expect([0, 7, 999, 1000, 1814e6, 931e12].map(shortNumber)).toEqual(['0', '7', '999', '1.00 k', '1.81 G', '931 T']);
  expect(['80.0 MB', '1.50 TB', '100 GB', '1.00 k'].map(plain)).toEqual(['80 MB', '1.5 TB', '100 GB', '1 k']);
});
