// The edges of a nested graph, cut at the borders of groups.

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

/** A column that grows as rows are added. */
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
  const { n, source } = graph;
  const bySource = listsBy(n, source);
  const cutter = new Cutter(graph);
  for (let s = 0; s < n; s++) {
    if (bySource.start[s] === bySource.start[s + 1]) continue;
    cutter.begin(s);
    for (let k = bySource.start[s]; k < bySource.start[s + 1]; k++) cutter.cut(bySource.item[k]);
  }
  return cutter.pieces();
}

/** Cuts the edges of one source after the other. */
class Cutter {
  private count = 0;
  private readonly group = new Growing();
  private readonly way = new Growing();
  private readonly leaf = new Growing();
  private readonly from = new Growing();
  private readonly to = new Growing();
  private readonly headPort = new Growing();
  private readonly previous = new Growing();
  private readonly weight: number[] = [];
  private readonly lastOfEdge: Int32Array;
  private readonly inPorts: Int32Array;
  private readonly outPorts: Int32Array;

  /** The current source. What is below is its own where the number next to it is its number. */
  private source = -1;
  /** Groups around it, and its way in. */
  private readonly aroundOf: Int32Array;
  private readonly via: Int32Array;
  /** Its piece that leads to a box. */
  private readonly intoOf: Int32Array;
  private readonly into: Int32Array;
  /** Its piece out of a group. */
  private readonly outOf: Int32Array;
  private readonly out: Int32Array;
  /** Its port on a group's top border. */
  private readonly portOf: Int32Array;
  private readonly port: Int32Array;

  constructor(private readonly graph: NestedGraph) {
    const { n, source } = graph;
    this.lastOfEdge = new Int32Array(source.length);
    this.inPorts = new Int32Array(n + 1);
    this.outPorts = new Int32Array(n + 1);
    this.aroundOf = new Int32Array(n + 1).fill(-1);
    this.via = new Int32Array(n + 1);
    this.intoOf = new Int32Array(n).fill(-1);
    this.into = new Int32Array(n);
    this.outOf = new Int32Array(n).fill(-1);
    this.out = new Int32Array(n);
    this.portOf = new Int32Array(n).fill(-1);
    this.port = new Int32Array(n);
  }

  begin(source: number): void {
    this.source = source;
    for (let v = source; v !== this.graph.n; v = this.above(v)) {
      this.aroundOf[this.above(v)] = source;
      this.via[this.above(v)] = v;
    }
  }

  /** From the target outwards, until the source is inside too or a piece is there already that leads on from here. */
  cut(e: number): void {
    const { source, previous, lastOfEdge } = this;
    let later = -1; // the piece made in the step before, which this one leads to
    for (let box = this.graph.target[e]; ; box = this.above(box)) {
      const known = this.intoOf[box] === source;
      const piece = known ? this.into[box] : this.addInto(box);
      if (later >= 0) previous.data[later] = piece;
      else lastOfEdge[e] = piece;
      if (known || this.aroundOf[this.above(box)] === source) break;
      later = piece;
    }
    this.weigh(e);
  }

  pieces(): Pieces {
    const { count, lastOfEdge, inPorts, outPorts } = this;
    const column = ({ data }: Growing) => data.subarray(0, count);
    return {
      count,
      group: column(this.group),
      way: Uint8Array.from(column(this.way)),
      leaf: column(this.leaf),
      from: column(this.from),
      to: column(this.to),
      headPort: column(this.headPort),
      previous: column(this.previous),
      weight: Float32Array.from(this.weight),
      lastOfEdge,
      inPorts,
      outPorts,
    };
  }

  private above(v: number): number {
    const { n, parent } = this.graph;
    return parent[v] < 0 ? n : parent[v];
  }

  /** The piece that leads to a box: from a box beside it, or from the border of the group around it. */
  private addInto(box: number): number {
    const { source, via } = this;
    const group = this.above(box);
    const piece =
      this.aroundOf[group] === source
        ? this.add(group, INSIDE, via[group], box, this.leaveUpTo(via[group]))
        : this.add(group, ENTERS, this.portInto(group), box, -1);
    this.intoOf[box] = source;
    this.into[box] = piece;
    if (this.portOf[box] === source) this.headPort.data[piece] = this.port[box];
    return piece;
  }

  private portInto(group: number): number {
    if (this.portOf[group] !== this.source) {
      this.portOf[group] = this.source;
      this.port[group] = this.inPorts[group]++;
    }
    return this.port[group];
  }

  /** The last of the pieces that lead out of every group between the source and the level of `box`; -1 where there is none. */
  private leaveUpTo(box: number): number {
    const { source, outOf, out, via, outPorts } = this;
    if (box === source) return -1;
    let previous = -1;
    for (let q = this.above(source); ; q = this.above(q)) {
      if (outOf[q] !== source) {
        outOf[q] = source;
        out[q] = this.add(q, LEAVES, via[q], outPorts[q]++, previous);
      }
      previous = out[q];
      if (q === box) return previous;
    }
  }

  private add(group: number, way: number, from: number, to: number, previous: number): number {
    const { count } = this;
    this.group.set(count, group);
    this.way.set(count, way);
    this.leaf.set(count, this.source);
    this.from.set(count, from);
    this.to.set(count, to);
    this.headPort.set(count, -1);
    this.previous.set(count, previous);
    this.weight.push(0);
    return this.count++;
  }

  /** A piece weighs as much as the heaviest edge that it is part of. */
  private weigh(e: number): void {
    const { weight, previous } = this;
    const w = this.graph.weight ? this.graph.weight[e] : 1;
    for (let p = this.lastOfEdge[e]; p >= 0 && weight[p] < w; p = previous.data[p]) weight[p] = w;
  }
}
