// The longest common part of two sequences that differ in few places (Myers' greedy algorithm), as analysis/diff/sequence.py.

type Places = [number, number][];

/** The work grows with its square; graphs that differ more are aligned by structure alone. */
const MOST_DIFFERENCES = 1200;

/** Pairs of places with equal entries, rising in both; none where too much differs. */
export function align(a: readonly number[], b: readonly number[], most = MOST_DIFFERENCES): Places {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let [endA, endB] = [a.length, b.length];
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) [endA, endB] = [endA - 1, endB - 1];
  const head = Array.from({ length: start }, (_, i): [number, number] => [i, i]);
  const tail = Array.from({ length: a.length - endA }, (_, i): [number, number] => [endA + i, endB + i]);
  return [...head, ...middle(a, b, start, endA, endB, most), ...tail];
}

function middle(a: readonly number[], b: readonly number[], start: number, endA: number, endB: number, limit: number): Places {
  const [n, m] = [endA - start, endB - start];
  if (!n || !m || Math.abs(n - m) > limit) return [];
  const most = Math.min(limit, n + m);
  const furthest = new Int32Array(2 * most + 3); // by diagonal: how far along `a`
  const centre = most + 1;
  const history: Int32Array[] = [];
  for (let d = 0; d <= most; d++) {
    history.push(furthest.slice(centre - d - 1, centre + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && furthest[centre + k - 1]! < furthest[centre + k + 1]!);
      let x = down ? furthest[centre + k + 1]! : furthest[centre + k - 1]! + 1;
      let y = x - k;
      while (x < n && y < m && a[start + x] === b[start + y]) [x, y] = [x + 1, y + 1];
      furthest[centre + k] = x;
      if (x >= n && y >= m) return walkBack(history, n, m, start);
    }
  }
  return [];
}

function walkBack(history: Int32Array[], x: number, y: number, start: number): Places {
  const pairs: Places = [];
  for (let d = history.length - 1; d >= 0; d--) {
    const before = history[d]!; // diagonals -d-1 … d+1, as they were before step d
    const k = x - y;
    const down = k === -d || (k !== d && before[k + d]! < before[k + d + 2]!);
    const previous = down ? k + 1 : k - 1;
    const wasX = d ? before[previous + d + 1]! : 0;
    const stop = wasX + (down || !d ? 0 : 1); // the step itself; after it comes the run of equal entries
    while (x > stop) pairs.push([start + --x, start + --y]);
    [x, y] = [wasX, d ? wasX - previous : 0];
  }
  return pairs.reverse();
}
