// The lines of a drawing, edge by edge: loops of a box to itself, lines that run in lanes, and lines down through the layers.

import { bundle, linePitch } from './gaps.ts';
import { BACK, SELF } from './cycles.ts';
import type { Columns, Stack } from './frame.ts';
import type { LaneAt, Lanes } from './lanes.ts';
import type { Levels } from './levels.ts';
import { Pen } from './pen.ts';
import type { Routing } from './routing.ts';
import type { Tracks } from './tracks.ts';
import { LANE, LOOP, NORMAL, WRAP, type EdgeLines } from './types.ts';
import { wrapKey, type Wraps } from './wraps.ts';

/** How far a loop of a box to itself extends. */
export const LOOP_ROOM = 12;
/** Lines to a column farther on than this do not lead through those between. */
const FAR = 8;

/** All that is placed before lines are drawn. */
export interface Places {
  lanes: Lanes;
  laneAt: LaneAt;
  tracks: Tracks;
  levels: Levels;
  columns: Columns;
  stack: Stack;
  wraps: Wraps | null;
  /** The middle of every item across the drawing, and the top left corner of every box. */
  itemX: Float64Array;
  x: Float32Array;
  y: Float32Array;
}

/** Draws the edges by their tails, so that a shared line is walked once, and answers them in their own order. */
export function drawLines(routing: Routing, places: Places): EdgeLines {
  const lines = new Lines(routing, places);
  const turn = tailOrder(routing, places.lanes);
  for (let i = 0; i < turn.length; i++) lines.draw(turn[i]);
  return lines.sorted();
}

class Lines {
  private readonly pen = new Pen();
  private readonly edgeKind: Uint8Array;
  /** By edge: where the pen began it, and how many points it has. */
  private readonly start: Int32Array;
  private readonly count: Int32Array;
  /** The first line of the current tail, which is its longest: its points up to each of its bends. */
  private readonly bends: Int32Array;
  private tail = -1;
  private tailStart = 0;
  private tailBends = 0;

  private readonly headAt: Float32Array | null;

  constructor(
    private readonly routing: Routing,
    private readonly places: Places,
  ) {
    const { graph, layered } = routing;
    const m = graph.source.length;
    this.headAt = 'tail' in graph ? graph.headAt : null;
    this.edgeKind = new Uint8Array(m);
    this.start = new Int32Array(m);
    this.count = new Int32Array(m);
    this.bends = new Int32Array(layered.layers + 1);
  }

  draw(e: number): void {
    const { pen } = this;
    this.start[e] = pen.count;
    pen.begin();
    const lane = this.places.lanes.ofEdge[e];
    if (this.routing.kind[e] === SELF) this.drawLoop(e);
    else if (lane >= 0) this.drawAlongLane(e, lane);
    else this.drawDown(e);
    this.count[e] = pen.count - this.start[e];
  }

  /** The lines in the order of edges. */
  sorted(): EdgeLines {
    const { start, count, edgeKind } = this;
    const m = count.length;
    const pointStart = new Int32Array(m + 1);
    for (let e = 0; e < m; e++) pointStart[e + 1] = pointStart[e] + count[e];
    const points = new Float32Array(2 * pointStart[m]);
    const drawn = this.pen.points;
    for (let e = 0; e < m; e++) {
      let o = 2 * pointStart[e];
      for (let k = 2 * start[e], end = k + 2 * count[e]; k < end; k++) points[o++] = drawn[k];
    }
    return { pointStart, points, edgeKind };
  }

  /** Where an edge leaves its box, and where it enters one, across the drawing. */
  private tailX(e: number): number {
    const { graph, arcs } = this.routing;
    return this.places.itemX[graph.source[e]] + (arcs.tailAt ? arcs.tailAt[arcs.tailOfEdge[e]] : 0);
  }

  private headX(e: number): number {
    const { graph } = this.routing;
    const t = graph.target[e];
    return this.places.itemX[t] + (this.headAt ? this.headAt[e] - graph.width[t] / 2 : 0);
  }

  /** From a box out to the right and back into it. */
  private drawLoop(e: number): void {
    const { graph } = this.routing,
      { pen } = this;
    const box = graph.source[e],
      top = this.places.y[box],
      high = graph.height[box];
    const side = this.places.x[box] + graph.width[box];
    this.edgeKind[e] = LOOP;
    pen.to(side, top + 0.75 * high);
    pen.to(side + LOOP_ROOM * 0.75, top + 0.75 * high);
    pen.to(side + LOOP_ROOM * 0.75, top + 0.25 * high);
    pen.to(side, top + 0.25 * high);
  }

  /** By a stub to the lane, along it from column to column, and by a branch to the target. */
  private drawAlongLane(e: number, lane: number): void {
    const { graph, layered, kind } = this.routing;
    const { laneAt, levels, tracks, columns, y } = this.places;
    const { pen } = this;
    const s = graph.source[e],
      t = graph.target[e];
    const sx = this.tailX(e),
      tx = this.headX(e);
    const stub = levels.stub[lane],
      branch = levels.branch[tracks.ofEdge[e]];
    const first = columns.of[layered.layer[s]],
      last = columns.of[layered.layer[t]];
    this.edgeKind[e] = kind[e] === BACK ? LOOP : first !== last ? WRAP : LANE;
    pen.to(sx, y[s] + graph.height[s]);
    pen.to(sx, stub);
    pen.to(laneAt(lane, first) + columns.shift[first], stub);
    if (last - first > FAR) {
      // Over the columns between: through them, each line would be hundreds of points long.
      const out = this.laneWrap(lane, first);
      this.follow(out.slice(0, 6));
      pen.to(laneAt(lane, last) + columns.shift[last], out[5]);
    } else for (let c = first; c < last; c++) this.follow(this.laneWrap(lane, c));
    for (let c = first; c > last; c--) this.followBack(this.laneWrap(lane, c - 1));
    pen.to(laneAt(lane, last) + columns.shift[last], branch);
    pen.to(tx, branch);
    pen.to(tx, y[t]);
  }

  /** Down through the layers: along the chain of its tail, and from there to its target. */
  private drawDown(e: number): void {
    const { graph, layered, arcs } = this.routing;
    const { columns, stack, wraps, itemX, y } = this.places;
    const { pen } = this;
    const s = graph.source[e],
      t = graph.target[e];
    const rs = layered.layer[s],
      rt = layered.layer[t];
    const tail = arcs.tailOfEdge[e];
    const passed = rt - rs - 1;
    this.edgeKind[e] = columns.of[rs] !== columns.of[rt] ? WRAP : NORMAL;
    if (this.tail === tail && this.tailBends >= passed) pen.again(this.tailStart, this.bends[passed], stack.bottom[rs + passed]);
    else this.drawChain(e, passed);
    const tx = this.headX(e);
    if (wraps && columns.of[rt] !== columns.of[rt - 1]) {
      const item = passed ? layered.chain[tail] + passed - 1 : s;
      this.follow(this.itemWrap(item, tail, passed ? itemX[item] : this.tailX(e), tx, rt - 1));
    }
    pen.to(tx, stack.top[rt]);
    pen.to(tx, y[t]);
  }

  /** From its box through the first bends of a tail's chain; later edges of the tail start with the same points. */
  private drawChain(e: number, many: number): void {
    const { graph, layered, arcs } = this.routing;
    const { columns, stack, wraps, itemX, y } = this.places;
    const { pen, bends } = this;
    const s = graph.source[e],
      rs = layered.layer[s];
    const tail = arcs.tailOfEdge[e],
      chain = layered.chain[tail];
    const sx = this.tailX(e),
      from = this.start[e];
    pen.to(sx, y[s] + graph.height[s]);
    pen.to(sx, stack.bottom[rs]);
    bends[0] = pen.count - from;
    for (let b = 0; b < many; b++) {
      const item = chain + b,
        r = rs + 1 + b;
      if (wraps && columns.of[r] !== columns.of[r - 1]) {
        const above = b ? item - 1 : s;
        this.follow(this.itemWrap(above, tail, b ? itemX[above] : sx, itemX[item], r - 1));
      }
      pen.to(itemX[item], stack.top[r]);
      pen.to(itemX[item], stack.bottom[r]);
      bends[b + 1] = pen.count - from;
    }
    this.tail = tail;
    this.tailStart = from;
    this.tailBends = many;
  }

  /** The way of a lane from column c to the next. */
  private laneWrap(lane: number, c: number): number[] {
    const { laneAt, columns } = this.places;
    const wraps = this.places.wraps!;
    const track = wraps.ofLane.get(lane * columns.count + c)!;
    return this.wrap(c, track, laneAt(lane, c) + columns.shift[c], laneAt(lane, c + 1) + columns.shift[c + 1], wraps.lastLayer[c]);
  }

  /** The way of the line below an item, from its layer r (the last of a column) to the next column. */
  private itemWrap(item: number, tail: number, fromX: number, toX: number, r: number): number[] {
    const { graph, arcs } = this.routing;
    const track = this.places.wraps!.ofItem.get(wrapKey(item, tail, graph.n, arcs.tails))!;
    return this.wrap(this.places.columns.of[r], track, fromX, toX, r);
  }

  /** Down below column c (whose last layer is r), along its gutter, up, and down into the next column. */
  private wrap(c: number, track: number, fromX: number, toX: number, r: number): number[] {
    const { gaps, gapY } = this.routing;
    const { wraps, stack, tracks, columns } = this.places;
    const many = wraps!.tracks[c],
      pitch = bundle(many, linePitch(gaps.box)) / many;
    const lowY = stack.bottom[r] + (tracks.stubs[r] ? gapY / 2 : 0) + gaps.side + (many - 1 - track) * pitch;
    const gutterX = columns.gutter[c] + (many - 1 - track) * pitch;
    const highY = stack.top[r + 1] - (tracks.branches[r + 1] ? gapY / 2 : 0) - gaps.side - track * pitch;
    return [fromX, lowY, gutterX, lowY, gutterX, highY, toX, highY];
  }

  private follow(path: number[]): void {
    for (let q = 0; q < path.length; q += 2) this.pen.to(path[q], path[q + 1]);
  }

  private followBack(path: number[]): void {
    for (let q = path.length - 2; q >= 0; q -= 2) this.pen.to(path[q], path[q + 1]);
  }
}

/** Edges by tail, the longest of each tail first: its line holds all others' bends. */
function tailOrder({ graph, kind, arcs, layered }: Routing, lanes: Lanes): Int32Array {
  const { source, target } = graph;
  const { layer } = layered;
  const { tails, tailOfEdge: of } = arcs;
  const m = source.length;
  const begin = new Int32Array(tails + 1);
  for (let e = 0; e < m; e++) begin[of[e] + 1]++;
  for (let t = 0; t < tails; t++) begin[t + 1] += begin[t];
  const out = new Int32Array(m),
    fill = begin.slice(0, tails);
  for (let e = 0; e < m; e++) out[fill[of[e]]++] = e;
  const span = (e: number) => (lanes.ofEdge[e] >= 0 || kind[e] !== 0 ? -1 : layer[target[e]] - layer[source[e]]);
  for (let t = 0; t < tails; t++) {
    let best = begin[t];
    for (let i = begin[t] + 1; i < begin[t + 1]; i++) if (span(out[i]) > span(out[best])) best = i;
    if (best === begin[t]) continue;
    const e = out[best];
    out[best] = out[begin[t]];
    out[begin[t]] = e;
  }
  return out;
}
