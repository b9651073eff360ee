// From what is visible to what is drawn: sizes by text, places by layout.

import type { Graph, Pools } from '../wire/capture.ts';
import { layoutNested, type LayoutCache } from '../layout/nested.ts';
import type { NestedGraph, NestedLayout, Options } from '../layout/types.ts';
import { compact } from '../picture/sizes.ts';
import { BoxKind, PHASES, ROLES, type Scene } from '../scene.ts';
import { textWidth } from '../text/widths.ts';
import { layoutColumns } from '../layout/columns.ts';
import type { Csr } from '../wire/csr.ts';
import { Titles } from './titles.ts';
import { groupClass, groupTitle, type Tree } from './tree.ts';
import type { Types } from './types.ts';
import type { Visible } from './visible.ts';

export const TITLE_SIZE = 13;
export const DETAIL_SIZE = 11;
const SIDES = 26; // left strip and right padding
const IN_HEADER = 52; // the same in the header of an open group, with the gaps between title, class and count
const NARROWEST = 56;
const WIDEST = 300;
const TWO_LINES = 42;
const ONE_LINE = 28;
const HEADER = 30;
const [FORWARD, BACKWARD, RECOMPUTE, OPTIMIZER, OTHER] = [
  PHASES.indexOf('forward'),
  PHASES.indexOf('backward'),
  PHASES.indexOf('recompute'),
  PHASES.indexOf('optimizer'),
  PHASES.indexOf('other'),
];
const PARAMETER = ROLES.indexOf('parameter');
const GRADIENT = ROLES.indexOf('gradient');
const PADDING = 14;
const LABEL_LINE = 14; // what a line of words on edges takes

/** Longer chains fold into columns. A chain of n boxes is about as wide as high when it is folded at this height. */
function tallest(boxes: number): number {
  return Math.max(6000, 220 * Math.sqrt(boxes));
}

/** Text by number, each once, with its width as a title or a detail. */
class Names {
  readonly texts: string[] = [''];
  private ids = new Map<string, number>([['', 0]]);
  private titles: number[] = [];
  private details: number[] = [];

  titleWidth(id: number): number {
    return (this.titles[id] ??= textWidth(this.texts[id]!, TITLE_SIZE, true));
  }

  detailWidth(id: number): number {
    return (this.details[id] ??= textWidth(this.texts[id]!, DETAIL_SIZE));
  }

  id(text: string): number {
    let id = this.ids.get(text);
    if (id === undefined) {
      id = this.texts.length;
      this.texts.push(text);
      this.ids.set(text, id);
    }
    return id;
  }
}

interface SceneInput {
  graph: Graph;
  pools: Pools;
  tree: Tree;
  types: Types;
  visible: Visible;
  direction: 'down' | 'right';
  side: boolean; // phases beside each other
  cache: LayoutCache;
  outputs: () => Csr; // values by producing operator
  counts: (n: number) => string; // "83 ops" in the language of the page
  place?: (value: number) => string; // of a gradient: the device that it lay on
  words?: readonly string[] | null; // what is written on edges, by value; there is room for it in the drawing
  fast?: boolean; // lay out as a large graph is laid out
}

export function buildScene(input: SceneInput): Scene {
  const { visible: v } = input;
  const names = new Names();
  const boxes = new BoxTexts(input, names);
  for (let box = 0; box < v.count; box++) boxes.describe(box);
  const { bytes, label, weight } = describeEdges(input, names);
  const laid = layout(input, boxes, weight);
  return {
    width: laid.totalWidth,
    height: laid.totalHeight,
    direction: input.direction,
    texts: names.texts,
    boxes: {
      count: v.count,
      // Copies: what a scene holds is moved to the page, and the engine goes on with its own.
      item: v.item.slice(),
      parent: v.parent.slice(),
      x: laid.x,
      y: laid.y,
      width: laid.width,
      height: laid.height,
      kind: boxes.kind,
      phase: boxes.phase,
      depth: boxes.depth,
      title: boxes.title,
      detail: boxes.detail,
      size: boxes.size,
      repeat: v.repeat.slice(),
    },
    edges: {
      count: v.source.length,
      source: v.source.slice(),
      target: v.target.slice(),
      start: laid.pointStart,
      points: laid.points,
      kind: laid.edgeKind,
      uses: v.uses.slice(),
      bytes,
      label,
    },
  };
}

/** What is written in each box, and how large that makes it. */
class BoxTexts {
  readonly width: Float32Array;
  readonly height: Float32Array;
  readonly kind: Uint8Array;
  readonly phase: Uint8Array;
  readonly depth: Uint8Array;
  readonly title: Int32Array;
  readonly detail: Int32Array;
  readonly size: Int32Array;
  readonly #input: SceneInput;
  readonly #names: Names;
  readonly #titles: Titles;
  #outputs: Csr | undefined;

  constructor(input: SceneInput, names: Names) {
    const n = input.visible.count;
    this.width = new Float32Array(n);
    this.height = new Float32Array(n);
    this.kind = new Uint8Array(n);
    this.phase = new Uint8Array(n);
    this.depth = new Uint8Array(n);
    this.title = new Int32Array(n);
    this.detail = new Int32Array(n);
    this.size = new Int32Array(n).fill(1);
    this.#input = input;
    this.#names = names;
    this.#titles = new Titles(input.graph, input.pools);
  }

  /** Boxes have to be described in order: parents first. */
  describe(box: number): void {
    const { tree, visible } = this.#input;
    const item = visible.item[box]!;
    const around = visible.parent[box]!;
    this.depth[box] = around < 0 ? 0 : Math.min(this.depth[around]! + 1, 255);
    if (item < tree.nodes) this.#describeOp(box, item);
    else if (item < tree.nodes + tree.groups) this.#describeGroup(box, item - tree.nodes);
    else this.#describeInput(box, item - tree.nodes - tree.groups);
    this.#measure(box);
  }

  #write(box: number, title: string, detail: string): void {
    this.title[box] = this.#names.id(title);
    this.detail[box] = this.#names.id(detail);
  }

  /** An operator shows the type of its first output, or of the first that has one. */
  #describeOp(box: number, node: number): void {
    const { graph, pools, types } = this.#input;
    this.kind[box] = BoxKind.Op;
    this.phase[box] = graph.phase[node]!;
    const { start, item } = (this.#outputs ??= this.#input.outputs());
    let detail: string;
    if (start[node + 1]! === start[node]!) detail = target(graph, pools, node);
    else {
      const made = item.subarray(start[node]!, start[node + 1]!);
      const value = made.find((one) => types.text(graph.type[one]!) !== '') ?? made[0]!;
      detail = [gradientOf(graph, pools, value), types.text(graph.type[value]!)].filter(Boolean).join(' · ');
    }
    this.#write(box, this.#titles.of(node), detail);
  }

  #describeGroup(box: number, group: number): void {
    const { graph, pools, tree, visible: v } = this.#input;
    this.kind[box] = v.open[box] ? BoxKind.Open : v.repeat[box]! > 1 ? BoxKind.Folded : BoxKind.Closed;
    this.phase[box] = tree.phase[group]! >= 0 ? tree.phase[group]! : graph.phase[tree.first[group]!]!;
    this.size[box] = tree.count[group]!;
    let title = groupTitle(tree, pools, group);
    if (v.last[box]! >= 0) title += ` … ${groupTitle(tree, pools, v.last[box]! - tree.nodes)}`;
    const cls = groupClass(tree, pools, group);
    const count = this.#input.counts(tree.count[group]!);
    this.#write(box, title, v.open[box] ? cls : cls ? `${cls} · ${count}` : count);
  }

  #describeInput(box: number, value: number): void {
    const { graph, pools, types } = this.#input;
    this.kind[box] = BoxKind.Input;
    this.phase[box] = OTHER;
    this.#write(box, pools.strings.at(graph.valueName[value]!) || 'input', types.text(graph.type[value]!));
  }

  #measure(box: number): void {
    const { open, repeat } = this.#input.visible;
    const title = this.#names.titleWidth(this.title[box]!);
    const detail = this.#names.detailWidth(this.detail[box]!);
    const badge = repeat[box]! > 1 ? textWidth(`×${repeat[box]!}`, TITLE_SIZE, true) + 16 : 0;
    const widest = open[box]
      ? title + detail + textWidth(compact(this.size[box]!), DETAIL_SIZE) + IN_HEADER // on one line
      : Math.max(title + badge, detail) + SIDES;
    this.width[box] = Math.min(WIDEST, Math.max(NARROWEST, widest));
    this.height[box] = this.detail[box] ? TWO_LINES : ONE_LINE;
  }
}

/** What edges carry. Those of parameters and inputs weigh less: they follow the others. */
function describeEdges({ graph, types, visible: v, place, words }: SceneInput, names: Names) {
  const edges = v.source.length;
  const bytes = new Float64Array(edges);
  const label = new Int32Array(edges);
  const weight = new Float32Array(edges);
  for (let e = 0; e < edges; e++) {
    const value = v.value[e]!;
    bytes[e] = types.bytes(graph.type[value]!);
    const text = words?.[value] ?? [types.text(graph.type[value]!), place?.(value)].filter(Boolean).join(' · ');
    label[e] = names.id(v.uses[e]! > 1 ? (text ? `${v.uses[e]} × ${text}` : `${v.uses[e]}`) : text);
    weight[e] = graph.producer[value]! < 0 ? 0.2 : 1;
  }
  return { bytes, label, weight };
}

function layout(input: SceneInput, { width, height }: BoxTexts, weight: Float32Array): NestedLayout {
  const { visible: v, direction, cache } = input;
  const nested: NestedGraph = {
    n: v.count,
    parent: v.parent,
    open: v.open,
    width,
    height,
    header: HEADER,
    padding: PADDING,
    source: v.source,
    target: v.target,
    weight,
    order: v.order,
    key: (box: number) => `${v.item[box]}`,
  };
  const quality = v.count < 3000 && !input.fast ? 'good' : 'fast';
  const lines = (input.words ?? []).reduce((most, text) => Math.max(most, text ? text.split('\n').length : 0), 0);
  const options: Options = { direction, gapX: lines ? 44 : 24, gapY: 34 + lines * LABEL_LINE, maxHeight: tallest(v.count), quality };
  const column = input.side ? columns(input.tree, v) : null;
  return column ? layoutColumns(nested, column, options, cache) : layoutNested(nested, options, cache);
}

/** What an operator without outputs is there for: the parameter it writes to. */
function target(graph: Graph, pools: Pools, node: number): string {
  for (let use = graph.useStart[node]!; use < graph.useStart[node + 1]!; use++) {
    const value = graph.useValue[use]!;
    if (value >= 0 && graph.role[value] === PARAMETER) return pools.strings.at(graph.valueName[value]!);
  }
  return '';
}

/** `weight.grad` for what becomes the gradient of a parameter; its module is around it. */
function gradientOf(graph: Graph, pools: Pools, value: number): string {
  if (graph.role[value] !== GRADIENT) return '';
  return /(?:^|\.)([^.]+\.grad)$/.exec(pools.strings.at(graph.valueName[value]!))?.[1] ?? '';
}

/** The column of each box: training phases beside each other, what comes before them above the first. */
function columns(tree: Tree, v: Visible): Int32Array | null {
  const column = new Int32Array(v.count);
  const seen = new Map<number, number>();
  for (const phase of [FORWARD, RECOMPUTE, BACKWARD, OPTIMIZER]) {
    for (let box = 0; box < v.count; box++) {
      const group = v.item[box]! - tree.nodes;
      if (v.parent[box]! < 0 && group >= 0 && group < tree.groups && tree.isPhase[group] && tree.phase[group] === phase)
        seen.set(phase, seen.size);
    }
  }
  if (seen.size < 2) return null;
  for (let box = 0; box < v.count; box++) {
    const around = v.parent[box]!;
    const group = v.item[box]! - tree.nodes;
    column[box] = around >= 0 ? column[around]! : group >= 0 && group < tree.groups ? (seen.get(tree.phase[group]!) ?? 0) : 0;
  }
  return column;
}
