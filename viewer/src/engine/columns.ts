// Phases side by side: each is laid out for itself, and what passes between them runs around their boxes to the side,
// and through the gaps between the columns.

import { Escape } from '../layout/escape.ts';
import { layoutNested, type LayoutCache } from '../layout/nested.ts';
import { LANE, type NestedGraph, type NestedLayout, type Options } from '../layout/types.ts';

const GAP = 90; // between columns, without the lines in it
const PITCH = 6; // of lines beside each other
const WIDEST = 240; // a bundle of lines
const EDGE = 14; // free space around a column

/** `column` is the column of each box (by the phase around it), from 0 in the order they stand. */
export function layoutColumns(graph: NestedGraph, column: Int32Array, options: Options, cache: LayoutCache): NestedLayout {
  const count = column.reduce((most, c) => Math.max(most, c + 1), 0);
  const edges = graph.source.length;
  const across = options.direction === 'down';
  const lines: Float32Array[] = new Array<Float32Array>(edges);
  const edgeKind = new Uint8Array(edges);
  const parts = Array.from({ length: count }, (_, c) => {
    const part = take(graph, column, c);
    const laid = layoutNested(part.graph, options, cache);
    part.edges.forEach((edge, i) => (edgeKind[edge] = laid.edgeKind[i]!));
    // All below is said for columns beside each other; where they stand above each other, x and y are exchanged.
    return {
      ...part,
      laid,
      x: across ? laid.x : laid.y,
      y: across ? laid.y : laid.x,
      wide: across ? laid.width : laid.height,
      high: across ? laid.height : laid.width,
      totalWide: across ? laid.totalWidth : laid.totalHeight,
      totalHigh: across ? laid.totalHeight : laid.totalWidth,
    };
  });
  const place = new Int32Array(graph.n); // of a box in its column
  for (const { boxes } of parts) boxes.forEach((box, i) => (place[box] = i));

  // the ways from boxes to the sides of their columns, each once
  const between: number[] = [];
  for (let e = 0; e < edges; e++) if (column[graph.source[e]!] !== column[graph.target[e]!]) between.push(e);
  const busy = between.length > 0;
  const escapes = busy
    ? parts.map(
        (part) =>
          new Escape(
            { n: part.boxes.length, parent: part.graph.parent, x: part.x, y: part.y, width: part.wide, height: part.high },
            { left: -EDGE, top: -EDGE, right: part.totalWide + EDGE, bottom: part.totalHigh + EDGE },
            across ? graph.header : 0,
          ),
      )
    : [];
  const known = new Map<number, number[]>();
  const way = (box: number, entering: boolean, side: 0 | 1): number[] => {
    const key = 4 * box + 2 * (entering ? 1 : 0) + side;
    let points = known.get(key);
    if (!points) {
      const c = column[box]!,
        part = parts[c]!,
        v = place[box]!;
      points = escapes[c]!.way(v, entering, side, ((box * 7) % 19) / 18) ?? straight(part, v, side);
      known.set(key, points);
    }
    return points;
  };

  // lanes: one for all lines of a source in a gap between columns, and above the columns for those that pass some
  const gaps = Array.from({ length: count + 1 }, () => new Map<number, number>()); // by source: where it comes from
  const roof = new Map<number, number>();
  const routes = between.map((e) => {
    const a = graph.source[e]!,
      b = graph.target[e]!;
    const forward = column[a]! < column[b]!;
    const out = way(a, false, forward ? 0 : 1),
      into = way(b, true, forward ? 1 : 0);
    const first = forward ? column[a]! + 1 : column[a]!, // the gap before column 1 is gap 1
      last = forward ? column[b]! : column[b]! + 1;
    gaps[first]!.set(a, out[out.length - 1]!);
    if (first !== last) {
      gaps[last]!.set(a, -1);
      roof.set(a, out[0]!);
    }
    return { e, a, out, into, first, last };
  });
  const laneOf = gaps.map((gap) => {
    // what goes down from above stands outside what starts below
    const order = [...gap.keys()].sort((p, q) => gap.get(p)! - gap.get(q)! || p - q);
    const step = order.length ? Math.min(PITCH, WIDEST / order.length) : 0;
    return { step, width: order.length * step, at: new Map(order.map((source, i) => [source, i * step])) };
  });
  const roofOrder = [...roof.keys()].sort((p, q) => p - q);
  const roofStep = roofOrder.length ? Math.min(PITCH, WIDEST / roofOrder.length) : 0;
  const top = busy ? EDGE + roofOrder.length * roofStep + (roofOrder.length ? EDGE : 0) : 0;

  // columns beside each other
  const start: number[] = [];
  const gapAt: number[] = [0];
  let cursor = 0,
    tallest = 0;
  for (let c = 0; c < count; c++) {
    if (c) {
      gapAt.push(cursor + GAP / 2);
      cursor += GAP + laneOf[c]!.width;
    }
    start.push(cursor);
    cursor += parts[c]!.totalWide;
    tallest = Math.max(tallest, parts[c]!.totalHigh);
  }
  const x = new Float32Array(graph.n);
  const y = new Float32Array(graph.n);
  const width = new Float32Array(graph.n);
  const height = new Float32Array(graph.n);
  parts.forEach((part, c) => {
    const { laid } = part;
    const dx = across ? start[c]! : top,
      dy = across ? top : start[c]!;
    part.boxes.forEach((box, i) => {
      x[box] = laid.x[i]! + dx;
      y[box] = laid.y[i]! + dy;
      width[box] = laid.width[i]!;
      height[box] = laid.height[i]!;
    });
    part.edges.forEach((edge, i) => {
      const line = laid.points.slice(2 * laid.pointStart[i]!, 2 * laid.pointStart[i + 1]!);
      for (let p = 0; p < line.length; p += 2) {
        line[p]! += dx;
        line[p + 1]! += dy;
      }
      lines[edge] = line;
    });
  });
  const roofAt = new Map(roofOrder.map((source, i) => [source, EDGE / 2 + i * roofStep]));
  for (const { e, a, out, into, first, last } of routes) {
    const points: number[] = [];
    const add = (px: number, py: number) => points.push(px, py);
    const from = start[column[a]!]!,
      to = start[column[graph.target[e]!]!]!;
    for (let i = 0; i < out.length; i += 2) add(out[i]! + from, out[i + 1]! + top);
    const lane = gapAt[first]! + laneOf[first]!.at.get(a)!;
    add(lane, points[points.length - 1]!);
    if (first !== last) {
      const other = gapAt[last]! + laneOf[last]!.at.get(a)!;
      add(lane, roofAt.get(a)!);
      add(other, roofAt.get(a)!);
      add(other, into[into.length - 1]! + top);
    } else add(lane, into[into.length - 1]! + top);
    for (let i = into.length - 2; i >= 0; i -= 2) add(into[i]! + to, into[i + 1]! + top);
    lines[e] = Float32Array.from(across ? points : points.map((_, i) => points[i ^ 1]!));
    edgeKind[e] = LANE;
  }

  const pointStart = new Int32Array(edges + 1);
  for (let e = 0; e < edges; e++) pointStart[e + 1] = pointStart[e]! + lines[e]!.length / 2;
  const points = new Float32Array(2 * pointStart[edges]!);
  for (let e = 0; e < edges; e++) points.set(lines[e]!, 2 * pointStart[e]!);
  const tall = count ? tallest + top + (busy ? EDGE : 0) : 0;
  return { x, y, width, height, points, pointStart, edgeKind, totalWidth: across ? cursor : tall, totalHeight: across ? tall : cursor };
}

/** Without a way around (boxes that touch), straight to the side. */
function straight(
  part: { x: Float32Array; y: Float32Array; wide: Float32Array; high: Float32Array; totalWide: number },
  v: number,
  side: 0 | 1,
): number[] {
  const middle = part.y[v]! + part.high[v]! / 2;
  return side ? [part.x[v]!, middle, -EDGE, middle] : [part.x[v]! + part.wide[v]!, middle, part.totalWide + EDGE, middle];
}

/** The boxes of one column, and the edges among them. */
function take(graph: NestedGraph, column: Int32Array, c: number): { graph: NestedGraph; boxes: Int32Array; edges: number[] } {
  const boxes: number[] = [];
  const place = new Int32Array(graph.n).fill(-1);
  for (let box = 0; box < graph.n; box++) if (column[box] === c) place[box] = boxes.push(box) - 1;
  const edges: number[] = [];
  for (let e = 0; e < graph.source.length; e++) if (place[graph.source[e]!]! >= 0 && place[graph.target[e]!]! >= 0) edges.push(e);
  const pick = <T extends Int32Array | Float32Array | Uint8Array>(from: T, rows: number[]): T =>
    (from.constructor as unknown as { from(a: number[]): T }).from(rows.map((i) => from[i]!));
  return {
    boxes: Int32Array.from(boxes),
    edges,
    graph: {
      ...graph,
      n: boxes.length,
      parent: Int32Array.from(boxes, (box) => (graph.parent[box]! < 0 ? -1 : place[graph.parent[box]!]!)),
      open: pick(graph.open, boxes),
      width: pick(graph.width, boxes),
      height: pick(graph.height, boxes),
      source: Int32Array.from(edges, (e) => place[graph.source[e]!]!),
      target: Int32Array.from(edges, (e) => place[graph.target[e]!]!),
      weight: graph.weight && pick(graph.weight, edges),
      order: graph.order && pick(graph.order, boxes),
      key: graph.key && ((group: number) => graph.key!(boxes[group]!)),
    },
  };
}
