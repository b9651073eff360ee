// Scenes to draw in tests and measurements.
import { layoutNested } from '../../src/layout/nested.ts';
import { BoxKind, EdgeKind } from '../../src/scene.ts';
import type { Boxes, Scene } from '../../src/scene.ts';
import { textWidth } from '../../src/text/widths.ts';

export function makeBoxes(n: number): Boxes {
  return {
    count: n,
    item: Int32Array.from({ length: n }, (_, i) => i),
    parent: new Int32Array(n).fill(-1),
    x: new Float32Array(n),
    y: new Float32Array(n),
    width: new Float32Array(n),
    height: new Float32Array(n),
    kind: new Uint8Array(n),
    phase: new Uint8Array(n).fill(1),
    depth: new Uint8Array(n),
    title: new Int32Array(n),
    detail: new Int32Array(n),
    size: new Int32Array(n).fill(1),
    repeat: new Int32Array(n).fill(1),
  };
}

/** About `n` operators in open groups of 24, in a square; edges down each group, between groups, and long lanes. */
export function bigScene(n: number): Scene {
  const per = 24;
  const groups = Math.ceil(n / per);
  const across = Math.ceil(Math.sqrt(groups * 1.1));
  const [groupW, groupH] = [4 * 150 + 40, 6 * 78 + 60];
  const boxes = makeBoxes(n + groups);
  const lines: number[][] = [];
  const [source, target, kind]: [number[], number[], number[]] = [[], [], []];
  const texts = ['', 'conv2d', 'batch_norm', 'relu', '[64, 128, 56, 56] f32', 'layer', 'matmul', 'add', 'Bottleneck'];
  const link = (a: number, b: number, k: number, line: number[]): void => {
    source.push(a);
    target.push(b);
    kind.push(k);
    lines.push(line);
  };
  let b = 0;
  let made = 0;
  let last = -1;
  for (let g = 0; g < groups; g++) {
    const [gx, gy] = [(g % across) * (groupW + 60), Math.floor(g / across) * (groupH + 60)];
    const panel = b++;
    boxes.x[panel] = gx;
    boxes.y[panel] = gy;
    boxes.width[panel] = groupW;
    boxes.height[panel] = groupH;
    boxes.kind[panel] = BoxKind.Open;
    boxes.title[panel] = 5;
    boxes.detail[panel] = 8;
    boxes.size[panel] = per;
    const phase = g < groups * 0.45 ? 1 : g < groups * 0.9 ? 2 : g < groups * 0.95 ? 4 : 0;
    boxes.phase[panel] = phase;
    const first = b;
    for (let i = 0; i < per && made < n; i++, made++, b++) {
      boxes.parent[b] = panel;
      boxes.depth[b] = 1;
      boxes.phase[b] = phase;
      boxes.x[b] = gx + 20 + (i % 4) * 150 + ((i * 7) % 20);
      boxes.y[b] = gy + 40 + Math.floor(i / 4) * 78;
      boxes.width[b] = 110 + ((i * 13) % 20);
      boxes.height[b] = 42;
      boxes.title[b] = 1 + (i % 3);
      boxes.detail[b] = 4;
      if (b - 4 >= first) {
        const p = b - 4;
        const [x0, y0] = [boxes.x[p]! + 50, boxes.y[p]! + 42];
        link(p, b, 0, [x0, y0, x0, y0 + 14, boxes.x[b]! + 50, boxes.y[b]! - 12, boxes.x[b]! + 50, boxes.y[b]!]);
      }
      if (last >= 0 && i === 0) {
        const [x0, y0] = [boxes.x[last]! + 50, boxes.y[last]! + 42];
        link(last, b, g % 5 === 0 ? EdgeKind.Lane : 0, [
          x0,
          y0,
          x0,
          y0 + 40,
          gx - 30,
          y0 + 40,
          gx - 30,
          gy - 30,
          boxes.x[b]! + 50,
          gy - 30,
          boxes.x[b]! + 50,
          boxes.y[b]!,
        ]);
      }
    }
    last = b - 1;
  }
  const start = new Int32Array(lines.length + 1);
  lines.forEach((line, e) => (start[e + 1] = start[e]! + line.length / 2));
  const points = new Float32Array(2 * start[lines.length]!);
  lines.forEach((line, e) => points.set(line, 2 * start[e]!));
  return {
    width: across * (groupW + 60),
    height: Math.ceil(groups / across) * (groupH + 60),
    direction: 'down',
    number: 0,
    layout: 'plain',
    rows: 0,
    texts,
    boxes,
    edges: {
      count: lines.length,
      source: Int32Array.from(source),
      target: Int32Array.from(target),
      start,
      points,
      kind: Uint8Array.from(kind),
      uses: new Int32Array(lines.length).fill(1),
      bytes: Float64Array.from(lines, (_, e) => 2 ** (8 + (e % 22))),
      label: new Int32Array(lines.length).fill(4),
    },
  };
}

interface Item {
  title: string;
  detail?: string;
  kind?: number;
  phase?: number;
  parent?: number;
  size?: number;
  repeat?: number;
}

/** Part of a training step of a small model, laid out as on the page. */
export function smallScene(direction: 'down' | 'right' = 'down', open = true): Scene {
  const items: Item[] = [];
  const pairs: [number, number, string][] = [];
  const add = (item: Item): number => items.push(item) - 1;
  const x = add({ title: 'input', detail: '[32, 3, 224, 224] f32', kind: BoxKind.Input, phase: 5 });
  const model = add({ title: 'resnet', detail: 'ResNet', kind: BoxKind.Open, size: 175 });
  const stem = add({ title: 'stem', detail: 'Sequential · 4 ops', kind: BoxKind.Closed, parent: model, size: 4 });
  let before = stem;
  pairs.push([x, stem, '[32, 3, 224, 224] f32']);
  for (let l = 1; l <= 2; l++) {
    const layer = add({
      title: `layer${l}`,
      detail: 'Sequential',
      kind: open || l === 1 ? BoxKind.Open : BoxKind.Closed,
      parent: model,
      size: 30,
    });
    if (!open && l === 2) {
      pairs.push([before, layer, '']);
      before = layer;
      continue;
    }
    const block = add({ title: '0', detail: 'Bottleneck', kind: BoxKind.Open, parent: layer, size: 10 });
    const conv = add({ title: 'conv2d', detail: '[32, 64, 56, 56] f32', parent: block });
    const norm = add({ title: 'batch_norm', detail: '[32, 64, 56, 56] f32', parent: block });
    const relu = add({ title: 'relu', parent: block });
    const down = add({ title: 'downsample_with_a_long_name.conv2d_stride_two', detail: '[32, 256, 56, 56] f32', parent: block });
    const sum = add({ title: 'add', detail: '[32, 256, 56, 56] f32', parent: block });
    pairs.push(
      [before, conv, '[32, 64, 56, 56] f32'],
      [conv, norm, '[32, 64, 56, 56] f32'],
      [norm, relu, ''],
      [relu, sum, ''],
      [before, down, ''],
      [down, sum, ''],
    );
    const rest = add({ title: '1 … 32', detail: 'Bottleneck · 10 ops', kind: BoxKind.Folded, parent: layer, size: 20, repeat: 32 });
    pairs.push([sum, rest, '[32, 256, 56, 56] f32']);
    before = rest;
  }
  const head = add({ title: 'fc', detail: 'Linear · 2 ops', kind: BoxKind.Closed, parent: model, size: 2 });
  const loss = add({ title: 'cross_entropy', detail: '[] f32' });
  pairs.push([before, head, '[32, 2048] f32'], [head, loss, '[32, 1000] f32']);
  const grad = add({ title: 'backward', detail: 'resnet', kind: BoxKind.Open, phase: 2, size: 210 });
  const g1 = add({ title: 'nll_loss_backward', detail: '[32, 1000] f32', phase: 2, parent: grad });
  const g2 = add({ title: 'mm', detail: '[2048, 1000] f32', phase: 2, parent: grad });
  const g3 = add({ title: 'convolution_backward', detail: '[64, 64, 1, 1] f32', phase: 2, parent: grad });
  const again = add({ title: 'recompute', detail: 'checkpoint · 12 ops', phase: 3, kind: BoxKind.Closed, parent: grad, size: 12 });
  pairs.push([loss, g1, '[] f32'], [g1, g2, ''], [g2, g3, ''], [again, g3, ''], [head, g2, '[32, 2048] f32']);
  const step = add({ title: 'sgd', detail: '[64, 64, 1, 1] f32', phase: 4 });
  const start = add({ title: 'uniform_', detail: '[64, 64, 1, 1] f32', phase: 0 });
  pairs.push([g3, step, ''], [start, step, '']);
  return laidOut(items, pairs, direction);
}

const known = new Map<string, number>();

function laidOut(items: Item[], pairs: [number, number, string][], direction: 'down' | 'right'): Scene {
  const n = items.length;
  const boxes = makeBoxes(n);
  const texts = [''];
  const text = (t: string | undefined): number => (t ? (texts.includes(t) ? texts.indexOf(t) : texts.push(t) - 1) : 0);
  const paths: string[] = [];
  items.forEach((item, b) => {
    paths.push(`${item.parent === undefined ? '' : paths[item.parent]}/${item.title}`);
    // The same thing has the same number in every scene, open or closed.
    if (!known.has(paths[b]!)) known.set(paths[b]!, known.size);
    boxes.item[b] = known.get(paths[b]!)!;
    boxes.parent[b] = item.parent ?? -1;
    boxes.depth[b] = item.parent === undefined ? 0 : boxes.depth[item.parent]! + 1;
    boxes.kind[b] = item.kind ?? BoxKind.Op;
    boxes.phase[b] = item.phase ?? 1;
    boxes.size[b] = item.size ?? 1;
    boxes.repeat[b] = item.repeat ?? 1;
    boxes.title[b] = text(item.title);
    boxes.detail[b] = text(item.detail);
    const badge = boxes.repeat[b]! > 1 ? textWidth(`×${boxes.repeat[b]}`, 13, true) + 16 : 0;
    boxes.width[b] = Math.min(300, Math.max(56, 26 + Math.max(textWidth(item.title, 13, true) + badge, textWidth(item.detail ?? '', 11))));
    boxes.height[b] = item.detail ? 42 : 28;
  });
  const source = Int32Array.from(pairs, (p) => p[0]);
  const target = Int32Array.from(pairs, (p) => p[1]);
  const laid = layoutNested(
    {
      n,
      parent: boxes.parent,
      open: boxes.kind.map((k) => (k === BoxKind.Open ? 1 : 0)),
      width: boxes.width,
      height: boxes.height,
      header: 30,
      padding: 14,
      source,
      target,
    },
    { direction, gapX: 24, gapY: 34 },
  );
  return {
    width: laid.totalWidth,
    height: laid.totalHeight,
    direction,
    number: 0,
    layout: 'plain',
    rows: 0,
    texts,
    boxes: { ...boxes, x: laid.x, y: laid.y, width: laid.width, height: laid.height },
    edges: {
      count: pairs.length,
      source,
      target,
      start: laid.pointStart,
      points: laid.points,
      kind: laid.edgeKind,
      uses: new Int32Array(pairs.length).fill(1),
      bytes: Float64Array.from(pairs, (_, e) => 2 ** (10 + e)),
      label: Int32Array.from(pairs, (p) => text(p[2])),
    },
  };
}
