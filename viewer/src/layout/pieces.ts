import { listsBy } from './adjacency.ts';
import type { NestedGraph } from './types.ts';

/** Between two boxes of a group; from its top border to a box; from a box to its bottom border. */
export const INSIDE = 0,
  ENTERS = 1,
  LEAVES = 2;

/**
 * Edges cut at the borders of groups, one piece per level. Pieces of edges with the same source that
 * go the same way are one piece, so that lines into one group share their way up to its border.
 * The line of an edge is its last piece preceded by previous[…] and so on.
 */
export interface Pieces {
  count: number;
  group: Int32Array; // the level: an open group, or graph.n for the outermost level
  way: Uint8Array;
  leaf: Int32Array; // the leaf that the line comes from
  from: Int32Array; // a box; for ENTERS the number of the port on the top border
  to: Int32Array; // a box; for LEAVES the number of the port on the bottom border
  /** Where `to` is an open group: the number of the port by which the line goes on inside. */
  headPort: Int32Array;
  previous: Int32Array;
  weight: Float32Array;
  lastOfEdge: Int32Array;
  inPorts: Int32Array; // ports of each group
  outPorts: Int32Array;
}

class Growing {
  data = new Int32Array(1024);
  set(i: number, value: number): void {
    if (i >= this.data.length) {
      const next = new Int32Array(2 * this.data.length);
      next.set(this.data);
      this.data = next;
    }
    this.data[i] = value;
  }
}

export function cutEdges(graph: NestedGraph): Pieces {
  const { n, parent, source, target, weight } = graph;
  const m = source.length;
  const above = (v: number) => (parent[v] < 0 ? n : parent[v]);
  const bySource = listsBy(n, source);
  const group = new Growing(),
    way = new Growing(),
    leaf = new Growing(),
    from = new Growing(),
    to = new Growing();
  const headPort = new Growing(),
    previous = new Growing();
  const heavy: number[] = [];
  let count = 0;
  const add = (g: number, w: number, s: number, a: number, b: number, prev: number) => {
    group.set(count, g);
    way.set(count, w);
    leaf.set(count, s);
    from.set(count, a);
    to.set(count, b);
    headPort.set(count, -1);
    previous.set(count, prev);
    heavy.push(0);
    return count++;
  };
  const inPorts = new Int32Array(n + 1),
    outPorts = new Int32Array(n + 1);
  const lastOfEdge = new Int32Array(m);
  // all of these hold for the source whose number stands beside them
  const around = new Int32Array(n + 1).fill(-1),
    via = new Int32Array(n + 1); // groups around it, and its way in
  const intoAt = new Int32Array(n).fill(-1),
    into = new Int32Array(n); // its piece that leads to a box
  const outAt = new Int32Array(n).fill(-1),
    out = new Int32Array(n); // its piece out of a group
  const portAt = new Int32Array(n).fill(-1),
    port = new Int32Array(n); // its port on a group's top border
  for (let s = 0; s < n; s++) {
    if (bySource.start[s] === bySource.start[s + 1]) continue;
    for (let v = s; v !== n; v = above(v)) {
      around[above(v)] = s;
      via[above(v)] = v;
    }
    for (let k = bySource.start[s]; k < bySource.start[s + 1]; k++) {
      const e = bySource.item[k];
      let c = target[e],
        later = -1; // the piece made in the step before, which this one leads to
      for (;;) {
        if (intoAt[c] === s) {
          if (later >= 0) previous.data[later] = into[c];
          else lastOfEdge[e] = into[c];
          break;
        }
        const g = above(c);
        let p: number;
        const inside = around[g] === s;
        if (inside) {
          const start = via[g];
          let prev = -1;
          if (start !== s) {
            // out of every group between the source and this level
            for (let q = above(s); ; q = above(q)) {
              if (outAt[q] !== s) {
                outAt[q] = s;
                out[q] = add(q, LEAVES, s, via[q], outPorts[q]++, prev);
              }
              prev = out[q];
              if (q === start) break;
            }
          }
          p = add(g, INSIDE, s, start, c, prev);
        } else {
          if (portAt[g] !== s) {
            portAt[g] = s;
            port[g] = inPorts[g]++;
          }
          p = add(g, ENTERS, s, port[g], c, -1);
        }
        intoAt[c] = s;
        into[c] = p;
        if (later >= 0) previous.data[later] = p;
        else lastOfEdge[e] = p;
        if (portAt[c] === s) headPort.data[p] = port[c];
        if (inside) break;
        later = p;
        c = g;
      }
      const w = weight ? weight[e] : 1;
      for (let p = lastOfEdge[e]; p >= 0 && heavy[p] < w; p = previous.data[p]) heavy[p] = w;
    }
  }
  return {
    count,
    group: group.data.subarray(0, count),
    way: Uint8Array.from(way.data.subarray(0, count)),
    leaf: leaf.data.subarray(0, count),
    from: from.data.subarray(0, count),
    to: to.data.subarray(0, count),
    headPort: headPort.data.subarray(0, count),
    previous: previous.data.subarray(0, count),
    weight: Float32Array.from(heavy),
    lastOfEdge,
    inPorts,
    outPorts,
  };
}
