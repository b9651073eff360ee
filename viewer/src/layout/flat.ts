import { listsBy } from './adjacency.ts';
import { layoutLayers } from './component.ts';
import { connectedParts, packRows, rowWidth } from './pack.ts';
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

export function layoutDown(graph: FlatGraph | PortedGraph, options: Options): FlatLayout {
  const { n, width, height, source, target } = graph;
  const { gapX, gapY } = options;
  const { part, parts } = connectedParts(n, source, target);
  let single = 0;
  for (let v = 0; v < n; v++) if (part[v] < 0) single++;
  const ported = 'tail' in graph;
  const bordered = ported && graph.inPorts + graph.outPorts > 0; // the border holds all parts together
  if (!single && (parts === 1 || bordered)) return layoutLayers(graph, options);

  const x = new Float32Array(n),
    y = new Float32Array(n);
  const pieces: { layout: FlatLayout; boxes: Int32Array; edges: Int32Array }[] = [];
  if (bordered) for (let v = 0; v < n; v++) if (part[v] > 0) part[v] = 0;
  const kinds = bordered ? Math.min(1, parts) : parts;
  const boxesOf = listsBy(kinds, part);
  const edgePart = new Int32Array(source.length);
  for (let e = 0; e < source.length; e++) edgePart[e] = part[source[e]];
  const edgesOf = listsBy(kinds, edgePart);
  const local = new Int32Array(n);
  for (let p = 0; p < kinds; p++) {
    const boxes = boxesOf.item.subarray(boxesOf.start[p], boxesOf.start[p + 1]);
    const edges = edgesOf.item.subarray(edgesOf.start[p], edgesOf.start[p + 1]);
    for (let i = 0; i < boxes.length; i++) local[boxes[i]] = i;
    const sub: FlatGraph = {
      n: boxes.length,
      width: pick(width, boxes),
      height: pick(height, boxes),
      source: edges.map((e) => local[source[e]]),
      target: edges.map((e) => local[target[e]]),
      weight: graph.weight && pick(graph.weight, edges),
      order: graph.order && boxes.map((v) => graph.order![v]),
    };
    const whole = ported
      ? {
          ...sub,
          inPorts: graph.inPorts,
          outPorts: graph.outPorts,
          tail: edges.map((e) => graph.tail[e]),
          tailAt: pick(graph.tailAt, edges),
          headAt: pick(graph.headAt, edges),
        }
      : sub;
    pieces.push({ layout: layoutLayers(whole, options), boxes, edges });
  }

  // parts in rows, then the single boxes: beside what is tall, below what is wide
  const partWidth = pieces.map((p) => p.layout.width),
    partHeight = pieces.map((p) => p.layout.height);
  const packed = packRows(partWidth, partHeight, rowWidth(partWidth, partHeight, 2 * gapX, 2 * gapY, 1.6), 2 * gapX, 2 * gapY);
  let totalWidth = packed.width,
    totalHeight = packed.height;
  if (single) {
    const list = new Int32Array(single);
    for (let v = 0, k = 0; v < n; v++) if (part[v] < 0) list[k++] = v;
    const w = pick(width, list),
      h = pick(height, list);
    const beside = bordered || packed.height > 1.5 * packed.width;
    let limit = rowWidth(w, h, gapX, gapY, 1.6);
    if (packed.width) {
      if (!beside) limit = Math.max(limit, packed.width);
      else limit = Math.max(rowWidth(w, h, gapX, gapY, 0.1), Math.min(limit, ((limit * limit) / (1.6 * packed.height)) * 1.3));
    }
    const grid = packRows(w, h, limit, gapX, gapY);
    const dx = beside && packed.width ? packed.width + 2 * gapX : 0;
    const dy = !beside && packed.height ? packed.height + 2 * gapY : 0;
    for (let i = 0; i < single; i++) {
      x[list[i]] = grid.x[i] + dx;
      y[list[i]] = grid.y[i] + dy;
    }
    totalWidth = Math.max(totalWidth, grid.width + dx);
    totalHeight = Math.max(totalHeight, grid.height + dy);
  }

  const m = source.length;
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
  return { width: totalWidth, height: totalHeight, x, y, pointStart, points, edgeKind };
}

function pick(of: Float32Array, which: Int32Array): Float32Array {
  const out = new Float32Array(which.length);
  for (let i = 0; i < which.length; i++) out[i] = of[which[i]];
  return out;
}
