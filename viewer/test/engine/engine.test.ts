// The engine on real captures: what is on the screen, and what it answers.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { figures as figuresOf } from '../../src/engine/boxes.ts';
import { Engine } from '../../src/engine/engine.ts';
import type { Picture, ViewOptions } from '../../src/engine/messages.ts';
import { LEAST, MOST, NONE, NOTHING, UNKNOWN } from '../../src/engine/shades.ts';
import { fitBox } from '../../src/draw/label.ts';
import { BoxKind } from '../../src/scene.ts';
import * as hash from '../../src/state/hash.ts';

const SAMPLE = new URL('../../../src/opscope/_samples/resnet18_train.opscope', import.meta.url);
const BLOCKS = new URL('../../../tests/data/page/blocks.opscope', import.meta.url);
const BODIES = new URL('./bodies.opscope', import.meta.url);
/** Every operator by itself, in columns: nothing passed over, nothing folded away, every use an edge. */
const EVERYTHING = { constants: true, views: true, plumbing: true, columns: true };
const OPTIONS: ViewOptions = { direction: 'down', split: true, side: true, hidden: [0], constants: false };

async function opened(file: URL, options = OPTIONS): Promise<{ engine: Engine; picture: Picture }> {
  const engine = new Engine();
  await engine.load(new Uint8Array(readFileSync(file)), 'x');
  return { engine, picture: await engine.stage(0, 0, options) };
}

function titles({ scene }: Picture): string[] {
  return Array.from(scene.boxes.title, (id) => scene.texts[id]!);
}

/** Everything that must hold of any picture. */
function check({ scene }: Picture): void {
  const { boxes, edges } = scene;
  for (let i = 0; i < boxes.count; i++) {
    const p = boxes.parent[i]!;
    expect(p).toBeLessThan(i);
    if (p < 0) continue;
    expect(boxes.kind[p]).toBe(BoxKind.Open);
    expect(boxes.x[i]!).toBeGreaterThanOrEqual(boxes.x[p]! - 0.5);
    expect(boxes.y[i]! + boxes.height[i]!).toBeLessThanOrEqual(boxes.y[p]! + boxes.height[p]! + 0.5);
  }
  for (let e = 0; e < edges.count; e++) {
    expect(boxes.kind[edges.source[e]!]).not.toBe(BoxKind.Open);
    expect(edges.start[e + 1]! - edges.start[e]!).toBeGreaterThanOrEqual(2);
  }
}

describe('a training graph', () => {
  it('opens readable: phases, modules, and few boxes', async () => {
    const { picture } = await opened(SAMPLE);
    expect(titles(picture)).toEqual(expect.arrayContaining(['forward', 'backward', 'optimizer', 'resnet18', 'conv1', 'layer1']));
    expect(picture.scene.boxes.count).toBeLessThanOrEqual(40);
    check(picture);
  });

  it('opens forward and backward as far as each other', async () => {
    const { engine, picture } = await opened(SAMPLE);
    const isOpen = (paths: string[]) => engine.ask.items(paths).map((item) => picture.open.includes(item));
    expect(isOpen(['forward:resnet18', 'backward:resnet18'])).toEqual([true, true]);
    expect(isOpen(['forward:resnet18/layer1', 'backward:resnet18/layer1'])).toEqual([false, false]);
  });

  it('shows every operator when all is open, and every use between them', async () => {
    const { engine } = await opened(SAMPLE, { ...OPTIONS, ...EVERYTHING, hidden: [] });
    const picture = engine.openAll();
    const ops = picture.scene.boxes.kind.filter((kind) => kind === BoxKind.Op).length;
    expect(ops).toBe(3502);
    expect(picture.scene.edges.uses.reduce((a, b) => a + b, 0)).toBe(4220);
    check(picture);
  });

  it('counts operators as `opscope info` does, those that stand inside their reader too', async () => {
    const { engine, picture } = await opened(SAMPLE);
    const phases = new Map(engine.ask.children(-1).rows.map((row) => [row.title, row.size]));
    expect(phases.get('forward')).toBe(819);
    expect(phases.get('optimizer')).toBe(1052);
    const { boxes } = picture.scene;
    const at = titles(picture).indexOf('forward');
    expect(boxes.size[at]).toBe(819);
    const details = engine.ask.details(boxes.item[at]!);
    expect(details.size).toBe(819);
    expect(details.phases.reduce((a, b) => a + b, 0)).toBe(819);
  });

  it('leads from a constant inside an operator to that operator', async () => {
    const { engine } = await opened(SAMPLE, { ...OPTIONS, ...EVERYTHING, constants: false });
    const picture = engine.openAll();
    const shown = new Set(picture.scene.boxes.item);
    const constant = (await engine.ask.find('op:array phase:forward')).nodes.find((node) => !shown.has(node))!;
    const { drawnWith, path } = engine.ask.details(constant);
    expect(drawnWith?.kind).toBe('constant');
    expect(path.length).toBeGreaterThan(0);
    const [box] = engine.ask.boxes([constant]).of;
    expect(picture.scene.boxes.item[box!]).toBe(drawnWith!.item);
  });

  it('speaks the language of the page', async () => {
    const { engine } = await opened(SAMPLE);
    const phases = ['甲', '前向', '反向', '丙', '优化器', '其他'];
    const picture = engine.speak({ op: '{n} 个', ops: '{n} 个算子', phases })!;
    expect(titles(picture)).toEqual(expect.arrayContaining(['前向', '反向', '优化器']));
    expect(picture.scene.texts.some((text) => /1,052 个算子/.test(text))).toBe(true);
    expect(engine.ask.children(-1).rows.map((row) => row.title)).toContain('前向');
    check(picture);
  });

  it('has room for the header of an open group', async () => {
    const { picture } = await opened(SAMPLE);
    const { boxes } = picture.scene;
    for (let box = 0; box < boxes.count; box++) {
      if (boxes.kind[box] !== BoxKind.Open) continue;
      const fitted = fitBox(picture.scene, box);
      expect(fitted.title).toBe(picture.scene.texts[boxes.title[box]!]);
      expect(fitted.detail).toBe(picture.scene.texts[boxes.detail[box]!]);
      expect(fitted.count).not.toBe('');
    }
  });

  it('brings back what was unfolded', async () => {
    const { engine, picture } = await opened(BLOCKS);
    const folded = Array.from(picture.scene.boxes.kind).indexOf(BoxKind.Folded);
    const unfolded = engine.unfold(picture.scene.boxes.item[folded]!);
    const [open, apart] = [engine.ask.paths(unfolded.open), engine.ask.paths(unfolded.unfolded)];
    expect(apart).toHaveLength(3); // in every phase
    const again = await opened(BLOCKS);
    expect(titles(again.engine.restore(open, apart))).toEqual(titles(unfolded));
  });

  it('opens and closes one group and leaves the rest', async () => {
    const { engine, picture } = await opened(SAMPLE);
    const [item] = engine.ask.items(['forward:resnet18/layer1']);
    const after = engine.open([item!], true);
    expect(after.scene.boxes.count).toBeGreaterThan(picture.scene.boxes.count);
    check(after);
    expect(engine.open([item!], false).scene.boxes.count).toBe(picture.scene.boxes.count);
  });

  it('draws the same after what it does in spare time, which comes to an end', async () => {
    const { engine } = await opened(SAMPLE);
    const [item] = engine.ask.items(['forward:resnet18/layer1/0']);
    const cold = engine.open([item!], true);
    let steps = 0;
    while (engine.later()) steps++;
    expect(steps).toBeGreaterThan(0);
    expect(steps).toBeLessThan(100);
    expect(engine.later()).toBe(false);
    const warm = engine.open([item!], true);
    expect({ ...warm, scene: { ...warm.scene, number: cold.scene.number } }).toEqual(cold);
  });

  it('folds equal neighbours and unfolds them', async () => {
    const { engine, picture } = await opened(BLOCKS);
    const folded = picture.scene.boxes.kind.indexOf(BoxKind.Folded);
    expect(picture.scene.boxes.repeat[folded]).toBe(4);
    expect(titles(picture)[folded]).toBe('h.0 … 3');
    const after = engine.unfold(picture.scene.boxes.item[folded]!);
    expect(titles(after)).toEqual(expect.arrayContaining(['h.0', 'h.1', 'h.2', 'h.3']));
  });

  it('says on a closed module what it makes, and on an edge what a tensor goes through', async () => {
    const { engine } = await opened(BLOCKS);
    const { scene } = engine.restore(['forward:', 'forward:blocks'], []);
    const details = Array.from(scene.boxes.detail, (id) => scene.texts[id]!);
    expect(details).toEqual(expect.arrayContaining(['Embedding → 2×5×4', 'Block → 2×5×4', 'Linear → 2×5×10']));
    expect(Array.from(scene.edges.label, (id) => scene.texts[id]!)).toContain('10×10 float32 · _unsafe_view, view');
    const shared = scene.edges.uses.findIndex((uses) => uses > 1);
    expect(scene.texts[scene.edges.label[shared]!]).toMatch(/^[\d×]+ \w+ .*\d reads$/);
  });

  it('folds positions and masks into one box, and shows them when asked', async () => {
    const { engine, picture } = await opened(BLOCKS);
    const titled = (p: Picture, title: string) => titles(p).filter((t) => t === title).length;
    expect([titled(picture, 'positions'), titled(picture, 'arange'), titled(picture, 'clamp')]).toEqual([1, 0, 0]);
    expect([picture.plumbing, picture.views].every((n) => n > 0)).toBe(true);
    const all = engine.options({ ...OPTIONS, plumbing: true });
    expect([titled(all, 'positions'), titled(all, 'arange'), titled(all, 'clamp')]).toEqual([0, 1, 1]);
  });

  it('knows gradients, kernels and lines of an operator', async () => {
    const { engine } = await opened(SAMPLE);
    const [conv] = (await engine.ask.find('scope:resnet18/layer1/0/conv1 op:reindex phase:forward')).nodes;
    const details = engine.ask.details(conv!);
    expect(details.path.map((ref) => ref.label)).toEqual(['forward', 'resnet18', 'layer1', '0', 'conv1']);
    expect(details.backward.length).toBeGreaterThan(0);
    expect(details.kernels.length).toBeGreaterThan(0);
    const frame = details.frames[0]!;
    expect(engine.ask.lineNodes(frame.file, frame.line)).toContain(conv);
  });

  it('finds the paths between two operators', async () => {
    const { engine } = await opened(SAMPLE);
    const [a] = (await engine.ask.find('scope:resnet18/conv1 op:reindex phase:forward')).nodes;
    const [b] = (await engine.ask.find('scope:resnet18/maxpool phase:forward')).nodes;
    const between = engine.ask.between(b!, a!);
    expect(between).toContain(a);
    expect(between).toContain(b);
    expect(between.every((node) => engine.ask.trace(a!, 'down').includes(node))).toBe(true);
  });

  it('leaves figures that are not known without a shade', async () => {
    const { engine } = await opened(SAMPLE);
    const { visible, tree } = engine['view'];
    const isBox = Array.from(visible.item, (item, box) => !visible.open[box] && item < tree.nodes + tree.groups);
    // What is open has a figure, and its inside the shades.
    const figures = Array.from(figuresOf(engine['view'], 'output size'), (figure, box) => (isBox[box] ? figure : NaN));
    const { shades, min, max, unknown } = engine.ask.metric('output size').of;
    expect(Array.from(shades, (shade) => shade === NONE)).toEqual(isBox.map((is) => !is));
    expect(Array.from(shades, (shade) => shade === UNKNOWN)).toEqual(figures.map((figure, box) => isBox[box]! && Number.isNaN(figure)));
    expect(shades.filter((shade) => shade === UNKNOWN)).toHaveLength(unknown);
    expect(shades[figures.indexOf(min)]).toBe(min === 0 ? NOTHING : LEAST);
    expect(shades[figures.indexOf(max)]).toBe(MOST);
  });
});

describe('answers that count by box', () => {
  it('say which scene they are about, and no two scenes have one number', async () => {
    const { engine, picture } = await opened(SAMPLE);
    const asked = async () => [
      engine.ask.metric('output size').scene,
      engine.ask.boxes([0]).scene,
      engine.ask.pairs(null).scene,
      engine.ask.kernelOf().scene,
      (await engine.ask.families()).scene,
      engine.ask.playback().scene,
    ];
    const first = picture.scene.number;
    expect(new Set(await asked())).toEqual(new Set([first]));
    const all = engine.openAll().scene;
    expect(all.number).not.toBe(first);
    expect(new Set(await asked())).toEqual(new Set([all.number]));
    expect(engine.ask.metric('output size').of.shades).toHaveLength(all.boxes.count);
    // An edge of the scene before is none of this one.
    const [source, target] = [all.edges.source[0]!, all.edges.target[0]!];
    expect(engine.ask.edgeTensors(first, source, target)).toEqual([]);
    expect(engine.ask.edgeTensors(all.number, source, target)).not.toEqual([]);
  });
});

describe('graphs inside an operator', () => {
  it('open in place and read what is outside', async () => {
    const { engine, picture } = await opened(BODIES);
    expect(titles(picture)).toContain('if');
    const all = engine.openAll();
    expect(titles(all)).toEqual(expect.arrayContaining(['then', 'else', 'relu', 'tanh']));
    check(all);
    const { boxes, edges } = all.scene;
    const relu = titles(all).indexOf('relu');
    const sources = Array.from(edges.target, (target, e) => (target === relu ? titles(all)[edges.source[e]!] : '')).filter(Boolean);
    expect(sources).toEqual(['data']);
    expect(boxes.parent[relu]).toBe(titles(all).indexOf('then'));
  });
});

describe('a damaged file', () => {
  const bytes = () => new Uint8Array(readFileSync(SAMPLE));

  /** Where the packed bytes of a member begin, and where its size stands in the directory at the end. */
  function member(file: Uint8Array, name: string): { data: number; size: number } {
    const text = new TextDecoder('latin1').decode(file);
    return { data: text.indexOf(name) + name.length, size: text.lastIndexOf(name) - 46 + 24 };
  }

  it('is refused in words when a member cannot be unpacked', async () => {
    const file = bytes();
    const { data } = member(file, 'pools/strings.arrow');
    file.fill(0xff, data, data + 40);
    await expect(new Engine().load(file, 'x')).rejects.toThrow('member pools/strings.arrow is damaged');
  });

  it.each([-1, 1])('is refused in words when a member is longer or shorter than announced (%i)', async (off) => {
    const file = bytes();
    const { size } = member(file, 'pools/strings.arrow');
    file[size]! += off;
    await expect(new Engine().load(file, 'x')).rejects.toThrow('member pools/strings.arrow is damaged');
  });
});

describe('the state in the URL', () => {
  it('comes back the same', () => {
    const saved: hash.Saved = {
      capture: 1,
      stage: 2,
      open: ['forward:a/b c', '#4'],
      selection: ['#7'],
      query: 'op:conv -> *',
      view: { x: 10, y: -20, zoom: 0.5 },
      direction: 'right',
      hidden: [0, 4],
      tab: 'ir',
      kind: 'code',
      compare: 'overlay',
      unfolded: ['forward:a'],
      all: '',
      colour: 'MACs',
      flags: 'cl',
      without: ['forward:h/3'],
      alone: [],
      marks: '',
      kernel: 3,
    };
    expect(hash.read(`#${hash.write(saved)}`)).toEqual(saved);
    expect(hash.read(`#${hash.write({ ...saved, all: '*3' })}`).all).toBe('*3');
    expect(hash.read('')).toEqual({
      capture: 0,
      without: [],
      alone: [],
      marks: '',
      stage: 0,
      open: null,
      selection: [],
      query: '',
      view: null,
      direction: 'down',
      hidden: [],
      tab: '',
      kind: '',
      compare: 'after',
      unfolded: [],
      all: '',
      colour: '',
      flags: '',
      kernel: -1,
    });
  });
});
