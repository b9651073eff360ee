// How good a drawing is, measured on the drawn lines: for tests and benchmarks, and what the page says of itself.

export interface Boxes {
  n: number;
  x: ArrayLike<number>;
  y: ArrayLike<number>;
  width: ArrayLike<number>;
  height: ArrayLike<number>;
}

export interface Lines {
  pointStart: ArrayLike<number>;
  points: ArrayLike<number>;
}

/** The distinct straight pieces of all lines: [x1, y1, x2, y2] each, upper end first. Shared pieces once. */
export function segments(lines: Lines): Float64Array {
  const { pointStart, points } = lines;
  const edges = pointStart.length - 1;
  let count = 0;
  for (let e = 0; e < edges; e++) count += Math.max(0, pointStart[e + 1] - pointStart[e] - 1);
  const all = new Float64Array(4 * count);
  let k = 0;
  for (let e = 0; e < edges; e++) {
    for (let i = pointStart[e]; i + 1 < pointStart[e + 1]; i++) {
      let x1 = points[2 * i],
        y1 = points[2 * i + 1],
        x2 = points[2 * i + 2],
        y2 = points[2 * i + 3];
      if (x1 === x2 && y1 === y2) continue;
      if (y1 > y2 || (y1 === y2 && x1 > x2)) [x1, y1, x2, y2] = [x2, y2, x1, y1];
      all[k++] = x1;
      all[k++] = y1;
      all[k++] = x2;
      all[k++] = y2;
    }
  }
  const pieces = k / 4;
  const order = Uint32Array.from({ length: pieces }, (_, i) => i);
  const compare = (a: number, b: number) =>
    all[4 * a + 1] - all[4 * b + 1] || all[4 * a] - all[4 * b] || all[4 * a + 3] - all[4 * b + 3] || all[4 * a + 2] - all[4 * b + 2];
  order.sort(compare);
  const out = new Float64Array(k);
  let o = 0;
  for (let i = 0; i < pieces; i++) {
    if (i && compare(order[i - 1], order[i]) === 0) continue;
    out.set(all.subarray(4 * order[i], 4 * order[i] + 4), o);
    o += 4;
  }
  return mergeUpright(out.subarray(0, o));
}

/** Upright and level pieces that overlap each other on the same straight line become one. */
function mergeUpright(list: Float64Array): Float64Array {
  const keep: number[] = [];
  const upright = new Map<number, number[]>(),
    level = new Map<number, number[]>();
  for (let i = 0; i < list.length; i += 4) {
    const [x1, y1, x2, y2] = [list[i], list[i + 1], list[i + 2], list[i + 3]];
    const [map, key, from, to] = x1 === x2 ? [upright, x1, y1, y2] : y1 === y2 ? [level, y1, x1, x2] : [null, 0, 0, 0];
    if (!map) {
      keep.push(x1, y1, x2, y2);
      continue;
    }
    let spans = map.get(key);
    if (!spans) map.set(key, (spans = []));
    spans.push(from, to);
  }
  for (const [map, flat] of [
    [upright, false],
    [level, true],
  ] as const) {
    for (const [key, spans] of map) {
      const order = Array.from({ length: spans.length / 2 }, (_, i) => i).sort((a, b) => spans[2 * a] - spans[2 * b]);
      let from = NaN,
        to = NaN;
      const flush = () => {
        if (from === from) flat ? keep.push(from, key, to, key) : keep.push(key, from, key, to);
      };
      for (const i of order) {
        if (spans[2 * i] < to)
          to = Math.max(to, spans[2 * i + 1]); // pieces that only touch stay apart
        else {
          flush();
          from = spans[2 * i];
          to = spans[2 * i + 1];
        }
      }
      flush();
    }
  }
  return Float64Array.from(keep);
}

/** Total length of the lines, shared pieces once. */
export function lineLength(pieces: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < pieces.length; i += 4) sum += Math.hypot(pieces[i + 2] - pieces[i], pieces[i + 3] - pieces[i + 1]);
  return sum;
}

const EPS = 1e-3;

/** Visits every pair of pieces whose bounding boxes meet, by bands of y. */
function bands(pieces: Float64Array): { size: number; first: number; lists: Int32Array[] } {
  const n = pieces.length / 4;
  let top = Infinity,
    bottom = -Infinity,
    tall = 0;
  for (let i = 0; i < n; i++) {
    top = Math.min(top, pieces[4 * i + 1]);
    bottom = Math.max(bottom, pieces[4 * i + 3]);
    tall += pieces[4 * i + 3] - pieces[4 * i + 1];
  }
  const size = Math.max((bottom - top) / Math.max(1, n), (tall / Math.max(1, n)) * 1.5, 1e-6);
  const count = n ? Math.floor((bottom - top) / size) + 1 : 0;
  const lists: number[][] = Array.from({ length: count }, () => []);
  for (let i = 0; i < n; i++) {
    const a = Math.floor((pieces[4 * i + 1] - top) / size),
      b = Math.floor((pieces[4 * i + 3] - top) / size);
    for (let k = a; k <= b; k++) lists[k].push(i);
  }
  return { size, first: top, lists: lists.map((l) => Int32Array.from(l)) };
}

/** Places where two pieces cross inside both of them. Each pair once; ends that touch are no crossing. */
export function crossings(pieces: Float64Array): number {
  const { size, first, lists } = bands(pieces);
  let found = 0;
  for (let k = 0; k < lists.length; k++) {
    const list = lists[k];
    const from = first + k * size,
      to = from + size;
    // by left end, so that the inner loop can stop
    const left = (i: number) => Math.min(pieces[4 * i], pieces[4 * i + 2]);
    const right = (i: number) => Math.max(pieces[4 * i], pieces[4 * i + 2]);
    list.sort((a, b) => left(a) - left(b));
    for (let i = 0; i < list.length; i++) {
      const p = list[i],
        reach = right(p);
      const ax = pieces[4 * p],
        ay = pieces[4 * p + 1],
        bx = pieces[4 * p + 2],
        by = pieces[4 * p + 3];
      for (let j = i + 1; j < list.length; j++) {
        const q = list[j];
        if (left(q) > reach) break;
        const cx = pieces[4 * q],
          cy = pieces[4 * q + 1],
          dx = pieces[4 * q + 2],
          dy = pieces[4 * q + 3];
        if (cy > by || dy < ay) continue;
        const dirX = bx - ax,
          dirY = by - ay,
          otherX = dx - cx,
          otherY = dy - cy;
        const cross = dirX * otherY - dirY * otherX;
        if (Math.abs(cross) < 1e-9) continue;
        const s = ((cx - ax) * otherY - (cy - ay) * otherX) / cross;
        const t = ((cx - ax) * dirY - (cy - ay) * dirX) / cross;
        const es = EPS / Math.hypot(dirX, dirY),
          et = EPS / Math.hypot(otherX, otherY);
        if (s <= es || s >= 1 - es || t <= et || t >= 1 - et) continue;
        const y = ay + s * dirY;
        if (y >= from && (y < to || k === lists.length - 1)) found++; // a pair may be in several bands
      }
    }
  }
  return found;
}

/** Pairs (edge, box) where a line runs through the inside of a box that is not excused. */
export function through(boxes: Boxes, lines: Lines, excused: (edge: number, box: number) => boolean, inset = 0.5): number {
  const { n, x, y, width, height } = boxes;
  const order = Array.from({ length: n }, (_, i) => i).sort((a, b) => y[a] - y[b]);
  let tallest = 0;
  for (let i = 0; i < n; i++) tallest = Math.max(tallest, height[i]);
  const tops = order.map((b) => y[b]);
  const { pointStart, points } = lines;
  let found = 0;
  for (let e = 0; e + 1 < pointStart.length; e++) {
    const hit = new Set<number>();
    for (let i = pointStart[e]; i + 1 < pointStart[e + 1]; i++) {
      const x1 = points[2 * i],
        y1 = points[2 * i + 1],
        x2 = points[2 * i + 2],
        y2 = points[2 * i + 3];
      const low = Math.min(y1, y2) - tallest,
        high = Math.max(y1, y2);
      let a = 0,
        b = n;
      while (a < b) {
        const mid = (a + b) >> 1;
        if (tops[mid] < low) a = mid + 1;
        else b = mid;
      }
      for (let k = a; k < n && tops[k] <= high; k++) {
        const box = order[k];
        if (hit.has(box)) continue;
        if (
          clips(x1, y1, x2, y2, x[box] + inset, y[box] + inset, x[box] + width[box] - inset, y[box] + height[box] - inset) &&
          !excused(e, box)
        )
          hit.add(box);
      }
    }
    found += hit.size;
  }
  return found;
}

/** Does the piece from (x1, y1) to (x2, y2) enter the open rectangle? (Liang–Barsky) */
export function clips(x1: number, y1: number, x2: number, y2: number, left: number, top: number, right: number, bottom: number): boolean {
  if (left >= right || top >= bottom) return false;
  let from = 0,
    to = 1;
  const dx = x2 - x1,
    dy = y2 - y1;
  for (const [p, q] of [
    [-dx, x1 - left],
    [dx, right - x1],
    [-dy, y1 - top],
    [dy, bottom - y1],
  ]) {
    if (p === 0) {
      if (q <= 0) return false;
      continue;
    }
    const r = q / p;
    if (p < 0) from = Math.max(from, r);
    else to = Math.min(to, r);
    if (from >= to) return false;
  }
  return true;
}

/** Pairs of boxes that overlap and are not excused (a group and what it holds). */
export function overlaps(boxes: Boxes, excused: (a: number, b: number) => boolean = () => false, slack = 0.01): number {
  const { n, x, y, width, height } = boxes;
  const order = Array.from({ length: n }, (_, i) => i).sort((a, b) => y[a] - y[b]);
  let found = 0;
  let active: number[] = [];
  for (const b of order) {
    active = active.filter((a) => y[a] + height[a] > y[b] + slack);
    for (const a of active) {
      if (
        x[a] + width[a] > x[b] + slack &&
        x[b] + width[b] > x[a] + slack &&
        height[b] > 0 &&
        width[b] > 0 &&
        width[a] > 0 &&
        !excused(a, b)
      )
        found++;
    }
    active.push(b);
  }
  return found;
}

interface Quality {
  crossings: number;
  through: number;
  length: number;
  overlaps: number;
}

export function measure(boxes: Boxes, lines: Lines, source: ArrayLike<number>, target: ArrayLike<number>): Quality {
  const pieces = segments(lines);
  return {
    crossings: crossings(pieces),
    through: through(boxes, lines, (e, b) => b === source[e] || b === target[e]),
    length: lineLength(pieces),
    overlaps: overlaps(boxes),
  };
}
