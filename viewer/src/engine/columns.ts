// Phases side by side: each is laid out for itself, and what passes between them runs through the gaps.

import { layoutNested, type LayoutCache } from '../layout/nested.ts';
import { LANE, type NestedGraph, type NestedLayout, type Options } from '../layout/types.ts';

const GAP = 150;

/** `column` is the column of each box (by the phase around it), from 0 in the order they stand. */
export function layoutColumns(graph: NestedGraph, column: Int32Array, options: Options, cache: LayoutCache): NestedLayout {
  const count = column.reduce((most, c) => Math.max(most, c + 1), 0);
  const x = new Float32Array(graph.n);
  const y = new Float32Array(graph.n);
  const width = new Float32Array(graph.n);
  const height = new Float32Array(graph.n);
  const edges = graph.source.length;
  const lines: Float32Array[] = new Array<Float32Array>(edges);
  const edgeKind = new Uint8Array(edges);
  const across = options.direction === 'down';
  let start = 0;
  let tallest = 0;
  const ends: number[] = []; // where each column ends
  for (let c = 0; c < count; c++) {
    const part = take(graph, column, c);
    const laid = layoutNested(part.graph, options, cache);
    part.boxes.forEach((box, i) => {
      x[box] = laid.x[i]! + (across ? start : 0);
      y[box] = laid.y[i]! + (across ? 0 : start);
      width[box] = laid.width[i]!;
      height[box] = laid.height[i]!;
    });
    part.edges.forEach((edge, i) => {
      const line = laid.points.slice(2 * laid.pointStart[i]!, 2 * laid.pointStart[i + 1]!);
      for (let p = across ? 0 : 1; p < line.length; p += 2) line[p]! += start;
      lines[edge] = line;
      edgeKind[edge] = laid.edgeKind[i]!;
    });
    start += (across ? laid.totalWidth : laid.totalHeight) + GAP;
    ends.push(start - GAP);
    tallest = Math.max(tallest, across ? laid.totalHeight : laid.totalWidth);
  }
  for (let e = 0; e < edges; e++) {
    if (lines[e]) continue;
    lines[e] = between(graph.source[e]!, graph.target[e]!);
    edgeKind[e] = LANE;
  }

  /** From the side of one box to the near side of the other, turning in the gap beside the first column. */
  function between(a: number, b: number): Float32Array {
    const forward = column[a]! < column[b]!;
    const [left, right] = forward ? [a, b] : [b, a];
    const spread = (e: number) => ((e * 7) % 19) * (GAP / 32); // neighbouring edges turn at different places
    const turn = ends[column[left]!]! + GAP * 0.2 + spread(a + b);
    const points = across
      ? [
          x[left]! + width[left]!,
          y[left]! + height[left]! / 2,
          turn,
          y[left]! + height[left]! / 2,
          turn,
          y[right]! + height[right]! / 2,
          x[right]!,
          y[right]! + height[right]! / 2,
        ]
      : [
          x[left]! + width[left]! / 2,
          y[left]! + height[left]!,
          x[left]! + width[left]! / 2,
          turn,
          x[right]! + width[right]! / 2,
          turn,
          x[right]! + width[right]! / 2,
          y[right]!,
        ];
    if (forward) return Float32Array.from(points);
    return Float32Array.from([6, 7, 4, 5, 2, 3, 0, 1].map((i) => points[i]!));
  }

  const pointStart = new Int32Array(edges + 1);
  for (let e = 0; e < edges; e++) pointStart[e + 1] = pointStart[e]! + lines[e]!.length / 2;
  const points = new Float32Array(2 * pointStart[edges]!);
  for (let e = 0; e < edges; e++) points.set(lines[e]!, 2 * pointStart[e]!);
  const long = Math.max(0, start - GAP);
  return { x, y, width, height, points, pointStart, edgeKind, totalWidth: across ? long : tallest, totalHeight: across ? tallest : long };
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
