// Which edges go back, so that all others go down.

import { listsBy } from './adjacency.ts';

export const FORWARD = 0;
export const BACK = 1;
export const SELF = 2;

/**
 * Says for every edge whether it goes forward, back or to its own box. The forward edges have no cycle.
 * Only edges on a cycle can be back edges: inside each strongly connected part, those against `order`.
 */
export function breakCycles(n: number, source: Int32Array, target: Int32Array, order?: Int32Array): Uint8Array {
  const m = source.length;
  const kind = new Uint8Array(m);
  let against = false;
  for (let e = 0; e < m; e++) {
    const s = source[e],
      t = target[e];
    if (s === t) kind[e] = SELF;
    else if (order ? order[s] > order[t] || (order[s] === order[t] && s > t) : s > t) against = true;
  }
  if (!against) return kind; // the order itself proves that there is no cycle
  const part = stronglyConnected(n, source, target);
  for (let e = 0; e < m; e++) {
    const s = source[e],
      t = target[e];
    if (s === t || part[s] !== part[t]) continue;
    if (order ? order[s] > order[t] || (order[s] === order[t] && s > t) : s > t) kind[e] = BACK;
  }
  return kind;
}

/** Tarjan's algorithm without recursion: the number of the strongly connected part of each box. */
function stronglyConnected(n: number, source: Int32Array, target: Int32Array): Int32Array {
  const { start, item } = listsBy(n, source);
  const part = new Int32Array(n).fill(-1);
  const seen = new Int32Array(n); // 0: not seen, else discovery number
  const low = new Int32Array(n);
  const next = new Int32Array(n);
  const open = new Int32Array(n),
    path = new Int32Array(n);
  let openTop = 0,
    pathTop = 0,
    clock = 0,
    parts = 0;
  for (let root = 0; root < n; root++) {
    if (seen[root]) continue;
    path[pathTop++] = root;
    seen[root] = low[root] = ++clock;
    next[root] = start[root];
    open[openTop++] = root;
    while (pathTop) {
      const v = path[pathTop - 1];
      if (next[v] < start[v + 1]) {
        const w = target[item[next[v]++]];
        if (!seen[w]) {
          seen[w] = low[w] = ++clock;
          next[w] = start[w];
          open[openTop++] = w;
          path[pathTop++] = w;
        } else if (part[w] < 0 && seen[w] < low[v]) low[v] = seen[w];
        continue;
      }
      pathTop--;
      if (pathTop && low[v] < low[path[pathTop - 1]]) low[path[pathTop - 1]] = low[v];
      if (low[v] === seen[v]) {
        let w;
        do {
          w = open[--openTop];
          part[w] = parts;
        } while (w !== v);
        parts++;
      }
    }
  }
  return part;
}
