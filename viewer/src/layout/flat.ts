// One level of boxes: its connected parts by themselves, packed beside each other.

import { listsBy } from './adjacency.ts';
import { layoutLayers } from './component.ts';
import { connectedParts, packRows, rowWidth, type Packed } from './pack.ts';
import type { FlatGraph, FlatLayout, Options, PortedGraph } from './types.ts';

/** Lays out one level: connected parts in layers, packed beside each other; single boxes in a grid apart. */
export function layoutFlat(graph: FlatGraph, options: Options): FlatLayout {
  if (options.direction === 'down') return layoutDown(graph, options);
  const turned = { ...graph, width: graph.height, height: graph.width };
  return turn(layoutDown(turned, options));
}

/** Exchanges x and y. */
export function turn(layout: FlatLayout): FlatLayout {
  const points = new Float32Array(layout.points.length);
  for (let i = 0; i < points.length; i += 2) {
    points[i] = layout.points[i + 1];
    points[i + 1] = layout.points[i];
  }
  return { ...layout, width: layout.height, height: layout.width, x: layout.y, y: layout.x, points };
}

/** A connected part of a graph, laid out by itself. */
interface Piece {
  layout: FlatLayout;
  boxes: Int32Array;
  edges: Int32Array;
}

/** One level whose layers follow each other from top to bottom. */
export function layoutDown(graph: FlatGraph | PortedGraph, options: Options): FlatLayout {
  const { n, source, target } = graph;
  const { part, parts } = connectedParts(n, source, target);
  const single = part.reduce((count, p) => count + (p < 0 ? 1 : 0), 0);
  const bordered = 'tail' in graph && graph.inPorts + graph.outPorts > 0; // the border holds all parts together
  if (!single && (parts === 1 || bordered)) return layoutLayers(graph, options);

  if (bordered) for (let v = 0; v < n; v++) if (part[v] > 0) part[v] = 0;
  const pieces = layoutParts(graph, part, bordered ? Math.min(1, parts) : parts, options);
  const { gapX, gapY } = options;
  const wide = pieces.map((p) => p.layout.width),
    high = pieces.map((p) => p.layout.height);
  const packed = packRows(wide, high, rowWidth(wide, high, 2 * gapX, 2 * gapY, 1.6), 2 * gapX, 2 * gapY);
  const out = joined(graph, pieces, packed);
  return single ? withSingles(out, graph, part, bordered, options) : out;
}

/** Every part by itself. */
function layoutParts(graph: FlatGraph | PortedGraph, part: Int32Array, parts: number, options: Options): Piece[] {
  const boxesOf = listsBy(parts, part);
  const edgesOf = listsBy(
    parts,
    graph.source.map((s) => part[s]),
  );
  const local = new Int32Array(graph.n);
  return Array.from({ length: parts }, (_, p) => {
    const boxes = boxesOf.item.subarray(boxesOf.start[p], boxesOf.start[p + 1]);
    const edges = edgesOf.item.subarray(edgesOf.start[p], edgesOf.start[p + 1]);
    for (let i = 0; i < boxes.length; i++) local[boxes[i]] = i;
    return { layout: layoutLayers(graphOf(graph, boxes, edges, local), options), boxes, edges };
  });
}

/** Some boxes of a graph, and the edges among them. */
function graphOf(graph: FlatGraph | PortedGraph, boxes: Int32Array, edges: Int32Array, local: Int32Array): FlatGraph | PortedGraph {
  const { width, height, source, target, weight, order } = graph;
  const part: FlatGraph = {
    n: boxes.length,
    width: pick(width, boxes),
    height: pick(height, boxes),
    source: edges.map((e) => local[source[e]]),
    target: edges.map((e) => local[target[e]]),
    weight: weight && pick(weight, edges),
    order: order && boxes.map((v) => order[v]),
    before: graph.before && pick(graph.before, boxes),
    behind: graph.behind && pick(graph.behind, boxes),
  };
  if (!('tail' in graph)) return part;
  const { inPorts, outPorts, tail, tailAt, headAt } = graph;
  return { ...part, inPorts, outPorts, tail: edges.map((e) => tail[e]), tailAt: pick(tailAt, edges), headAt: pick(headAt, edges) };
}

/** Single boxes in rows: beside what is tall, below what is wide. */
function withSingles(out: FlatLayout, graph: FlatGraph, part: Int32Array, bordered: boolean, { gapX, gapY }: Options): FlatLayout {
  const boxes = Int32Array.from(part.keys()).filter((v) => part[v] < 0);
  const wide = pick(graph.width, boxes),
    high = pick(graph.height, boxes);
  const beside = bordered || out.height > 1.5 * out.width;
  let limit = rowWidth(wide, high, gapX, gapY, 1.6);
  if (out.width) {
    if (!beside) limit = Math.max(limit, out.width);
    else limit = Math.max(rowWidth(wide, high, gapX, gapY, 0.1), Math.min(limit, ((limit * limit) / (1.6 * out.height)) * 1.3));
  }
  const grid = packRows(wide, high, limit, gapX, gapY);
  const dx = beside && out.width ? out.width + 2 * gapX : 0;
  const dy = !beside && out.height ? out.height + 2 * gapY : 0;
  for (let i = 0; i < boxes.length; i++) {
    out.x[boxes[i]] = grid.x[i] + dx;
    out.y[boxes[i]] = grid.y[i] + dy;
  }
  return { ...out, width: Math.max(out.width, grid.width + dx), height: Math.max(out.height, grid.height + dy) };
}

/** The drawings of parts as one, each where it was packed. */
function joined({ n, source }: FlatGraph, pieces: Piece[], packed: Packed): FlatLayout {
  const m = source.length;
  const x = new Float32Array(n),
    y = new Float32Array(n);
  const pointStart = new Int32Array(m + 1);
  const edgeKind = new Uint8Array(m);
  for (const { layout, edges } of pieces) {
    for (let i = 0; i < edges.length; i++) {
      pointStart[edges[i] + 1] = layout.pointStart[i + 1] - layout.pointStart[i];
      edgeKind[edges[i]] = layout.edgeKind[i];
    }
  }
  for (let e = 0; e < m; e++) pointStart[e + 1] += pointStart[e];
  const points = new Float32Array(2 * pointStart[m]);
  pieces.forEach(({ layout, boxes, edges }, p) => {
    const dx = packed.x[p],
      dy = packed.y[p];
    for (let i = 0; i < boxes.length; i++) {
      x[boxes[i]] = layout.x[i] + dx;
      y[boxes[i]] = layout.y[i] + dy;
    }
    for (let i = 0; i < edges.length; i++) {
      let o = 2 * pointStart[edges[i]];
      for (let k = 2 * layout.pointStart[i]; k < 2 * layout.pointStart[i + 1]; k += 2) {
        points[o++] = layout.points[k] + dx;
        points[o++] = layout.points[k + 1] + dy;
      }
    }
  });
  return { width: packed.width, height: packed.height, x, y, pointStart, points, edgeKind };
}

function pick(of: Float32Array, which: Int32Array): Float32Array {
  const out = new Float32Array(which.length);
  for (let i = 0; i < which.length; i++) out[i] = of[which[i]];
  return out;
}
