// From what is visible to what is drawn: sizes by text, places by layout.

import type { Graph, Pools } from '../wire/capture.ts';
import { layoutNested, type LayoutCache } from '../layout/nested.ts';
import type { NestedGraph, Options } from '../layout/types.ts';
import { compact } from '../draw/metrics.ts';
import { BoxKind, PHASES, ROLES, type Scene } from '../scene.ts';
import { textWidth } from '../text/widths.ts';
import { layoutColumns } from './columns.ts';
import type { Csr } from './csr.ts';
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
const [FORWARD, BACKWARD, RECOMPUTE, OPTIMIZER] = [
  PHASES.indexOf('forward'),
  PHASES.indexOf('backward'),
  PHASES.indexOf('recompute'),
  PHASES.indexOf('optimizer'),
];
const PARAMETER = ROLES.indexOf('parameter');
const GRADIENT = ROLES.indexOf('gradient');
const PADDING = 14;

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

export interface SceneInput {
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
  fast?: boolean; // lay out as a large graph is laid out
}

export function buildScene(input: SceneInput): Scene {
  const { graph, pools, tree, types, visible: v } = input;
  const names = new Names();
  const n = v.count;
  const width = new Float32Array(n);
  const height = new Float32Array(n);
  const kind = new Uint8Array(n);
  const phase = new Uint8Array(n);
  const depth = new Uint8Array(n);
  const title = new Int32Array(n);
  const detail = new Int32Array(n);
  const size = new Int32Array(n).fill(1);
  const titles = new Titles(graph, pools);
  let outputs: Csr | undefined;
  for (let box = 0; box < n; box++) {
    const item = v.item[box]!;
    const around = v.parent[box]!;
    depth[box] = around < 0 ? 0 : Math.min(depth[around]! + 1, 255);
    let first: string;
    let second = '';
    if (item < tree.nodes) {
      kind[box] = BoxKind.Op;
      phase[box] = graph.phase[item]!;
      first = titles.of(item);
      outputs ??= input.outputs();
      const out = outputs.start[item]!;
      if (outputs.start[item + 1]! === out) second = target(graph, pools, item);
      else second = [gradientOf(graph, pools, outputs.item[out]!), types.text(graph.type[outputs.item[out]!]!)].filter(Boolean).join(' · ');
    } else if (item < tree.nodes + tree.groups) {
      const group = item - tree.nodes;
      kind[box] = v.open[box] ? BoxKind.Open : v.repeat[box]! > 1 ? BoxKind.Folded : BoxKind.Closed;
      phase[box] = tree.phase[group]! >= 0 ? tree.phase[group]! : graph.phase[tree.first[group]!]!;
      size[box] = tree.count[group]!;
      first = groupTitle(tree, pools, group);
      if (v.last[box]! >= 0) first += ` … ${groupTitle(tree, pools, v.last[box]! - tree.nodes)}`;
      const cls = groupClass(tree, pools, group);
      const count = input.counts(tree.count[group]!);
      second = v.open[box] ? cls : cls ? `${cls} · ${count}` : count;
    } else {
      kind[box] = BoxKind.Input;
      phase[box] = 5;
      const value = item - tree.nodes - tree.groups;
      first = pools.strings.at(graph.valueName[value]!) || 'input';
      second = types.text(graph.type[value]!);
    }
    title[box] = names.id(first);
    detail[box] = names.id(second);
    const badge = v.repeat[box]! > 1 ? textWidth(`×${v.repeat[box]!}`, TITLE_SIZE, true) + 16 : 0;
    const [titleWidth, detailWidth] = [names.titleWidth(title[box]!), names.detailWidth(detail[box]!)];
    const widest = v.open[box]
      ? titleWidth + detailWidth + textWidth(compact(size[box]!), DETAIL_SIZE) + IN_HEADER // on one line
      : Math.max(titleWidth + badge, detailWidth) + SIDES;
    width[box] = Math.min(WIDEST, Math.max(NARROWEST, widest));
    height[box] = second ? TWO_LINES : ONE_LINE;
  }

  const edges = v.source.length;
  const bytes = new Float64Array(edges);
  const label = new Int32Array(edges);
  const weight = new Float32Array(edges);
  for (let e = 0; e < edges; e++) {
    const value = v.value[e]!;
    bytes[e] = types.bytes(graph.type[value]!);
    const text = types.text(graph.type[value]!);
    label[e] = names.id(v.uses[e]! > 1 ? (text ? `${v.uses[e]} × ${text}` : `${v.uses[e]}`) : text);
    weight[e] = graph.producer[value]! < 0 ? 0.2 : 1;
  }
  const nested: NestedGraph = {
    n,
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
  const quality = n < 3000 && !input.fast ? 'good' : 'fast';
  const options: Options = { direction: input.direction, gapX: 24, gapY: 34, maxHeight: tallest(n), quality };
  const column = input.side ? columns(tree, v) : null;
  const laid = column ? layoutColumns(nested, column, options, input.cache) : layoutNested(nested, options, input.cache);
  return {
    width: laid.totalWidth,
    height: laid.totalHeight,
    direction: input.direction,
    texts: names.texts,
    boxes: {
      count: n,
      // Copies: what a scene holds is moved to the page, and the engine goes on with its own.
      item: v.item.slice(),
      parent: v.parent.slice(),
      x: laid.x,
      y: laid.y,
      width: laid.width,
      height: laid.height,
      kind,
      phase,
      depth,
      title,
      detail,
      size,
      repeat: v.repeat.slice(),
    },
    edges: {
      count: edges,
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
