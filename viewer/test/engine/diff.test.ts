// What stages changed: on the passes of a real Hidet run, and on lists that fit no graph.

import { CHANGES, GHOST } from '../../src/picture/changes.ts';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { classes, readChanges, replaced } from '../../src/engine/diff.ts';
import { Engine } from '../../src/engine/engine.ts';
import { CHANGE_CLASSES, EVIDENCE } from '../../src/wire/facts.ts';
import { Texts } from '../../src/wire/table.ts';
import type { Picture, ViewOptions } from '../../src/engine/messages.ts';
import { anchor, kinship, nudged } from '../../src/page/drawing.ts';
import { barStages, isUnchanged } from '../../src/page/staging.ts';
import { secondsText } from '../../src/text/figures.ts';

const OPTIONS: ViewOptions = { direction: 'down', split: true, side: true, hidden: [], constants: false };
const OVERLAY = { ...OPTIONS, overlay: true };

async function passes(stage = 0, options = OPTIONS) {
  const engine = new Engine();
  const bytes = new Uint8Array(readFileSync(new URL('../../../tests/data/page/passes.opscope', import.meta.url)));
  const info = await engine.load(bytes, 'passes');
  const picture = await engine.stage(0, stage, options);
  return { engine, info, picture };
}

/** The titles of the boxes that are marked so. */
function titles({ scene, change }: Picture, kind: (typeof CHANGES)[number], ghost = 0): string[] {
  return Array.from(scene.boxes.title, (id) => scene.texts[id]!)
    .filter((_, box) => change![box] === CHANGES.indexOf(kind) + 1 + ghost)
    .sort();
}

describe('lists of changes', () => {
  it('are read, and what fits no graph is left out', () => {
    const columns: Record<string, unknown> = {
      'column class': [CHANGE_CLASSES.indexOf('fused'), 99, CHANGE_CLASSES.indexOf('same'), CHANGE_CLASSES.indexOf('removed')],
      'column evidence': [EVIDENCE.indexOf('name'), 0, 0, 99],
      'column before': [[0, 1, 9, -1], [0], [0], []],
      'column after': [[0], [], [], [7]],
      'column detail': ['three in one', '', '', ''],
    };
    const table = {
      rows: 4,
      numbers: (name: string) => Float64Array.from(columns[name] as number[]),
      lists: (name: string) => columns[name] as number[][],
      texts: (name: string) => Texts.of(columns[name] as string[]),
    };
    const read = readChanges(table, 0, 1, [3, 2]);
    expect(read).toEqual({
      before: 0,
      same: 1,
      changes: [
        { kind: 'fused', before: [0, 1], after: [0], evidence: 'name', detail: 'three in one' },
        { kind: 'removed', before: [], after: [], evidence: '', detail: '' },
      ],
    });
    const fused = CHANGES.indexOf('fused') + 1;
    expect([...classes(read, 'before', 3)]).toEqual([fused, fused, 0]);
    expect(replaced(read)).toEqual([0, 1]);
  });
});

describe('the passes of Hidet', () => {
  it('are counted in the bar', async () => {
    const { info } = await passes();
    expect(info.stages.map(({ nodes }) => nodes)).toEqual([20, 20, 19, 19, 35, 7, 7]);
    expect(info.stages.map(isUnchanged)).toEqual([false, true, false, true, false, false, true]);
    expect(info.stages[2]!.seconds).toBe(0.027);
    expect(info.stages[2]!.changes!.counts).toEqual(CHANGES.map((kind) => (kind === 'rewritten' ? 1 : 0)));
    expect(info.stages[2]!.changes!.touched).toEqual(CHANGES.map((kind) => (kind === 'rewritten' ? 11 : 0)));
    expect(info.stages[0]!.changes).toBeNull();
    expect(info.stages.every(({ listings }) => !listings.includes('changes'))).toBe(true);
    expect(barStages(info.stages, 0, true)).toEqual([0, 2, 4, 5]);
    expect(barStages(info.stages, 3, true)).toEqual([0, 2, 3, 4, 5]);
    expect(barStages(info.stages, 3, false)).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  it('mark what they made', async () => {
    const { picture } = await passes(2);
    expect(titles(picture, 'rewritten')).toEqual(['Add', 'Matmul', 'StridedSlice', 'StridedSlice', 'StridedSlice']);
    expect([...picture.change!].filter(Boolean)).toHaveLength(5);
  });

  it('mark an operator with a graph inside as a whole', async () => {
    const { picture } = await passes(5);
    expect([...picture.change!].filter((kind) => kind === CHANGES.indexOf('fused') + 1)).toHaveLength(7);
  });

  it('are listed, and lead to their boxes', async () => {
    const { engine } = await passes(2);
    const [change, ...others] = await engine.ask.changes();
    expect(others).toEqual([]);
    expect(change).toMatchObject({
      kind: 'rewritten',
      detail: '3 Matmul + 3 Add → Matmul + Add + 3 StridedSlice',
      evidence: 'structure',
      ghosts: [],
    });
    expect(engine.ask.boxes(change!.items).of).toHaveLength(5);
  });

  it('keep what is gone as ghosts, joined to what is there', async () => {
    const { engine, picture } = await passes(2, OVERLAY);
    expect(titles(picture, 'rewritten', GHOST)).toEqual(['Add', 'Add', 'Add', 'Matmul', 'Matmul', 'Matmul']);
    expect(titles(picture, 'rewritten')).toHaveLength(5);
    const [change] = await engine.ask.changes();
    expect(change!.ghosts).toHaveLength(6);
    const { source, target } = picture.scene.edges;
    const ghostly = Array.from(source, (from, e) => [picture.change![from]! & GHOST, picture.change![target[e]!]! & GHOST]);
    expect(ghostly.filter(([a, b]) => !a && b)).toHaveLength(3); // the input is read by three
    expect(ghostly.filter(([a, b]) => a && b)).toHaveLength(3);
    expect(ghostly.filter(([a, b]) => a && !b)).toHaveLength(3); // what they made goes on
    // What is there reads nothing that is gone.
    for (const item of change!.items)
      for (const { from } of engine.ask.details(item).inputs) expect(change!.ghosts).not.toContain(from?.item);
    expect(await engine.ask.across([change!.ghosts[0]!], 2, 1)).toHaveLength(1);
  });

  it('have no ghosts where nothing changed', async () => {
    const { picture, engine } = await passes(3, OVERLAY);
    expect(picture.change).toBeNull();
    expect(await engine.ask.changes()).toEqual([]);
  });

  it('let one operator be followed from its beginning to its end', async () => {
    const { engine } = await passes(0);
    const softmax = (await engine.ask.find('op:softmax')).nodes[0]!;
    const fates = await engine.ask.follow(softmax);
    expect(fates.map(({ kind }) => kind)).toEqual(['same', 'same', 'same', 'same', 'same', 'fused', 'same']);
    expect(fates.map(({ labels }) => labels.join())).toEqual([...Array<string>(5).fill('Softmax'), 'FusedSoftmax', 'FusedSoftmax']);
    const [query] = (await engine.ask.find('op:matmul')).nodes;
    expect((await engine.ask.follow(query!)).map(({ kind }) => kind)).toEqual([
      'same',
      'same',
      'rewritten',
      'same',
      'split',
      'fused',
      'same',
    ]);
  });

  it('keep a selection over several stages, and to an operator as it is drawn', async () => {
    const { engine } = await passes(0);
    const softmax = (await engine.ask.find('op:softmax')).nodes[0]!;
    const there = await engine.ask.across([softmax], 0, 6);
    await engine.stage(0, 6, OPTIONS);
    const [item] = engine.ask.drawn(engine.ask.items(there));
    expect(engine.ask.details(item!).title).toBe('FusedSoftmax');
    expect(engine.ask.boxes([item!]).of).toHaveLength(1);
    const back = await engine.ask.across([item!], 6, 0);
    expect(back).toContain(`#${softmax}`);
    expect(await engine.ask.across([softmax], 0, 0)).toEqual([]);
  });

  it('keep what is not changed in its order, and hold what is looked at', async () => {
    const { engine, picture: old } = await passes(1);
    const now = await engine.stage(0, 2, OPTIONS);
    const kin = kinship(await engine.kin(1, false));
    expect(kin.same.size).toBe(14 + 2); // operators and inputs
    const place = (picture: Picture, item: number) => {
      const box = picture.scene.boxes.item.indexOf(item);
      return { x: picture.scene.boxes.x[box]!, y: picture.scene.boxes.y[box]! };
    };
    const pairs = [...kin.same].map(([after, before]) => [place(old, before), place(now, after)] as const);
    for (const [a, b] of pairs) for (const [c, d] of pairs) if (a.y < c.y - 60) expect(b.y).toBeLessThan(d.y);
    for (const [a, b] of pairs) for (const [c, d] of pairs) if (a.y === c.y && b.y === d.y && a.x < c.x) expect(b.x).toBeLessThan(d.x);
    const eye = { x: pairs[5]![0].x, y: pairs[5]![0].y };
    const held = anchor(old.scene, now.scene, kin.same, eye)!;
    expect(Math.hypot(held.before.x - eye.x, held.before.y - eye.y)).toBeLessThan(80);
    expect(anchor(old.scene, now.scene, new Map(), eye)).toBeNull();
  });

  it('show the stage before beside this one, with what becomes of it', async () => {
    const { engine } = await passes(2);
    const now = await engine.stage(0, 2, { ...OPTIONS, aligned: true });
    const { picture: before, ribbons, pairs } = now.beside!;
    expect(titles(before, 'rewritten')).toHaveLength(6);
    expect(ribbons.map(({ kind, number, before, after }) => [kind, number, before.length, after.length])).toEqual([['rewritten', 1, 6, 5]]);
    // Every counterpart is in one row: this graph has no other order.
    expect(pairs.length / 2).toBeGreaterThan(14);
    const level = Array.from({ length: pairs.length / 2 }, (_, i) => {
      const [box, other] = [pairs[2 * i]!, pairs[2 * i + 1]!];
      return Math.abs(before.scene.boxes.y[box]! - now.scene.boxes.y[other]!) < 1;
    });
    expect(level.filter((isLevel) => !isLevel)).toEqual([]);
    expect(engine.ask.details(0).op).toBe('Matmul'); // still about stage 2
    expect(await engine.ask.changes()).toHaveLength(1);
    await expect(engine.aside(1, 'kernel', [7])).rejects.toThrow();
    expect(await engine.ask.changes()).toHaveLength(1);
  });
});

it('moves as little as needed to have all in view', () => {
  const seen = { x: 0, y: 0, width: 100, height: 100 };
  expect(nudged(seen, { x: 10, y: 10, width: 50, height: 50 }, 5)).toEqual({ x: 50, y: 50 });
  expect(nudged(seen, { x: -20, y: 60, width: 50, height: 50 }, 5)).toEqual({ x: 25, y: 65 });
  expect(nudged(seen, { x: 10, y: 10, width: 50, height: 500 }, 5)).toEqual({ x: 50, y: 55 });
});

it.each([
  [0.02, '20.0 ms'],
  [0.0274, '27.4 ms'],
  [1.5, '1.50 s'],
  [250.3, '250 s'],
  [0.00005, '50.0 µs'],
])('%f seconds are %s', (seconds, text) => {
  expect(secondsText(seconds)).toBe(text);
});
