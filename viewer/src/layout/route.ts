import type { Arcs } from './arcs.ts';
import { APART, bundle, type Gaps } from './coordinates.ts';
import type { Order } from './crossings.ts';
import { BACK, SELF } from './cycles.ts';
import { cutColumns } from './fold.ts';
import { collectLanes, placeLanes, type Lanes } from './lanes.ts';
import type { Layered } from './layers.ts';
import { Pen } from './pen.ts';
import { LANE, LOOP, NORMAL, WRAP, type FlatGraph, type FlatLayout, type PortedGraph } from './types.ts';

/** How far a loop of a box to itself stands out. */
export const LOOP_ROOM = 12;

interface Frame {
  layers: number;
  column: Int32Array;
  top: Float64Array; // of each layer
  bottom: Float64Array;
}

/** Heights, columns, lanes and lines: from the places of items along their layers to the drawing. */
export function route(
  graph: FlatGraph | PortedGraph,
  kind: Uint8Array,
  arcs: Arcs,
  layered: Layered,
  order: Order,
  centre: Float64Array,
  half: Float64Array,
  gaps: Gaps,
  gapY: number,
  maxHeight: number | undefined,
): FlatLayout {
  const { n, width, height, source, target } = graph;
  const { layers, layer, count, downStart } = layered;
  const { start, at } = order;
  const m = source.length;
  const tailOf = arcs.tailOfEdge;
  const headAt = 'tail' in graph ? graph.headAt : null;
  const lanes = collectLanes(layered, order, arcs, kind, source, target, tailOf);
  const PITCH = Math.max(4, 0.4 * gaps.box);

  // heights of layers and of the gaps between them
  const tall = new Float64Array(layers);
  for (let v = 0; v < n; v++) if (height[v] > tall[layer[v]]) tall[layer[v]] = height[v];
  const stubs = new Int32Array(layers),
    branches = new Int32Array(layers); // level pieces below and above a layer
  const branchOf = trackBranches(lanes, layer, target, stubs, branches);
  const gap = new Float64Array(Math.max(0, layers - 1));
  const ports = 'tail' in graph ? graph : null;
  for (let r = 0; r + 1 < layers; r++) {
    const busy = stubs[r] + branches[r + 1];
    let base = gapY;
    // a border needs less room than a layer of boxes
    if (ports && ((r === 0 && ports.inPorts) || (r === layers - 2 && ports.outPorts))) base = 0.6 * gapY;
    gap[r] = base + Math.min(3 * gapY, Math.max(0, busy - 4) * 3);
  }

  // extents of layers
  const left = new Float64Array(layers),
    right = new Float64Array(layers);
  let widest = 0;
  for (let r = 0; r < layers; r++) {
    if (start[r] === start[r + 1]) continue;
    const a = at[start[r]],
      b = at[start[r + 1] - 1];
    left[r] = centre[a] - half[a];
    right[r] = centre[b] + half[b];
    widest = Math.max(widest, right[r] - left[r]);
  }

  // columns, then lanes beside the layers
  let column: Int32Array = new Int32Array(layers);
  if (maxHeight !== undefined && layers > 1) {
    const crossing = new Int32Array(layers);
    for (let v = 0; v < count; v++) if (downStart[v + 1] > downStart[v]) crossing[layer[v]]++;
    const lanesHere = new Int32Array(layers); // of the lanes that begin or end on a layer, how many more begin
    for (let k = 0; k < lanes.count; k++) {
      lanesHere[lanes.first[k]]++;
      lanesHere[lanes.last[k]]--;
    }
    for (let r = 0, passing = 0; r < layers; r++) crossing[r] += passing += lanesHere[r];
    column = cutColumns(tall, gap, crossing, maxHeight, left, right, (lines) => bundle(lines, PITCH) + 2 * gaps.box);
  }
  const columns = layers ? column[layers - 1] + 1 : 0;
  const places = placeLanes(lanes, column, left, right, gaps.side, PITCH, Math.min(APART * PITCH, Math.max(400, widest)));
  const laneAt = (k: number, c: number) => places.x[places.start[k] + c - column[lanes.first[k]]];

  // columns side by side, with a gutter for the lines that lead from one to the next
  const wraps = columns > 1 ? collectWraps(layered, arcs, lanes, column, columns, centre, laneAt) : null;
  const shift = new Float64Array(Math.max(1, columns));
  const gutter = new Float64Array(Math.max(1, columns)); // left end of the gutter after a column
  let cursor = 0,
    roof = 0;
  for (let c = 0, r = 0; c < columns; c++) {
    let lo = Infinity,
      hi = -Infinity;
    const head = r;
    for (; r < layers && column[r] === c; r++) {
      lo = Math.min(lo, left[r]);
      hi = Math.max(hi, right[r]);
    }
    shift[c] = cursor - lo;
    cursor += hi - lo;
    gutter[c] = cursor + gaps.box;
    const before = wraps && c ? wraps.tracks[c - 1] : 0;
    if (wraps && c + 1 < columns) cursor = gutter[c] + bundle(wraps.tracks[c], PITCH) + gaps.box;
    roof = Math.max(roof, (before ? bundle(before, PITCH) + gaps.side : 0) + (branches[head] ? gapY / 2 : 0));
  }
  const frame: Frame = { layers, column, top: new Float64Array(layers), bottom: new Float64Array(layers) };
  let depth = 0;
  for (let r = 0; r < layers; r++) {
    const first = r === 0 || column[r] !== column[r - 1];
    frame.top[r] = first ? roof : frame.bottom[r - 1] + gap[r - 1];
    frame.bottom[r] = frame.top[r] + tall[r];
    if (r + 1 === layers || column[r + 1] !== column[r]) {
      const after = wraps && column[r] + 1 < columns ? wraps.tracks[column[r]] : 0;
      depth = Math.max(depth, frame.bottom[r] + (stubs[r] ? gapY / 2 : 0) + (after ? bundle(after, PITCH) + gaps.side : 0));
    }
  }
  const { top, bottom } = frame;
  const itemX = new Float64Array(count);
  for (let v = 0; v < count; v++) itemX[v] = centre[v] + shift[column[layer[v]]];

  // boxes
  const x = new Float32Array(n),
    y = new Float32Array(n);
  for (let v = 0; v < n; v++) {
    const r = layer[v];
    x[v] = itemX[v] - width[v] / 2;
    y[v] = top[r] + (tall[r] - height[v]) / 2;
  }

  // level pieces of lanes, each at its own height in its gap
  const gapBelow = (r: number) => (r + 1 < layers && column[r + 1] === column[r] ? gap[r] : gapY);
  const gapAbove = (r: number) => (r > 0 && column[r - 1] === column[r] ? gap[r - 1] : gapY);
  const stubY = new Float64Array(lanes.count);
  const branchY = new Float64Array(branchOf.layer.length);
  placeTracks(
    lanes,
    branchOf,
    column,
    laneAt,
    stubs,
    branches,
    (r, share) => bottom[r] + (gapBelow(r) / 2) * share,
    (r, share) => top[r] - (gapAbove(r) / 2) * (1 - share),
    stubY,
    branchY,
  );

  // lines
  const pen = new Pen();
  const pointStart = new Int32Array(m + 1);
  const edgeKind = new Uint8Array(m);
  const wrapTo = (c: number, track: number, fromX: number, toX: number, r: number) => {
    // down below column c, along its gutter, up, and down into the next column (or the same way back)
    const many = wraps!.tracks[c],
      pitch = bundle(many, PITCH) / many;
    const lowY = bottom[r] + (stubs[r] ? gapY / 2 : 0) + gaps.side + (many - 1 - track) * pitch;
    const gutterX = gutter[c] + (many - 1 - track) * pitch;
    const highY = top[r + 1] - (branches[r + 1] ? gapY / 2 : 0) - gaps.side - track * pitch;
    return [fromX, lowY, gutterX, lowY, gutterX, highY, toX, highY];
  };
  const bends = new Int32Array(layers + 1); // points of the current tail's line up to each bend
  let lineTail = -1,
    lineFrom = 0,
    lineBends = 0,
    lineWraps = false;
  // edges in the order of their tails, so that a shared line is walked once
  const turn = tailOrder(arcs.tails, tailOf);
  const lineStart = new Int32Array(m),
    lineCount = new Int32Array(m);
  for (let i = 0; i < m; i++) {
    const e = turn[i];
    const s = source[e],
      t = target[e],
      rs = layer[s],
      rt = layer[t];
    const tail = tailOf[e];
    const sx = itemX[s] + (arcs.tailAt ? arcs.tailAt[tail] : 0);
    const tx = itemX[t] + (headAt ? headAt[e] - width[t] / 2 : 0);
    const sy = y[s] + height[s],
      ty = y[t];
    lineStart[e] = pen.count;
    if (kind[e] === SELF) {
      edgeKind[e] = LOOP;
      const edge = x[s] + width[s];
      pen.begin();
      pen.to(edge, y[s] + 0.75 * height[s]);
      pen.to(edge + LOOP_ROOM * 0.75, y[s] + 0.75 * height[s]);
      pen.to(edge + LOOP_ROOM * 0.75, y[s] + 0.25 * height[s]);
      pen.to(edge, y[s] + 0.25 * height[s]);
      lineCount[e] = pen.count - lineStart[e];
      continue;
    }
    const k = lanes.ofEdge[e];
    if (k >= 0) {
      edgeKind[e] = kind[e] === BACK ? LOOP : column[rs] !== column[rt] ? WRAP : LANE;
      pen.begin();
      pen.to(sx, sy);
      pen.to(sx, stubY[k]);
      let c = column[rs];
      pen.to(laneAt(k, c) + shift[c], stubY[k]);
      const end = column[rt],
        goesBack = end < c,
        step = goesBack ? -1 : 1;
      for (; c !== end; c += step) {
        const pair = goesBack ? c - 1 : c;
        const r = wraps!.lastLayer[pair];
        const path = wrapTo(
          pair,
          wraps!.ofLane.get(k * columns + pair)!,
          laneAt(k, pair) + shift[pair],
          laneAt(k, pair + 1) + shift[pair + 1],
          r,
        );
        if (goesBack) for (let q = 6; q >= 0; q -= 2) pen.to(path[q], path[q + 1]);
        else for (let q = 0; q < 8; q += 2) pen.to(path[q], path[q + 1]);
      }
      const by = branchY[branchOf.ofEdge[e]];
      pen.to(laneAt(k, end) + shift[end], by);
      pen.to(tx, by);
      pen.to(tx, ty);
      lineCount[e] = pen.count - lineStart[e];
      continue;
    }
    // along the shared chain; walk on from where the longest earlier line of this tail ended
    const need = rt - rs - 1;
    const base = layered.chain[tail];
    if (lineTail !== tail) {
      lineTail = tail;
      lineBends = -1;
    }
    if (lineBends >= need) {
      pen.begin();
      pen.again(lineFrom, bends[need], need ? bottom[rs + need] : bottom[rs]);
      if (wraps) lineWraps = column[rs] !== column[rt];
    } else {
      // draw the whole chain once, longest first: edges of a tail come with falling span
      pen.begin();
      pen.to(sx, sy);
      pen.to(sx, bottom[rs]);
      bends[0] = pen.count - lineStart[e];
      for (let b = 0; b < need; b++) {
        const v = base + b,
          r = rs + 1 + b;
        if (wraps && column[r] !== column[r - 1]) {
          const u = b ? v - 1 : s;
          const fromX = b ? itemX[u] : sx;
          const path = wrapTo(column[r - 1], wraps.ofItem.get(wrapKey(u, tail, n, arcs.tails))!, fromX, itemX[v], r - 1);
          for (let q = 0; q < 8; q += 2) pen.to(path[q], path[q + 1]);
        }
        pen.to(itemX[v], top[r]);
        pen.to(itemX[v], bottom[r]);
        bends[b + 1] = pen.count - lineStart[e];
      }
      lineFrom = lineStart[e];
      lineBends = need;
      lineWraps = column[rs] !== column[rt];
    }
    if (wraps && column[rt] !== column[rt - 1]) {
      const u = need ? base + need - 1 : s;
      const path = wrapTo(column[rt - 1], wraps.ofItem.get(wrapKey(u, tail, n, arcs.tails))!, need ? itemX[u] : sx, tx, rt - 1);
      for (let q = 0; q < 8; q += 2) pen.to(path[q], path[q + 1]);
    }
    pen.to(tx, top[rt]);
    pen.to(tx, ty);
    edgeKind[e] = lineWraps ? WRAP : NORMAL;
    lineCount[e] = pen.count - lineStart[e];
  }

  // in the order of edges
  for (let e = 0; e < m; e++) pointStart[e + 1] = pointStart[e] + lineCount[e];
  const points = new Float32Array(2 * pointStart[m]);
  const pts = pen.points;
  for (let e = 0; e < m; e++) {
    let o = 2 * pointStart[e];
    for (let k = 2 * lineStart[e], end = k + 2 * lineCount[e]; k < end; k++) points[o++] = pts[k];
  }
  return { width: Math.max(0, cursor), height: depth, x, y, pointStart, points, edgeKind };

  /** Edges by tail, and within a tail by falling span, so that the first line holds all others' bends. */
  function tailOrder(tails: number, of: Int32Array): Int32Array {
    const begin = new Int32Array(tails + 1);
    for (let e = 0; e < m; e++) begin[of[e] + 1]++;
    for (let t = 0; t < tails; t++) begin[t + 1] += begin[t];
    const out = new Int32Array(m),
      fill = begin.slice(0, tails);
    for (let e = 0; e < m; e++) out[fill[of[e]]++] = e;
    const span = (e: number) => (lanes.ofEdge[e] >= 0 || kind[e] !== 0 ? -1 : layer[target[e]] - layer[source[e]]);
    for (let t = 0; t < tails; t++) {
      if (begin[t + 1] - begin[t] < 2) continue;
      // the longest to the front is enough
      let best = begin[t];
      for (let i = begin[t] + 1; i < begin[t + 1]; i++) if (span(out[i]) > span(out[best])) best = i;
      const e = out[best];
      out[best] = out[begin[t]];
      out[begin[t]] = e;
    }
    return out;
  }
}

interface Branches {
  /** The branch of an edge that uses a lane, shared with all edges of that lane into that layer. */
  ofEdge: Int32Array;
  lane: Int32Array;
  layer: Int32Array;
}

function trackBranches(lanes: Lanes, layer: Int32Array, target: Int32Array, stubs: Int32Array, branches: Int32Array): Branches {
  const m = target.length;
  if (!lanes.count) return { ofEdge: new Int32Array(0), lane: new Int32Array(0), layer: new Int32Array(0) };
  const ofEdge = new Int32Array(m).fill(-1);
  const lane: number[] = [],
    at: number[] = [];
  const known = new Map<number, number>();
  for (let e = 0; e < m; e++) {
    const k = lanes.ofEdge[e];
    if (k < 0) continue;
    const key = k * (branches.length + 1) + layer[target[e]];
    let b = known.get(key);
    if (b === undefined) {
      known.set(key, (b = lane.length));
      lane.push(k);
      at.push(layer[target[e]]);
      branches[layer[target[e]]]++;
    }
    ofEdge[e] = b;
  }
  for (let k = 0; k < lanes.count; k++) stubs[lanes.origin[k]]++;
  return { ofEdge, lane: Int32Array.from(lane), layer: Int32Array.from(at) };
}

/** Stubs: outer lanes nearest to the boxes; branches the other way round: so lanes of one gap do not cross. */
function placeTracks(
  lanes: Lanes,
  branchOf: Branches,
  column: Int32Array,
  laneAt: (k: number, c: number) => number,
  stubs: Int32Array,
  branches: Int32Array,
  below: (r: number, share: number) => number,
  above: (r: number, share: number) => number,
  stubY: Float64Array,
  branchY: Float64Array,
): void {
  const used = new Int32Array(stubs.length);
  const reachS = new Float64Array(lanes.count);
  for (let k = 0; k < lanes.count; k++) reachS[k] = Math.abs(laneAt(k, column[lanes.origin[k]]));
  const byReach = Int32Array.from({ length: lanes.count }, (_, k) => k).sort((a, b) => reachS[b] - reachS[a] || a - b);
  for (const k of byReach) {
    const r = lanes.origin[k];
    stubY[k] = below(r, ++used[r] / (stubs[r] + 1));
  }
  used.fill(0);
  const reachB = new Float64Array(branchOf.layer.length);
  for (let b = 0; b < reachB.length; b++) reachB[b] = Math.abs(laneAt(branchOf.lane[b], column[branchOf.layer[b]]));
  const order = Int32Array.from({ length: reachB.length }, (_, b) => b).sort((a, b) => reachB[a] - reachB[b] || a - b);
  for (const b of order) {
    const r = branchOf.layer[b];
    branchY[b] = above(r, ++used[r] / (branches[r] + 1));
  }
}

interface Wraps {
  tracks: Int32Array; // lines that lead from column c to the next
  lastLayer: Int32Array;
  ofItem: Map<number, number>; // track by wrapKey
  ofLane: Map<number, number>; // track by lane · columns + column
}

const wrapKey = (item: number, tail: number, boxes: number, tails: number) => (item < boxes ? tail : tails + item);

/** The lines at each fold, numbered from left to right. */
function collectWraps(
  layered: Layered,
  arcs: Arcs,
  lanes: Lanes,
  column: Int32Array,
  columns: number,
  centre: Float64Array,
  laneAt: (k: number, c: number) => number,
): Wraps {
  const lastLayer = new Int32Array(columns);
  for (let r = 0; r < column.length; r++) lastLayer[column[r]] = r;
  const found: { x: number; key: number; lane: boolean }[][] = Array.from({ length: columns }, () => []);
  for (let t = 0; t < arcs.tails; t++) {
    const box = arcs.tailBox[t],
      r = layered.layer[box],
      length = layered.chainLength[t];
    const reaches = length || hasShortArc(arcs, layered, t);
    if (!reaches) continue;
    const end = r + length; // the last layer that this line leaves downwards
    for (let c = column[r]; c < columns && lastLayer[c] <= end; c++) {
      if (lastLayer[c] === column.length - 1) break;
      const step = lastLayer[c] - r;
      const item = step ? layered.chain[t] + step - 1 : box;
      const x = centre[item] + (step || !arcs.tailAt ? 0 : arcs.tailAt[t]);
      found[c].push({ x, key: wrapKey(item, t, layered.boxes, arcs.tails), lane: false });
    }
  }
  for (let k = 0; k < lanes.count; k++) {
    for (let c = column[lanes.first[k]]; c < column[lanes.last[k]]; c++)
      found[c].push({ x: laneAt(k, c), key: k * columns + c, lane: true });
  }
  const wraps: Wraps = { tracks: new Int32Array(columns), lastLayer, ofItem: new Map(), ofLane: new Map() };
  for (let c = 0; c < columns; c++) {
    found[c].sort((a, b) => a.x - b.x || a.key - b.key);
    found[c].forEach((f, i) => (f.lane ? wraps.ofLane : wraps.ofItem).set(f.key, i));
    wraps.tracks[c] = found[c].length;
  }
  return wraps;
}

function hasShortArc(arcs: Arcs, layered: Layered, tail: number): boolean {
  for (let a = arcs.start[tail]; a < arcs.start[tail + 1]; a++) if (!layered.lane[a]) return true;
  return false;
}
