import type { Order } from './crossings.ts';
import type { Layered } from './layers.ts';
import { straighten } from './straighten.ts';

/** Space between neighbours on a layer; lines may run closer to each other than boxes. */
export interface Gaps {
  box: number; // box to box
  side: number; // line to box
  line: number; // line to line
}

/** So many lines of a layer stand apart; more are drawn closer, as a bundle. */
export const APART = 100;

/** `lines`: the most that any layer has. */
export function gapsFor(gapX: number, lines = 0): Gaps {
  return { box: gapX, side: gapX * 0.5, line: gapX * 0.4 * Math.min(1, APART / Math.max(1, lines)) };
}

/** Lines that run in a bundle beside boxes are drawn closer still, as one broad band. */
const BAND = 240;

/** How broad a bundle of so many lines is. */
export function bundle(lines: number, pitch: number): number {
  return Math.min(lines * pitch, BAND + 0.05 * lines);
}

/** Least distance of the centres of neighbours a and b; items from `boxes` on are lines. */
export function separation(a: number, b: number, half: Float64Array, gaps: Gaps, boxes: number): number {
  return half[a] + half[b] + (a < boxes ? (b < boxes ? gaps.box : gaps.side) : b < boxes ? gaps.side : gaps.line);
}

const LEAF = 0.02,
  WINDOW = 32;

/**
 * The x of every item's centre. Each layer in turn is placed as near as its order and gaps allow to
 * where its neighbours pull it: weighted isotonic regression, solved exactly by pooling adjacent
 * violators. Items from `boxes` on (bends, ports) are lines. Links of lines pull harder than links of boxes, so that long lines are straight.
 */
export function placeItems(
  layered: Layered,
  order: Order,
  half: Float64Array,
  gaps: Gaps,
  rounds: number,
  passes: number,
  boxes = layered.boxes,
  folded = false,
): Float64Array {
  const { count, layers, upper, lower, upperAt, lowerAt, weight, downStart, upStart, upLink } = layered;
  const { start, at } = order;
  const x = new Float64Array(count);
  let widest = 0;
  for (let r = 0; r < layers; r++) widest = Math.max(widest, start[r + 1] - start[r]);
  const offset = new Float64Array(widest),
    want = new Float64Array(widest),
    force = new Float64Array(widest);
  const blockSum = new Float64Array(widest),
    blockForce = new Float64Array(widest),
    blockEnd = new Int32Array(widest);

  // strength of a link: how straight it should be. What only feeds or only ends something (a tree of
  // boxes with one way on) stands beside the flow and must not push it aside.
  const feeds = new Uint8Array(count),
    ends = new Uint8Array(count);
  for (let i = 0; i < count; i++) {
    const v = at[i];
    let yes = downStart[v + 1] - downStart[v] === 1 ? 1 : 0;
    for (let k = upStart[v]; yes && k < upStart[v + 1]; k++) yes = feeds[upper[upLink[k]]];
    feeds[v] = yes;
  }
  for (let i = count - 1; i >= 0; i--) {
    const v = at[i];
    let yes = upStart[v + 1] - upStart[v] === 1 ? 1 : 0;
    for (let l = downStart[v]; yes && l < downStart[v + 1]; l++) yes = ends[lower[l]];
    ends[v] = yes;
  }
  const strength = new Float32Array(layered.links);
  for (let l = 0; l < layered.links; l++) {
    const u = upper[l],
      v = lower[l];
    const lines = (u >= boxes ? 1 : 0) + (v >= boxes ? 1 : 0);
    strength[l] = feeds[u] || ends[v] ? LEAF : (lines === 2 ? 8 : lines === 1 ? 2 : 1) * Math.min(weight[l], 4);
  }
  // first, every layer packed around the middle
  for (let r = 0; r < layers; r++) {
    const from = start[r],
      to = start[r + 1];
    if (from === to) continue;
    let w = 0;
    x[at[from]] = 0;
    for (let i = from + 1; i < to; i++) {
      w += separation(at[i - 1], at[i], half, gaps, boxes);
      x[at[i]] = w;
    }
    for (let i = from; i < to; i++) x[at[i]] -= w / 2;
  }

  // Aligning layer by layer, small lopsidedness adds up and a deep drawing drifts away sideways. So
  // now and then, on the layer with fewest items, all lines step back to the middle together.
  const calm = new Uint8Array(layers),
    stepped = new Uint8Array(layers);
  let broadest = 0;
  for (let r = 0; r < layers; r += WINDOW) {
    let best = r;
    for (let q = r; q < Math.min(r + WINDOW, layers); q++) {
      const size = start[q + 1] - start[q];
      if (size < start[best + 1] - start[best]) best = q;
      if (size) broadest = Math.max(broadest, x[at[start[q + 1] - 1]] - x[at[start[q]]]);
    }
    calm[best] = 1;
  }
  const tolerance = folded ? Infinity : Math.max(300, 0.25 * broadest); // every column is moved into place anyway

  const place = (r: number, useUp: boolean, useDown: boolean) => {
    const from = start[r],
      size = start[r + 1] - from;
    let shift = 0;
    for (let i = 0; i < size; i++) {
      const v = at[from + i];
      if (i) shift += separation(at[from + i - 1], v, half, gaps, boxes);
      offset[i] = shift;
      let sum = 0,
        f = 0;
      if (useUp) {
        for (let k = upStart[v]; k < upStart[v + 1]; k++) {
          const l = upLink[k],
            s = strength[l];
          sum += s * (upperAt ? x[upper[l]] + upperAt[l] - lowerAt![l] : x[upper[l]]);
          f += s;
        }
      }
      if (useDown || f === 0) {
        const scale = useDown ? 1 : 0.001;
        for (let l = downStart[v]; l < downStart[v + 1]; l++) {
          const s = strength[l] * scale;
          sum += s * (lowerAt ? x[lower[l]] + lowerAt[l] - upperAt![l] : x[lower[l]]);
          f += s;
        }
      }
      if (!useUp && f === 0) {
        for (let k = upStart[v]; k < upStart[v + 1]; k++) {
          const l = upLink[k],
            s = strength[l] * 0.001;
          sum += s * (upperAt ? x[upper[l]] + upperAt[l] - lowerAt![l] : x[upper[l]]);
          f += s;
        }
      }
      if (f === 0) {
        sum = 0.001 * x[v];
        f = 0.001;
      }
      want[i] = sum / f - shift;
      force[i] = f;
    }
    if (calm[r]) {
      let sum = 0,
        all = 0;
      for (let i = 0; i < size; i++) {
        sum += force[i] * (want[i] + offset[i]);
        all += force[i];
      }
      const middle = sum / all;
      stepped[r] = Math.abs(middle) > tolerance ? 1 : 0;
      if (stepped[r]) for (let i = 0; i < size; i++) want[i] -= middle;
    }
    // pool adjacent violators
    let blocks = 0;
    for (let i = 0; i < size; i++) {
      let s = want[i] * force[i],
        f = force[i];
      while (blocks && blockSum[blocks - 1] * f >= s * blockForce[blocks - 1]) {
        blocks--;
        s += blockSum[blocks];
        f += blockForce[blocks];
      }
      blockSum[blocks] = s;
      blockForce[blocks] = f;
      blockEnd[blocks++] = i + 1;
    }
    let i = 0;
    for (let b = 0; b < blocks; b++) {
      const z = blockSum[b] / blockForce[b];
      for (; i < blockEnd[b]; i++) x[at[from + i]] = z + offset[i];
    }
  };

  for (let round = 0; round < rounds; round++) {
    for (let r = 1; r < layers; r++) place(r, true, false);
    for (let r = layers - 2; r >= 0; r--) place(r, false, true);
  }
  if (passes) {
    // a parameter goes where its box is, and its box minds how long the line becomes, but not the other way round
    const up = strength.slice(),
      down = strength.slice();
    for (let l = 0; l < layered.links; l++) {
      if (feeds[upper[l]]) [up[l], down[l]] = [1, 0.3];
      else if (ends[lower[l]]) [up[l], down[l]] = [0.3, 1];
    }
    straighten(layered, order, half, gaps, x, up, down, passes, boxes, stepped);
  }
  return x;
}
