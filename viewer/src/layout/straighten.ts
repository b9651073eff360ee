import { separation, type Gaps } from './coordinates.ts';
import type { Order } from './crossings.ts';
import type { Layered } from './layers.ts';

/** Layers with more links than this are left as they are: the medians of large blocks cost too much. */
const LARGEST = 400;

/**
 * Shortens lines: every layer in turn is moved to where the sum of distances to its neighbours above
 * and below is least, given its order and gaps. That is isotonic regression again, by medians in
 * place of means, so that most lines become exactly straight. `pullUp` and `pullDown`
 * say how hard a link pulls its lower and its upper item; layers that are `held` stay where they are, or their bends would wander to the end of the drawing.
 */
export function straighten(
  layered: Layered,
  order: Order,
  half: Float64Array,
  gaps: Gaps,
  x: Float64Array,
  pullUp: Float32Array,
  pullDown: Float32Array,
  passes: number,
  boxes: number,
  held: Uint8Array,
): void {
  const { layers, upper, lower, upperAt, lowerAt, downStart, upStart, upLink } = layered;
  const { start, at } = order;
  let widest = 0;
  for (let r = 0; r < layers; r++) widest = Math.max(widest, start[r + 1] - start[r]);
  const offset = new Float64Array(widest);
  const point = new Float64Array(LARGEST),
    weight = new Float64Array(LARGEST);
  const spare = new Float64Array(LARGEST),
    spareWeight = new Float64Array(LARGEST);
  const from = new Int32Array(widest + 1),
    last = new Int32Array(widest),
    best = new Float64Array(widest);

  /** The middle of the places where the sum of distances to the points a … b-1 is least. */
  const median = (a: number, b: number) => {
    let all = 0;
    for (let i = a; i < b; i++) all += weight[i];
    let sum = 0;
    for (let i = a; i < b; i++) {
      sum += weight[i];
      if (2 * sum > all + 1e-9) return point[i];
      if (2 * sum >= all - 1e-9) return i + 1 < b ? (point[i] + point[i + 1]) / 2 : point[i];
    }
    return point[b - 1];
  };
  const merge = (a: number, mid: number, b: number) => {
    for (let i = a; i < b; i++) {
      spare[i] = point[i];
      spareWeight[i] = weight[i];
    }
    let p = a,
      q = mid;
    for (let o = a; o < b; o++) {
      const k = p < mid && (q >= b || spare[p] <= spare[q]) ? p++ : q++;
      point[o] = spare[k];
      weight[o] = spareWeight[k];
    }
  };

  /** `firm`: on a tie the side that was placed last wins, so that a bend wanders on instead of smearing out. */
  const place = (r: number, down: boolean, firm: boolean) => {
    if (held[r]) return;
    const above = firm && down ? 1.01 : 1,
      below = firm && !down ? 1.01 : 1;
    const first = start[r],
      size = start[r + 1] - first;
    let links = 0;
    for (let i = 0; i < size; i++) {
      const v = at[first + i];
      links += Math.max(1, upStart[v + 1] - upStart[v] + downStart[v + 1] - downStart[v]);
    }
    if (links > LARGEST) return;
    let shift = 0,
      count = 0,
      blocks = 0;
    for (let i = 0; i < size; i++) {
      const v = at[first + i];
      if (i) shift += separation(at[first + i - 1], v, half, gaps, boxes);
      offset[i] = shift;
      const begin = count;
      const add = (p: number, w: number) => {
        let k = count++;
        for (; k > begin && point[k - 1] > p; k--) {
          point[k] = point[k - 1];
          weight[k] = weight[k - 1];
        }
        point[k] = p;
        weight[k] = w;
      };
      for (let k = upStart[v]; k < upStart[v + 1]; k++) {
        const l = upLink[k];
        add((upperAt ? x[upper[l]] + upperAt[l] - lowerAt![l] : x[upper[l]]) - shift, above * pullUp[l]);
      }
      for (let l = downStart[v]; l < downStart[v + 1]; l++) {
        add((lowerAt ? x[lower[l]] + lowerAt[l] - upperAt![l] : x[lower[l]]) - shift, below * pullDown[l]);
      }
      if (count === begin) add(x[v] - shift, 0.001);
      from[blocks] = begin;
      last[blocks] = i + 1;
      best[blocks] = median(begin, count);
      blocks++;
      while (blocks > 1 && best[blocks - 2] >= best[blocks - 1]) {
        merge(from[blocks - 2], from[blocks - 1], count);
        blocks--;
        last[blocks - 1] = i + 1;
        best[blocks - 1] = median(from[blocks - 1], count);
      }
    }
    let i = 0;
    for (let b = 0; b < blocks; b++) for (; i < last[b]; i++) x[at[first + i]] = best[b] + offset[i];
  };
  for (let pass = 0; pass < passes; pass++) {
    const firm = pass + 2 >= passes; // first find short lines, then make them straight
    if (pass % 2 === 0) for (let r = 0; r < layers; r++) place(r, true, firm);
    else for (let r = layers - 1; r >= 0; r--) place(r, false, firm);
  }
}
