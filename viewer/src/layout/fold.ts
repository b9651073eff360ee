// Cutting a tall stack of layers into columns.

/** How much wider than high the columns of a folded drawing may be together. */
const WIDEST = 2;

/**
 * Cuts a tall stack of layers into columns, where few lines cross the cut. Columns are at most `maxHeight` high,
 * or higher where the layers (from `left` to `right`) are so wide that many columns would only make a wide drawing
 * of a tall one. `gutter` says how wide the space between two columns is that so many lines pass.
 */
export function cutColumns(
  height: Float64Array,
  gap: Float64Array,
  crossing: Int32Array,
  maxHeight: number,
  left: Float64Array,
  right: Float64Array,
  gutter: (lines: number) => number,
): Int32Array {
  const layers = height.length;
  for (let limit = maxHeight; ; limit *= 1.25) {
    const column = cut(height, gap, crossing, limit);
    if (column[layers - 1] === 0) return column;
    let width = 0,
      tallest = 0;
    for (let r = 0; r < layers;) {
      let lo = Infinity,
        hi = -Infinity,
        sum = 0;
      const c = column[r];
      for (; r < layers && column[r] === c; r++) {
        lo = Math.min(lo, left[r]);
        hi = Math.max(hi, right[r]);
        sum += height[r] + (r + 1 < layers && column[r + 1] === c ? gap[r] : 0);
      }
      width += hi - lo + (r < layers ? gutter(crossing[r - 1]) : 0);
      tallest = Math.max(tallest, sum);
    }
    if (width <= WIDEST * tallest) return column;
  }
}

/** Columns of at most this height, each cut in its last part where the fewest lines cross. */
function cut(height: Float64Array, gap: Float64Array, crossing: Int32Array, maxHeight: number): Int32Array {
  const layers = height.length;
  const column = new Int32Array(layers);
  let c = 0,
    from = 0;
  while (from < layers) {
    // how far this column may reach, and the calmest cut in its last part
    let sum = 0,
      r = from,
      best = -1;
    for (; r < layers; r++) {
      const next = sum + (r > from ? gap[r - 1] : 0) + height[r];
      if (r > from && next > maxHeight) break;
      sum = next;
      if (r + 1 < layers && sum >= 0.7 * maxHeight && (best < 0 || crossing[r] <= crossing[best])) best = r;
    }
    const end = r >= layers ? layers - 1 : best >= from ? best : r - 1;
    for (let i = from; i <= end; i++) column[i] = c;
    from = end + 1;
    c++;
  }
  return column;
}

/** How many columns there are, by the column of each layer. */
export function columnCount(of: Int32Array): number {
  return of.length ? of[of.length - 1] + 1 : 0;
}
