// The best layers of two orders in one.

import { gapCrossings, type Order } from './crossings.ts';
import type { Layered } from './layers.ts';

/**
 * The best mix of two orders: for every layer the one or the other, so that crossings between
 * neighbouring layers are fewest (dynamic programming along the layers). Deep graphs are many small
 * problems in a row; one sweep helps here and harms there, and this keeps what helped.
 * Returns null when `one` alone is already the best.
 */
export function stitch(layered: Layered, one: Order, oneCost: Int32Array, two: Order, twoCost: Int32Array): Order | null {
  const { layers } = layered;
  const { start } = one;
  if (layers < 2) return null;
  const same = new Uint8Array(layers);
  for (let r = 0; r < layers; r++) {
    let equal = 1;
    for (let i = start[r]; i < start[r + 1]; i++) {
      if (one.at[i] !== two.at[i]) {
        equal = 0;
        break;
      }
    }
    same[r] = equal;
  }
  // choice[r] says which order the previous layer has when layer r has one (bit 0) or two (bit 1)
  const choice = new Uint8Array(layers);
  let a = 0,
    b = 0;
  for (let r = 1; r < layers; r++) {
    const g = r - 1;
    const aa = oneCost[g],
      bb = twoCost[g];
    let ab: number, ba: number; // one above two, two above one
    if (same[g] && same[r]) ab = ba = aa;
    else if (same[g]) {
      ab = bb;
      ba = aa;
    } else if (same[r]) {
      ab = aa;
      ba = bb;
    } else {
      ab = gapCrossings(layered, start, g, one.at, two.pos);
      ba = gapCrossings(layered, start, g, two.at, one.pos);
    }
    const stayA = a + aa,
      crossA = b + ba,
      stayB = b + bb,
      crossB = a + ab;
    choice[r] = (crossA < stayA ? 1 : 0) | (stayB < crossB ? 2 : 0);
    a = Math.min(stayA, crossA);
    b = Math.min(stayB, crossB);
  }
  let sum = 0;
  for (let g = 0; g < oneCost.length; g++) sum += oneCost[g];
  if (Math.min(a, b) >= sum) return null;
  const out: Order = { start, at: one.at.slice(), pos: one.pos.slice() };
  let which = b < a ? 1 : 0;
  for (let r = layers - 1; r >= 0; r--) {
    if (which && !same[r]) {
      for (let i = start[r]; i < start[r + 1]; i++) {
        out.at[i] = two.at[i];
        out.pos[two.at[i]] = i - start[r];
      }
    }
    which = which ? (choice[r] & 2 ? 1 : 0) : choice[r] & 1 ? 1 : 0;
  }
  return out;
}
