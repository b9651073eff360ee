// Finds the layers that are much too wide, and the parts in them that may be drawn one below the other.

import { listsBy, type Lists } from './adjacency.ts';
import type { Arcs } from './arcs.ts';
import { BACK } from './cycles.ts';
import type { Ranks } from './rank.ts';
import type { FlatGraph, Options } from './types.ts';

/** Layers up to this width are never broken: about a screen. */
const SCREEN = 2000;
/** A drawing that is more times as wide as high is broken, into one that is about so many times as wide as high. */
const TOO_WIDE = 3;
export const ASPECT = 2.2;
/** Layers that have at least this share of a row go together with the wide ones beside them. */
const NEARLY = 0.3;
/** A box with so many lines out (or in) would hold a whole band together; it is placed above (or below) the band instead. */
const HUB = 16;
const ABOVE = 1,
  BELOW = 2;

/** Wide layers that follow each other, and what hangs together inside them. */
export interface Bands {
  count: number;
  /** The part of each box, or -1; parts of one band are next to each other, in the order in which they are to be drawn. */
  part: Int32Array;
  parts: number;
  bandOf: Int32Array; // by part
}

/**
 * The layers that are much too wide. Wide layers that follow each other are one band, as far as no part inside it
 * (boxes that hang together) is wider than a row. The last `ports` boxes are ports. Null when nothing is too wide.
 */
export function findBands(graph: FlatGraph, arcs: Arcs, kind: Uint8Array, ranks: Ranks, ports: number, options: Options): Bands | null {
  const { width, height, n, order } = graph;
  const { rank, layers } = ranks;
  const { gapX, gapY } = options;
  const solid = n - ports;
  const wide = new Float64Array(layers),
    high = new Float64Array(layers).fill(gapY);
  let least = SCREEN; // the narrowest that a row may be
  for (let v = 0; v < solid; v++) {
    wide[rank[v]] += width[v] + gapX;
    high[rank[v]] = Math.max(high[rank[v]], height[v] + gapY);
    least = Math.max(least, width[v] + gapX);
  }
  let widest = 0;
  for (let r = 0; r < layers; r++) widest = Math.max(widest, wide[r]);
  const total = (limit: number) => {
    let sum = 0;
    for (let r = 0; r < layers; r++) sum += Math.max(1, Math.ceil(wide[r] / limit)) * high[r];
    return sum;
  };
  if (widest <= least || widest <= TOO_WIDE * total(Infinity)) return null;
  let limit = widest; // of a row: the narrowest that makes a drawing of the wanted shape
  for (let lo = least, step = 0; step < 24; step++) {
    const middle = (lo + limit) / 2;
    if (middle >= ASPECT * total(middle)) limit = middle;
    else lo = middle;
  }
  if (widest <= 1.2 * limit) return null;

  const boxes = listsBy(layers, rank, solid);
  const finder = new Finder(graph, rank, gapX, arcs, boxes);
  const band = new Int32Array(n).fill(-1);
  let count = 0;
  for (let r = 0; r < layers;) {
    let end = r,
      any = false;
    while (end < layers && wide[end] > NEARLY * limit) any = wide[end++] > limit || any;
    if (end === r) end++;
    while (any && r < end) {
      const to = finder.reach(r, end, limit);
      for (let i = boxes.start[r]; i < boxes.start[to]; i++) if (!finder.hub[boxes.item[i]]) band[boxes.item[i]] = count;
      count++;
      r = to;
    }
    r = end;
  }
  for (let e = 0; e < kind.length; e++) {
    const s = graph.source[e],
      t = graph.target[e];
    if (kind[e] === BACK && band[s] >= 0 && band[s] === band[t]) finder.join(s, t);
  }

  // parts by band, then by their earliest box
  const first = new Int32Array(n).fill(-1);
  const roots: number[] = [];
  for (let v = 0; v < solid; v++) {
    if (band[v] < 0) continue;
    const p = finder.find(v),
      when = order ? order[v] : v;
    if (first[p] < 0) roots.push(p);
    if (first[p] < 0 || when < first[p]) first[p] = when;
  }
  const sorted = Int32Array.from(roots).sort((a, b) => band[a] - band[b] || first[a] - first[b] || a - b);
  const number = new Int32Array(n);
  for (let i = 0; i < sorted.length; i++) number[sorted[i]] = i;
  const part = new Int32Array(n).fill(-1);
  for (let v = 0; v < solid; v++) if (band[v] >= 0) part[v] = number[finder.find(v)];
  return { count, part, parts: sorted.length, bandOf: sorted.map((p) => band[p]) };
}

class Finder {
  readonly hub: Uint8Array; // ABOVE or BELOW its band
  private readonly root: Int32Array;
  private readonly across: Float64Array; // width of a part, by its root
  private readonly here: Float64Array; // on the layer being added
  private readonly into: Lists; // arcs by target
  private readonly tailOf: Int32Array; // by arc
  private readonly outs: Int32Array;
  constructor(
    private readonly graph: FlatGraph,
    private readonly rank: Int32Array,
    private readonly gapX: number,
    private readonly arcs: Arcs,
    private readonly boxes: Lists,
  ) {
    const { n } = graph;
    this.root = new Int32Array(n);
    this.across = new Float64Array(n);
    this.here = new Float64Array(n);
    this.into = listsBy(n, arcs.target);
    this.tailOf = new Int32Array(arcs.target.length);
    this.outs = new Int32Array(n);
    this.hub = new Uint8Array(n);
    for (let t = 0; t < arcs.tails; t++) {
      this.tailOf.fill(t, arcs.start[t], arcs.start[t + 1]);
      this.outs[arcs.tailBox[t]] += arcs.start[t + 1] - arcs.start[t];
    }
  }

  find(v: number): number {
    const { root } = this;
    while (root[v] !== v) v = root[v] = root[root[v]];
    return v;
  }

  join(u: number, v: number): void {
    const p = this.find(u),
      q = this.find(v);
    if (p === q) return;
    const low = Math.min(p, q),
      high = Math.max(p, q);
    this.root[high] = low;
    this.across[low] += this.across[high];
  }

  /** Adds layer r to the band that begins at `from`; the width of the widest part that it touches. */
  private add(from: number, r: number): number {
    const { rank, root, across, here, arcs, into, tailOf, hub } = this;
    const { start, item } = this.boxes;
    const many = Math.max(HUB, (start[r + 1] - start[r]) / 16);
    for (let i = start[r]; i < start[r + 1]; i++) {
      const v = item[i];
      root[v] = v;
      across[v] = 0;
      hub[v] = 0;
      let inside = 0;
      for (let k = into.start[v]; k < into.start[v + 1]; k++) {
        const u = arcs.tailBox[tailOf[into.item[k]]];
        if (rank[u] < from) continue; // it comes from above the band
        if (hub[u] === BELOW) return Infinity;
        inside++;
      }
      if (inside >= many) hub[v] = BELOW;
      else if (!inside && this.outs[v] >= many) hub[v] = ABOVE;
      if (!inside || hub[v]) continue;
      for (let k = into.start[v]; k < into.start[v + 1]; k++) {
        const u = arcs.tailBox[tailOf[into.item[k]]];
        if (rank[u] >= from && !hub[u]) this.join(u, v);
      }
    }
    for (let i = start[r]; i < start[r + 1]; i++) here[this.find(item[i])] = 0;
    let most = 0;
    for (let i = start[r]; i < start[r + 1]; i++) {
      const p = this.find(item[i]);
      here[p] += this.graph.width[item[i]] + this.gapX;
      if (here[p] > across[p]) across[p] = here[p];
      if (across[p] > most) most = across[p];
    }
    return most;
  }

  /** The layer after the last one that can be in one band with `from`, so that no part is wider than a row. */
  reach(from: number, end: number, limit: number): number {
    this.add(from, from);
    let to = from + 1;
    while (to < end && this.add(from, to) <= limit) to++;
    if (to < end) for (let r = from; r < to; r++) this.add(from, r); // without the layer that was too much
    return to;
  }
}
