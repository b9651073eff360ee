// A training step as a U, on real captures.

import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Engine } from '../../src/engine/engine.ts';
import type { Picture, ViewOptions } from '../../src/engine/messages.ts';
import { BoxKind, EdgeKind, PHASES } from '../../src/scene.ts';
import { overlaps } from '../../src/picture/quality.ts';

const OPTIONS: ViewOptions = { direction: 'down', split: true, side: true, hidden: [0], constants: false };
const FILES = {
  blocks: new URL('../../../tests/data/page/blocks.opscope', import.meta.url),
  turns: new URL('../../../tests/data/page/turns.opscope', import.meta.url),
  step: new URL('../../../tests/data/page/step.opscope', import.meta.url),
  resnet: new URL('../../../src/opscope/_samples/resnet18_train.opscope', import.meta.url),
};

async function opened(name: keyof typeof FILES, options = OPTIONS): Promise<{ engine: Engine; picture: Picture }> {
  const engine = new Engine();
  await engine.load(new Uint8Array(readFileSync(FILES[name])), name);
  return { engine, picture: await engine.stage(0, 0, options) };
}

const [FORWARD, BACKWARD, OPTIMIZER] = (['forward', 'backward', 'optimizer'] as const).map((phase) => PHASES.indexOf(phase));

/** The box of a title in a phase. */
function find({ scene }: Picture, title: string, phase: number): number {
  const { boxes, texts } = scene;
  return Array.from(boxes.title.keys()).find((box) => texts[boxes.title[box]!] === title && boxes.phase[box] === phase) ?? -1;
}

function rungs({ scene }: Picture): number[] {
  return Array.from(scene.edges.kind.keys()).filter((e) => scene.edges.kind[e] === EdgeKind.Rung);
}

function label({ scene }: Picture, e: number): string {
  return scene.texts[scene.edges.label[e]!]!;
}

/** Everything that must hold of a U. */
function check(picture: Picture): void {
  const { boxes, edges } = picture.scene;
  for (let box = 0; box < boxes.count; box++) {
    const p = boxes.parent[box]!;
    if (p < 0) continue;
    expect(boxes.x[box]!).toBeGreaterThanOrEqual(boxes.x[p]! - 0.5);
    expect(boxes.y[box]!).toBeGreaterThanOrEqual(boxes.y[p]! - 0.5);
    expect(boxes.x[box]! + boxes.width[box]!).toBeLessThanOrEqual(boxes.x[p]! + boxes.width[p]! + 0.5);
    expect(boxes.y[box]! + boxes.height[box]!).toBeLessThanOrEqual(boxes.y[p]! + boxes.height[p]! + 0.5);
  }
  const around = (a: number, b: number): boolean => boxes.parent[b]! >= 0 && (boxes.parent[b] === a || around(a, boxes.parent[b]!));
  expect(overlaps({ ...boxes, n: boxes.count }, (a, b) => around(a, b) || around(b, a), 0.6)).toBe(0);
  const touches = (box: number, x: number, y: number) =>
    x >= boxes.x[box]! - 1 &&
    x <= boxes.x[box]! + boxes.width[box]! + 1 &&
    y >= boxes.y[box]! - 1 &&
    y <= boxes.y[box]! + boxes.height[box]! + 1;
  for (let e = 0; e < edges.count; e++) {
    // No line goes against the data, and every line leads from its box to its box.
    expect(edges.kind[e] === EdgeKind.Loop).toBe(false);
    const [first, last] = [edges.start[e]!, edges.start[e + 1]! - 1];
    expect(last).toBeGreaterThan(first);
    expect(touches(edges.source[e]!, edges.points[2 * first]!, edges.points[2 * first + 1]!)).toBe(true);
    expect(touches(edges.target[e]!, edges.points[2 * last]!, edges.points[2 * last + 1]!)).toBe(true);
    const box = edges.source[e]!;
    if (edges.kind[e] === EdgeKind.Rung && picture.scene.direction === 'down')
      expect(edges.points[2 * first + 1]).toBeCloseTo(edges.points[2 * last + 1]!, 3);
    // Forward runs down, backward runs up.
    if (edges.kind[e] !== EdgeKind.Normal || boxes.phase[box] !== boxes.phase[edges.target[e]!] || picture.scene.direction !== 'down')
      continue;
    if (picture.scene.layout !== 'u') continue;
    const down = boxes.y[edges.target[e]!]! - boxes.y[box]!;
    if (boxes.phase[box] === FORWARD) expect(down).toBeGreaterThan(0);
    if (boxes.phase[box] === BACKWARD) expect(down).toBeLessThan(0);
  }
}

describe('a training step', () => {
  it('turns: a module, its gradients and what updates it stand in one row', async () => {
    const { picture } = await opened('blocks');
    expect(picture.scene.layout).toBe('u');
    check(picture);
    const { y, x } = picture.scene.boxes;
    const row = [find(picture, 'h.0 … 3', FORWARD), find(picture, 'h.3 … 0', BACKWARD), find(picture, 'h.0 … 3', OPTIMIZER)];
    expect(row.every((box) => box >= 0)).toBe(true);
    expect(row.map((box) => Math.round(y[box]!))).toEqual(Array(3).fill(Math.round(y[row[0]!]!)));
    expect(x[row[0]!]! < x[row[1]!]! && x[row[1]!]! < x[row[2]!]!).toBe(true);
    expect(picture.scene.rows).toBeGreaterThanOrEqual(5);
  });

  it('says what is kept for the backward pass, each piece of memory once', async () => {
    const { picture } = await opened('blocks');
    const { source, target, bytes } = picture.scene.edges;
    const [norms] = rungs(picture).filter((e) => source[e] === find(picture, 'h.0 … 3', FORWARD));
    expect(target[norms!]).toBe(find(picture, 'h.3 … 0', BACKWARD));
    // Of each block: its input, mean and deviation, the normed input, and what ReLU makes.
    expect(bytes[norms!]).toBe(4 * 4 * (40 + 10 + 10 + 40 + 80));
    expect(label(picture, norms!)).toBe('keeps 2.88 kB');
  });

  it('turns at the loss', async () => {
    const { picture } = await opened('blocks');
    const { boxes, edges } = picture.scene;
    const loss = boxes.kind.indexOf(BoxKind.Loss);
    expect(picture.scene.texts[boxes.title[loss]!]).toBe('loss');
    const into = Array.from(edges.source.keys()).filter((e) => edges.target[e] === loss);
    const out = Array.from(edges.source.keys()).filter((e) => edges.source[e] === loss);
    expect(into.map((e) => boxes.phase[edges.source[e]!])).toEqual([FORWARD]);
    expect(out.map((e) => boxes.phase[edges.target[e]!])).toEqual([BACKWARD]);
    for (let box = 0; box < boxes.count; box++) if (box !== loss) expect(boxes.y[box]! + boxes.height[box]!).toBeLessThan(boxes.y[loss]!);
  });

  it('joins what shares a weight to where it is updated', async () => {
    const { picture } = await opened('blocks');
    const { edges } = picture.scene;
    const tied = Array.from(edges.kind.keys()).filter((e) => edges.kind[e] === EdgeKind.Tied);
    expect(tied.map((e) => [edges.source[e], edges.target[e]])).toContainEqual([
      find(picture, 'head', BACKWARD),
      find(picture, 'embed', OPTIMIZER),
    ]);
  });

  it('opens, folds and unfolds in all phases at once', async () => {
    const { engine, picture } = await opened('blocks');
    const item = picture.scene.boxes.item[find(picture, 'h.3 … 0', BACKWARD)]!;
    const apart = engine.unfold(item);
    for (const phase of [FORWARD, BACKWARD, OPTIMIZER]) expect(find(apart, 'h.2', phase)).toBeGreaterThanOrEqual(0);
    check(apart);
    const open = engine.open([apart.scene.boxes.item[find(apart, 'h.2', FORWARD)]!], true);
    for (const phase of [FORWARD, BACKWARD, OPTIMIZER]) expect(open.scene.boxes.kind[find(open, 'h.2', phase)]).toBe(BoxKind.Open);
    check(open);
    expect(engine.unfold(item).scene.boxes.count).toBeLessThan(open.scene.boxes.count);
  });

  it('has columns for each turn, and an empty place beside what is frozen', async () => {
    const { engine } = await opened('turns');
    const picture = engine.openDepth(2);
    check(picture);
    expect(['forward 1', 'forward 2'].map((title) => find(picture, title, FORWARD) >= 0)).toEqual([true, true]);
    const frozen = find(picture, 'down.0', FORWARD);
    const { boxes } = picture.scene;
    expect(frozen).toBeGreaterThanOrEqual(0);
    expect(find(picture, 'down.0', BACKWARD)).toBe(-1);
    const right = boxes.x[find(picture, 'backward 1', BACKWARD)]!;
    const beside = Array.from(boxes.y.keys()).filter(
      (box) => boxes.kind[box] !== BoxKind.Open && boxes.x[box]! > right && boxes.phase[box] === BACKWARD,
    );
    expect(beside.some((box) => Math.abs(boxes.y[box]! - boxes.y[frozen]!) < 1)).toBe(false);
  });

  it('stands in columns when asked, in the order of the page', async () => {
    const { engine, picture } = await opened('blocks');
    expect(picture.scene.layout).toBe('u');
    expect(engine.options({ ...OPTIONS, columns: true }).scene.layout).toBe('columns');
    expect(engine.options({ ...OPTIONS, side: false }).scene.layout).toBe('plain');
    const right = engine.options({ ...OPTIONS, direction: 'right' });
    expect(right.scene.layout).toBe('u');
    check(right);
    expect(right.scene.rows).toBe(picture.scene.rows);
  });
});

it.each(Object.keys(FILES) as (keyof typeof FILES)[])('%s: no line goes back whatever is open', async (name) => {
  const { engine } = await opened(name);
  const groups = engine.openAll().open;
  fc.assert(
    fc.property(fc.array(fc.nat(groups.length - 1), { maxLength: 12 }), fc.boolean(), fc.boolean(), (chosen, columns, split) => {
      engine.options({ ...OPTIONS, columns, split });
      engine.openDepth(2);
      for (const i of chosen) engine.open([groups[i]!], true);
      const picture = engine.reveal([]);
      expect(picture.scene.edges.kind.filter((kind) => kind === EdgeKind.Loop)).toHaveLength(0);
      if (picture.scene.layout === 'u') check(picture);
    }),
    { numRuns: 12 },
  );
});
