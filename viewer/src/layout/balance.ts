// Puts parameters on both sides of what they feed, so that the flow stays in the middle.

import type { Order } from './crossings.ts';
import type { Layered } from './layers.ts';

/**
 * Puts boxes that only feed one box (parameters) on both sides of what else feeds it, where that
 * crosses nothing: lines get shorter and the flow stays in the middle.
 */
export function balance(layered: Layered, order: Order, half: Float64Array): void {
  const { downStart, upStart, lower, layers } = layered;
  const { start, at, pos } = order;
  const only = (v: number) => (downStart[v + 1] - downStart[v] === 1 ? lower[downStart[v]] : -1);
  const leaf = (v: number) => upStart[v + 1] === upStart[v];
  const run: number[] = [];
  for (let r = 0; r + 1 < layers; r++) {
    for (let i = start[r]; i < start[r + 1];) {
      const t = only(at[i]);
      let j = i + 1;
      if (t >= 0) while (j < start[r + 1] && only(at[j]) === t) j++;
      if (t >= 0 && j - i > 2) {
        let flow = -1,
          flows = 0;
        for (let k = i; k < j; k++) {
          if (leaf(at[k])) continue;
          flow = at[k];
          flows++;
        }
        if (flows === 1) {
          run.length = 0;
          for (let k = i; k < j; k++) if (at[k] !== flow) run.push(at[k]);
          run.sort((a, b) => half[a] - half[b]); // the wide ones outside
          const left = run.filter((_, k) => k % 2 === 1).reverse(),
            right = run.filter((_, k) => k % 2 === 0);
          run.splice(0, run.length, ...left, flow, ...right);
          for (let k = i; k < j; k++) {
            at[k] = run[k - i];
            pos[at[k]] = k - start[r];
          }
        }
      }
      i = j;
    }
  }
}
