// Lines that pass beside boxes keep to the side on which nothing leads away from the boxes. In a training step, what is
// kept for the backward pass runs level from a box to the side: a skip on that side would cross every one of them.

import { copyOrder, countCrossings, type Order } from './crossings.ts';
import type { Layered } from './layers.ts';

const ROW = 60; // about the height of a row: a group counts as many as it holds
const MOST = 900; // items on all layers: more are left as they are
const ROUNDS = 3;

/** `side` is where lines lead away from boxes: 1 to the right, -1 to the left. The first `solid` items are boxes. */
export function clearSide(layered: Layered, order: Order, solid: number, height: ArrayLike<number>, side: 1 | -1): Order {
  if (layered.count > MOST) return order;
  const cost = (of: Order) => countCrossings(layered, of) + passed(layered, of, solid, height, side);
  let best = order;
  let least = cost(best);
  const tries = chains(layered);
  for (let round = 0; round < ROUNDS && least > 0; round++) {
    const before = least;
    for (const bends of tries) {
      for (const far of [false, true]) {
        const next = copyOrder(best);
        for (const bend of bends) moveAside(layered, next, bend, solid, side, far);
        const now = cost(next);
        if (now < least) [best, least] = [next, now];
      }
    }
    const next = copyOrder(best);
    swapNeighbours(layered, next, solid, side, cost);
    const now = cost(next);
    if (now < least) [best, least] = [next, now];
    if (least === before) break;
  }
  return best;
}

/** The bends of each line, the shortest lines first: longer ones go around them. */
function chains({ boxes, count, chain, chainLength }: Layered): number[][] {
  const found: number[][] = [];
  for (let t = 0; t < chainLength.length; t++) {
    if (!chainLength[t]) continue;
    found.push(Array.from({ length: chainLength[t] }, (_, i) => chain[t] + i).filter((v) => v >= boxes && v < count));
  }
  return found.sort((a, b) => a.length - b.length);
}

/** How many level lines from boxes to the side are crossed by lines that pass there. */
function passed(layered: Layered, { start, at }: Order, solid: number, height: ArrayLike<number>, side: 1 | -1): number {
  let sum = 0;
  for (let r = 0; r + 1 < start.length; r++) {
    let lines = 0; // on that side so far
    const [from, to] = side > 0 ? [start[r + 1] - 1, start[r] - 1] : [start[r], start[r + 1]];
    for (let i = from; i !== to; i -= side) {
      const v = at[i];
      if (v >= layered.boxes) lines++;
      else if (v < solid) sum += lines * Math.max(1, Math.round(height[v] / ROW));
    }
  }
  return sum;
}

/** Moves an item of its layer beyond the boxes, away from the side: next to them, or beyond everything. */
function moveAside({ layer, boxes }: Layered, { start, at, pos }: Order, v: number, solid: number, side: 1 | -1, far: boolean): void {
  const r = layer[v];
  const items = [...at.subarray(start[r], start[r + 1])].filter((w) => w !== v);
  let place = side > 0 ? 0 : items.length;
  if (!far) {
    const isBox = (w: number) => w < solid && w < boxes;
    const first = side > 0 ? items.findIndex(isBox) : items.length - 1 - [...items].reverse().findIndex(isBox);
    if (items.some(isBox)) place = side > 0 ? first : first + 1;
  }
  items.splice(place, 0, v);
  items.forEach((w, i) => {
    at[start[r] + i] = w;
    pos[w] = i;
  });
}

function swapNeighbours(layered: Layered, order: Order, solid: number, side: 1 | -1, cost: (of: Order) => number): void {
  const { start, at, pos } = order;
  let least = cost(order);
  for (let r = 0; r + 1 < start.length; r++) {
    for (let i = start[r]; i + 1 < start[r + 1]; i++) {
      const [box, line] = side > 0 ? [at[i], at[i + 1]] : [at[i + 1], at[i]];
      if (box >= solid || line < layered.boxes) continue;
      const swap = () => {
        [at[i], at[i + 1]] = [at[i + 1], at[i]];
        [pos[at[i]], pos[at[i + 1]]] = [i - start[r], i + 1 - start[r]];
      };
      swap();
      const now = cost(order);
      if (now < least) least = now;
      else swap();
    }
  }
}
