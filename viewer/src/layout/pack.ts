// Packing drawings and boxes side by side, and finding what hangs together.

/** Where rectangles are placed, and how much space they take in all. */
export interface Packed {
  x: Float64Array;
  y: Float64Array;
  width: number;
  height: number;
}

/** Rectangles in rows, left to right and top to bottom, rows at most `limit` wide where possible. */
export function packRows(width: ArrayLike<number>, height: ArrayLike<number>, limit: number, gapX: number, gapY: number): Packed {
  const n = width.length;
  const x = new Float64Array(n),
    y = new Float64Array(n);
  let left = 0,
    top = 0,
    row = 0,
    right = 0;
  for (let i = 0; i < n; i++) {
    if (left > 0 && left + width[i] > limit) {
      left = 0;
      top += row + gapY;
      row = 0;
    }
    x[i] = left;
    y[i] = top;
    left += width[i] + gapX;
    right = Math.max(right, left - gapX);
    row = Math.max(row, height[i]);
  }
  return { x, y, width: right, height: n ? top + row : 0 };
}

/** Width of rows that makes a drawing about `aspect` times as wide as high. */
export function rowWidth(width: ArrayLike<number>, height: ArrayLike<number>, gapX: number, gapY: number, aspect: number): number {
  let area = 0,
    widest = 0;
  for (let i = 0; i < width.length; i++) {
    area += (width[i] + gapX) * (height[i] + gapY);
    widest = Math.max(widest, width[i]);
  }
  return Math.max(widest, Math.sqrt(area * aspect));
}

/** The connected parts of a graph, numbered by their first box; single boxes are -1. */
export function connectedParts(n: number, source: Int32Array, target: Int32Array): { part: Int32Array; parts: number } {
  const root = new Int32Array(n);
  for (let v = 0; v < n; v++) root[v] = v;
  const find = (v: number) => {
    while (root[v] !== v) v = root[v] = root[root[v]];
    return v;
  };
  const part = new Int32Array(n).fill(-1);
  const linked = new Uint8Array(n);
  for (let e = 0; e < source.length; e++) {
    linked[source[e]] = linked[target[e]] = 1;
    const a = find(source[e]),
      b = find(target[e]);
    if (a < b) root[b] = a;
    else root[a] = b;
  }
  let parts = 0;
  for (let v = 0; v < n; v++) {
    if (!linked[v]) continue;
    const r = find(v);
    part[v] = r === v ? parts++ : part[r];
  }
  return { part, parts };
}
