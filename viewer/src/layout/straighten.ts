// Shortens lines, so that most of them become exactly straight.

import { widestLayer, type Order } from './crossings.ts';
import { separation, type Gaps } from './gaps.ts';
import type { Layered } from './layers.ts';

/** Layers with more links than this are left as they are: the medians of large blocks cost too much. */
const LARGEST = 400;

interface Straightening {
  layered: Layered;
  order: Order;
  half: Float64Array;
  gaps: Gaps;
  /** The centre of every item; moved in place. */
  x: Float64Array;
  /** How hard a link pulls its lower and its upper item. */
  pullUp: Float32Array;
  pullDown: Float32Array;
  passes: number;
  /** Items from here on are lines. */
  boxes: number;
  /** Layers that stay where they are, or their bends would wander to the end of the drawing. */
  held: Uint8Array;
}

/**
 * Every layer in turn is moved to where the sum of distances to its neighbours above and below is
 * least, given its order and gaps. That is isotonic regression again, by medians in place of means.
 */
export function straighten(straightening: Straightening): void {
  const { layered, passes } = straightening;
  const straightener = new Straightener(straightening);
  for (let pass = 0; pass < passes; pass++) {
    const firm = pass + 2 >= passes; // first find short lines, then make them straight
    if (pass % 2 === 0) for (let r = 0; r < layered.layers; r++) straightener.place(r, true, firm);
    else for (let r = layered.layers - 1; r >= 0; r--) straightener.place(r, false, firm);
  }
}

class Straightener {
  private readonly points = new Points(LARGEST);
  private readonly offset: Float64Array;
  /** Blocks of items that are as close as they can be: their first point, the item after their last, and their place. */
  private readonly from: Int32Array;
  private readonly last: Int32Array;
  private readonly best: Float64Array;

  constructor(private readonly of: Straightening) {
    const widest = widestLayer(of.order);
    this.offset = new Float64Array(widest);
    this.from = new Int32Array(widest + 1);
    this.last = new Int32Array(widest);
    this.best = new Float64Array(widest);
  }

  /** `firm`: on a tie the side that was placed last wins, so that a bend wanders on instead of smearing out. */
  place(r: number, down: boolean, firm: boolean): void {
    const { x, half, gaps, boxes, order, held } = this.of;
    const { start, at } = order;
    if (held[r] || this.links(r) > LARGEST) return;
    const { points, offset, from, last, best } = this;
    const above = firm && down ? 1.01 : 1,
      below = firm && !down ? 1.01 : 1;
    const first = start[r],
      size = start[r + 1] - first;
    let shift = 0,
      blocks = 0;
    points.count = 0;
    for (let i = 0; i < size; i++) {
      const v = at[first + i];
      if (i) shift += separation(at[first + i - 1], v, half, gaps, boxes);
      offset[i] = shift;
      from[blocks] = points.count;
      this.addPoints(v, shift, above, below);
      last[blocks] = i + 1;
      best[blocks] = points.median(from[blocks]);
      blocks++;
      while (blocks > 1 && best[blocks - 2] >= best[blocks - 1]) {
        points.merge(from[blocks - 2], from[blocks - 1]);
        blocks--;
        last[blocks - 1] = i + 1;
        best[blocks - 1] = points.median(from[blocks - 1]);
      }
    }
    let i = 0;
    for (let b = 0; b < blocks; b++) for (; i < last[b]; i++) x[at[first + i]] = best[b] + offset[i];
  }

  /** The points that a layer needs. */
  private links(r: number): number {
    const { upStart, downStart } = this.of.layered;
    const { start, at } = this.of.order;
    let links = 0;
    for (let i = start[r]; i < start[r + 1]; i++) {
      const v = at[i];
      links += Math.max(1, upStart[v + 1] - upStart[v] + downStart[v + 1] - downStart[v]);
    }
    return links;
  }

  /** Where the neighbours of item v pull it. */
  private addPoints(v: number, shift: number, above: number, below: number): void {
    const { x, layered, pullUp, pullDown } = this.of;
    const { upper, lower, upperAt, lowerAt, upStart, upLink, downStart } = layered;
    const { points } = this;
    const begin = points.count;
    for (let k = upStart[v]; k < upStart[v + 1]; k++) {
      const l = upLink[k];
      points.add((upperAt ? x[upper[l]] + upperAt[l] - lowerAt![l] : x[upper[l]]) - shift, above * pullUp[l], begin);
    }
    for (let l = downStart[v]; l < downStart[v + 1]; l++) {
      points.add((lowerAt ? x[lower[l]] + lowerAt[l] - upperAt![l] : x[lower[l]]) - shift, below * pullDown[l], begin);
    }
    if (points.count === begin) points.add(x[v] - shift, 0.001, begin);
  }
}

/** Points with weights, in runs that are sorted each. */
class Points {
  count = 0;
  private readonly point: Float64Array;
  private readonly weight: Float64Array;
  private readonly spare: Float64Array;
  private readonly spareWeight: Float64Array;

  constructor(most: number) {
    this.point = new Float64Array(most);
    this.weight = new Float64Array(most);
    this.spare = new Float64Array(most);
    this.spareWeight = new Float64Array(most);
  }

  /** Adds a point to the last run, which begins at `begin`. */
  add(p: number, w: number, begin: number): void {
    const { point, weight } = this;
    let k = this.count++;
    for (; k > begin && point[k - 1] > p; k--) {
      point[k] = point[k - 1];
      weight[k] = weight[k - 1];
    }
    point[k] = p;
    weight[k] = w;
  }

  /** The middle of the places where the sum of distances to the points of the last run is least. */
  median(begin: number): number {
    const { point, weight, count } = this;
    let all = 0;
    for (let i = begin; i < count; i++) all += weight[i];
    let sum = 0;
    for (let i = begin; i < count; i++) {
      sum += weight[i];
      if (2 * sum > all + 1e-9) return point[i];
      if (2 * sum >= all - 1e-9) return i + 1 < count ? (point[i] + point[i + 1]) / 2 : point[i];
    }
    return point[count - 1];
  }

  /** Makes one run of the last two, which begin at `begin` and `middle`. */
  merge(begin: number, middle: number): void {
    const { point, weight, spare, spareWeight, count } = this;
    for (let i = begin; i < count; i++) {
      spare[i] = point[i];
      spareWeight[i] = weight[i];
    }
    let p = begin,
      q = middle;
    for (let o = begin; o < count; o++) {
      const k = p < middle && (q >= count || spare[p] <= spare[q]) ? p++ : q++;
      point[o] = spare[k];
      weight[o] = spareWeight[k];
    }
  }
}
