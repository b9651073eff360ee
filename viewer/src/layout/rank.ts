import type { Arcs } from './arcs.ts';

/** The layer of each box: every arc goes at least one layer down, and lines are short. */
export interface Ranks {
  rank: Int32Array;
  layers: number;
}

/** In-ports stay alone on the first layer and out-ports alone on the last. They are the last boxes. */
export function assignRanks(n: number, arcs: Arcs, inPorts = 0, outPorts = 0): Ranks {
  const { tails, tailBox, start, target } = arcs;
  const firstIn = n - inPorts - outPorts,
    firstOut = n - outPorts;
  const rank = new Int32Array(n);
  const waits = new Int32Array(n); // predecessors not yet placed
  const m = target.length;
  for (let a = 0; a < m; a++) waits[target[a]]++;
  // tails of a box, as a list: a box without ports is its own only tail
  const nextTail = new Int32Array(tails).fill(-1);
  const firstTail = new Int32Array(n).fill(-1);
  for (let t = tails - 1; t >= 0; t--) {
    if (start[t] === start[t + 1]) continue;
    nextTail[t] = firstTail[tailBox[t]];
    firstTail[tailBox[t]] = t;
  }

  // longest path from the sources, in topological order
  const queue = new Int32Array(n);
  let end = 0,
    deepest = 0;
  const floor = inPorts ? 1 : 0;
  for (let v = 0; v < n; v++) {
    if (v < firstIn || v >= firstOut) rank[v] = floor;
    if (!waits[v]) queue[end++] = v;
  }
  for (let head = 0; head < end; head++) {
    const v = queue[head];
    const below = rank[v] + 1;
    if (v < firstOut && rank[v] > deepest) deepest = rank[v];
    for (let t = firstTail[v]; t >= 0; t = nextTail[t]) {
      for (let a = start[t]; a < start[t + 1]; a++) {
        const w = target[a];
        if (rank[w] < below) rank[w] = below;
        if (!--waits[w]) queue[end++] = w;
      }
    }
  }
  if (outPorts) {
    for (let v = firstOut; v < n; v++) rank[v] = deepest + 1;
  }
  const layers = n ? deepest + 1 + (outPorts ? 1 : 0) : 0;

  // tails that reach each box
  const inStart = new Int32Array(n + 1);
  for (let a = 0; a < m; a++) inStart[target[a] + 1]++;
  for (let v = 0; v < n; v++) inStart[v + 1] += inStart[v];
  const inTail = new Int32Array(m);
  const fill = inStart.slice(0, n);
  for (let t = 0; t < tails; t++) for (let a = start[t]; a < start[t + 1]; a++) inTail[fill[target[a]]++] = t;

  // a light box stands on nothing but sources of its own: it can sink with them for free
  const light = new Uint8Array(n);
  for (let head = 0; head < end; head++) {
    const v = queue[head];
    if (v >= firstIn) continue;
    let yes = 1;
    for (let k = inStart[v]; yes && k < inStart[v + 1]; k++) {
      const t = inTail[k],
        u = tailBox[t];
      if (!light[u] || start[t + 1] - start[t] !== 1 || nextTail[firstTail[u]] >= 0) yes = 0;
    }
    light[v] = yes;
  }

  // pull in: let boxes sink towards their consumers where the lines below get shorter
  // by more than the (shared) lines above get longer; alone, then whole tight parts at once
  const reach = new Int32Array(tails); // deepest layer that a tail's shared line must reach
  const measureReach = () => {
    for (let t = 0; t < tails; t++) {
      let low = 0;
      for (let a = start[t]; a < start[t + 1]; a++) if (rank[target[a]] > low) low = rank[target[a]];
      reach[t] = low;
    }
  };
  const sinkAlone = (): boolean => {
    let moved = false;
    for (let k = end - 1; k >= 0; k--) {
      const v = queue[k];
      if (v >= firstIn || firstTail[v] < 0) continue;
      let low = layers,
        gain = 0;
      for (let t = firstTail[v]; t >= 0; t = nextTail[t]) {
        gain++;
        for (let a = start[t]; a < start[t + 1]; a++) if (rank[target[a]] < low) low = rank[target[a]];
      }
      low--;
      const slack = low - rank[v];
      if (slack <= 0) continue;
      let cost = 0,
        shared = true; // a line with several targets may as well be the longer one: others follow
      if (!light[v]) {
        for (let i = inStart[v]; i < inStart[v + 1]; i++) {
          const t = inTail[i],
            u = tailBox[t];
          if (low <= reach[t]) continue;
          if (light[u] && start[t + 1] - start[t] === 1) continue; // it will follow
          cost += (low - reach[t]) / slack;
          if (start[t + 1] - start[t] === 1) shared = false;
        }
        if (shared ? gain < cost : gain <= cost) continue;
      }
      rank[v] = low;
      moved = true;
      for (let i = inStart[v]; i < inStart[v + 1]; i++) if (low > reach[inTail[i]]) reach[inTail[i]] = low;
    }
    return moved;
  };

  // parts whose arcs cannot get shorter move as one; all may move at once, because all move down
  const root = new Int32Array(n),
    room = new Int32Array(n),
    gains = new Float32Array(n);
  const find = (v: number) => {
    while (root[v] !== v) v = root[v] = root[root[v]];
    return v;
  };
  const sinkTogether = (): boolean => {
    for (let v = 0; v < n; v++) {
      root[v] = v;
      room[v] = layers;
      gains[v] = 0;
    }
    for (let t = 0; t < tails; t++) {
      const u = tailBox[t];
      for (let a = start[t]; a < start[t + 1]; a++) {
        const w = target[a];
        if (rank[w] - rank[u] !== 1) continue;
        const p = find(u),
          q = find(w);
        if (p < q)
          root[p] = q; // the largest is the root, so that ports (last) hold what touches them
        else root[q] = p;
      }
    }
    for (let v = 0; v < firstIn; v++) {
      const p = find(v);
      if (rank[v] + room[p] > deepest) room[p] = deepest - rank[v];
    }
    for (let t = 0; t < tails; t++) {
      if (start[t] === start[t + 1]) continue;
      const p = find(tailBox[t]);
      for (let a = start[t]; a < start[t + 1]; a++) {
        const w = target[a];
        if (find(w) !== p) room[p] = Math.min(room[p], rank[w] - rank[tailBox[t]] - 1);
      }
    }
    for (let t = 0; t < tails; t++) {
      if (start[t] === start[t + 1]) continue;
      const p = find(tailBox[t]);
      let ownReach = 0,
        otherReach = 0;
      for (let a = start[t]; a < start[t + 1]; a++) {
        const r = rank[target[a]];
        if (find(target[a]) === p) ownReach = Math.max(ownReach, r);
        else otherReach = Math.max(otherReach, r);
      }
      if (otherReach > ownReach) gains[p] += Math.min(room[p], otherReach - ownReach);
      for (let a = start[t]; a < start[t + 1]; a++) {
        const q = find(target[a]);
        if (q !== p) gains[q] -= Math.max(0, Math.min(room[q], rank[target[a]] + room[q] - reach[t]));
      }
    }
    let moved = false;
    for (let v = 0; v < firstIn; v++) {
      const p = find(v);
      if (p >= firstIn || room[p] <= 0 || gains[p] <= 0) continue;
      rank[v] += room[p];
      moved = true;
    }
    return moved;
  };
  for (let round = 0; round < (n > 20000 ? 2 : 4); round++) {
    measureReach();
    const alone = sinkAlone();
    measureReach();
    if (!sinkTogether() && !alone) break;
  }
  return { rank, layers };
}
