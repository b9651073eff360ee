// Lines that run beside the boxes, and where each of them runs.

import { BACK } from './cycles.ts';
import type { Routing } from './routing.ts';

/**
 * Lines that run beside the boxes: very long arcs going down, and back edges going up. All that leave
 * one place in one direction share a lane. A lane clears the layers first … last; from its box a stub
 * leads to it below layer `origin`, and a branch leads from it to each target above the target's layer.
 */
export interface Lanes {
  count: number;
  tail: Int32Array;
  back: Uint8Array;
  origin: Int32Array;
  first: Int32Array;
  last: Int32Array;
  /** -1: left of the boxes, 1: right of them. */
  side: Int8Array;
  /** The lane of an edge, or -1. */
  ofEdge: Int32Array;
}

/** The lanes that a drawing needs, and the side on which each runs: where fewer boxes are between it and its ends. */
export function collectLanes({ graph, kind, arcs, layered, order }: Routing): Lanes {
  const { source, target } = graph;
  const tailOf = arcs.tailOfEdge;
  const m = kind.length;
  const ofEdge = new Int32Array(m).fill(-1);
  let any = false;
  for (let e = 0; e < m && !any; e++) any = kind[e] === BACK || (arcs.ofEdge[e] >= 0 && layered.lane[arcs.ofEdge[e]] === 1);
  const empty = new Int32Array(0);
  if (!any) {
    return { count: 0, tail: empty, back: new Uint8Array(0), origin: empty, first: empty, last: empty, side: new Int8Array(0), ofEdge };
  }
  const { layer } = layered;
  const { start, pos } = order;
  const down = new Int32Array(arcs.tails).fill(-1),
    up = new Int32Array(arcs.tails).fill(-1);
  const tail: number[] = [],
    back: number[] = [],
    origin: number[] = [],
    first: number[] = [],
    last: number[] = [],
    lean: number[] = [];
  // how many more items are to the right of an end than to the left of it
  const bias = (v: number) => start[layer[v] + 1] - start[layer[v]] - 1 - 2 * pos[v];
  for (let e = 0; e < m; e++) {
    const goesBack = kind[e] === BACK;
    if (!goesBack && (arcs.ofEdge[e] < 0 || !layered.lane[arcs.ofEdge[e]])) continue;
    const of = goesBack ? up : down,
      t = tailOf[e];
    let k = of[t];
    if (k < 0) {
      k = of[t] = tail.length;
      const r = layer[source[e]];
      tail.push(t);
      back.push(goesBack ? 1 : 0);
      origin.push(r);
      first.push(r);
      last.push(r);
      lean.push(bias(source[e]));
    }
    ofEdge[e] = k;
    const r = layer[target[e]];
    if (r < first[k]) first[k] = r;
    if (r > last[k]) last[k] = r;
    lean[k] += bias(target[e]);
  }
  return {
    count: tail.length,
    tail: Int32Array.from(tail),
    back: Uint8Array.from(back),
    origin: Int32Array.from(origin),
    first: Int32Array.from(first),
    last: Int32Array.from(last),
    side: Int8Array.from(lean, (b) => (b > 0 ? -1 : 1)),
    ofEdge,
  };
}

/** Range maximum with range assignment, for values that only grow. */
class Contour {
  private readonly size: number;
  private readonly high: Float64Array; // maximum of the node's range
  private readonly all: Float64Array; // value that the whole range has at least
  constructor(values: Float64Array) {
    let size = 1;
    while (size < values.length) size *= 2;
    this.size = size;
    this.high = new Float64Array(2 * size).fill(-Infinity);
    this.all = new Float64Array(2 * size).fill(-Infinity);
    this.high.set(values, size);
    for (let i = size - 1; i > 0; i--) this.high[i] = Math.max(this.high[2 * i], this.high[2 * i + 1]);
  }
  max(from: number, to: number, node = 1, lo = 0, hi = this.size - 1): number {
    if (from <= lo && hi <= to) return this.high[node];
    const mid = (lo + hi) >> 1;
    let best = this.all[node];
    if (from <= mid) best = Math.max(best, this.max(from, to, 2 * node, lo, mid));
    if (to > mid) best = Math.max(best, this.max(from, to, 2 * node + 1, mid + 1, hi));
    return best;
  }
  raise(from: number, to: number, value: number, node = 1, lo = 0, hi = this.size - 1): void {
    if (value > this.high[node]) this.high[node] = value;
    if (from <= lo && hi <= to) {
      if (value > this.all[node]) this.all[node] = value;
      return;
    }
    const mid = (lo + hi) >> 1;
    if (from <= mid) this.raise(from, to, value, 2 * node, lo, mid);
    if (to > mid) this.raise(from, to, value, 2 * node + 1, mid + 1, hi);
  }
}

/** Where lane k runs in column c. */
export type LaneAt = (k: number, c: number) => number;

/** A lane has one place in each column of layers that it passes. */
interface LanePlaces {
  /** The place of lane k in column c is x[start[k] + c - column[first[k]]]. */
  start: Int32Array;
  x: Float64Array;
}

/**
 * Lanes hug the boxes of the layers they pass, the short ones inside the long ones. `left` and
 * `right` are the layers' extents; they grow to hold the lanes. Where many lanes run side by side
 * they are drawn closer, so that the bundle is never wider than `widest`.
 */
export function placeLanes(
  lanes: Lanes,
  column: Int32Array,
  left: Float64Array,
  right: Float64Array,
  clear: number,
  pitch: number,
  widest: number,
): LanePlaces {
  const { count, first, last, side } = lanes;
  const start = new Int32Array(count + 1);
  for (let k = 0; k < count; k++) start[k + 1] = start[k] + column[last[k]] - column[first[k]] + 1;
  const x = new Float64Array(start[count]);
  if (!count) return { start, x };
  const columnFirst: number[] = [];
  for (let r = 0; r < column.length; r++) if (r === 0 || column[r] !== column[r - 1]) columnFirst.push(r);
  columnFirst.push(column.length);
  const byLength = Int32Array.from({ length: count }, (_, k) => k).sort((a, b) => last[a] - first[a] - (last[b] - first[b]) || a - b);
  const depth = [new Contour(new Float64Array(left.length)), new Contour(new Float64Array(left.length))];
  let deepest = 0;
  for (const k of byLength) {
    const of = depth[side[k] < 0 ? 0 : 1];
    const d = of.max(first[k], last[k]) + 1;
    of.raise(first[k], last[k], d);
    if (d > deepest) deepest = d;
  }
  const step = Math.min(pitch, widest / deepest);
  const outer = [new Contour(left.map((v) => clear - step - v)), new Contour(right.map((v) => v + clear - step))];
  for (const k of byLength) {
    const of = outer[side[k] < 0 ? 0 : 1];
    for (let c = column[first[k]]; c <= column[last[k]]; c++) {
      const from = Math.max(first[k], columnFirst[c]),
        to = Math.min(last[k], columnFirst[c + 1] - 1);
      const value = of.max(from, to) + step;
      of.raise(from, to, value);
      x[start[k] + c - column[first[k]]] = side[k] < 0 ? -value : value;
      if (side[k] < 0) {
        if (-value < left[from]) left[from] = -value;
      } else if (value > right[from]) right[from] = value;
    }
  }
  return { start, x };
}
