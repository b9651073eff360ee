// Which neighbours share a box where a column of a training step holds a few boxes more than a window shows: those of which
// one only serves the other, the ones that say the least first. What has several makers or readers keeps its place.

export interface Around {
  source: Int32Array; // edges between items, by place
  target: Int32Array;
}

/** What counts against two clusters becoming one; `isChain`: the one reads nothing else, and nothing else reads the other. */
export type Cost = (a: readonly number[], b: readonly number[], isChain: boolean) => number;

/**
 * The cluster of each item, or -1 of those that stay alone; those that are clusters already keep their numbers. A cluster
 * takes in what only it reads, or what reads nothing but it: so none of them can be in a loop that was not there.
 */
export function mergeNeighbours(n: number, { source, target }: Around, clusters: Int32Array, most: number, cost: Cost): Int32Array {
  const home = Int32Array.from({ length: n }, (_, i) => i); // the first item of the cluster
  const members = new Map<number, number[]>();
  const firsts = new Map<number, number>();
  for (let i = 0; i < n; i++) {
    if (clusters[i]! >= 0) home[i] = firsts.get(clusters[i]!) ?? (firsts.set(clusters[i]!, i), i);
    const list = members.get(home[i]!);
    if (list) list.push(i);
    else members.set(home[i]!, [i]);
  }
  while (members.size > most) {
    const pair = cheapest(home, members, source, target, cost);
    if (!pair) break;
    const [into, from] = pair;
    for (const i of members.get(from)!) home[i] = into;
    members.set(
      into,
      [...members.get(into)!, ...members.get(from)!].sort((a, b) => a - b),
    );
    members.delete(from);
  }
  const found = new Int32Array(n).fill(-1);
  let next = clusters.reduce((high, c) => Math.max(high, c), -1) + 1;
  for (const list of members.values()) {
    const old = list.map((i) => clusters[i]!).find((c) => c >= 0);
    if (list.length < 2 && old === undefined) continue;
    const number = old ?? next++;
    for (const i of list) found[i] = number;
  }
  return found;
}

function cheapest(
  home: Int32Array,
  members: Map<number, number[]>,
  source: Int32Array,
  target: Int32Array,
  cost: Cost,
): [into: number, from: number] | null {
  const [readers, makers] = [new Map<number, Set<number>>(), new Map<number, Set<number>>()];
  const add = (to: Map<number, Set<number>>, key: number, one: number) => to.set(key, (to.get(key) ?? new Set()).add(one));
  source.forEach((s, e) => {
    const [a, b] = [home[s]!, home[target[e]!]!];
    if (a === b) return;
    add(readers, a, b);
    add(makers, b, a);
  });
  let best: [number, number] | null = null;
  let least = Infinity;
  for (const [a, read] of readers) {
    for (const b of read) {
      const [only, alone] = [read.size === 1, makers.get(b)!.size === 1];
      if (!only && !alone) continue;
      const c = cost(members.get(a)!, members.get(b)!, only && alone);
      if (c < least) [least, best] = [c, [a, b]];
    }
  }
  return best;
}
