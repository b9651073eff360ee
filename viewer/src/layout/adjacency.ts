// Lists of numbers in two flat arrays: the form in which every step keeps neighbours.

/** Compressed adjacency: the items of list v are item[start[v]] … item[start[v+1] - 1]. */
export interface Lists {
  start: Int32Array;
  item: Int32Array;
}

/** Sorts 0 … m-1 into lists by `of`, keeping their order (a counting sort). Negative entries are left out. */
export function listsBy(count: number, of: Int32Array, m = of.length): Lists {
  const start = new Int32Array(count + 1);
  for (let i = 0; i < m; i++) if (of[i] >= 0) start[of[i] + 1]++;
  for (let v = 0; v < count; v++) start[v + 1] += start[v];
  const item = new Int32Array(start[count]);
  for (let i = 0; i < m; i++) {
    const v = of[i];
    if (v >= 0) item[start[v]++] = i;
  }
  for (let v = count; v > 0; v--) start[v] = start[v - 1];
  start[0] = 0;
  return { start, item };
}
