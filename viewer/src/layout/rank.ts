// The layer of each box: longest paths first, then boxes sink towards their consumers where that shortens lines.

import type { Arcs } from './arcs.ts';
import { listsBy, type Lists } from './adjacency.ts';

/** The layer of each box: every arc goes at least one layer down, and lines are short. */
export interface Ranks {
  rank: Int32Array;
  layers: number;
}

/** In-ports stay alone on the first layer and out-ports alone on the last. They are the last boxes. */
export function assignRanks(n: number, arcs: Arcs, inPorts = 0, outPorts = 0): Ranks {
  const ranking = new Ranking(n, arcs, inPorts, outPorts);
  ranking.placeByLongestPath();
  ranking.findLight();
  for (let round = 0; round < (n > 20000 ? 2 : 4); round++) {
    ranking.measureReach();
    const alone = ranking.sinkAlone();
    ranking.measureReach();
    if (!ranking.sinkTogether() && !alone) break;
  }
  return { rank: ranking.rank, layers: ranking.layers };
}

class Ranking {
  readonly rank: Int32Array;
  layers = 0;
  /** The deepest layer without out-ports. */
  private deepest = 0;
  private readonly inPorts: number;
  private readonly outPorts: number;
  private readonly firstIn: number;
  private readonly firstOut: number;
  /** Tails of a box, as a list: a box without ports is its own only tail. */
  private readonly firstTail: Int32Array;
  private readonly nextTail: Int32Array;
  /** Tails that reach each box. */
  private readonly inStart: Int32Array;
  private readonly inTail: Int32Array;
  /** Boxes from the sources down, the first `placed` of it. */
  private readonly queue: Int32Array;
  private placed = 0;
  /** A light box has nothing below it but sources of its own: it can sink with them for free. */
  private readonly light: Uint8Array;
  /** The deepest layer that a tail's shared line must reach. */
  private readonly reach: Int32Array;
  /** Tight parts, whose arcs cannot get shorter: the root of each box, and of each root how far it can sink and what that gains. */
  private readonly root: Int32Array;
  private readonly room: Int32Array;
  private readonly gains: Float32Array;

  constructor(
    private readonly n: number,
    private readonly arcs: Arcs,
    inPorts: number,
    outPorts: number,
  ) {
    this.inPorts = inPorts;
    this.outPorts = outPorts;
    this.firstIn = n - inPorts - outPorts;
    this.firstOut = n - outPorts;
    this.rank = new Int32Array(n);
    this.queue = new Int32Array(n);
    this.light = new Uint8Array(n);
    this.reach = new Int32Array(arcs.tails);
    this.root = new Int32Array(n);
    this.room = new Int32Array(n);
    this.gains = new Float32Array(n);
    this.firstTail = new Int32Array(n).fill(-1);
    this.nextTail = new Int32Array(arcs.tails).fill(-1);
    this.linkTails();
    const reaching = tailsInto(n, arcs);
    this.inStart = reaching.start;
    this.inTail = reaching.item;
  }

  private linkTails(): void {
    const { firstTail, nextTail } = this;
    const { tails, tailBox, start } = this.arcs;
    for (let t = tails - 1; t >= 0; t--) {
      if (start[t] === start[t + 1]) continue;
      nextTail[t] = firstTail[tailBox[t]];
      firstTail[tailBox[t]] = t;
    }
  }

  /** Every box as high as it can be: the longest path from the sources, in topological order. */
  placeByLongestPath(): void {
    const { n, rank, queue, firstTail, nextTail, firstIn, firstOut } = this;
    const { start, target } = this.arcs;
    const waits = new Int32Array(n); // predecessors not yet placed
    for (let a = 0; a < target.length; a++) waits[target[a]]++;
    let end = 0,
      deepest = 0;
    const floor = this.inPorts ? 1 : 0;
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
    if (this.outPorts) rank.fill(deepest + 1, firstOut);
    this.placed = end;
    this.deepest = deepest;
    this.layers = n ? deepest + 1 + (this.outPorts ? 1 : 0) : 0;
  }

  findLight(): void {
    const { light, queue, firstIn, firstTail, nextTail, inStart, inTail } = this;
    const { tailBox, start } = this.arcs;
    for (let head = 0; head < this.placed; head++) {
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
  }

  measureReach(): void {
    const { rank, reach } = this;
    const { tails, start, target } = this.arcs;
    for (let t = 0; t < tails; t++) {
      let low = 0;
      for (let a = start[t]; a < start[t + 1]; a++) if (rank[target[a]] > low) low = rank[target[a]];
      reach[t] = low;
    }
  }

  /** Lets single boxes sink where the lines below get shorter by more than the (shared) lines above get longer. */
  sinkAlone(): boolean {
    const { rank, reach, queue, light, firstIn, firstTail, nextTail, inStart, inTail } = this;
    const { start, target } = this.arcs;
    let moved = false;
    for (let k = this.placed - 1; k >= 0; k--) {
      const v = queue[k];
      if (v >= firstIn || firstTail[v] < 0) continue;
      let low = this.layers,
        gain = 0;
      for (let t = firstTail[v]; t >= 0; t = nextTail[t]) {
        gain++;
        for (let a = start[t]; a < start[t + 1]; a++) if (rank[target[a]] < low) low = rank[target[a]];
      }
      low--;
      if (low <= rank[v] || (!light[v] && !this.isWorth(v, low, gain))) continue;
      rank[v] = low;
      moved = true;
      for (let i = inStart[v]; i < inStart[v + 1]; i++) if (low > reach[inTail[i]]) reach[inTail[i]] = low;
    }
    return moved;
  }

  /** Whether box v should sink to layer `low`, where `gain` lines below get shorter by a layer for each that it sinks. */
  private isWorth(v: number, low: number, gain: number): boolean {
    const { rank, reach, light, inStart, inTail } = this;
    const { tailBox, start } = this.arcs;
    const slack = low - rank[v];
    let cost = 0,
      shared = true; // a line with several targets may as well be the longer one: others follow
    for (let i = inStart[v]; i < inStart[v + 1]; i++) {
      const t = inTail[i];
      if (low <= reach[t]) continue;
      const single = start[t + 1] - start[t] === 1;
      if (single && light[tailBox[t]]) continue; // it will follow
      cost += (low - reach[t]) / slack;
      if (single) shared = false;
    }
    return shared ? gain >= cost : gain > cost;
  }

  /** Parts whose arcs cannot get shorter sink as one; all may move at once, because all move down. */
  sinkTogether(): boolean {
    const { rank, room, gains, firstIn } = this;
    this.joinTight();
    this.measureRoom();
    this.measureGains();
    let moved = false;
    for (let v = 0; v < firstIn; v++) {
      const p = this.find(v);
      if (p >= firstIn || room[p] <= 0 || gains[p] <= 0) continue;
      rank[v] += room[p];
      moved = true;
    }
    return moved;
  }

  private find(v: number): number {
    const { root } = this;
    while (root[v] !== v) v = root[v] = root[root[v]];
    return v;
  }

  private joinTight(): void {
    const { n, rank, root } = this;
    const { tails, tailBox, start, target } = this.arcs;
    for (let v = 0; v < n; v++) root[v] = v;
    for (let t = 0; t < tails; t++) {
      const u = tailBox[t];
      for (let a = start[t]; a < start[t + 1]; a++) {
        const w = target[a];
        if (rank[w] - rank[u] !== 1) continue;
        const p = this.find(u),
          q = this.find(w);
        if (p < q)
          root[p] = q; // the largest is the root, so that ports (last) hold what touches them
        else root[q] = p;
      }
    }
  }

  /** How far each tight part can sink: to the last layer, or until an arc to another part is tight. */
  private measureRoom(): void {
    const { rank, room, deepest, firstIn } = this;
    const { tails, tailBox, start, target } = this.arcs;
    room.fill(this.layers);
    for (let v = 0; v < firstIn; v++) {
      const p = this.find(v);
      if (rank[v] + room[p] > deepest) room[p] = deepest - rank[v];
    }
    for (let t = 0; t < tails; t++) {
      if (start[t] === start[t + 1]) continue;
      const p = this.find(tailBox[t]);
      for (let a = start[t]; a < start[t + 1]; a++) {
        const w = target[a];
        if (this.find(w) !== p) room[p] = Math.min(room[p], rank[w] - rank[tailBox[t]] - 1);
      }
    }
  }

  /** By how many layers lines get shorter in all if a part sinks as far as it can. */
  private measureGains(): void {
    const { rank, reach, room, gains } = this;
    const { tails, tailBox, start, target } = this.arcs;
    gains.fill(0);
    for (let t = 0; t < tails; t++) {
      if (start[t] === start[t + 1]) continue;
      const p = this.find(tailBox[t]);
      let ownReach = 0,
        otherReach = 0;
      for (let a = start[t]; a < start[t + 1]; a++) {
        const r = rank[target[a]];
        if (this.find(target[a]) === p) ownReach = Math.max(ownReach, r);
        else otherReach = Math.max(otherReach, r);
      }
      if (otherReach > ownReach) gains[p] += Math.min(room[p], otherReach - ownReach);
      for (let a = start[t]; a < start[t + 1]; a++) {
        const q = this.find(target[a]);
        if (q !== p) gains[q] -= Math.max(0, Math.min(room[q], rank[target[a]] + room[q] - reach[t]));
      }
    }
  }
}

/** The tails that reach each box, in order. */
function tailsInto(n: number, { tails, start, target }: Arcs): Lists {
  const into = listsBy(n, target);
  const tailOf = new Int32Array(target.length);
  for (let t = 0; t < tails; t++) tailOf.fill(t, start[t], start[t + 1]);
  for (let k = 0; k < into.item.length; k++) into.item[k] = tailOf[into.item[k]];
  return into;
}
