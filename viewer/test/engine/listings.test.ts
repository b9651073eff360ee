// The framework's own texts and their lines, on real captures of PyTorch.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Engine } from '../../src/engine/engine.ts';
import { Listings, nodesAt, splitLines } from '../../src/engine/listings.ts';
import type { ViewOptions } from '../../src/engine/messages.ts';
import { shortOp } from '../../src/engine/titles.ts';
import { BoxKind } from '../../src/scene.ts';

const OPTIONS: ViewOptions = { direction: 'down', split: true, side: true, hidden: [], constants: false };

async function opened(name: string, stage = 0, options = OPTIONS) {
  const engine = new Engine();
  const bytes = new Uint8Array(
    readFileSync(new URL(`../../../tests/data/${name.includes('/') ? name : `page/${name}`}.opscope`, import.meta.url)),
  );
  const info = await engine.load(bytes, name);
  const picture = await engine.stage(0, stage, options);
  return { engine, info, picture };
}

function listings(text: string, pairs: [number, number][], nodes = 10): Listings {
  const [line, node] = [0, 1].map((i) => pairs.map((pair) => pair[i]!));
  return new Listings(new Map([['code', { text: () => text, line: line!, node: node! }]]), nodes);
}

describe('lines and operators', () => {
  it('are joined both ways, sorted by line', () => {
    const texts = listings('a\nb\nc', [
      [3, 7],
      [1, 2],
      [1, 0],
    ]);
    const pairs = texts.pairs('code');
    expect([...pairs]).toEqual([1, 0, 1, 2, 3, 7]);
    expect(nodesAt(pairs, 1)).toEqual([0, 2]);
    expect(nodesAt(pairs, 2)).toEqual([]);
    expect(nodesAt(pairs, 3)).toEqual([7]);
    expect(nodesAt(pairs, 4)).toEqual([]);
    expect(texts.lines('code', [2, 0, 7])).toEqual([1, 3]);
    expect(texts.lines('code', [5])).toEqual([]);
  });

  it('leave out what fits no line and no operator', () => {
    const odd: [number, number][] = [
      [0, 1],
      [1, -1],
      [1, 10],
    ];
    expect(listings('a', odd).pairs('code')).toHaveLength(0);
  });

  it('kinds come in a fixed order', () => {
    const none = { text: () => '', line: [], node: [] };
    const texts = new Map(['zeta', 'breaks', 'native', 'table', 'code'].map((kind) => [kind, none]));
    expect(new Listings(texts, 1).kinds).toEqual(['table', 'code', 'native', 'breaks', 'zeta']);
  });

  it('lines are those of Python', () => {
    expect(splitLines('a\r\nb\n\nc\u2028d\fe\n')).toEqual(['a', 'b', '', 'c', 'd', 'e']);
    expect(splitLines('')).toEqual([]);
  });
});

describe('a capture with texts', () => {
  it('says which texts each stage has', async () => {
    const { info } = await opened('joint');
    expect(info.stages.map((stage) => [stage.name, stage.after, stage.listings])).toEqual([
      ['joint', null, ['table', 'code', 'native']],
      ['forward', 0, ['table', 'code', 'native']],
      ['backward', 0, ['table', 'code', 'native']],
    ]);
  });

  it('marks the line of an operator, and all lines of a module', async () => {
    const { engine } = await opened('joint');
    const { text, pairs } = engine.ask.listing('code');
    const [sigmoid] = (await engine.ask.find('op:aten.sigmoid')).nodes;
    const [line] = engine.ask.listingLines('code', [sigmoid!]);
    expect(splitLines(text)[line! - 1]).toContain('sigmoid = torch.ops.aten.sigmoid.default(addmm)');
    expect(nodesAt(pairs, line!)).toEqual([sigmoid]);
    const [first] = engine.ask.items(['forward:first']);
    const lines = engine.ask.listingLines('code', [first!]).map((at) => splitLines(text)[at - 1]!.split(' = ')[0]!.trim());
    expect(lines).toEqual(['t', 'addmm']);
  });

  it('says the same in a file of version 2', async () => {
    const [older, newer] = [await opened('older/joint-v2'), await opened('joint')];
    expect(newer.engine.ask.listing('code').pairs.length).toBeGreaterThan(0);
    for (const kind of ['table', 'code', 'native']) expect(older.engine.ask.listing(kind)).toEqual(newer.engine.ask.listing(kind));
  });

  it('what is inside an operator is on the line of that operator', async () => {
    const { engine, info } = await opened('branches', 1);
    const relu = (await engine.ask.find('op:aten.relu')).nodes[0]!;
    expect(relu).toBeGreaterThanOrEqual(info.stages[1]!.nodes);
    const [line] = engine.ask.listingLines('native', [relu]);
    expect(splitLines(engine.ask.listing('native').text)[line! - 1]).toContain('prim::If');
  });

  it('keeps a selection from stage to stage', async () => {
    const { engine } = await opened('joint');
    const [sigmoid] = (await engine.ask.find('op:aten.sigmoid')).nodes;
    const paths = await engine.ask.across([sigmoid!], 0, 1);
    await engine.stage(0, 1, OPTIONS);
    expect(engine.ask.items(paths).map((item) => engine.ask.details(item).op)).toEqual(['aten.sigmoid']);
  });
});

describe('what is drawn', () => {
  it('copies of saved tensors are passed over unless they are asked for', async () => {
    const { engine, picture } = await opened('step');
    const titles = (p: typeof picture) => Array.from(p.scene.boxes.title, (id) => p.scene.texts[id]!);
    engine.options({ ...OPTIONS, columns: true });
    const all = engine.openAll();
    const edges = (p: typeof picture) =>
      Array.from(p.scene.edges.source, (source, e) => `${titles(p)[source]} > ${titles(p)[p.scene.edges.target[e]!]}`);
    expect(all.saved).toEqual([0, 1, 1, 0, 0, 0]);
    expect(edges(all)).toContain('sigmoid > sigmoid_backward');
    const kept = (await engine.ask.find('op:aten.detach phase:forward')).nodes;
    expect(kept).toHaveLength(1);
    expect(engine.ask.details(kept[0]!).drawnWith?.label).toBe('sigmoid');
    expect(engine.ask.boxes(kept)).toEqual(engine.ask.boxes((await engine.ask.find('op:aten.sigmoid')).nodes.slice(0, 1)));
    engine.options({ ...OPTIONS, columns: true, saved: true });
    const every = engine.openAll();
    expect(edges(every)).toEqual(expect.arrayContaining(['sigmoid > detach', 'detach > detach', 'detach > sigmoid_backward']));
    expect(every.scene.boxes.count).toBe(all.scene.boxes.count + 2);
  });

  it('data goes through the branches of an operator to the operator', async () => {
    const { engine } = await opened('branches', 1);
    const { scene } = engine.openAll();
    const titles = Array.from(scene.boxes.title, (id) => scene.texts[id]!);
    const into = (title: string) =>
      Array.from(scene.edges.target, (target, e) => (titles[target] === title ? titles[scene.edges.source[e]!]! : ''))
        .filter(Boolean)
        .sort();
    expect(into('If')).toEqual(['Bool', 'relu', 'tanh']);
    expect(into('relu')).toEqual(['linear']);
    expect(titles.filter((title, box) => title === 'If' && scene.boxes.kind[box] === BoxKind.Op)).toHaveLength(1);
  });

  it('calls and reads of attributes say what they call and read', async () => {
    const { picture } = await opened('branches');
    const titles = Array.from(picture.scene.boxes.title, (id) => picture.scene.texts[id]!);
    expect(titles).toEqual(expect.arrayContaining(['.first', 'first.forward()', '.second', 'second.forward()']));
  });

  it.each([
    ['aten.add.Tensor', 'add'],
    ['torch.ops.aten.addmm.default', 'addmm'],
    ['torch.nn.functional.linear', 'linear'],
    ['torch.conv2d', 'conv2d'],
    ['operator.iadd', 'iadd'],
    ['Tensor.view', 'view'],
    ['nn.Conv2d', 'Conv2d'],
    ['mylib.scaled', 'mylib.scaled'],
    ['torch.nn.modules.conv.Conv2d', 'torch.nn.modules.conv.Conv2d'],
    ['binary.add', 'add'],
    ['reduce.add', 'reduce.add'],
  ])('%s reads as %s', (op, title) => {
    expect(shortOp(op)).toBe(title);
  });
});
