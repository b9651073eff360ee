// Lists of integers by row, in two typed arrays.

import { starts } from './capture.ts';

export interface Csr {
  start: Int32Array;
  item: Int32Array;
}

/** Items by row: `row[i]` owns `item[i]` (or i itself). The order of items within a row is kept. Rows < 0 are left out. */
export function csr(row: Int32Array, rows: number, item?: Int32Array): Csr {
  const start = starts(row, rows);
  const next = start.slice(0, rows);
  const out = new Int32Array(start[rows]!);
  for (let i = 0; i < row.length; i++) if (row[i]! >= 0) out[next[row[i]!]!++] = item ? item[i]! : i;
  return { start, item: out };
}

export function row(lists: Csr, index: number): Int32Array {
  return lists.item.subarray(lists.start[index]!, lists.start[index + 1]!);
}
