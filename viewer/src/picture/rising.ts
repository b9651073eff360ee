// The longest part of a list that never falls.

/** Places of it, in order. */
export function rising(values: readonly number[]): number[] {
  const ends: number[] = []; // by length less one: the place where the lowest end of such a part is
  const before = new Int32Array(values.length).fill(-1);
  values.forEach((value, i) => {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[ends[middle]!]! <= value) low = middle + 1;
      else high = middle;
    }
    before[i] = low ? ends[low - 1]! : -1;
    ends[low] = i;
  });
  const found: number[] = [];
  for (let at = ends.at(-1) ?? -1; at >= 0; at = before[at]!) found.push(at);
  return found.reverse();
}
