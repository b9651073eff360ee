// A training step as a U: the forward pass runs down, the backward pass comes back up beside it, in the same rows, and
// the optimizer stands beside what it updates. Each column is laid out for itself, the one that runs up upside down; then
// columns are stretched between their boxes until rows that belong together are level.
//
// All here is said for columns beside each other; where they stand above each other, x and y are exchanged.

import { LayoutCache } from './cache.ts';
import {
  EDGE,
  joinColumns,
  joinLines,
  lanesInGaps,
  lanesOnRoof,
  layoutColumn,
  lineBetween,
  placeColumns,
  routesBetween,
  takeColumn,
  Ways,
  type Part,
} from './columns.ts';
import { holdRows, standApart } from './hold.ts';
import { BETWEEN, RUNG, TIED, type NestedGraph, type NestedLayout, type Options } from './types.ts';

/** How the boxes and edges of a graph stand in the U. */
export interface Turn {
  /** Of each box; -1: at the bend, below all columns. */
  column: Int32Array;
  /** Columns through which data flows up. */
  upward: boolean[];
  /** Boxes with the same number should be level; -1: of no row. */
  row: Int32Array;
  /** Edges that are only there to hold boxes one below the other: they have no line. */
  guide: Uint8Array;
  /** RUNG, BETWEEN or TIED for edges from column to column. */
  kind: Uint8Array;
}

const BEND = 44; // below the columns
const ROUNDS_APART = 8;

export function layoutTurn(plain: NestedGraph, turn: Turn, options: Options, cache: LayoutCache): NestedLayout {
  const graph = { ...plain, ...leading(plain, turn) };
  const across = options.direction === 'down';
  const { column, upward } = turn;
  const count = column.reduce((most, c) => Math.max(most, c + 1), 0);
  const parts: Part[] = [];
  for (let c = 0; c < count; c++) {
    let held = c ? holdRows(graph, turn, c, parts) : graph;
    // What is kept leads from the forward pass to its right, and to the left of the backward pass.
    const side = upward[c] ? -1 : c === 0 ? 1 : undefined;
    const lay = () => layoutUpOrDown(held, column, c, upward[c]!, { ...options, side }, caches(cache, c));
    let part = lay();
    for (let round = 0; round < ROUNDS_APART; round++) {
      const apart = standApart(held, turn, c, part);
      if (apart === held) break;
      held = apart;
      part = lay();
    }
    parts.push(part);
  }
  level(parts, turn, across);
  const tops = new Map<number, number>(); // of boxes that stand in their row
  parts.forEach((part) => part.boxes.forEach((box, i) => tops.set(box, part.y[i])));
  const straight = Uint8Array.from(graph.source, (a, e) => (isStraight(turn, tops, a, graph.target[e], turn.kind[e]) ? 1 : 0));
  const skip = Uint8Array.from(straight, (yes, e) => (yes || turn.guide[e] ? 1 : 0));
  const ways = new Ways(graph, column, parts, across, upward);
  const routes = routesBetween(graph, column, ways, skip);
  // Many lines to one box run as one.
  const fans = new Int32Array(graph.n);
  for (const { edge } of routes) fans[graph.target[edge]]++;
  for (const route of routes) {
    const to = graph.target[route.edge];
    if (fans[to] > 3) route.source = graph.n + to;
  }
  const gaps = lanesInGaps(routes, count);
  const roof = lanesOnRoof(routes);
  const top = routes.length ? EDGE + roof.width + (roof.width ? EDGE : 0) : 0;
  const places = placeColumns(parts, gaps);

  const lines: Float32Array[] = new Array<Float32Array>(graph.source.length);
  const edgeKind = new Uint8Array(graph.source.length);
  const boxes = joinColumns(graph, parts, places, across, top, lines, edgeKind);
  lines.length = graph.source.length; // without what held rows
  for (const route of routes) {
    lines[route.edge] = turned(lineBetween(route, places, gaps, roof, top), across);
    edgeKind[route.edge] = turn.kind[route.edge] === TIED ? TIED : BETWEEN;
  }
  rungs(graph, straight, boxes, across, lines, edgeKind);
  const tallest = parts.reduce((most, part) => Math.max(most, part.totalHigh), 0) + top + (routes.length ? EDGE : 0);
  const bottom = bend(graph, turn, boxes, places.width, tallest, across, ways, places.start, top, lines);
  for (let e = 0; e < lines.length; e++) if (turn.guide[e] || !lines[e]) lines[e] = new Float32Array(0);
  const [totalWidth, totalHeight] = across ? [places.width, bottom] : [bottom, places.width];
  return { ...boxes, ...joinLines(lines), edgeKind, totalWidth, totalHeight };
}

/** How many rungs lead from each box to the columns before and behind it. */
function leading({ n, source, target, open }: NestedGraph, { column, row, kind }: Turn): Pick<NestedGraph, 'before' | 'behind'> {
  const [before, behind] = [new Float32Array(n), new Float32Array(n)];
  for (let e = 0; e < kind.length; e++) {
    const [a, b] = [source[e], target[e]];
    if (kind[e] !== RUNG || row[a] < 0 || row[a] !== row[b] || column[a] === column[b] || open[a]) continue;
    const [left, right] = column[a] < column[b] ? [a, b] : [b, a];
    behind[left]++;
    before[right]++;
  }
  return { before, behind };
}

/** Columns are laid out with options of their own: each has its own cache. */
const ofColumn = new WeakMap<LayoutCache, LayoutCache[]>();
function caches(cache: LayoutCache, c: number): LayoutCache {
  let list = ofColumn.get(cache);
  if (!list) ofColumn.set(cache, (list = []));
  return (list[c] ??= new LayoutCache());
}

function turned(line: number[], across: boolean): Float32Array {
  return Float32Array.from(across ? line : line.map((_, i) => line[i ^ 1]));
}

/** A column that runs up is one that runs down with its edges the other way round. */
function layoutUpOrDown(graph: NestedGraph, column: Int32Array, c: number, up: boolean, options: Options, cache: LayoutCache): Part {
  const taken = takeColumn(graph, column, c);
  if (!up) return layoutColumn(taken, options, cache);
  const { source, target, order } = taken.graph;
  const most = order ? order.reduce((m, o) => Math.max(m, o), 0) : 0;
  const reversed = { ...taken.graph, source: target, target: source, order: order?.map((o) => most - o) };
  return { ...layoutColumn({ ...taken, graph: reversed }, options, cache), graph: reversed };
}

/** Where space goes in: everything from `at` on moves down by `by` in all. */
interface Stretch {
  at: number[];
  by: number[];
}

/** Stretches the columns so that boxes of one row stand level, as many as can without changing what is above what. */
function level(parts: Part[], { row, upward }: Turn, across: boolean): void {
  const stretch: Stretch[] = parts.map(() => ({ at: [], by: [] }));
  const shifted = parts.map(() => 0);
  // The place of each row in each column.
  const rows = new Map<number, number[]>();
  parts.forEach((part, c) =>
    part.boxes.forEach((box, i) => {
      if (row[box] < 0) return;
      let places = rows.get(row[box]);
      if (!places) rows.set(row[box], (places = parts.map(() => -1)));
      if (places[c] < 0) places[c] = i;
    }),
  );
  // Where a step turns more than once, each turn has columns of its own.
  const firsts = new Set([...rows.values()].map((places) => places.findIndex((i) => i >= 0)));
  for (const first of firsts) {
    const sorted = [...rows.values()]
      .filter((places) => places.findIndex((i) => i >= 0) === first && places.filter((i) => i >= 0).length > 1)
      .sort((p, q) => parts[first].y[p[first]] - parts[first].y[q[first]]);
    for (let c = first + 1; c < parts.length; c++) keepRising(sorted, parts, first, c);
    for (const places of sorted) alignRow(places);
  }
  parts.forEach((part, c) => apply(part, stretch[c], across, upward[c]));

  function alignRow(places: number[]): void {
    const here = parts.map((_, c) => c).filter((c) => places[c] >= 0);
    const target = Math.max(...here.map((c) => parts[c].y[places[c]] + shifted[c]));
    for (const c of here) {
      const y = parts[c].y[places[c]];
      const by = target - y - shifted[c];
      if (by < 0.01) continue;
      shifted[c] += by;
      stretch[c].at.push(y - 1);
      stretch[c].by.push(shifted[c]);
    }
  }
}

/** Of the rows that both columns have, the most that stand in the same order in both; the others are let go. */
function keepRising(rows: number[][], parts: Part[], a: number, b: number): void {
  const both = rows.filter((places) => places[b] >= 0);
  const at = (places: number[], c: number) => Math.round(parts[c].y[places[c]]);
  // Boxes beside each other in both columns are one step.
  const steps = [...new Map(both.map((places) => [`${at(places, a)}/${at(places, b)}`, places])).values()];
  steps.sort((p, q) => at(p, a) - at(q, a) || at(q, b) - at(p, b));
  const ends: number[] = []; // of the best chain of each length: its last step
  const before = new Int32Array(steps.length).fill(-1);
  steps.forEach((step, i) => {
    let lo = 0,
      hi = ends.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (at(steps[ends[mid]], b) < at(step, b)) lo = mid + 1;
      else hi = mid;
    }
    before[i] = lo ? ends[lo - 1] : -1;
    ends[lo] = i;
  });
  const kept = new Set<string>();
  for (let i = ends.length ? ends[ends.length - 1] : -1; i >= 0; i = before[i]) kept.add(`${at(steps[i], a)}/${at(steps[i], b)}`);
  for (const places of both) if (!kept.has(`${at(places, a)}/${at(places, b)}`)) places[b] = -1;
}

/** Moves what is in a column; lines stay joined to their boxes. Those of a column that runs up are turned round. */
function apply(part: Part, { at, by }: Stretch, across: boolean, up: boolean): void {
  const { laid, graph, y, high } = part;
  const shift = (v: number): number => {
    let lo = 0,
      hi = at.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (at[mid] <= v) lo = mid + 1;
      else hi = mid;
    }
    return lo ? by[lo - 1] : 0;
  };
  const odd = across ? 1 : 0;
  const { points, pointStart } = laid;
  const bottoms = Float32Array.from(y, (v, i) => v + high[i]);
  const total = at.length ? by[by.length - 1] : 0;
  for (let i = 0; i < y.length; i++) {
    const moved = shift(y[i]);
    if (graph.open[i]) high[i] += shift(bottoms[i]) - moved;
    y[i] += moved;
  }
  const lines: number[][] = [];
  for (let e = 0; e < graph.source.length; e++) {
    const line: number[] = [];
    for (let p = pointStart[e]; p < pointStart[e + 1]; p++) {
      const x = points[2 * p + 1 - odd];
      const v = points[2 * p + odd];
      const moved = v + shift(v);
      const leaf = graph.source[e];
      // The line begins at its box, wherever what is below has gone.
      const begins = y[leaf] + high[leaf];
      if (p === pointStart[e] && Math.abs(v - bottoms[leaf]) < 1 && Math.abs(moved - begins) > 0.5) line.push(x, begins);
      line.push(x, moved);
    }
    if (up)
      for (let i = 0, j = line.length - 2; i < j; i += 2, j -= 2)
        [line[i], line[i + 1], line[j], line[j + 1]] = [line[j], line[j + 1], line[i], line[i + 1]];
    lines.push(line);
  }
  const next = joinLines(lines.map((line) => turned(line, across)));
  laid.points = next.points;
  laid.pointStart = next.pointStart;
  part.totalHigh += total;
}

function isStraight({ column, row }: Turn, tops: Map<number, number>, a: number, b: number, kind: number): boolean {
  if (kind !== RUNG || column[a] < 0 || column[b] < 0 || column[a] === column[b]) return false;
  return row[a] >= 0 && row[a] === row[b] && Math.abs(tops.get(a)! - tops.get(b)!) < 1;
}

/** Level lines between boxes of one row. Where several begin beside each other, each has a height of its own. */
function rungs(
  { source, target }: NestedGraph,
  straight: Uint8Array,
  { x, y, width, height }: Pick<NestedLayout, 'x' | 'y' | 'width' | 'height'>,
  across: boolean,
  lines: Float32Array[],
  kinds: Uint8Array,
): void {
  const [along, over, high, wide] = across ? [y, x, height, width] : [x, y, width, height];
  const beside = new Map<string, number[]>();
  straight.forEach((yes, e) => {
    if (!yes) return;
    const [a, b] = [source[e], target[e]];
    const key = `${Math.round(along[a])}/${over[a] < over[b] ? 1 : 0}`;
    const list = beside.get(key);
    if (list) list.push(e);
    else beside.set(key, [e]);
  });
  for (const list of beside.values()) {
    list.sort((d, e) => over[source[e]] - over[source[d]]);
    list.forEach((e, k) => {
      const [a, b] = over[source[e]] < over[target[e]] ? [source[e], target[e]] : [target[e], source[e]];
      const least = Math.min(high[a], high[b], 44);
      const at = along[a] + (least * (k + 1)) / (list.length + 1);
      const line = [over[a] + wide[a], at, over[b], at];
      if (a !== source[e]) line.splice(0, 4, line[2], line[3], line[0], line[1]);
      lines[e] = turned(line, across);
      kinds[e] = RUNG;
    });
  }
}

/** Places what stands at the bend, below the columns, and leads the lines that turn there; answers how far all reaches. */
function bend(
  graph: NestedGraph,
  { column, upward }: Turn,
  boxes: Pick<NestedLayout, 'x' | 'y' | 'width' | 'height'>,
  wide: number,
  bottom: number,
  across: boolean,
  ways: Ways,
  start: number[],
  top: number,
  lines: Float32Array[],
): number {
  const { source, target } = graph;
  const [along, over, high, breadth] = across
    ? [boxes.y, boxes.x, boxes.height, boxes.width]
    : [boxes.x, boxes.y, boxes.width, boxes.height];
  const [ownHigh, ownWide] = across ? [graph.height, graph.width] : [graph.width, graph.height];
  let reach = bottom;
  const low = upward.map(() => 0); // how far each column reaches, with what stands below it
  for (let box = 0; box < graph.n; box++) if (column[box] >= 0) low[column[box]] = Math.max(low[column[box]], along[box] + high[box]);
  for (let box = 0; box < graph.n; box++) {
    if (column[box] >= 0) continue;
    const touching = Array.from(source.keys()).filter((e) => source[e] === box || target[e] === box);
    const ends = touching.map((e) => (source[e] === box ? target[e] : source[e]));
    const middles = ends.map((v) => over[v] + breadth[v] / 2);
    const middle = middles.length ? (Math.min(...middles) + Math.max(...middles)) / 2 : wide / 2;
    [high[box], breadth[box]] = [ownHigh[box], ownWide[box]];
    const columns = ends.map((v) => column[v]).filter((c) => c >= 0);
    const [first, last] = columns.length ? [Math.min(...columns), Math.max(...columns)] : [0, low.length - 1];
    const below = Math.max(0, ...low.slice(first, last + 1)) + EDGE;
    [along[box], over[box]] = [below + BEND, middle - ownWide[box] / 2];
    const level = along[box] + ownHigh[box] / 2;
    touching.forEach((e, k) => {
      const other = ends[k];
      const leaves = source[e] !== box; // to the bend, or from it
      const c = column[other];
      if (c < 0) return;
      const right = over[box] > over[other];
      // Straight down from the box where nothing is below it, else by the side of its column.
      const [ox, end] = [over[other] + breadth[other] / 2, along[other] + high[other]];
      let free = upward[c] !== leaves;
      for (let v = 0; v < graph.n && free; v++) {
        if (v === other || column[v] !== c || graph.open[v] || along[v] < end - 1) continue;
        free = ox < over[v] - 2 || ox > over[v] + breadth[v] + 2;
      }
      let line = [ox, end];
      if (!free) {
        line = [];
        const out = ways.of(other, !leaves, right ? 0 : 1);
        for (let i = 0; i < out.length; i += 2) line.push(out[i] + start[c], out[i + 1] + top);
        const side = line[line.length - 2] + (right ? 8 : -8);
        line.push(side, line[line.length - 1]);
      }
      line.push(line[line.length - 2], level, right ? over[box] : over[box] + breadth[box], level);
      if (!leaves) {
        const back: number[] = [];
        for (let i = line.length - 2; i >= 0; i -= 2) back.push(line[i], line[i + 1]);
        line = back;
      }
      lines[e] = turned(line, across);
    });
    for (let c = first; c <= last; c++) low[c] = along[box] + ownHigh[box];
    reach = Math.max(reach, along[box] + ownHigh[box] + EDGE);
  }
  return reach;
}
