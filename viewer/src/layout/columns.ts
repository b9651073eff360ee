// Phases side by side: each is laid out for itself, and what passes between them runs around their boxes to the side,
// and through the gaps between the columns.
//
// All here is written for columns next to each other; where they are above each other, x and y are exchanged.

import type { LayoutCache } from './cache.ts';
import { Escape } from './escape.ts';
import { layoutNested } from './nested.ts';
import { LANE, type NestedGraph, type NestedLayout, type Options } from './types.ts';

const GAP = 90; // between columns, without the lines in it
const PITCH = 6; // of lines beside each other
const WIDEST = 240; // a bundle of lines
const HEADER_LEVEL = 17; // of a line from a frame, below its top
export const EDGE = 14; // free space around a column

/** `column` is the column of each box (by the phase around it), from 0 in their order. */
export function layoutColumns(graph: NestedGraph, column: Int32Array, options: Options, cache: LayoutCache): NestedLayout {
  const across = options.direction === 'down';
  const count = column.reduce((most, c) => Math.max(most, c + 1), 0);
  const parts = Array.from({ length: count }, (_, c) => layoutColumn(takeColumn(graph, column, c), options, cache));
  const routes = routesBetween(graph, column, new Ways(graph, column, parts, across));
  const gaps = lanesInGaps(routes, count);
  const roof = lanesOnRoof(routes);
  const busy = routes.length > 0;
  const top = busy ? EDGE + roof.width + (roof.width ? EDGE : 0) : 0;
  const places = placeColumns(parts, gaps);

  const lines: Float32Array[] = new Array<Float32Array>(graph.source.length);
  const edgeKind = new Uint8Array(graph.source.length);
  const boxes = joinColumns(graph, parts, places, across, top, lines, edgeKind);
  for (const route of routes) {
    const line = lineBetween(route, places, gaps, roof, top);
    lines[route.edge] = Float32Array.from(across ? line : line.map((_, i) => line[i ^ 1]));
    edgeKind[route.edge] = LANE;
  }
  const tallest = parts.reduce((most, part) => Math.max(most, part.totalHigh), 0);
  const tall = count ? tallest + top + (busy ? EDGE : 0) : 0;
  const [totalWidth, totalHeight] = across ? [places.width, tall] : [tall, places.width];
  return { ...boxes, ...joinLines(lines), edgeKind, totalWidth, totalHeight };
}

/** The boxes of one column, and the edges among them. */
export interface Column {
  graph: NestedGraph;
  boxes: Int32Array;
  edges: number[];
}

export function takeColumn(graph: NestedGraph, column: Int32Array, c: number): Column {
  const boxes: number[] = [];
  const place = new Int32Array(graph.n).fill(-1);
  for (let box = 0; box < graph.n; box++) if (column[box] === c) place[box] = boxes.push(box) - 1;
  const edges: number[] = [];
  for (let e = 0; e < graph.source.length; e++) if (place[graph.source[e]] >= 0 && place[graph.target[e]] >= 0) edges.push(e);
  const pick = <T extends Int32Array | Float32Array | Uint8Array>(from: T, rows: number[]): T =>
    (from.constructor as unknown as { from(a: number[]): T }).from(rows.map((i) => from[i]));
  return {
    boxes: Int32Array.from(boxes),
    edges,
    graph: {
      ...graph,
      n: boxes.length,
      parent: Int32Array.from(boxes, (box) => (graph.parent[box] < 0 ? -1 : place[graph.parent[box]])),
      open: pick(graph.open, boxes),
      width: pick(graph.width, boxes),
      height: pick(graph.height, boxes),
      source: Int32Array.from(edges, (e) => place[graph.source[e]]),
      target: Int32Array.from(edges, (e) => place[graph.target[e]]),
      weight: graph.weight && pick(graph.weight, edges),
      order: graph.order && pick(graph.order, boxes),
      before: graph.before && pick(graph.before, boxes),
      behind: graph.behind && pick(graph.behind, boxes),
      key: graph.key && ((group: number) => graph.key!(boxes[group])),
    },
  };
}

/** A column with its own layout, and the places and sizes in it along and across the columns. */
export interface Part extends Column {
  laid: NestedLayout;
  x: Float32Array;
  y: Float32Array;
  wide: Float32Array;
  high: Float32Array;
  totalWide: number;
  totalHigh: number;
}

export function layoutColumn(taken: Column, options: Options, cache: LayoutCache): Part {
  const laid = layoutNested(taken.graph, options, cache);
  const across = options.direction === 'down';
  return {
    ...taken,
    laid,
    x: across ? laid.x : laid.y,
    y: across ? laid.y : laid.x,
    wide: across ? laid.width : laid.height,
    high: across ? laid.height : laid.width,
    totalWide: across ? laid.totalWidth : laid.totalHeight,
    totalHigh: across ? laid.totalHeight : laid.totalWidth,
  };
}

/** The ways from boxes to the sides of their columns, each found once. */
export class Ways {
  private readonly place: Int32Array; // of a box in its column
  private readonly escapes: (Escape | undefined)[] = [];
  private readonly known = new Map<number, number[]>();

  constructor(
    private readonly graph: NestedGraph,
    private readonly column: Int32Array,
    private readonly parts: Part[],
    private readonly across: boolean,
    private readonly upward: readonly boolean[] = [], // columns through which data flows up
  ) {
    this.place = new Int32Array(graph.n);
    for (const { boxes } of parts) boxes.forEach((box, i) => (this.place[box] = i));
  }

  /** Side 0 is where later columns are, side 1 where earlier ones are. */
  of(box: number, entering: boolean, side: 0 | 1): number[] {
    const key = 4 * box + 2 * (entering ? 1 : 0) + side;
    let points = this.known.get(key);
    if (!points) {
      const c = this.column[box],
        v = this.place[box];
      const part = this.parts[c];
      if (this.graph.open[box]) points = fromHeader(part, v, side); // all that is in it
      points ??= this.escapeOf(c).way(v, entering !== (this.upward[c] ?? false), side, ((box * 7) % 19) / 18) ?? straight(part, v, side);
      this.known.set(key, points);
    }
    return points;
  }

  private escapeOf(c: number): Escape {
    const part = this.parts[c];
    return (this.escapes[c] ??= new Escape(
      { n: part.boxes.length, parent: part.graph.parent, x: part.x, y: part.y, width: part.wide, height: part.high },
      { left: -EDGE, top: -EDGE, right: part.totalWide + EDGE, bottom: part.totalHigh + EDGE },
      this.across ? this.graph.header : 0,
    ));
  }
}

/** Without a way around (boxes that touch), straight to the side. */
function straight({ x, y, wide, high, totalWide }: Part, v: number, side: 0 | 1): number[] {
  const middle = y[v] + high[v] / 2;
  return side ? [x[v], middle, -EDGE, middle] : [x[v] + wide[v], middle, totalWide + EDGE, middle];
}

function fromHeader({ x, y, wide, totalWide }: Part, v: number, side: 0 | 1): number[] {
  const level = y[v] + HEADER_LEVEL;
  return side ? [x[v], level, -EDGE, level] : [x[v] + wide[v], level, totalWide + EDGE, level];
}

/** An edge from one column to another: out of the first to its side, through one gap (or over columns to another), and in. */
export interface Route {
  edge: number;
  source: number;
  out: number[];
  into: number[];
  /** The columns that it leaves and enters, and the gaps that it runs in; the gap before column 1 is gap 1. */
  from: number;
  to: number;
  first: number;
  last: number;
}

export function routesBetween(
  { source, target }: Pick<NestedGraph, 'source' | 'target'>,
  column: Int32Array,
  ways: Ways,
  skip?: Uint8Array,
): Route[] {
  const routes: Route[] = [];
  for (let edge = 0; edge < source.length; edge++) {
    const a = source[edge],
      b = target[edge];
    const from = column[a],
      to = column[b];
    if (from === to || from < 0 || to < 0 || skip?.[edge]) continue;
    const forward = from < to;
    routes.push({
      edge,
      source: a,
      out: ways.of(a, false, forward ? 0 : 1),
      into: ways.of(b, true, forward ? 1 : 0),
      from,
      to,
      first: forward ? from + 1 : from,
      last: forward ? to : to + 1,
    });
  }
  return routes;
}

/** Lines beside each other: one for all that come from a source. */
export interface Lanes {
  at: Map<number, number>; // by source
  width: number;
}

function lanesFor(sources: number[]): Lanes {
  const step = sources.length ? Math.min(PITCH, WIDEST / sources.length) : 0;
  return { width: sources.length * step, at: new Map(sources.map((source, i) => [source, i * step])) };
}

/** What goes down from above is outside what starts below. */
export function lanesInGaps(routes: Route[], columns: number): Lanes[] {
  const heights = Array.from({ length: columns + 1 }, () => new Map<number, number>()); // by source: where it comes from
  for (const { source, out, first, last } of routes) {
    heights[first].set(source, out[out.length - 1]);
    if (first !== last) heights[last].set(source, -1);
  }
  return heights.map((height) => lanesFor([...height.keys()].sort((p, q) => height.get(p)! - height.get(q)! || p - q)));
}

/** Above the columns, for lines that pass some of them. */
export function lanesOnRoof(routes: Route[]): Lanes {
  const sources = new Set<number>();
  for (const { source, first, last } of routes) if (first !== last) sources.add(source);
  return lanesFor([...sources].sort((p, q) => p - q));
}

/** Where columns begin, and the lanes in the gaps before them. */
export interface Places {
  start: number[];
  gapAt: number[];
  width: number;
}

export function placeColumns(parts: Part[], gaps: Lanes[]): Places {
  const start: number[] = [];
  const gapAt: number[] = [0];
  let cursor = 0;
  parts.forEach((part, c) => {
    if (c) {
      gapAt.push(cursor + GAP / 2);
      cursor += GAP + gaps[c].width;
    }
    start.push(cursor);
    cursor += part.totalWide;
  });
  return { start, gapAt, width: cursor };
}

/** The columns' boxes in one drawing; their own lines go into `lines` and `kinds`. */
export function joinColumns(
  graph: NestedGraph,
  parts: Part[],
  { start }: Places,
  across: boolean,
  top: number,
  lines: Float32Array[],
  kinds: Uint8Array,
) {
  const x = new Float32Array(graph.n);
  const y = new Float32Array(graph.n);
  const width = new Float32Array(graph.n);
  const height = new Float32Array(graph.n);
  parts.forEach(({ laid, boxes, edges }, c) => {
    const [dx, dy] = across ? [start[c], top] : [top, start[c]];
    boxes.forEach((box, i) => {
      x[box] = laid.x[i] + dx;
      y[box] = laid.y[i] + dy;
      width[box] = laid.width[i];
      height[box] = laid.height[i];
    });
    edges.forEach((edge, i) => {
      const line = laid.points.slice(2 * laid.pointStart[i], 2 * laid.pointStart[i + 1]);
      for (let p = 0; p < line.length; p += 2) {
        line[p] += dx;
        line[p + 1] += dy;
      }
      lines[edge] = line;
      kinds[edge] = laid.edgeKind[i];
    });
  });
  return { x, y, width, height };
}

/** The points of a line from column to column, x and y in turn. */
export function lineBetween(route: Route, { start, gapAt }: Places, gaps: Lanes[], roof: Lanes, top: number): number[] {
  const { source, out, into, from, to, first, last } = route;
  const points: number[] = [];
  const add = (x: number, y: number) => points.push(x, y);
  for (let i = 0; i < out.length; i += 2) add(out[i] + start[from], out[i + 1] + top);
  const lane = (gap: number) => gapAt[gap] + gaps[gap].at.get(source)!;
  add(lane(first), points[points.length - 1]);
  if (first !== last) {
    const over = EDGE / 2 + roof.at.get(source)!;
    add(lane(first), over);
    add(lane(last), over);
  }
  add(lane(last), into[into.length - 1] + top);
  for (let i = into.length - 2; i >= 0; i -= 2) add(into[i] + start[to], into[i + 1] + top);
  return points;
}

export function joinLines(lines: Float32Array[]): { pointStart: Int32Array; points: Float32Array } {
  const pointStart = new Int32Array(lines.length + 1);
  for (let e = 0; e < lines.length; e++) pointStart[e + 1] = pointStart[e] + lines[e].length / 2;
  const points = new Float32Array(2 * pointStart[lines.length]);
  for (let e = 0; e < lines.length; e++) points.set(lines[e], 2 * pointStart[e]);
  return { pointStart, points };
}
