// Boxes and bends on their layers, and the links between neighbouring layers.

import type { Arcs } from './arcs.ts';
import type { Ranks } from './rank.ts';

/**
 * The boxes on their layers, with a chain of bends for every line that passes layers. All arcs of a
 * tail share one chain, so their number follows the graph's depth, not the sum of all spans. Items
 * 0 … boxes-1 are boxes, the rest are bends; the chain of tail t is chain[t], chain[t]+1, … on the
 * layers below its box. Arcs longer than the limit are left out: they become lanes.
 */
export interface Layered {
  boxes: number;
  count: number;
  layers: number;
  layer: Int32Array;
  chain: Int32Array;
  chainLength: Int32Array;
  lane: Uint8Array; // by arc
  /** Links between neighbouring layers, sorted by their upper item. */
  links: number;
  upper: Int32Array;
  lower: Int32Array;
  upperAt: Float32Array | null; // from the item's centre, where boxes have ports
  lowerAt: Float32Array | null;
  weight: Float32Array;
  downStart: Int32Array; // links of an upper item are consecutive
  upStart: Int32Array;
  upLink: Int32Array; // links of a lower item
}

/** How many bends and line points are worth their time: plenty for small graphs, few for large ones. */
export function spanLimit(arcs: Arcs, rank: Int32Array, layers: number, bendBudget: number, pointBudget: number): number {
  const { tails, tailBox, start, target } = arcs;
  const bends = new Float64Array(layers + 1),
    points = new Float64Array(layers + 1);
  let spans = new Int32Array(16);
  for (let t = 0; t < tails; t++) {
    const k = start[t + 1] - start[t];
    if (!k) continue;
    const r = rank[tailBox[t]];
    if (k === 1) {
      const d = rank[target[start[t]]] - r;
      bends[d] += d - 1;
      points[d] += d;
      continue;
    }
    if (spans.length < k) spans = new Int32Array(2 * k);
    for (let i = 0; i < k; i++) spans[i] = rank[target[start[t] + i]] - r;
    const sorted = spans.subarray(0, k).sort();
    let last = 1;
    for (let i = 0; i < k; i++) {
      bends[sorted[i]] += sorted[i] - last;
      points[sorted[i]] += sorted[i];
      last = sorted[i];
    }
  }
  let limit = 1,
    b = 0,
    p = 0;
  for (let d = 1; d <= layers; d++) {
    b += bends[d];
    p += points[d];
    if (d > 1 && (b > bendBudget || p > pointBudget)) break;
    limit = d;
  }
  return limit;
}

export function buildLayers(n: number, arcs: Arcs, { rank, layers }: Ranks, limit: number): Layered {
  const chains = makeChains(n, arcs, rank, limit);
  const { count, chain, chainLength } = chains;
  const layer = new Int32Array(count);
  layer.set(rank.subarray(0, n));
  for (let t = 0; t < arcs.tails; t++) {
    const r = rank[arcs.tailBox[t]];
    for (let i = 0; i < chainLength[t]; i++) layer[chain[t] + i] = r + 1 + i;
  }
  return { boxes: n, layers, layer, ...chains, ...makeLinks(arcs, rank, chains) };
}

type Chains = Pick<Layered, 'count' | 'links' | 'chain' | 'chainLength' | 'lane'>;

/** A chain of bends for every tail, as long as its longest arc that is no lane. */
function makeChains(n: number, arcs: Arcs, rank: Int32Array, limit: number): Chains {
  const { tails, tailBox, start, target } = arcs;
  const lane = new Uint8Array(target.length);
  const chain = new Int32Array(tails),
    chainLength = new Int32Array(tails);
  let count = n,
    links = 0;
  for (let t = 0; t < tails; t++) {
    const r = rank[tailBox[t]];
    let longest = 0;
    for (let a = start[t]; a < start[t + 1]; a++) {
      const d = rank[target[a]] - r;
      if (d > limit) lane[a] = 1;
      else {
        links++;
        if (d > longest) longest = d;
      }
    }
    chain[t] = count;
    if (longest > 1) {
      chainLength[t] = longest - 1;
      count += longest - 1;
      links += longest - 1;
    }
  }
  return { count, links, chain, chainLength, lane };
}

type Links = Pick<Layered, 'upper' | 'lower' | 'upperAt' | 'lowerAt' | 'weight' | 'downStart' | 'upStart' | 'upLink'>;

/** The links between neighbouring layers, sorted by their upper item: counted first, then placed. */
function makeLinks(arcs: Arcs, rank: Int32Array, chains: Chains): Links {
  const { count, links } = chains;
  const upper = new Int32Array(links),
    lower = new Int32Array(links);
  const upperAt = arcs.tailAt ? new Float32Array(links) : null;
  const lowerAt = arcs.headAt ? new Float32Array(links) : null;
  const weight = new Float32Array(links);
  const downStart = new Int32Array(count + 1),
    upStart = new Int32Array(count + 1);
  eachLink(arcs, rank, chains, (u, v) => {
    downStart[u + 1]++;
    upStart[v + 1]++;
  });
  for (let v = 0; v < count; v++) {
    downStart[v + 1] += downStart[v];
    upStart[v + 1] += upStart[v];
  }
  const fill = downStart.slice(0, count);
  eachLink(arcs, rank, chains, (u, v, w, ua, va) => {
    const l = fill[u]++;
    upper[l] = u;
    lower[l] = v;
    weight[l] = w;
    if (upperAt) upperAt[l] = ua;
    if (lowerAt) lowerAt[l] = va;
  });
  fill.set(upStart.subarray(0, count));
  const upLink = new Int32Array(links);
  for (let l = 0; l < links; l++) upLink[fill[lower[l]]++] = l;
  return { upper, lower, upperAt, lowerAt, weight, downStart, upStart, upLink };
}

/** Takes a link: its upper and lower item, its weight, and where it meets them. */
type PlaceLink = (u: number, v: number, weight: number, upperAt: number, lowerAt: number) => void;

/** Every link: from the chain of a tail to the target of each of its arcs, and along the chain. */
function eachLink(arcs: Arcs, rank: Int32Array, { chain, chainLength, lane }: Chains, place: PlaceLink): void {
  const { tails, tailBox, tailAt, start, target, headAt, weight } = arcs;
  for (let t = 0; t < tails; t++) {
    const s = tailBox[t],
      r = rank[s],
      base = chain[t],
      length = chainLength[t];
    const at = tailAt ? tailAt[t] : 0;
    let carried = 0;
    for (let a = start[t]; a < start[t + 1]; a++) {
      if (lane[a]) continue;
      const d = rank[target[a]] - r;
      carried += weight[a];
      if (d === 1) place(s, target[a], weight[a], at, headAt ? headAt[a] : 0);
      else place(base + d - 2, target[a], weight[a], 0, headAt ? headAt[a] : 0);
    }
    for (let i = 0; i < length; i++) {
      if (i) place(base + i - 1, base + i, carried, 0, 0);
      else place(s, base, carried, at, 0);
    }
  }
}
