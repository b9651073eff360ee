// A packed tree over rectangles: items in Morton order, four to a node, four nodes to a node above.
// Built in linear time into a few typed arrays; it also serves as the pyramid for drawing from afar,
// because a node high up stands for a block of neighbours.

export interface RTree {
  /** Items in Morton order of their middles. */
  ids: Int32Array;
  /** x0 y0 x1 y1 of each node, level by level; node k of a level holds nodes 4k … 4k+3 of the one below. */
  bounds: Float32Array;
  /** Where each level starts among the nodes, and the end. */
  levels: Int32Array;
}

/** Four columns: the corners of item i. */
export interface Corners {
  x0: Float32Array;
  y0: Float32Array;
  x1: Float32Array;
  y1: Float32Array;
}

export function buildRTree(items: Corners, only?: Int32Array): RTree {
  const { x0, y0, x1, y1 } = items;
  const ids = only ?? Int32Array.from({ length: x0.length }, (_, i) => i);
  const n = ids.length;
  const order = mortonOrder(items, ids);
  const starts = [0];
  for (let size = Math.ceil(n / 4); size > 0; size = size === 1 ? 0 : Math.ceil(size / 4)) starts.push(starts.at(-1)! + size);
  const levels = Int32Array.from(starts);
  const bounds = new Float32Array(4 * levels[levels.length - 1]!);
  for (let k = 0; k < bounds.length; k += 4) {
    bounds[k] = bounds[k + 1] = Infinity;
    bounds[k + 2] = bounds[k + 3] = -Infinity;
  }
  for (let i = 0; i < n; i++) {
    const id = order[i]!;
    grow(bounds, i >> 2, x0[id]!, y0[id]!, x1[id]!, y1[id]!);
  }
  for (let l = 1; l + 1 < levels.length; l++) {
    const [below, here] = [levels[l - 1]!, levels[l]!];
    for (let k = 0; k < here - below; k++) {
      const b = 4 * (below + k);
      grow(bounds, here + (k >> 2), bounds[b]!, bounds[b + 1]!, bounds[b + 2]!, bounds[b + 3]!);
    }
  }
  return { ids: order, bounds, levels };
}

function grow(bounds: Float32Array, node: number, x0: number, y0: number, x1: number, y1: number): void {
  const b = 4 * node;
  if (x0 < bounds[b]!) bounds[b] = x0;
  if (y0 < bounds[b + 1]!) bounds[b + 1] = y0;
  if (x1 > bounds[b + 2]!) bounds[b + 2] = x1;
  if (y1 > bounds[b + 3]!) bounds[b + 3] = y1;
}

/** How many items a node of a level stands for, the last of a level apart. */
export function span(level: number): number {
  return 4 ** (level + 1);
}

/** A list of numbers that grows; kept between frames so that nothing is allocated while moving. */
export class Bag {
  items = new Int32Array(256);
  size = 0;

  /** A copy of what is in it. */
  taken(): Int32Array {
    return this.items.slice(0, this.size);
  }

  push(value: number): void {
    if (this.size === this.items.length) {
      const larger = new Int32Array(2 * this.size);
      larger.set(this.items);
      this.items = larger;
    }
    this.items[this.size++] = value;
  }
}

const stack = new Bag();

/**
 * Walks the nodes that touch a rectangle down to `floor`: at level `floor` the node's number within the
 * whole tree goes to `out`; with `floor` -1 the items of the lowest nodes do. Items are not tested one by one.
 */
export function search(tree: RTree, x0: number, y0: number, x1: number, y1: number, out: Bag, floor = -1): void {
  const { ids, bounds, levels } = tree;
  const top = levels.length - 2;
  if (top < 0) return;
  const stop = Math.min(floor, top);
  stack.size = 0;
  stack.push(top);
  stack.push(0);
  while (stack.size > 0) {
    const k = stack.items[--stack.size]!;
    const level = stack.items[--stack.size]!;
    const node = levels[level]! + k;
    const b = 4 * node;
    if (bounds[b]! > x1 || bounds[b + 1]! > y1 || bounds[b + 2]! < x0 || bounds[b + 3]! < y0) continue;
    if (level === stop) {
      out.push(node);
    } else if (level === 0) {
      for (let i = 4 * k, end = Math.min(i + 4, ids.length); i < end; i++) out.push(ids[i]!);
    } else {
      const width = levels[level]! - levels[level - 1]!;
      for (let c = Math.min(4 * k + 4, width) - 1; c >= 4 * k; c--) {
        stack.push(level - 1);
        stack.push(c);
      }
    }
  }
}

/** About how many items touch a rectangle: exact but for the lowest nodes at its rim. */
export function countIn(tree: RTree, x0: number, y0: number, x1: number, y1: number): number {
  const { ids, bounds, levels } = tree;
  const top = levels.length - 2;
  if (top < 0) return 0;
  let count = 0;
  stack.size = 0;
  stack.push(top);
  stack.push(0);
  while (stack.size > 0) {
    const k = stack.items[--stack.size]!;
    const level = stack.items[--stack.size]!;
    const b = 4 * (levels[level]! + k);
    if (bounds[b]! > x1 || bounds[b + 1]! > y1 || bounds[b + 2]! < x0 || bounds[b + 3]! < y0) continue;
    const inside = bounds[b]! >= x0 && bounds[b + 1]! >= y0 && bounds[b + 2]! <= x1 && bounds[b + 3]! <= y1;
    if (inside || level === 0) {
      const each = span(level);
      count += Math.min(each * (k + 1), ids.length) - each * k;
      continue;
    }
    const width = levels[level]! - levels[level - 1]!;
    for (let c = 4 * k; c < Math.min(4 * k + 4, width); c++) {
      stack.push(level - 1);
      stack.push(c);
    }
  }
  return count;
}

/** The level to stop at so that about `count` items give at most `most` nodes; -1: the items themselves. */
export function floorFor(count: number, most: number): number {
  let floor = -1;
  while (count > most) {
    count /= 4;
    floor++;
  }
  return floor;
}

/** The first item of a node, by its number within the whole tree. */
export function firstOf(tree: RTree, node: number, level: number): number {
  return tree.ids[(node - tree.levels[level]!) * span(level)]!;
}

const FEW = 300;

function mortonOrder(items: Corners, ids: Int32Array): Int32Array {
  const { x0, y0, x1, y1 } = items;
  const n = ids.length;
  let [left, upper, right, lower] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i < n; i++) {
    const id = ids[i]!;
    const x = x0[id]! + x1[id]!;
    const y = y0[id]! + y1[id]!;
    if (x < left) left = x;
    if (x > right) right = x;
    if (y < upper) upper = y;
    if (y > lower) lower = y;
  }
  // One scale for both axes: blocks of neighbours stay square.
  const extent = Math.max(right - left, lower - upper);
  const scale = extent > 0 && Number.isFinite(extent) ? 65535 / extent : 0;
  const keys = new Uint32Array(n);
  for (let i = 0; i < n; i++) {
    const id = ids[i]!;
    keys[i] = (spread((x0[id]! + x1[id]! - left) * scale) | (spread((y0[id]! + y1[id]! - upper) * scale) << 1)) >>> 0;
  }
  return radixSort(ids, keys);
}

/** Puts a zero between the bits of a 16-bit number. */
function spread(v: number): number {
  let b = v & 0xffff;
  b = (b | (b << 8)) & 0x00ff00ff;
  b = (b | (b << 4)) & 0x0f0f0f0f;
  b = (b | (b << 2)) & 0x33333333;
  return (b | (b << 1)) & 0x55555555;
}

function radixSort(ids: Int32Array, keys: Uint32Array): Int32Array {
  const n = ids.length;
  if (n < FEW) {
    // Counting takes as long as sorting a few hundred; both keep the order of equal keys.
    const place = Array.from(keys.keys()).sort((a, b) => keys[a]! - keys[b]!);
    return Int32Array.from(place, (i) => ids[i]!);
  }
  let [from, to] = [Int32Array.from(ids), new Int32Array(n)];
  let [fromKeys, toKeys] = [keys, new Uint32Array(n) as Uint32Array];
  const counts = new Int32Array(2048);
  for (const shift of [0, 11, 22]) {
    counts.fill(0);
    for (let i = 0; i < n; i++) counts[(fromKeys[i]! >>> shift) & 2047]!++;
    let sum = 0;
    for (let d = 0; d < 2048; d++) {
      const c = counts[d]!;
      counts[d] = sum;
      sum += c;
    }
    for (let i = 0; i < n; i++) {
      const place = counts[(fromKeys[i]! >>> shift) & 2047]!++;
      to[place] = from[i]!;
      toKeys[place] = fromKeys[i]!;
    }
    [from, to] = [to, from];
    [fromKeys, toKeys] = [toKeys, fromKeys];
  }
  return from;
}
