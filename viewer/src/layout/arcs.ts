// Edges as the layers see them: without cycles, without parallels, and sorted by where they leave their box.

import { listsBy } from './adjacency.ts';
import { FORWARD } from './cycles.ts';
import type { FlatGraph, PortedGraph } from './types.ts';

/**
 * The forward edges as the layers see them: parallel edges are one arc, and the arcs of one tail
 * (one place where lines leave a box) are kept together, because they will share their line.
 */
export interface Arcs {
  /** Places where lines leave: the box, and how far from its centre. */
  tails: number;
  tailBox: Int32Array;
  tailAt: Float32Array | null;
  /** The arcs of tail t are start[t] … start[t+1] - 1. */
  start: Int32Array;
  target: Int32Array;
  /** Where an arc enters its target, from the target's centre. */
  headAt: Float32Array | null;
  weight: Float32Array;
  /** The arc of each edge; -1 for edges that do not go forward. */
  ofEdge: Int32Array;
  tailOfEdge: Int32Array;
}

export function buildArcs(graph: FlatGraph | PortedGraph, kind: Uint8Array): Arcs {
  const { n, source, target, weight, width } = graph;
  const m = source.length;
  const ported = 'tail' in graph;
  const tailOf = ported ? graph.tail : source;
  let tails = n;
  if (ported) {
    tails = 0;
    for (let e = 0; e < m; e++) if (tailOf[e] >= tails) tails = tailOf[e] + 1;
  }
  const byTail = listsBy(tails, tailOf);
  const tailBox = new Int32Array(tails);
  const tailAt = ported ? new Float32Array(tails) : null;
  if (!ported) for (let v = 0; v < n; v++) tailBox[v] = v;
  const start = new Int32Array(tails + 1);
  const arcTarget = new Int32Array(m);
  const headAt = ported ? new Float32Array(m) : null;
  const arcWeight = new Float32Array(m);
  const ofEdge = new Int32Array(m).fill(-1);
  const arcInto = new Int32Array(n).fill(-1); // the arc of this tail into a box, when at least start[tail]
  let arcs = 0;
  for (let t = 0; t < tails; t++) {
    start[t] = arcs;
    for (let k = byTail.start[t]; k < byTail.start[t + 1]; k++) {
      const e = byTail.item[k];
      if (ported) {
        tailBox[t] = source[e];
        tailAt![t] = graph.tailAt[e] - width[source[e]] / 2;
      }
      if (kind[e] !== FORWARD) continue;
      const v = target[e];
      let a = arcInto[v];
      if (a < start[t]) {
        a = arcInto[v] = arcs++;
        arcTarget[a] = v;
        if (ported) headAt![a] = graph.headAt[e] - width[v] / 2;
      }
      arcWeight[a] += weight ? weight[e] : 1;
      ofEdge[e] = a;
    }
  }
  start[tails] = arcs;
  return {
    tails,
    tailBox,
    tailAt,
    start,
    target: arcTarget.subarray(0, arcs),
    headAt: headAt && headAt.subarray(0, arcs),
    weight: arcWeight.subarray(0, arcs),
    ofEdge,
    tailOfEdge: tailOf,
  };
}

/**
 * Gives the lines of a fan (several targets on one layer, more than one layer away) a way each of
 * their own. They are longer together than one shared line, but can run beside what they lead to,
 * where a shared line would have to cross it at the end. Null when there is no such fan.
 */
export function splitFans(arcs: Arcs, rank: Int32Array, longest: number): Arcs | null {
  const { tails, tailBox, tailAt, start, target, headAt, weight } = arcs;
  const m = target.length;
  const own = new Uint8Array(m); // arcs that get a line of their own
  let more = 0;
  const many = new Map<number, number>();
  for (let t = 0; t < tails; t++) {
    if (start[t + 1] - start[t] < 2) continue;
    const r = rank[tailBox[t]];
    many.clear();
    for (let a = start[t]; a < start[t + 1]; a++) {
      const d = rank[target[a]] - r;
      many.set(d, (many.get(d) ?? 0) + 1);
    }
    for (let a = start[t]; a < start[t + 1]; a++) {
      const d = rank[target[a]] - r;
      if (d > 1 && d <= longest && many.get(d)! > 1) {
        own[a] = 1;
        more++;
      }
    }
  }
  if (!more) return null;
  const out: Arcs = {
    tails: tails + more,
    tailBox: new Int32Array(tails + more),
    tailAt: tailAt && new Float32Array(tails + more),
    start: new Int32Array(tails + more + 1),
    target: new Int32Array(m),
    headAt: headAt && new Float32Array(m),
    weight: new Float32Array(m),
    ofEdge: arcs.ofEdge.slice(),
    tailOfEdge: arcs.tailOfEdge.slice(),
  };
  const moved = new Int32Array(m),
    movedTail = new Int32Array(m);
  let k = 0;
  const put = (a: number, tail: number) => {
    moved[a] = k;
    movedTail[a] = tail;
    out.target[k] = target[a];
    out.weight[k] = weight[a];
    if (headAt) out.headAt![k] = headAt[a];
    k++;
  };
  for (let t = 0; t < tails; t++) {
    out.start[t] = k;
    out.tailBox[t] = tailBox[t];
    if (tailAt) out.tailAt![t] = tailAt[t];
    for (let a = start[t]; a < start[t + 1]; a++) if (!own[a]) put(a, t);
  }
  for (let t = 0, next = tails; t < tails; t++) {
    for (let a = start[t]; a < start[t + 1]; a++) {
      if (!own[a]) continue;
      out.start[next] = k;
      out.tailBox[next] = tailBox[t];
      if (tailAt) out.tailAt![next] = tailAt[t];
      put(a, next++);
    }
  }
  out.start[tails + more] = k;
  for (let e = 0; e < out.ofEdge.length; e++) {
    const a = arcs.ofEdge[e];
    if (a < 0) continue;
    out.ofEdge[e] = moved[a];
    out.tailOfEdge[e] = movedTail[a];
  }
  return out;
}
