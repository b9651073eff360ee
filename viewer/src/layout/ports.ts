// Lines that lead to different ports of one box cross as much as those to different boxes. The order of the layers knows
// only the boxes; here neighbours are swapped where their lines cross on the way to the ports.

import type { Order } from './crossings.ts';
import type { Layered } from './layers.ts';

const ROUNDS = 8;

/** `share` is how far a port is from the middle of its box, in places of the layer; `held`: no line changes the side of a box. */
export function orderAtPorts(layered: Layered, order: Order, share: Float32Array, solid: number, held: boolean): void {
  const { layers } = layered;
  const { start, at, pos } = order;
  for (let round = 0, moved = true; moved && round < ROUNDS; round++) {
    moved = false;
    for (let r = 0; r < layers; r++) {
      for (let i = start[r]; i + 1 < start[r + 1]; i++) {
        const [a, b] = [at[i], at[i + 1]];
        if (held && a < solid !== b < solid) continue;
        if (above(layered, pos, share, a, b) + below(layered, pos, share, a, b) >= 0) continue;
        [at[i], at[i + 1]] = [b, a];
        [pos[b], pos[a]] = [i - start[r], i + 1 - start[r]];
        moved = true;
      }
    }
  }
}

/** Crossings that swapping neighbours a (left) and b would add above them. */
function above({ upStart, upLink, upper, upperAt }: Layered, pos: Int32Array, share: Float32Array, a: number, b: number): number {
  let delta = 0;
  for (let i = upStart[a]; i < upStart[a + 1]; i++) {
    const p = pos[upper[upLink[i]]] + upperAt![upLink[i]] * share[upper[upLink[i]]];
    for (let j = upStart[b]; j < upStart[b + 1]; j++) {
      const q = pos[upper[upLink[j]]] + upperAt![upLink[j]] * share[upper[upLink[j]]];
      delta += Math.sign(q - p);
    }
  }
  return delta;
}

function below({ downStart, lower, lowerAt }: Layered, pos: Int32Array, share: Float32Array, a: number, b: number): number {
  let delta = 0;
  for (let i = downStart[a]; i < downStart[a + 1]; i++) {
    const p = pos[lower[i]] + lowerAt![i] * share[lower[i]];
    for (let j = downStart[b]; j < downStart[b + 1]; j++) delta += Math.sign(pos[lower[j]] + lowerAt![j] * share[lower[j]] - p);
  }
  return delta;
}
