// Fewer crossings by moving items within their layers.

import type { Order } from './crossings.ts';
import type { Layered } from './layers.ts';

/** Crossings that swapping neighbours a (left) and b would add, in the gap above and in the one below. */
function swapAbove(layered: Layered, pos: Int32Array, a: number, b: number): number {
  const { upStart, upLink, upper } = layered;
  let delta = 0;
  for (let i = upStart[a]; i < upStart[a + 1]; i++) {
    const p = pos[upper[upLink[i]]];
    for (let j = upStart[b]; j < upStart[b + 1]; j++) {
      const q = pos[upper[upLink[j]]];
      if (p < q) delta++;
      else if (p > q) delta--;
    }
  }
  return delta;
}

function swapBelow(layered: Layered, pos: Int32Array, a: number, b: number): number {
  const { downStart, lower } = layered;
  let delta = 0;
  for (let i = downStart[a]; i < downStart[a + 1]; i++) {
    const p = pos[lower[i]];
    for (let j = downStart[b]; j < downStart[b + 1]; j++) {
      const q = pos[lower[j]];
      if (p < q) delta++;
      else if (p > q) delta--;
    }
  }
  return delta;
}

/**
 * Moves each item to the best place of its layer (sifting). Where places are equal, crossings are
 * pushed one way, down or up, until they meet a partner and vanish. Returns how many pairs it looked at.
 */
export function settle(layered: Layered, order: Order, down: boolean): number {
  let work = 0;
  const { layers } = layered;
  const { start, at, pos } = order;
  for (let k = 0; k < layers; k++) {
    const r = down ? k : layers - 1 - k;
    const from = start[r],
      to = start[r + 1];
    if (to - from < 2) continue;
    for (let again = 0; again < 4; again++) {
      let moved = false;
      work += (to - from) * (to - from);
      for (let i = from; i < to; i++) {
        const v = at[i];
        let bestAt = i,
          best = 0,
          bestTie = 0;
        let delta = 0,
          tie = 0;
        for (let j = i - 1; j >= from; j--) {
          const above = swapAbove(layered, pos, at[j], v),
            below = swapBelow(layered, pos, at[j], v);
          delta += above + below;
          tie += down ? above : below;
          if (delta < best || (delta === best && tie < bestTie)) {
            best = delta;
            bestTie = tie;
            bestAt = j;
          }
        }
        delta = 0;
        tie = 0;
        for (let j = i + 1; j < to; j++) {
          const above = swapAbove(layered, pos, v, at[j]),
            below = swapBelow(layered, pos, v, at[j]);
          delta += above + below;
          tie += down ? above : below;
          if (delta < best || (delta === best && tie < bestTie)) {
            best = delta;
            bestTie = tie;
            bestAt = j;
          }
        }
        if (bestAt === i) continue;
        moved = true;
        if (bestAt < i) for (let j = i; j > bestAt; j--) at[j] = at[j - 1];
        else for (let j = i; j < bestAt; j++) at[j] = at[j + 1];
        at[bestAt] = v;
        for (let j = Math.min(i, bestAt); j <= Math.max(i, bestAt); j++) pos[at[j]] = j - from;
        if (bestAt > i) i--;
      }
      if (!moved) break;
    }
  }
  return work;
}
