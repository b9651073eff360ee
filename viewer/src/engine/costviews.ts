// What the Cost tab asks for: the map of modules, memory along the execution, operators against a device.

import { scopePath } from '../wire/scopes.ts';
import { PHASES, ROLES } from '../scene.ts';
import { inside, ref } from './answers.ts';
import { MEMORY_CLASSES } from '../wire/facts.ts';
import type { CostFigure, Costs, Figure } from './cost.ts';
import { row } from '../wire/csr.ts';
import type { AliveRow, CostMap, MemoryLine, RoofPoint, Roofs, Totals } from './messages.ts';
import { standing, type Device, type Work } from './roofs.ts';
import { runs, MemoryUse } from './memory.ts';
import { layTreemap } from './treemap.ts';
import { groupClass, groupTitle } from './tree.ts';
import type { View } from './view.ts';
import { dtypeOf, piecesOf, reached, type Pieces } from './work.ts';

const MOST_NODES = 2000; // of one point

/** Operators of phases that are shown. Those that are not drawn by themselves (constants, saved copies) count too. */
function* counted(view: View, costs: Costs): Generator<number> {
  const hidden = new Set(view.options.hidden);
  const { phase } = view.graph;
  for (let node = 0; node < costs.nodes; node++) if (!hidden.has(phase[node]!)) yield node;
}

interface Sums {
  own: Float64Array; // by operator
  groups: Float64Array;
  unknown: number;
  unknownOps: string[];
}

const made = new WeakMap<View['tree'], Map<Figure, Sums>>();

/** Figures of operators and of groups with all inside. What is not drawn counts in its module. */
function sums(view: View, costs: Costs, figure: Figure): Sums {
  const { tree, graph, metrics } = view;
  let known = made.get(tree);
  if (!known) made.set(tree, (known = new Map()));
  const before = known.get(figure);
  if (before) return before;
  const column = metrics.byNode(figure, costs);
  const own = new Float64Array(graph.nodes);
  const groups = new Float64Array(tree.groups);
  const unknownOps = new Map<string, number>();
  let unknown = 0;
  for (const node of counted(view, costs)) {
    const value = column[node]!;
    const missing = figure === 'macs' || figure === 'other' ? costs.atLeast(node) : Number.isNaN(value);
    if (missing) {
      const op = view.capture.pools.strings.at(graph.op[node]!);
      unknownOps.set(op, (unknownOps.get(op) ?? 0) + 1);
      unknown++;
    }
    if (!(value > 0)) continue;
    own[node] = value;
    groups[Math.max(0, tree.home[node]!)]! += value;
  }
  for (let group = tree.groups - 1; group > 0; group--) groups[tree.parent[group]!]! += groups[group]!;
  for (const gap of figure === 'time' ? [] : costs.gaps.of(figure)) {
    unknownOps.set(gap.text, (unknownOps.get(gap.text) ?? 0) + 1);
    unknown++;
  }
  if (figure === 'parameters') groups[0]! += costs.unused;
  const found = { own, groups, unknown, unknownOps: [...unknownOps].sort((a, b) => b[1] - a[1]).map(([op, n]) => `${op} ×${n}`) };
  known.set(figure, found);
  return found;
}

export function costMap(view: View, figure: Figure, root: number, width: number, height: number): CostMap | null {
  const { tree, graph, metrics, capture } = view;
  const { costs } = metrics;
  if (!costs) return null;
  const { own, groups, unknown, unknownOps } = sums(view, costs, figure);
  const first = tree.nodes;
  const isGroup = (item: number) => item >= first && item < first + tree.groups;
  const top = isGroup(root) ? root : first;
  const cells = layTreemap(
    {
      figure: (item) => (item < first ? own[item]! : groups[item - first]!),
      children: (item) =>
        item < first ? [] : [...Array.from(row(tree.childGroups, item - first), (g) => first + g), ...row(tree.childNodes, item - first)],
    },
    top,
    width,
    height,
  );
  const names = cells.map((cell) => {
    const titles = [...cell.also, cell.item].map((item) =>
      item < first ? view.titles.of(item) : groupTitle(tree, capture.pools, item - first),
    );
    return titles.join(' / ');
  });
  return {
    cells: cells.map((cell, i) => ({
      ...cell,
      title: names[i]!,
      cls: cell.item >= first ? groupClass(tree, capture.pools, cell.item - first) : '',
      phase: cell.item < first ? graph.phase[cell.item]! : phaseOf(view, cell.item - first),
    })),
    total: groups[0]!,
    unknown,
    unknownOps: unknownOps.slice(0, 20),
    path: crumbs(view, top),
  };
}

function phaseOf({ tree, graph }: View, group: number): number {
  if (tree.phase[group]! >= 0) return tree.phase[group]!;
  return group ? (graph.phase[tree.first[group]!] ?? PHASES.length - 1) : -1;
}

function crumbs(view: View, item: number): CostMap['path'] {
  const path = [];
  for (let group = item - view.tree.nodes; group > 0; group = view.tree.parent[group]!) path.push(ref(view, view.tree.nodes + group));
  return path.reverse();
}

const CONSTANT = ROLES.indexOf('constant');

/** Whether weights may be there that no value stands for as a parameter: operators that nothing is known of, constants. */
function mayHideParameters({ graph, types }: View): boolean {
  for (let value = 0; value < graph.values; value++) {
    const type = graph.type[value]!;
    if (graph.role[value] === CONSTANT && types.text(type).includes('float') && types.bytes(type) > 8) return true;
  }
  return false;
}

export function totals(view: View): Totals | null {
  const { costs } = view.metrics;
  if (!costs) return null;
  const sum = (figure: CostFigure) => costs.of(figure).reduce((total, value) => (value > 0 ? total + value : total), 0);
  let atLeast = costs.gaps.of('macs').length > 0;
  for (let node = 0; node < costs.nodes && !atLeast; node++) atLeast = costs.atLeast(node);
  const line = memoryOf(costs);
  return {
    macs: sum('macs'),
    other: sum('other'),
    parameters: costs.hasParameters || (!atLeast && !mayHideParameters(view)) ? sum('parameters') + costs.unused : NaN,
    peak: line.total[line.peak] ?? 0,
    atLeast,
    parametersAtLeast: costs.gaps.of('parameters').length > 0,
    time: view.metrics.byNode('time', costs).reduce((sum, time) => (time > 0 ? (sum > 0 ? sum : 0) + time : sum), NaN),
  };
}

const lines = new WeakMap<Costs, MemoryUse>();

function memoryOf(costs: Costs): MemoryUse {
  let line = lines.get(costs);
  if (!line) lines.set(costs, (line = new MemoryUse(costs.storages, costs.nodes)));
  return line;
}

export function memoryLine(view: View, first: number, last: number, columns: number): MemoryLine | null {
  const { costs } = view.metrics;
  if (!costs) return null;
  const line = memoryOf(costs);
  const end = Math.min(last, line.steps);
  const at = line.columns(Math.max(0, first), end, columns);
  return {
    steps: line.steps,
    first: Math.max(0, first),
    last: end,
    at,
    phases: Uint8Array.from(at, (step) => view.graph.phase[step]!),
    classes: line.classes.map((place) => MEMORY_CLASSES[place]!),
    live: line.live.map((bytes) => Float64Array.from(at, (step) => bytes[step]!)),
    atPeak: line.live.map((bytes) => bytes[line.peak]!),
    peak: line.peak,
    peakBytes: line.total[line.peak] ?? 0,
    peakOp: line.steps ? view.titles.of(line.peak) : '',
  };
}

export function alive(
  view: View,
  step: number,
  most: number,
): { rows: AliveRow[]; count: number; bytes: number; op: string; where: string } {
  const { costs } = view.metrics;
  if (!costs) return { rows: [], count: 0, bytes: 0, op: '', where: '' };
  const { graph, capture, types } = view;
  const { storages } = costs;
  const found = memoryOf(costs).alive(step, most);
  const rows = found.places.map((place): AliveRow => {
    const value = storages.value[place]!;
    const producer = graph.producer[value]!;
    return {
      item: producer,
      name: capture.pools.strings.at(graph.valueName[value]!) || (producer >= 0 ? view.titles.of(producer) : `%${value}`),
      op: producer >= 0 ? view.titles.of(producer) : '',
      where: producer >= 0 ? scopePath(capture.pools, graph.scope[producer]!) : '',
      type: types.text(graph.type[value]!),
      cls: MEMORY_CLASSES[storages.cls[place]!]!,
      bytes: storages.bytes[place]!,
      born: storages.born[place]!,
      dies: storages.dies[place]!,
    };
  });
  // A value that comes from outside is joined to the operator that reads it first.
  for (const [i, place] of found.places.entries()) {
    const value = storages.value[place]!;
    if (rows[i]!.item < 0) rows[i]!.item = graph.useNode[row(view.readers, value)[0] ?? -1] ?? -1;
  }
  const isStep = step >= 0 && step < costs.nodes;
  return {
    rows,
    count: found.count,
    bytes: found.bytes,
    op: isStep ? view.titles.of(step) : '',
    where: isStep ? scopePath(capture.pools, graph.scope[step]!) : '',
  };
}

/** Items as runs of operators along the execution; what is inside an operator runs where that does. */
export function steps(view: View, items: number[]): number[] {
  const { bodies } = view;
  const nodes = new Set<number>();
  for (const item of items) {
    for (let node of inside(view, item)) {
      while (bodies.bodyOf[node] !== undefined && bodies.bodyOf[node]! >= 0) node = bodies.owner[bodies.bodyOf[node]!]!;
      if (node < (view.metrics.costs?.nodes ?? 0)) nodes.add(node);
    }
  }
  return runs(Int32Array.from(nodes).sort());
}

/** What stands on the roofline by itself: an operator, or what was measured together. */
interface Piece extends Work {
  node: number;
  nodes: number[];
  took: number;
}

/** Pieces of measured work, and the operators that are in none. */
function* piecesIn(view: View, costs: Costs, pieces: Pieces | null): Generator<Piece> {
  const [macs, other, bytes] = [costs.of('macs'), costs.of('other'), costs.of('bytes')];
  const inPiece = new Set<number>();
  for (let i = 0; pieces && i < pieces.count; i++) {
    const nodes = pieces.nodes[i]!;
    for (const node of nodes) inPiece.add(node);
    if (view.tree.home[nodes[0]!]! < 0) continue;
    const dtype = dtypeOf(view, nodes[0]!);
    yield {
      node: nodes[0]!,
      nodes,
      took: pieces.seconds[i]!,
      macs: pieces.causal[i]!,
      other: pieces.other[i]!,
      bytes: pieces.bytes[i]!,
      dtype,
    };
  }
  for (const node of counted(view, costs))
    if (!inPiece.has(node))
      yield { node, nodes: [node], took: NaN, macs: macs[node]!, other: other[node]!, bytes: bytes[node]!, dtype: dtypeOf(view, node) };
}

export async function roofs(view: View, device: Device): Promise<Roofs | null> {
  const { graph, metrics, capture } = view;
  const { costs } = metrics;
  if (!costs) return null;
  const pieces = await piecesOf(view);
  const points = new Map<string, RoofPoint>();
  const dtypes = new Map<string, number>();
  const none = { moving: 0, movingSeconds: 0, unknown: 0, endless: 0 };
  const out: Roofs = { points: [], dtypes: [], seconds: 0, byMemory: 0, reached: await reached(view, [], device), ...none };
  for (const work of piecesIn(view, costs, pieces)) {
    const isUnknown = Number.isNaN(work.macs) || Number.isNaN(work.bytes);
    // Of an operator that is not known, what it moves is the least it takes.
    for (const part of ['macs', 'other', 'bytes'] as const) work[part] ||= 0;
    const place = standing(work, device);
    const { node } = work;
    out.seconds += place.seconds;
    if (place.byMemory) out.byMemory += place.seconds;
    if (isUnknown) {
      out.unknown++;
      continue;
    }
    if (!work.macs && !work.other) {
      if (work.bytes) out.moving++;
      out.movingSeconds += place.seconds;
      continue;
    }
    if (!work.bytes) {
      out.endless++; // all of it stays inside a kernel
      continue;
    }
    if (work.macs) dtypes.set(work.dtype, (dtypes.get(work.dtype) ?? 0) + place.seconds);
    const key = `${graph.op[node]} ${graph.phase[node]} ${work.macs} ${work.other} ${work.bytes} ${work.dtype}`;
    const point = points.get(key);
    if (point) {
      point.count++;
      point.seconds += place.seconds;
      point.took += work.took;
      if (point.nodes.length < MOST_NODES) point.nodes.push(...work.nodes);
    } else
      points.set(key, {
        ...place,
        x: place.intensity,
        y: place.speed,
        op: view.titles.of(node) + (work.nodes.length > 1 ? ` +${work.nodes.length - 1}` : ''),
        full: capture.pools.strings.at(graph.op[node]!),
        phase: graph.phase[node]!,
        flops: 2 * work.macs + work.other,
        bytes: work.bytes,
        dtype: work.dtype,
        nodes: [...work.nodes],
        count: 1,
        took: work.took,
      });
  }
  const weight = ({ took, seconds }: RoofPoint) => (Number.isNaN(took) ? seconds : took);
  out.points = [...points.values()].sort((a, b) => weight(b) - weight(a));
  out.dtypes = [...dtypes].sort((a, b) => b[1] - a[1]).map(([dtype]) => dtype);
  return out;
}
