// Orders of the items on their layers, and how many lines cross in them.

import type { Layered } from './layers.ts';

/** An order of the items of every layer: those of layer r are at[start[r]] … at[start[r+1] - 1]. */
export interface Order {
  start: Int32Array;
  at: Int32Array;
  /** Place of an item within its layer. */
  pos: Int32Array;
}

/** The most items that a layer has. */
export function widestLayer({ start }: Order): number {
  let widest = 0;
  for (let r = 0; r + 1 < start.length; r++) widest = Math.max(widest, start[r + 1] - start[r]);
  return widest;
}

export function copyOrder(order: Order): Order {
  return { start: order.start, at: order.at.slice(), pos: order.pos.slice() };
}

let tree = new Int32Array(64); // scratch of the Fenwick tree, always zero between calls
let low = new Int32Array(64);

/** Crossings of the links between layers r and r+1, the upper one ordered by `at`, the lower by `pos`. */
export function gapCrossings(layered: Layered, start: Int32Array, r: number, at: Int32Array, pos: Int32Array): number {
  const { downStart, lower } = layered;
  const from = start[r],
    to = start[r + 1];
  let links = 0;
  for (let i = from; i < to; i++) links += downStart[at[i] + 1] - downStart[at[i]];
  if (links < 2) return 0;
  let crossings = 0;
  if (links <= 24) {
    if (low.length < links) low = new Int32Array(2 * links);
    let k = 0;
    for (let i = from; i < to; i++) {
      const u = at[i],
        before = k;
      for (let l = downStart[u]; l < downStart[u + 1]; l++) {
        const p = pos[lower[l]];
        for (let j = 0; j < before; j++) if (low[j] > p) crossings++;
        low[k++] = p;
      }
    }
    return crossings;
  }
  const size = start[r + 2] - to;
  if (tree.length <= size) tree = new Int32Array(2 * size + 2);
  let total = 0;
  for (let i = from; i < to; i++) {
    const u = at[i];
    const first = downStart[u],
      last = downStart[u + 1];
    for (let l = first; l < last; l++) {
      let sum = 0;
      for (let p = pos[lower[l]] + 1; p > 0; p &= p - 1) sum += tree[p];
      crossings += total - sum;
    }
    for (let l = first; l < last; l++) {
      for (let p = pos[lower[l]] + 1; p <= size; p += p & -p) tree[p]++;
    }
    total += last - first;
  }
  tree.fill(0, 0, size + 1);
  return crossings;
}

export function countCrossings(layered: Layered, order: Order): number {
  let sum = 0;
  for (let r = 0; r + 1 < layered.layers; r++) sum += gapCrossings(layered, order.start, r, order.at, order.pos);
  return sum;
}
