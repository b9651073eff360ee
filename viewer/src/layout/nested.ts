// Open groups inside each other: every group is a level that is laid out by itself, the innermost first.

import { listsBy, type Lists } from './adjacency.ts';
import { LayoutCache } from './cache.ts';
import { layoutDown } from './flat.ts';
import { Pen } from './pen.ts';
import { cutEdges, ENTERS, LEAVES, type Pieces } from './pieces.ts';
import { NORMAL, strongerKind, type FlatLayout, type NestedGraph, type NestedLayout, type Options, type PortedGraph } from './types.ts';

export { LayoutCache };

/** What is known while the levels are laid out, innermost first. Level n is the outermost. */
interface Levels {
  graph: NestedGraph;
  pieces: Pieces;
  children: Lists;
  piecesOf: Lists;
  place: Int32Array; // of a box among its siblings
  /** Sizes as the levels see them: going down, whatever the direction. */
  wide: Float32Array;
  high: Float32Array;
  /** Of a group: those of all that is in it. */
  before?: Float32Array;
  behind?: Float32Array;
  /** Ports of group g, those of the top border first: distance from its left side. */
  portStart: Int32Array;
  portX: Float32Array;
  /** The number of a piece among the edges of its level. */
  number: Int32Array;
  layouts: FlatLayout[];
  /** Where a group's content begins, from its corner. */
  contentX: Float32Array;
  contentY: number;
}

/**
 * Lays out a tree of boxes, children first: an open group is then one box of its parent. With a
 * cache, groups whose content has not changed keep their layout. The width given for an open group
 * is the least it gets (room for its title).
 */
export function layoutNested(graph: NestedGraph, options: Options, cache: LayoutCache = new LayoutCache()): NestedLayout {
  const { n, open, header, padding } = graph;
  const right = options.direction === 'right';
  const levels = prepare(graph, right);
  const { layouts, children, portStart, portX, contentX, wide, high } = levels;
  levels.contentY = right ? padding : header + padding;
  cache.begin(options);
  for (let g = n - 1; g >= 0; g--) {
    if (!open[g]) continue;
    const level = buildLevel(levels, g);
    const layout = !graph.key || graph.key(g) !== null ? cache.get(level, () => layoutDown(level, options)) : layoutDown(level, options);
    layouts[g] = layout;
    // the header is always above on the screen, so it is next to the content of a graph going right
    const least = graph.width[g];
    const width = layout.width + 2 * padding + (right ? header : 0);
    const height = layout.height + 2 * padding + (right ? 0 : header);
    wide[g] = right ? width : Math.max(width, least);
    high[g] = right ? Math.max(height, least) : height;
    contentX[g] = right ? header + padding : padding + (wide[g] - width) / 2;
    const kids = children.start[g + 1] - children.start[g];
    for (let p = portStart[g], k = kids; p < portStart[g + 1]; p++, k++) portX[p] = contentX[g] + layout.x[k];
  }
  const level = buildLevel(levels, n);
  layouts[n] = cache.get(level, () => layoutDown(level, options));
  return join(levels, right);
}

function prepare(graph: NestedGraph, right: boolean): Levels {
  const { n, parent } = graph;
  const pieces = cutEdges(graph);
  const above = new Int32Array(n);
  for (let v = 0; v < n; v++) above[v] = parent[v] < 0 ? n : parent[v];
  const children = listsBy(n + 1, above);
  const place = new Int32Array(n);
  for (let g = 0; g <= n; g++) {
    for (let k = children.start[g]; k < children.start[g + 1]; k++) place[children.item[k]] = k - children.start[g];
  }
  const portStart = new Int32Array(n + 2);
  for (let g = 0; g <= n; g++) portStart[g + 1] = portStart[g] + pieces.inPorts[g] + pieces.outPorts[g];
  return {
    graph,
    pieces,
    children,
    place,
    piecesOf: listsBy(n + 1, pieces.group, pieces.count),
    before: graph.before && withInner(graph, graph.before),
    behind: graph.behind && withInner(graph, graph.behind),
    wide: Float32Array.from(right ? graph.height : graph.width),
    high: Float32Array.from(right ? graph.width : graph.height),
    portStart,
    portX: new Float32Array(portStart[n + 1]),
    number: new Int32Array(pieces.count),
    layouts: new Array(n + 1),
    contentX: new Float32Array(n + 1),
    contentY: 0,
  };
}

function withInner({ n, parent }: NestedGraph, own: Float32Array): Float32Array {
  const all = own.slice();
  for (let v = n - 1; v >= 0; v--) if (parent[v] >= 0) all[parent[v]] += all[v];
  return all;
}

/** The graph of one level: its boxes in order, then the ports of its border; its pieces are the edges. */
function buildLevel(levels: Levels, g: number): PortedGraph {
  const { graph, pieces, children, piecesOf, place, wide, high, portStart, portX, number } = levels;
  const inPorts = pieces.inPorts[g],
    outPorts = pieces.outPorts[g];
  const kids = children.start[g + 1] - children.start[g];
  const n = kids + inPorts + outPorts;
  const width = new Float32Array(n),
    height = new Float32Array(n);
  for (let i = 0; i < kids; i++) {
    const v = children.item[children.start[g] + i];
    width[i] = wide[v];
    height[i] = high[v];
  }
  const first = piecesOf.start[g],
    m = piecesOf.start[g + 1] - first;
  const source = new Int32Array(m),
    target = new Int32Array(m),
    tail = new Int32Array(m);
  const tailAt = new Float32Array(m),
    headAt = new Float32Array(m),
    weight = new Float32Array(m);
  let tails = -1,
    leaf = -1;
  for (let e = 0; e < m; e++) {
    const p = piecesOf.item[first + e];
    number[p] = e;
    if (pieces.leaf[p] !== leaf) {
      leaf = pieces.leaf[p];
      tails++;
    }
    tail[e] = tails;
    weight[e] = pieces.weight[p];
    const from = pieces.from[p],
      to = pieces.to[p];
    if (pieces.way[p] === ENTERS) source[e] = kids + from;
    else {
      source[e] = place[from];
      const before = pieces.previous[p]; // out of an open group: from its port
      tailAt[e] = before < 0 ? wide[from] / 2 : portX[portStart[from] + pieces.inPorts[from] + pieces.to[before]];
    }
    if (pieces.way[p] === LEAVES) target[e] = kids + inPorts + to;
    else {
      target[e] = place[to];
      headAt[e] = pieces.headPort[p] < 0 ? wide[to] / 2 : portX[portStart[to] + pieces.headPort[p]];
    }
  }
  const order = localOrder(graph.order, children.item, children.start[g], kids, inPorts, outPorts);
  const ofKids = (all: Float32Array | undefined) =>
    all && Float32Array.from({ length: n }, (_, i) => (i < kids ? all[children.item[children.start[g] + i]] : 0));
  const [before, behind] = [ofKids(levels.before), ofKids(levels.behind)];
  const ports = { inPorts, outPorts, tail, tailAt, headAt };
  return { n, width, height, source, target, weight: graph.weight && weight, order, before, behind, ...ports };
}

/** The order of a level's boxes among themselves, so that equal groups look equal; none when it is the index. */
function localOrder(
  order: Int32Array | undefined,
  item: Int32Array,
  first: number,
  kids: number,
  inPorts: number,
  outPorts: number,
): Int32Array | undefined {
  if (!order) return undefined;
  let sorted = inPorts === 0; // ports on the top border come first, but have the last numbers
  for (let i = 1; i < kids && sorted; i++) sorted = order[item[first + i - 1]] <= order[item[first + i]];
  if (sorted) return undefined;
  const by = Int32Array.from({ length: kids }, (_, i) => i).sort((a, b) => order[item[first + a]] - order[item[first + b]] || a - b);
  const out = new Int32Array(kids + inPorts + outPorts);
  for (let i = 0; i < kids; i++) out[by[i]] = i + 1;
  for (let i = 0; i < outPorts; i++) out[kids + inPorts + i] = kids + 1;
  return out;
}

/** Absolute places, and the pieces of every edge joined into one line. */
function join(levels: Levels, right: boolean): NestedLayout {
  const { graph, pieces, children, number, layouts, contentX, contentY, wide, high } = levels;
  const { n, open, source } = graph;
  const m = source.length;
  const x = new Float32Array(n),
    y = new Float32Array(n);
  const originX = new Float64Array(n + 1),
    originY = new Float64Array(n + 1); // of a group's content
  const put = (g: number) => {
    const layout = layouts[g];
    for (let k = children.start[g], i = 0; k < children.start[g + 1]; k++, i++) {
      const v = children.item[k];
      x[v] = originX[g] + layout.x[i];
      y[v] = originY[g] + layout.y[i];
      if (open[v]) {
        originX[v] = originX[g] + layout.x[i] + contentX[v];
        originY[v] = originY[g] + layout.y[i] + contentY;
      }
    }
  };
  put(n);
  for (let g = 0; g < n; g++) if (open[g]) put(g);

  const pen = new Pen(0.05);
  const pointStart = new Int32Array(m + 1);
  const edgeKind = new Uint8Array(m);
  const path: number[] = [];
  for (let e = 0; e < m; e++) {
    path.length = 0;
    for (let p = pieces.lastOfEdge[e]; p >= 0; p = pieces.previous[p]) path.push(p);
    pen.begin();
    let kind: number = NORMAL;
    for (let i = path.length - 1; i >= 0; i--) {
      const p = path[i],
        g = pieces.group[p],
        layout = layouts[g],
        k = number[p];
      kind = strongerKind(kind, layout.edgeKind[k]);
      const end = 2 * layout.pointStart[k + 1];
      for (let q = 2 * layout.pointStart[k]; q < end; q += 2) {
        pen.to(originX[g] + layout.points[q], originY[g] + layout.points[q + 1]);
      }
    }
    edgeKind[e] = kind;
    pointStart[e + 1] = pen.count;
  }
  const points = pen.points.slice(0, 2 * pen.count);
  if (right) {
    for (let i = 0; i < points.length; i += 2) {
      const t = points[i];
      points[i] = points[i + 1];
      points[i + 1] = t;
    }
  }
  const whole = layouts[n];
  return {
    x: right ? y : x,
    y: right ? x : y,
    width: right ? high : wide,
    height: right ? wide : high,
    totalWidth: right ? whole.height : whole.width,
    totalHeight: right ? whole.width : whole.height,
    pointStart,
    points,
    edgeKind,
  };
}
