// Lines that pass beside boxes keep to the side on which nothing leads away from the boxes. In a training step, what is
// kept for the backward pass runs level from a box to the side: a skip on that side would cross every one of them.

import { copyOrder, countCrossings, type Order } from './crossings.ts';
import type { Layered } from './layers.ts';
import { HELD, type FlatGraph } from './types.ts';

const ROW = 60; // about the height of a row: a group counts as many as it holds
const MOST = 900; // items on all layers: more are left as they are
const ROUNDS = 3;
/** Beside the boxes or beyond everything, away from the side or on it. */
const ASIDE: [far: boolean, to: 1 | -1][] = [
  [false, 1],
  [true, 1],
  [false, -1],
  [true, -1],
];

/** What leads from boxes to the sides; where that is not known, one line from each row, to one side. */
type Beside = Pick<FlatGraph, 'height' | 'before' | 'behind'>;

/** `side` is where most lines lead away from boxes: 1 to the right, -1 to the left. The first `solid` items are boxes. */
export function clearSide(layered: Layered, order: Order, solid: number, beside: Beside, side: 1 | -1): Order {
  if (layered.count > MOST) return order;
  const seen = drawn(layered);
  const cost = (of: Order) => countCrossings(seen, of) + passed(layered, of, solid, beside, side);
  let best = order;
  let least = cost(best);
  const tries = chains(layered, solid);
  for (let round = 0; round < ROUNDS && least > 0; round++) {
    const before = least;
    for (const bends of tries) {
      for (const [far, to] of ASIDE) {
        const next = copyOrder(best);
        for (const bend of bends) moveAside(layered, next, bend, solid, to * side, far);
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

const isHeld = (weight: number) => weight < 1.01 * HELD;

/** Without what only holds boxes in place: it has no line. */
function drawn(layered: Layered): Layered {
  const { weight, downStart, lower, upper } = layered;
  if (!weight.some(isHeld)) return layered;
  const start = new Int32Array(downStart.length);
  const left: number[] = [];
  for (let v = 0; v + 1 < downStart.length; v++) {
    for (let l = downStart[v]; l < downStart[v + 1]; l++) if (!isHeld(weight[l])) left.push(l);
    start[v + 1] = left.length;
  }
  const take = (of: Int32Array) => Int32Array.from(left, (l) => of[l]);
  return { ...layered, links: left.length, downStart: start, lower: take(lower), upper: take(upper) };
}

/**
 * The bends of each line, the shortest lines first: longer ones go around them. The port of the border where a line comes
 * in or goes out moves with it.
 */
function chains({ boxes, count, chain, chainLength, upStart, upLink, upper, downStart, lower }: Layered, solid: number): number[][] {
  const found: number[][] = [];
  const isPort = (v: number) => v >= solid && v < boxes;
  for (let t = 0; t < chainLength.length; t++) {
    if (!chainLength[t]) continue;
    const bends = Array.from({ length: chainLength[t] }, (_, i) => chain[t] + i).filter((v) => v >= boxes && v < count);
    if (!bends.length) continue;
    const [first, last] = [bends[0], bends[bends.length - 1]];
    const above = Array.from(upLink.subarray(upStart[first], upStart[first + 1]), (link) => upper[link]);
    const below = [...lower.subarray(downStart[last], downStart[last + 1])];
    found.push([...above.filter(isPort), ...bends, ...below.filter(isPort)]);
  }
  return found.sort((a, b) => a.length - b.length);
}

/** How many level lines from boxes to the side are crossed by lines that pass there. */
function passed(layered: Layered, order: Order, solid: number, { height, before, behind }: Beside, side: 1 | -1): number {
  if (before && behind)
    return (
      passedAt(layered, order, -1, (v) => (v < solid ? before[v] : 0)) + passedAt(layered, order, 1, (v) => (v < solid ? behind[v] : 0))
    );
  return passedAt(layered, order, side, (v) => (v < solid ? Math.max(1, Math.round(height[v] / ROW)) : 0));
}

function passedAt(layered: Layered, { start, at }: Order, side: 1 | -1, leading: (box: number) => number): number {
  let sum = 0;
  for (let r = 0; r + 1 < start.length; r++) {
    let lines = 0; // on that side so far
    const [from, to] = side > 0 ? [start[r + 1] - 1, start[r] - 1] : [start[r], start[r + 1]];
    for (let i = from; i !== to; i -= side) {
      const v = at[i];
      if (v >= layered.boxes) lines++;
      else sum += lines * leading(v);
    }
  }
  return sum;
}

/** Moves an item of its layer beyond the boxes, away from the side: next to them, or beyond everything. */
function moveAside({ layer, boxes }: Layered, { start, at, pos }: Order, v: number, solid: number, side: number, far: boolean): void {
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
