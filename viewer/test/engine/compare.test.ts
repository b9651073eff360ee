// Two graphs compared in the page: the same answers as Python's, on its cases and on a real run.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { compare } from '../../src/engine/compare/compare.ts';
import { mergePools, moveGraph } from '../../src/engine/compare/join.ts';
import { align } from '../../src/engine/compare/sequence.ts';
import { Diffs, type Change } from '../../src/engine/diff.ts';
import { Engine } from '../../src/engine/engine.ts';
import type { ViewOptions } from '../../src/engine/messages.ts';
import { aligned } from '../../src/picture/align.ts';
import { rising } from '../../src/picture/rising.ts';
import { Capture } from '../../src/wire/capture.ts';
import { build, type Described } from '../find/build.ts';

const OPTIONS: ViewOptions = { direction: 'down', split: true, side: true, hidden: [], constants: false, aligned: true };
const TESTS = new URL('../../../tests/', import.meta.url);

interface Case {
  name: string;
  before: Described;
  after: Described;
  changes: [string, number[], number[], string][];
}

const told = (changes: Change[]) => changes.map(({ kind, before, after, detail }) => [kind, before, after, detail]);

describe('tests/diff_cases.json', () => {
  const cases = JSON.parse(readFileSync(new URL('diff_cases.json', TESTS), 'utf8')) as Case[];
  it.each(cases.map((entry) => [entry.name, entry] as const))('%s', async (_, entry) => {
    const [one, other] = [build(entry.before), build(entry.after)];
    const { pools, moved } = mergePools(one.pools, other.pools);
    const found = await compare(one.graph, moveGraph(other.graph, moved, 0), pools, () => Promise.reject(new Error('no bodies')));
    expect(told(found.changes)).toEqual(entry.changes);
    for (const { evidence } of found.changes) expect(evidence).toBe('structure');
  });
});

it('finds on the passes of a compiler what Python finds, where no operator was fused', async () => {
  const capture = await Capture.open(new Uint8Array(readFileSync(new URL('data/page/passes.opscope', TESTS))));
  const { stages } = capture.manifest;
  const graphs = await Promise.all(stages.map(({ graph }) => capture.graph(graph)));
  const diffs = new Diffs(
    capture,
    graphs.map(({ nodes }) => nodes),
  );
  await diffs.load();
  for (const stage of [1, 2, 3, 4, 6]) {
    const { changes } = await compare(graphs[stage - 1]!, graphs[stage]!, capture.pools, (index) => capture.graph(index));
    expect(told(changes)).toEqual(told(diffs.of(stage)!.changes));
  }
});

it('makes a capture of two, whose operators keep their modules, sources and figures', async () => {
  const engine = new Engine();
  const bytes = () => new Uint8Array(readFileSync(new URL('data/page/step.opscope', TESTS)));
  await engine.load(bytes(), 'one');
  await engine.load(new Uint8Array(readFileSync(new URL('data/page/turns.opscope', TESTS))), 'other');
  const alone = await engine.stage(0, 0, { ...OPTIONS, aligned: undefined });
  await engine.count();
  const totals = engine.ask.totals();
  const same = await engine.compare({ capture: 0, stage: 0 }, { capture: 0, stage: 0 });
  const picture = await engine.stage(same.id, 1, OPTIONS);
  expect(same.stages[1]!.changes!.counts.every((n) => n === 0)).toBe(true);
  expect(picture.scene.boxes.count).toBe(alone.scene.boxes.count);
  expect(picture.beside!.ribbons).toEqual([]);
  expect([...picture.beside!.picture.scene.boxes.y]).toEqual([...picture.scene.boxes.y]);
  await engine.count();
  expect(engine.ask.totals()).toEqual(totals);
  const info = await engine.compare({ capture: 0, stage: 0 }, { capture: 1, stage: 0 });
  expect(info.how).toBe('compared');
  const other = await engine.stage(info.id, 1, OPTIONS);
  const plain = await engine.stage(1, 0, { ...OPTIONS, aligned: undefined });
  const titles = ({ scene }: typeof other) => Array.from(scene.boxes.title, (id) => scene.texts[id]);
  await engine.stage(info.id, 1, OPTIONS);
  expect(new Set(titles(other)).size).toBeGreaterThan(5);
  expect(titles(plain).length).toBeGreaterThan(5);
  const [row] = await engine.ask.changes();
  expect(row!.where).toEqual(expect.any(String));
});

describe('two pictures', () => {
  it('are pulled apart where the other has more, and only there', async () => {
    const engine = new Engine();
    await engine.load(new Uint8Array(readFileSync(new URL('data/page/passes.opscope', TESTS))), 'passes');
    const [one, other] = [
      await engine.stage(0, 1, { ...OPTIONS, aligned: undefined }),
      await engine.stage(0, 4, { ...OPTIONS, aligned: undefined }),
    ];
    const pairs = Int32Array.of(0, 3, 1, 5);
    const [a, b] = aligned(one.scene, other.scene, pairs);
    expect(a.boxes.y[0]).toBeCloseTo(b.boxes.y[3]!, 3);
    for (const [was, now] of [[one.scene, a] as const, [other.scene, b] as const]) {
      const order = Array.from(was.boxes.y, (_, i) => i).sort((p, q) => was.boxes.y[p]! - was.boxes.y[q]!);
      for (let i = 1; i < order.length; i++) {
        const gap = (scene: typeof was) => scene.boxes.y[order[i]!]! - scene.boxes.y[order[i - 1]!]!;
        expect(gap(now)).toBeGreaterThanOrEqual(gap(was) - 0.01);
      }
      // Lines end where they ended, on the same boxes.
      for (let e = 0; e < was.edges.count; e++) {
        const end = 2 * was.edges.start[e]! + 1;
        const box = was.edges.source[e]!;
        expect(now.edges.points[end]! - now.boxes.y[box]!).toBeCloseTo(was.edges.points[end]! - was.boxes.y[box]!, 2);
      }
    }
    expect(a.height).toBe(b.height);
  });

  it.each([
    [[3, 1, 2, 2, 5, 4], 4],
    [[], 0],
    [[5, 4, 3], 1],
    [[1, 1, 1], 3],
  ])('the longest part of %j that never falls has %i entries', (values, length) => {
    const places = rising(values);
    expect(places).toHaveLength(length);
    expect(places.every((at, i) => i === 0 || (places[i - 1]! < at && values[places[i - 1]!]! <= values[at]!))).toBe(true);
  });

  it('sequences are aligned by what they share', () => {
    expect(align([1, 2, 3, 4], [1, 3, 9, 4])).toEqual([
      [0, 0],
      [2, 1],
      [3, 3],
    ]);
    expect(align([1, 2, 3], [7, 8, 9, 1], 2)).toEqual([]);
  });
});

describe('graphs with a break between them', () => {
  it('are one graph, with the place, the reason and the values that cross', async () => {
    const engine = new Engine();
    const info = await engine.load(new Uint8Array(readFileSync(new URL('data/page/breaks.opscope', TESTS))), 'breaks');
    expect(info.stages.map(({ name, seams, nodes }) => [name, seams, nodes])).toEqual([
      ['graph 1', 0, 3],
      ['graph 2', 0, 1],
      ['all graphs', 1, 4],
    ]);
    const picture = await engine.stage(0, 2, { ...OPTIONS, aligned: undefined });
    const { boxes, texts } = picture.scene;
    const [seam] = picture.seams;
    expect(texts[boxes.title[seam!]!]).toMatch(/^graph break · make_captures\.py:\d+$/);
    expect(texts[boxes.detail[seam!]!]).toMatch(/\w{4}/);
    const details = engine.ask.details(boxes.item[seam!]!);
    expect(details.frames[0]!.file).toMatch(/make_captures\.py$/);
    // Whatever leaves the first graph comes to the break, and from there to the second: one column.
    const top = (title: string) => boxes.y[Array.from(boxes.title, (id) => texts[id]!).indexOf(title)]!;
    expect(top('graph 1')).toBeLessThan(boxes.y[seam!]!);
    expect(details.inputs.length).toBeGreaterThan(0);
  });

  it('nothing is added where nothing broke', async () => {
    const engine = new Engine();
    const info = await engine.load(new Uint8Array(readFileSync(new URL('data/page/passes.opscope', TESTS))), 'passes');
    expect(info.stages.some(({ seams }) => seams > 0)).toBe(false);
  });
});
