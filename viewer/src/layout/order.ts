// The order of items on each layer, with few crossings: several starts, sweeps, and a search as long as it may take.

import { copyOrder, gapCrossings, type Order } from './crossings.ts';
import { settle } from './exchange.ts';
import type { Layered } from './layers.ts';
import { stitch } from './stitch.ts';

/**
 * A first order by depth-first search: from the last items upwards (so that what feeds an item
 * is kept together) or from the first ones downwards, taking neighbours forwards or in reverse.
 */
export function searchOrder(layered: Layered, upwards: boolean, reverse: boolean): Order {
  const { count, layers, layer, downStart, upStart, upLink, upper, lower } = layered;
  const start = new Int32Array(layers + 1);
  for (let v = 0; v < count; v++) start[layer[v] + 1]++;
  for (let r = 0; r < layers; r++) start[r + 1] += start[r];
  const at = new Int32Array(count),
    pos = new Int32Array(count);
  const cursor = start.slice(0, layers);
  const seen = new Uint8Array(count);
  const stack = new Int32Array(count + layered.links);
  const away = upwards ? downStart : upStart;
  for (let k = 0; k < layered.boxes; k++) {
    const root = reverse ? layered.boxes - 1 - k : k;
    if (away[root + 1] > away[root]) continue;
    let top = 0;
    stack[top++] = root;
    while (top) {
      const v = stack[--top];
      if (seen[v]) continue;
      seen[v] = 1;
      const r = layer[v];
      pos[v] = cursor[r] - start[r];
      at[cursor[r]++] = v;
      if (upwards) {
        const a = upStart[v],
          b = upStart[v + 1];
        if (reverse) for (let i = a; i < b; i++) stack[top++] = upper[upLink[i]];
        else for (let i = b - 1; i >= a; i--) stack[top++] = upper[upLink[i]];
      } else {
        const a = downStart[v],
          b = downStart[v + 1];
        if (reverse) for (let l = a; l < b; l++) stack[top++] = lower[l];
        else for (let l = b - 1; l >= a; l--) stack[top++] = lower[l];
      }
    }
  }
  return { start, at, pos };
}

let keys = new Float64Array(256),
  items = new Int32Array(256),
  slots = new Int32Array(256);
let keys2 = new Float64Array(256),
  items2 = new Int32Array(256);

/** Sorts items[0…k) by keys[0…k), keeping the order of equal keys. */
function sortByKey(k: number): void {
  if (k <= 24) {
    for (let i = 1; i < k; i++) {
      const key = keys[i],
        item = items[i];
      let j = i - 1;
      for (; j >= 0 && keys[j] > key; j--) {
        keys[j + 1] = keys[j];
        items[j + 1] = items[j];
      }
      keys[j + 1] = key;
      items[j + 1] = item;
    }
    return;
  }
  if (keys2.length < keys.length) {
    keys2 = new Float64Array(keys.length);
    items2 = new Int32Array(keys.length);
  }
  for (let run = 1; run < k; run *= 2) {
    for (let lo = 0; lo < k; lo += 2 * run) {
      const mid = Math.min(lo + run, k),
        hi = Math.min(lo + 2 * run, k);
      let a = lo,
        b = mid;
      for (let o = lo; o < hi; o++) {
        const left = a < mid && (b >= hi || keys[a] <= keys[b]);
        const i = left ? a++ : b++;
        keys2[o] = keys[i];
        items2[o] = items[i];
      }
    }
    let swapK = keys,
      swapI = items;
    keys = keys2;
    items = items2;
    keys2 = swapK;
    items2 = swapI;
  }
}

/** Sorts layer r by the mean place of its items' neighbours above or below. True when something moved. */
function sortLayer(layered: Layered, order: Order, r: number, byUpper: boolean, share: Float32Array | null): boolean {
  const { upStart, upLink, upper, downStart, lower, upperAt, lowerAt } = layered;
  const { start, at, pos } = order;
  const from = start[r],
    size = start[r + 1] - from;
  if (size < 2) return false;
  if (keys.length < size) {
    keys = new Float64Array(2 * size);
    items = new Int32Array(2 * size);
    slots = new Int32Array(2 * size);
  }
  let k = 0,
    sorted = true;
  for (let i = 0; i < size; i++) {
    const v = at[from + i];
    let sum = 0,
      deg = 0;
    if (byUpper) {
      const a = upStart[v],
        b = upStart[v + 1];
      deg = b - a;
      if (share) for (let j = a; j < b; j++) sum += pos[upper[upLink[j]]] + upperAt![upLink[j]] * share[upper[upLink[j]]];
      else for (let j = a; j < b; j++) sum += pos[upper[upLink[j]]];
    } else {
      const a = downStart[v],
        b = downStart[v + 1];
      deg = b - a;
      if (share) for (let l = a; l < b; l++) sum += pos[lower[l]] + lowerAt![l] * share[lower[l]];
      else for (let l = a; l < b; l++) sum += pos[lower[l]];
    }
    if (!deg) continue; // keeps its place
    const key = sum / deg;
    if (k && keys[k - 1] > key) sorted = false;
    keys[k] = key;
    items[k] = v;
    slots[k++] = i;
  }
  if (sorted) return false;
  sortByKey(k);
  let changed = false;
  for (let i = 0; i < k; i++) {
    const v = items[i],
      p = slots[i];
    if (at[from + p] !== v) {
      changed = true;
      at[from + p] = v;
      pos[v] = p;
    }
  }
  return changed;
}

/** A pair of items looked at costs about as much as this many links. */
const PAIR = 4;

/** What is left to spend on ordering, in links looked at: the same on every machine, unlike seconds. */
interface Effort {
  left: number;
}

/**
 * Sweeps down and up until it stops helping. A layer is sorted again only when the layer it looks
 * at has changed, so a sweep over what is settled costs almost nothing.
 */
export function sweep(layered: Layered, order: Order, rounds: number, downFirst: boolean, share: Float32Array | null): void {
  const { layers } = layered;
  const changed = new Int32Array(layers).fill(1);
  const done = [new Int32Array(layers), new Int32Array(layers)];
  let tick = 1;
  const pass = (down: boolean) => {
    tick++;
    const last = done[down ? 0 : 1];
    let any = false;
    for (let k = 1; k < layers; k++) {
      const r = down ? k : layers - 1 - k,
        look = down ? r - 1 : r + 1;
      if (changed[look] < last[r] && changed[r] < last[r]) continue;
      last[r] = tick;
      if (sortLayer(layered, order, r, down, share)) {
        changed[r] = tick;
        any = true;
      }
    }
    return any;
  };
  for (let round = 0; round < rounds; round++) {
    const a = pass(downFirst),
      b = pass(!downFirst);
    if (!a && !b) break;
  }
}

function gaps(layered: Layered, order: Order): Int32Array {
  const out = new Int32Array(Math.max(0, layered.layers - 1));
  for (let r = 0; r < out.length; r++) out[r] = gapCrossings(layered, order.start, r, order.at, order.pos);
  return out;
}

function total(cost: Int32Array): number {
  let sum = 0;
  for (let r = 0; r < cost.length; r++) sum += cost[r];
  return sum;
}

/** Every order worth trying, best layers of each stitched together. */
export function orderLayers(layered: Layered, effort: Effort, share: Float32Array | null = null): { order: Order; crossings: number } {
  let best = searchOrder(layered, true, false);
  let cost = gaps(layered, best);
  let left = total(cost);
  const unit = layered.links + layered.count;
  if (!left) return { order: best, crossings: left };
  const improve = (next: Order) => {
    const nextCost = gaps(layered, next);
    const joined = stitch(layered, best, cost, next, nextCost);
    if (joined) {
      best = joined;
      cost = gaps(layered, best);
    }
    const now = total(cost),
      gain = left - now;
    left = now;
    return gain;
  };
  if (effort.left < 8 * unit) {
    const next = copyOrder(best);
    sweep(layered, next, 2, true, share);
    improve(next);
    return { order: best, crossings: left };
  }
  const tries: [boolean, boolean, boolean][] = [
    [true, false, true],
    [false, false, false],
    [true, true, true],
    [false, true, false],
    [true, false, false],
    [false, false, true],
    [true, true, false],
    [false, true, true],
  ];
  for (const [upwards, reverse, downFirst] of tries) {
    const next = searchOrder(layered, upwards, reverse);
    sweep(layered, next, 6, downFirst, share);
    effort.left -= 12 * unit;
    improve(next);
    if (!left || effort.left < 8 * unit) return { order: best, crossings: left };
  }
  // settle what is found, shake it, sweep and settle again; stitching keeps every local gain
  let random = 1;
  let pairs = 0;
  for (let r = 0; r < layered.layers; r++) pairs += (best.start[r + 1] - best.start[r]) ** 2;
  const patience = 2 + Math.min(4, unit >> 8);
  for (let round = 0, idle = 0; effort.left > 2 * PAIR * pairs && idle < patience && left; round++) {
    const next = copyOrder(best);
    if (round >= 2) {
      random = shake(next, layered, random);
      sweep(layered, next, 2, round % 2 === 0, share);
      effort.left -= 6 * unit;
    }
    effort.left -= PAIR * (settle(layered, next, round % 2 === 0) + settle(layered, next, round % 2 !== 0)) + 2 * unit;
    if (improve(next) > 0) idle = 0;
    else idle++;
  }
  return { order: best, crossings: left };
}

/** Moves some items to other places of their layers; the numbers are random, but the same every time. */
function shake(order: Order, layered: Layered, seed: number): number {
  const { start, at, pos } = order;
  for (let r = 0; r < layered.layers; r++) {
    const from = start[r],
      size = start[r + 1] - from;
    if (size < 2) continue;
    const swaps = 1 + (size >> 2);
    for (let k = 0; k < swaps; k++) {
      seed = (Math.imul(seed, 1664525) + 1013904223) | 0;
      const i = from + ((seed >>> 8) % size);
      seed = (Math.imul(seed, 1664525) + 1013904223) | 0;
      const j = from + ((seed >>> 8) % size);
      const v = at[i],
        w = at[j];
      at[i] = w;
      at[j] = v;
      pos[w] = i - from;
      pos[v] = j - from;
    }
  }
  return seed;
}
