// A training step as a U, on real captures.

import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Engine } from '../../src/engine/engine.ts';
import type { Picture, ViewOptions } from '../../src/engine/messages.ts';
import { BoxKind, EdgeKind, PHASES } from '../../src/scene.ts';
import { crossings, overlaps, segments } from '../../src/picture/quality.ts';

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

const NETWORKS = new URL('../../../tests/data/networks/', import.meta.url);

async function network(name: string): Promise<{ engine: Engine; picture: Picture }> {
  const engine = new Engine();
  await engine.load(new Uint8Array(readFileSync(new URL(`${name}.opscope`, NETWORKS))), name);
  return { engine, picture: await engine.stage(0, 0, OPTIONS) };
}

/** The boxes that rungs run through, by their titles: none, or a rung would seem to come from there. */
function crossed(picture: Picture): string[] {
  const { boxes, edges, texts } = picture.scene;
  const isAround = (a: number, b: number): boolean => b >= 0 && (a === b || isAround(a, boxes.parent[b]!));
  return rungs(picture).flatMap((e) => {
    const [from, to] = [edges.start[e]!, edges.start[e + 1]! - 1];
    const y = edges.points[2 * from + 1]!;
    const [left, right] = [edges.points[2 * from]!, edges.points[2 * to]!].sort((a, b) => a - b);
    return Array.from(boxes.item.keys()).flatMap((box) => {
      const isApart = boxes.x[box]! >= right! - 1 || boxes.x[box]! + boxes.width[box]! <= left! + 1;
      if (isApart || isAround(box, edges.source[e]!) || isAround(box, edges.target[e]!)) return [];
      // A frame may be passed where nothing is in it at that height; what is in it is looked at by itself.
      return boxes.kind[box] === BoxKind.Open || boxes.y[box]! >= y || boxes.y[box]! + boxes.height[box]! <= y
        ? []
        : [texts[boxes.title[box]!]!];
    });
  });
}

describe('the first picture of a network', () => {
  const names = ['gpt2_train', 'unet_train', 'gan_train', 'clip_train', 'distilled_train', 'checkpointed_train', 'lstm_cells_train'];
  it.each(names)('%s: no line goes back, no rung runs through a box', async (name) => {
    const { picture } = await network(name);
    check(picture);
    expect(picture.scene.boxes.count).toBeLessThanOrEqual(40);
    expect(picture.scene.rows).toBeGreaterThanOrEqual(4);
    expect(crossed(picture)).toEqual([]);
  });

  it('keeps phases whole where a module is called in turns with others', async () => {
    const { engine, picture } = await network('unrolled_train');
    check(picture);
    expect(picture.scene.layout).toBe('u');
    expect(picture.scene.boxes.count).toBeLessThan(20);
    const { tree } = engine['view'];
    for (let node = 0; node < tree.nodes; node++) expect(tree.nodeGroup[node]).not.toBe(0);
  });

  it.each([
    ['vit_train', 0],
    ['unet_train', 18],
    ['llama_train', 0],
    ['resnet50_train', 0],
    ['gpt2_train', 9],
  ])('%s: %i lines cross at most, and no two rungs', async (name, most) => {
    const { picture } = await network(name);
    const { edges } = picture.scene;
    const lines = (isIn: (e: number) => boolean) => {
      const chosen = Array.from(edges.kind.keys()).filter(isIn);
      const points = chosen.map((e) => edges.points.slice(2 * edges.start[e]!, 2 * edges.start[e + 1]!));
      const pointStart = points.reduce((starts, line) => [...starts, starts.at(-1)! + line.length / 2], [0]);
      return segments({ pointStart, points: points.flatMap((line) => [...line]) });
    };
    expect(crossings(lines(() => true))).toBeLessThanOrEqual(most);
    expect(crossings(lines((e) => edges.kind[e] === EdgeKind.Rung))).toBe(0);
  });

  it('leads the gradients of all modules to an optimizer that is one box as one line', async () => {
    const { picture } = await network('unet_train');
    const { boxes, edges } = picture.scene;
    const optimizer = find(picture, 'optimizer', OPTIMIZER);
    const into = Array.from(edges.kind.keys()).filter((e) => edges.target[e] === optimizer);
    expect(into).toHaveLength(1);
    const frame = edges.source[into[0]!]!;
    expect([boxes.kind[frame], boxes.phase[frame], boxes.parent[frame]]).toEqual([BoxKind.Open, BACKWARD, -1]);
  });

  it('gathers operators between modules, never the modules', async () => {
    const { picture } = await network('clip_train');
    for (const title of ['vision_model', 'text_model', 'visual_projection', 'text_projection'])
      for (const phase of [FORWARD, BACKWARD]) expect(find(picture, title, phase), `${title} ${phase}`).toBeGreaterThanOrEqual(0);
  });

  it('puts parameters beside what reads them, where they are boxes', async () => {
    const engine = new Engine();
    await engine.load(new Uint8Array(readFileSync(new URL('gpt2_train.opscope', NETWORKS))), 'gpt2');
    const picture = await engine.stage(0, 0, { ...OPTIONS, constants: true });
    check(picture);
    const { boxes, texts } = picture.scene;
    const weights = Array.from(boxes.item.keys()).filter((box) => /weight|bias/.test(texts[boxes.title[box]!]!));
    // Those of the blocks are in the closed blocks.
    expect(weights.map((box) => texts[boxes.title[box]!]!.split('.').slice(-2).join('.')).sort()).toEqual([
      'ln_f.bias',
      'ln_f.weight',
      'wpe.weight',
      'wte.weight',
    ]);
    for (const box of weights) expect(texts[boxes.title[boxes.parent[box]!]!]).toMatch(/^(?:transformer|model)$/);
  });
});

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
