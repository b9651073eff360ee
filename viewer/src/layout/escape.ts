// Ways from a box to the side of a drawing, around all other boxes.

import { listsBy, type Lists } from './adjacency.ts';

/** What lines must not run through: boxes in a tree, parents before children. */
interface Obstacles {
  n: number;
  parent: Int32Array;
  x: Float32Array;
  y: Float32Array;
  width: Float32Array;
  height: Float32Array;
}

interface Region {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** A way from a cell of free space to the side: through `door` into the cell `next`, which is -1 at the side itself. */
interface Ways {
  next: Int32Array;
  doorX: Float64Array;
  doorY: Float64Array;
}

/**
 * The free space among the boxes of one group, cut into cells: as wide as the boxes beside them allow, and as high as
 * they stay the same. Cells touch only above and below each other, and where they do, a line can pass.
 */
class Space {
  private readonly x0: number[] = [];
  private readonly x1: number[] = [];
  private readonly y0: number[] = [];
  private readonly y1: number[] = [];
  private readonly leftBox: number[] = []; // the box at each side of a cell, -1: the side of the group
  private readonly rightBox: number[] = [];
  private readonly seen: number[] = []; // the last height at which a cell was found
  private readonly doors: number[] = []; // five numbers each: the cells above and below, from, to, height
  private doorsOf: Lists | null = null;
  /** The cells that lie under and over the middle of a box, and the cells beside it. */
  private readonly under = new Map<number, number>();
  private readonly over = new Map<number, number>();
  private readonly beside = [new Map<number, number[]>(), new Map<number, number[]>()]; // right of it, left of it
  private readonly ways: (Ways | null)[] = [null, null];

  constructor(
    private readonly region: Region,
    boxes: Int32Array,
    of: Obstacles,
  ) {
    const top = (v: number) => of.y[v],
      bottom = (v: number) => of.y[v] + of.height[v];
    const starts = boxes.slice().sort((a, b) => top(a) - top(b) || a - b),
      ends = boxes.slice().sort((a, b) => bottom(a) - bottom(b) || a - b);
    let active: number[] = []; // boxes at the present height, from left to right
    let cells = this.open([], of, region.top);
    for (let s = 0, e = 0; e < ends.length;) {
      const y = s < starts.length ? Math.min(top(starts[s]), bottom(ends[e])) : bottom(ends[e]);
      const firstEnd = e,
        firstStart = s;
      while (e < ends.length && bottom(ends[e]) <= y) e++;
      while (s < starts.length && top(starts[s]) <= y) s++;
      if (e > firstEnd) active = active.filter((v) => bottom(v) > y);
      if (s > firstStart) {
        for (let i = firstStart; i < s; i++) if (bottom(starts[i]) > y) active.push(starts[i]);
        active.sort((a, b) => of.x[a] - of.x[b]);
      }
      const before = cells;
      cells = this.open(active, of, y, before);
      for (let i = firstStart; i < s; i++) this.note(this.over, starts[i], before, of);
      for (let i = firstEnd; i < e; i++) this.note(this.under, ends[i], cells, of);
    }
    for (const c of cells) this.y1[c] = region.bottom;
  }

  private note(into: Map<number, number>, v: number, cells: number[], of: Obstacles): void {
    const middle = of.x[v] + of.width[v] / 2;
    let lo = 0,
      hi = cells.length - 1; // the last cell that begins left of it
    while (lo < hi) {
      const mid = (lo + hi + 1) >> 1;
      if (this.x0[cells[mid]] < middle) lo = mid;
      else hi = mid - 1;
    }
    const c = cells[lo];
    if (c !== undefined && this.x0[c] < middle && middle < this.x1[c]) into.set(v, c);
  }

  /** The cells between the boxes at height y; those of `before` that have not changed go on. */
  private open(active: number[], of: Obstacles, y: number, before: number[] = []): number[] {
    const cells: number[] = [],
      fresh: number[] = [];
    let old = 0;
    for (let i = 0; i <= active.length; i++) {
      const a = i ? active[i - 1] : -1,
        b = i < active.length ? active[i] : -1;
      const from = a < 0 ? this.region.left : of.x[a] + of.width[a],
        to = b < 0 ? this.region.right : of.x[b];
      if (to <= from) continue;
      while (old < before.length && this.x1[before[old]] <= from) old++;
      const same = before[old];
      if (same !== undefined && this.leftBox[same] === a && this.rightBox[same] === b) {
        cells.push(same);
        this.seen[same] = y;
        continue;
      }
      const c = this.x0.push(from) - 1;
      this.x1.push(to);
      this.y0.push(y);
      this.y1.push(y);
      this.leftBox.push(a);
      this.rightBox.push(b);
      this.seen.push(y);
      if (a >= 0) put(this.beside[0], a, c);
      if (b >= 0) put(this.beside[1], b, c);
      cells.push(c);
      fresh.push(c);
    }
    const closed = before.filter((c) => this.seen[c] !== y);
    for (const c of closed) this.y1[c] = y;
    for (let i = 0, j = 0; i < closed.length && j < fresh.length;) {
      const a = closed[i],
        b = fresh[j];
      const from = Math.max(this.x0[a], this.x0[b]),
        to = Math.min(this.x1[a], this.x1[b]);
      if (to > from) this.doors.push(a, b, from, to, y);
      if (this.x1[a] < this.x1[b]) i++;
      else j++;
    }
    return cells;
  }

  /** Shortest ways from all cells to the right (0) or left (1) side. */
  private search(side: number): Ways {
    const count = this.x0.length;
    const ways: Ways = { next: new Int32Array(count).fill(-2), doorX: new Float64Array(count), doorY: new Float64Array(count) };
    const cost = new Float64Array(count).fill(Infinity),
      done = new Uint8Array(count);
    const heap = new Heap();
    const { doors } = this;
    if (!this.doorsOf) {
      const ends = new Int32Array((2 * doors.length) / 5);
      for (let d = 0; d < ends.length; d++) ends[d] = doors[5 * (d >> 1) + (d & 1)];
      this.doorsOf = listsBy(count, ends);
    }
    const { start, item } = this.doorsOf;
    for (let c = 0; c < count; c++) {
      if ((side ? this.leftBox : this.rightBox)[c] !== -1 || this.y1[c] - this.y0[c] < 1) continue;
      cost[c] = 0;
      ways.next[c] = -1;
      ways.doorX[c] = side ? this.region.left : this.region.right;
      ways.doorY[c] = (this.y0[c] + this.y1[c]) / 2;
      heap.push(0, c);
    }
    while (heap.size) {
      const c = heap.pop();
      if (done[c]) continue;
      done[c] = 1;
      for (let k = start[c]; k < start[c + 1]; k++) {
        const d = 5 * (item[k] >> 1);
        const other = doors[d] === c ? doors[d + 1] : doors[d],
          from = doors[d + 2],
          to = doors[d + 3],
          y = doors[d + 4];
        const margin = Math.min(8, (to - from) / 2);
        const x = Math.min(Math.max(ways.doorX[c], from + margin), to - margin);
        // a narrow door counts as a long way: lines keep off boxes
        const next = cost[c] + Math.abs(x - ways.doorX[c]) + (ways.next[c] < 0 ? 0 : Math.abs(y - ways.doorY[c])) + (margin < 4 ? 200 : 0);
        if (next >= cost[other]) continue;
        cost[other] = next;
        ways.next[other] = c;
        ways.doorX[other] = x;
        ways.doorY[other] = y;
        heap.push(next, other);
      }
    }
    return ways;
  }

  /** Leads the line whose last point is at a box of this group to the side; false when there is no way. */
  lead(points: number[], box: number, from: 'under' | 'over' | 'beside', side: number, spread: number): boolean {
    let x = points[points.length - 2],
      y = points[points.length - 1];
    const cell =
      from === 'beside'
        ? this.beside[side].get(box)?.find((c) => this.y0[c] <= y && y <= this.y1[c])
        : (from === 'under' ? this.under : this.over).get(box);
    if (cell === undefined) return false;
    const ways = (this.ways[side] ??= this.search(side));
    let level = from === 'beside'; // may go on at this height
    for (let c = cell; c >= 0; c = ways.next[c]) {
      if (ways.next[c] === -2) return false;
      const last = ways.next[c] < 0;
      const toX = ways.doorX[c],
        toY = last ? y : ways.doorY[c];
      if (last || Math.abs(toX - x) > 0.01) {
        const high = this.y1[c] - this.y0[c];
        let h = y;
        if (!level) {
          const off = Math.min(high, 30) * (0.3 + 0.4 * spread);
          h = Math.abs(y - this.y0[c]) <= Math.abs(y - this.y1[c]) ? this.y0[c] + off : this.y1[c] - off;
        }
        points.push(x, h, toX, h);
        y = h;
        x = toX;
      }
      if (!last) {
        points.push(x, toY);
        y = toY;
      }
      level = false;
    }
    return true;
  }
}

/** The nearest first. */
class Heap {
  size = 0;
  private readonly keys: number[] = [];
  private readonly items: number[] = [];
  push(key: number, item: number): void {
    const { keys, items } = this;
    let i = this.size++;
    for (; i;) {
      const up = (i - 1) >> 1;
      if (keys[up] <= key) break;
      keys[i] = keys[up];
      items[i] = items[up];
      i = up;
    }
    keys[i] = key;
    items[i] = item;
  }
  pop(): number {
    const { keys, items } = this;
    const first = items[0],
      size = --this.size,
      key = keys[size],
      item = items[size];
    let i = 0;
    for (;;) {
      let low = 2 * i + 1;
      if (low >= size) break;
      if (low + 1 < size && keys[low + 1] < keys[low]) low++;
      if (key <= keys[low]) break;
      keys[i] = keys[low];
      items[i] = items[low];
      i = low;
    }
    keys[i] = key;
    items[i] = item;
    return first;
  }
}

function put(into: Map<number, number[]>, key: number, value: number): void {
  const list = into.get(key);
  if (list) list.push(value);
  else into.set(key, [value]);
}

/** Ways out of a drawing to its left and right, around its boxes. */
export class Escape {
  private readonly children: Lists;
  private readonly spaces = new Map<number, Space>();

  /** `whole` is where lines may run; `inset` is how much of a group's top is its title. */
  constructor(
    private readonly boxes: Obstacles,
    private readonly whole: Region,
    private readonly inset: number,
  ) {
    const above = new Int32Array(boxes.n);
    for (let v = 0; v < boxes.n; v++) above[v] = boxes.parent[v] < 0 ? boxes.n : boxes.parent[v];
    this.children = listsBy(boxes.n + 1, above);
  }

  private space(group: number): Space {
    let space = this.spaces.get(group);
    if (!space) {
      const { n, x, y, width, height } = this.boxes;
      const region =
        group === n
          ? this.whole
          : { left: x[group], top: y[group] + this.inset, right: x[group] + width[group], bottom: y[group] + height[group] };
      const { start, item } = this.children;
      space = new Space(region, item.subarray(start[group], start[group + 1]), this.boxes);
      this.spaces.set(group, space);
    }
    return space;
  }

  /**
   * The points of a line from the bottom (or top) of a box to the right (0) or left (1) side of the drawing; null when
   * there is none. `spread` (0 … 1) says where in a gap it runs, so that neighbours do not fall on each other.
   */
  way(box: number, top: boolean, side: 0 | 1, spread: number): number[] | null {
    const { n, parent, x, y, width, height } = this.boxes;
    const points = [x[box] + width[box] / 2, top ? y[box] : y[box] + height[box]];
    let from: 'under' | 'over' | 'beside' = top ? 'over' : 'under';
    for (let v = box; v >= 0; v = parent[v]) {
      const group = parent[v] < 0 ? n : parent[v];
      if (!this.space(group).lead(points, v, from, side, spread)) return null;
      from = 'beside';
    }
    return points;
  }
}
