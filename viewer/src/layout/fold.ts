/** Cuts a tall stack of layers into columns, where few lines cross the cut. */
export function cutColumns(height: Float64Array, gap: Float64Array, crossing: Int32Array, maxHeight: number): Int32Array {
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
