// From what is visible to what is drawn: sizes by text, places by layout.

import type { Graph, Pools } from '../wire/capture.ts';
import { layoutNested, type LayoutCache } from '../layout/nested.ts';
import type { NestedGraph, NestedLayout, Options } from '../layout/types.ts';
import { compact } from '../picture/sizes.ts';
import { BoxKind, EdgeKind, PHASES, ROLES, type Scene } from '../scene.ts';
import { textWidth } from '../text/widths.ts';
import { layoutColumns } from '../layout/columns.ts';
import { layoutTurn } from '../layout/uturn.ts';
import { row, type Csr } from '../wire/csr.ts';
import type { EngineWords } from './messages.ts';
import { Titles } from './titles.ts';
import { groupClass, groupTitle, SECTION, upTo, type Tree } from './tree.ts';
import { bytesText } from '../text/figures.ts';
import type { Types } from './types.ts';
import type { Turned } from './uturn.ts';
import type { Visible } from './visible.ts';

export const TITLE_SIZE = 13;
export const DETAIL_SIZE = 11;
const LONGEST_NOTE = 90;
const SIDES = 26; // left strip and right padding
const IN_HEADER = 52; // the same in the header of an open group, with the gaps between title, class and count
const NARROWEST = 56;
const WIDEST = 380;
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

function phaseOf({ graph, tree, visible: v }: SceneInput, box: number): number {
  const item = v.item[box]!;
  if (item < tree.nodes) return graph.phase[item]!;
  const group = item - tree.nodes;
  return group >= tree.groups ? OTHER : tree.phase[group]! >= 0 ? tree.phase[group]! : graph.phase[tree.first[group]!]!;
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
  read: Int32Array; // by use: the value that is read, seen as the reader sees it
  turned?: Turned | null; // the visible boxes as a U
  going?: readonly number[]; // values that only operators which are not drawn read
  coming?: readonly number[]; // values from operators that are not drawn, as inputs
  unread?: (nodes: number[]) => Set<number>; // those whose results nothing reads
  drawnWords?: Partial<EngineWords>;
  place?: (value: number) => string; // of a gradient: the device that it lay on
  words?: readonly string[] | null; // what is written on edges, by value; there is room for it in the drawing
  note?: (node: number) => string; // what stands below its title instead of what it makes
  fast?: boolean; // lay out as a large graph is laid out
}

export function buildScene(input: SceneInput): Scene {
  const { visible: v } = input;
  const names = new Names();
  const boxes = new BoxTexts(input, names);
  boxes.findOutputs();
  for (let box = 0; box < v.count; box++) boxes.describe(box);
  const { bytes, label, weight } = describeEdges(input, names);
  const { laid, layout } = place(input, boxes, weight);
  // Edges that only hold boxes in place are not drawn.
  const drawn = input.turned?.drawn ?? v.source.length;
  return {
    number: 0, // nobody asks about it
    layout,
    rows: input.turned ? pairedRows(input.turned, laid) : 0,
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
      count: drawn,
      source: v.source.slice(0, drawn),
      target: v.target.slice(0, drawn),
      start: laid.pointStart.slice(0, drawn + 1),
      points: laid.points,
      kind: laid.edgeKind
        .slice(0, drawn)
        .map((kind, e) => (kind === EdgeKind.Rung && Number.isNaN(input.turned!.kept[e]!) ? EdgeKind.Normal : kind)),
      uses: v.uses.slice(0, drawn),
      bytes: bytes.slice(0, drawn),
      label: label.slice(0, drawn),
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
  readonly #unread: Set<number>;
  /** By box: the value that goes on from it, or -1. */
  #result: Int32Array;

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
    this.#result = new Int32Array(n).fill(-1);
    const ops = Array.from(input.visible.item).filter((item) => item < input.tree.nodes);
    this.#unread = input.unread?.(ops) ?? new Set();
  }

  /** What a module makes is what others read of it, in its own phase if they do: the largest, and of equal ones the last. */
  findOutputs(): void {
    const { graph, tree, types, visible: v } = this.#input;
    const rank = new Float64Array(v.count).fill(-1);
    for (let e = 0; e < v.source.length; e++) {
      const [from, to, value] = [v.source[e]!, v.target[e]!, v.value[e]!];
      const group = v.item[from]! - tree.nodes;
      if (value < 0 || group < 0 || group >= tree.groups) continue;
      const same = phaseOf(this.#input, from) === phaseOf(this.#input, to);
      const now = (same ? 1e18 : 0) + Math.max(0, types.bytes(graph.type[value]!)) * 4096 + graph.producer[value]! / graph.nodes;
      if (now > rank[from]!) [rank[from], this.#result[from]] = [now, this.#seenLast(group, e)];
    }
    // What goes on to nothing that is drawn: a result of the graph.
    for (const value of [...graph.outputs, ...(this.#input.going ?? [])]) {
      const node = graph.producer[value] ?? -1;
      const box = node < 0 ? -1 : (v.groupBox[tree.home[node]!] ?? -1);
      if (box >= 0 && !v.open[box] && phaseOf(this.#input, box) === graph.phase[node] && rank[box]! < 1e18)
        [rank[box], this.#result[box]] = [1e18 - 1, value];
    }
  }

  /** The value of an edge as it leaves a module: what the module does to its shape is done. */
  #seenLast(group: number, e: number): number {
    const { graph, tree, visible: v, read } = this.#input;
    const value = v.value[e]!;
    for (let at = v.use[e]! < 0 ? value : read[v.use[e]!]!; at >= 0 && at !== value;) {
      const node = graph.producer[at]!;
      if (node < 0) break;
      for (let g = tree.home[node]!; g >= 0; g = tree.parent[g]!) if (g === group) return at;
      at = graph.useValue[graph.useStart[node]!]!;
    }
    return value;
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
    let detail = this.#input.note?.(node) ?? '';
    if (detail) detail = detail.length > LONGEST_NOTE ? `${detail.slice(0, LONGEST_NOTE)}…` : detail;
    else if (start[node + 1]! === start[node]!) detail = target(graph, pools, node);
    else {
      const made = item.subarray(start[node]!, start[node + 1]!);
      const value = made.find((one) => types.text(graph.type[one]!) !== '') ?? made[0]!;
      const note = this.#unread.has(node) ? (this.#input.drawnWords?.unread ?? 'not read') : '';
      detail = [gradientOf(graph, pools, value), types.text(graph.type[value]!), note].filter(Boolean).join(' · ');
    }
    this.#write(box, this.#titles.of(node), detail);
  }

  #describeGroup(box: number, group: number): void {
    const { pools, tree, visible: v } = this.#input;
    this.kind[box] = v.open[box] ? BoxKind.Open : v.repeat[box]! > 1 ? BoxKind.Folded : BoxKind.Closed;
    this.phase[box] = phaseOf(this.#input, box);
    this.size[box] = tree.count[group]!;
    let title = groupTitle(tree, pools, group);
    if (v.last[box]! >= 0) title = upTo(title, groupTitle(tree, pools, v.last[box]! - tree.nodes));
    const part = tree.part[group]! && !tree.isPhase[group] ? this.#part(group) : '';
    const cls = [groupClass(tree, pools, group), part].filter(Boolean).join(' · ');
    if (v.open[box]) this.#write(box, title, cls);
    else this.#write(box, title, this.#about(box, group, cls));
  }

  #part(group: number): string {
    const { tree, drawnWords } = this.#input;
    const text = drawnWords?.part ?? 'part {i} of {n}';
    return text.replace('{i}', String(tree.part[group]!)).replace('{n}', String(tree.parts[group]!));
  }

  /** `Linear → 2×64×768` of a closed module; how many operators it has where nothing is known to go on from it. */
  #about(box: number, group: number, cls: string): string {
    const { graph, tree, types, visible: v, counts } = this.#input;
    const count = counts(tree.count[group]!);
    const isSection = tree.purpose[group] === SECTION;
    const isOwn = tree.purpose[group]! < 0 || isSection;
    const value = tree.isPhase[group] || tree.phase[group] === OPTIMIZER || !isOwn ? -1 : this.#result[box]!;
    const shape = value < 0 ? '' : v.repeat[box]! > 1 ? this.#shapes(box, value) : types.dims(graph.type[value]!);
    if (shape && isSection) return `${count} → ${shape}`;
    if (shape) return cls ? `${cls} → ${shape}` : `→ ${shape}`;
    return cls ? `${cls} · ${count}` : count;
  }

  /** What folded blocks make: one shape, or the different ones in turn. */
  #shapes(box: number, value: number): string {
    const { graph, tree, types, visible: v } = this.#input;
    const last = types.dims(graph.type[value]!);
    const first = tree.parent[v.item[box]! - tree.nodes]!;
    const siblings = row(tree.childGroups, first);
    const at = siblings.indexOf(v.item[box]! - tree.nodes);
    const { start, item } = (this.#outputs ??= this.#input.outputs());
    const made = [...siblings.subarray(at, at + v.repeat[box]!)].map((g) => {
      const node = tree.last[g]!;
      return start[node + 1]! > start[node]! ? types.dims(graph.type[item[start[node]!]!]!) : '';
    });
    const different = made.filter((text, i) => text && text !== made[i - 1]);
    if (different.length < 2) return last;
    return different.length > 3 ? `${different[0]} → ${different[1]} → … → ${different.at(-1)}` : different.join(' → ');
  }

  #describeInput(box: number, value: number): void {
    const { graph, pools, types } = this.#input;
    const maker = graph.producer[value]!;
    const comes = this.#input.coming?.includes(value) === true;
    const loss = maker >= 0 && !comes; // at the bend of a training step
    this.kind[box] = loss ? BoxKind.Loss : BoxKind.Input;
    this.phase[box] = OTHER;
    const other = loss ? 'loss' : comes ? this.#titles.of(maker) : 'input';
    this.#write(box, pools.strings.at(graph.valueName[value]!) || other, types.text(graph.type[value]!));
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
function describeEdges(input: SceneInput, names: Names) {
  const { graph, types, visible: v, place, words, drawnWords } = input;
  const titles = new Titles(graph, input.pools);
  const edges = v.source.length;
  const bytes = new Float64Array(edges);
  const label = new Int32Array(edges);
  const weight = new Float32Array(edges);
  for (let e = 0; e < edges; e++) {
    const value = v.value[e]!;
    if (value < 0) continue;
    const kept = input.turned?.kept[e] ?? NaN;
    if (!Number.isNaN(kept)) {
      bytes[e] = kept;
      label[e] = names.id((drawnWords?.keeps ?? 'keeps {bytes}').replace('{bytes}', bytesText(kept)));
      continue;
    }
    bytes[e] = types.bytes(graph.type[value]!);
    const reads = v.uses[e]! > 1 ? (drawnWords?.reads ?? '{n} reads').replace('{n}', String(v.uses[e]!)) : '';
    const tied = input.turned?.turn.kind[e] === EdgeKind.Tied ? (drawnWords?.tied ?? 'tied weight') : '';
    const text = words?.[value] ?? [types.text(graph.type[value]!), seenAs(input, titles, e), place?.(value)].filter(Boolean).join(' · ');
    label[e] = names.id([tied, text, reads].filter(Boolean).join(' · '));
    weight[e] = graph.producer[value]! < 0 ? 0.2 : 1;
  }
  return { bytes, label, weight };
}

function place(input: SceneInput, { width, height }: BoxTexts, weight: Float32Array): { laid: NestedLayout; layout: Scene['layout'] } {
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
  if (input.turned) return { laid: layoutTurn(nested, input.turned.turn, { ...options, maxHeight: undefined }, cache), layout: 'u' };
  const column = input.side ? columns(input.tree, v) : null;
  if (column) return { laid: layoutColumns(nested, column, options, cache), layout: 'columns' };
  return { laid: layoutNested(nested, options, cache), layout: 'plain' };
}

/** Rows in which a box of the forward pass stands level with its own of the backward pass. */
function pairedRows({ turn, visible: v }: Turned, { x, y }: NestedLayout): number {
  const back = turn.upward.indexOf(true);
  let rows = 0;
  for (let box = 0; box < v.count; box++) {
    const first = turn.row[box]!;
    if (v.open[box] || turn.column[box] !== back || first < 0) continue;
    if (Math.abs(y[first]! - y[box]!) < 1 || Math.abs(x[first]! - x[box]!) < 1) rows++;
  }
  return rows;
}

/** `transpose, view → 128×96`: what a tensor goes through on an edge. */
function seenAs({ graph, types, visible: v, read }: SceneInput, titles: Titles, e: number): string {
  const value = v.value[e]!;
  const seen = v.use[e]! < 0 ? -1 : read[v.use[e]!]!;
  if (seen === value || seen < 0) return '';
  const through: string[] = [];
  for (let at = seen; at !== value && through.length < 6;) {
    const node = graph.producer[at]!;
    if (node < 0) break;
    through.unshift(titles.of(node));
    at = graph.useValue[graph.useStart[node]!]!;
  }
  const shape = graph.type[seen] === graph.type[value] ? '' : types.dims(graph.type[seen]!);
  return [...new Set(through)].join(', ') + (shape ? ` → ${shape}` : '');
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
