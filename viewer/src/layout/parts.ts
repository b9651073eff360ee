// The parts of wide bands, each drawn by itself.

import { listsBy, type Lists } from './adjacency.ts';
import { meet, type BandLines, type Ends } from './bandlines.ts';
import type { Bands } from './bands.ts';
import { LayoutCache } from './cache.ts';
import type { FlatGraph, FlatLayout, Options, PortedGraph } from './types.ts';

export type Draw = (part: PortedGraph, options: Options) => FlatLayout;

/** The parts of all bands: their drawings (none for one box without loops), sizes, and places within their band. */
export interface Blocks {
  layout: (FlatLayout | null)[];
  width: Float64Array;
  height: Float64Array;
  x: Float64Array;
  y: Float64Array;
  row: Int32Array;
}

/** The drawn parts, and where to find boxes and edges in them. */
export interface Parts {
  blocks: Blocks;
  /** The number of each box in its part. */
  local: Int32Array;
  /** The pieces of an edge in its parts: its number in the layout of the part that it leaves, and enters or is in. */
  pieceOut: Int32Array;
  pieceIn: Int32Array;
}

/** Draws every part, and notes where the lines of bands meet them. */
export function drawParts(graph: FlatGraph, ends: Ends, bands: Bands, lines: BandLines, options: Options, draw: Draw): Parts {
  const drawer = new PartDrawer(graph, ends, bands, lines);
  const cache = new LayoutCache(Infinity); // equal parts are drawn once
  const still: Options = { ...options, maxHeight: undefined };
  for (let p = 0; p < bands.parts; p++) {
    if (drawer.isLoneBox(p)) drawer.keepBox(p);
    else drawer.keepDrawing(p, (part) => cache.get(part, () => draw(part, still)));
  }
  return drawer;
}

class PartDrawer implements Parts {
  readonly blocks: Blocks;
  readonly local: Int32Array;
  readonly pieceOut: Int32Array;
  readonly pieceIn: Int32Array;
  /** By part: its boxes, the edges inside it, those that enter it, and those that leave it. */
  private readonly boxes: Lists;
  private readonly own: Lists;
  private readonly entering: Lists;
  private readonly leaving: Lists;

  constructor(
    private readonly graph: FlatGraph,
    private readonly ends: Ends,
    bands: Bands,
    private readonly lines: BandLines,
  ) {
    const { n, source, target } = graph;
    const { part, parts } = bands;
    const m = source.length;
    this.boxes = listsBy(parts, part);
    this.own = listsBy(
      parts,
      edgesOf(part, source, (e) => lines.inner[e] === 1),
    );
    this.entering = listsBy(
      parts,
      edgesOf(part, target, (e) => lines.inLine[e] >= 0),
    );
    this.leaving = listsBy(
      parts,
      edgesOf(part, source, (e) => lines.outLine[e] >= 0),
    );
    this.local = new Int32Array(n);
    for (let p = 0; p < parts; p++) row(this.boxes, p).forEach((v, i) => (this.local[v] = i));
    this.pieceOut = new Int32Array(m).fill(-1);
    this.pieceIn = new Int32Array(m).fill(-1);
    this.blocks = {
      layout: new Array<FlatLayout | null>(parts).fill(null),
      width: new Float64Array(parts),
      height: new Float64Array(parts),
      x: new Float64Array(parts),
      y: new Float64Array(parts),
      row: new Int32Array(parts),
    };
  }

  isLoneBox(p: number): boolean {
    return row(this.boxes, p).length === 1 && !row(this.own, p).length;
  }

  /** A box without loops needs no drawing: lines meet it where they meet the box. */
  keepBox(p: number): void {
    const { blocks, graph, ends, lines } = this;
    const [box] = row(this.boxes, p);
    blocks.width[p] = graph.width[box];
    blocks.height[p] = graph.height[box];
    for (const e of row(this.entering, p)) meet(lines.ins[lines.inLine[e]], p, ends.headAt(e));
    for (const e of row(this.leaving, p)) meet(lines.outs[lines.outLine[e]], p, ends.tailAt(e));
  }

  /** Every line that enters or leaves a part of several boxes gets a port on its border. */
  keepDrawing(p: number, draw: (part: PortedGraph) => FlatLayout): void {
    const { blocks, lines } = this;
    const inPort = numbered(row(this.entering, p), lines.inLine),
      outPort = numbered(row(this.leaving, p), lines.outLine);
    const layout = draw(this.graphOf(p, inPort, outPort));
    blocks.layout[p] = layout;
    blocks.width[p] = layout.width;
    blocks.height[p] = layout.height;
    const firstIn = row(this.boxes, p).length,
      firstOut = firstIn + inPort.size;
    for (const [line, port] of inPort) meet(lines.ins[line], p, layout.x[firstIn + port]);
    for (const [line, port] of outPort) meet(lines.outs[line], p, layout.x[firstOut + port]);
  }

  /** A part as a graph of its own, with ports for the lines; notes the number of each edge in it. */
  private graphOf(p: number, inPort: Map<number, number>, outPort: Map<number, number>): PortedGraph {
    const { graph, ends, lines, local, pieceIn, pieceOut } = this;
    const { source, target, weight } = graph;
    const boxes = row(this.boxes, p);
    const own = row(this.own, p),
      to = row(this.leaving, p),
      from = row(this.entering, p);
    const firstIn = boxes.length,
      firstOut = firstIn + inPort.size;
    const part = emptyGraph(boxes.length, inPort.size, outPort.size, own.length + to.length + from.length, weight !== undefined);
    for (let i = 0; i < boxes.length; i++) {
      part.width[i] = graph.width[boxes[i]];
      part.height[i] = graph.height[boxes[i]];
    }
    const when = ownOrder(boxes, graph.order);
    part.order!.set(when);
    part.order!.fill(-1, firstIn, firstOut).fill(part.n, firstOut);
    const tails = new Map<number, number>();
    let k = 0;
    const add = (e: number, s: number, t: number, tail: number, tailAt: number, headAt: number) => {
      part.source[k] = s;
      part.target[k] = t;
      if (!tails.has(tail)) tails.set(tail, tails.size);
      part.tail[k] = tails.get(tail)!;
      part.tailAt[k] = tailAt;
      part.headAt[k] = headAt;
      if (weight) part.weight![k] = weight[e];
      return k++;
    };
    for (const e of own) pieceIn[e] = add(e, local[source[e]], local[target[e]], ends.tailOf[e], ends.tailAt(e), ends.headAt(e));
    for (const e of to)
      pieceOut[e] = add(e, local[source[e]], firstOut + outPort.get(lines.outLine[e])!, ends.tailOf[e], ends.tailAt(e), 0);
    for (const e of from) {
      const port = inPort.get(lines.inLine[e])!;
      pieceIn[e] = add(e, firstIn + port, local[target[e]], -1 - port, 0, ends.headAt(e));
    }
    return part;
  }
}

/** The part at one end of each edge of a kind; -1 for the others. */
function edgesOf(part: Int32Array, end: Int32Array, isOne: (e: number) => boolean): Int32Array {
  return end.map((v, e) => (isOne(e) ? part[v] : -1));
}

function row(lists: Lists, p: number): Int32Array {
  return lists.item.subarray(lists.start[p], lists.start[p + 1]);
}

/** The lines of some edges, numbered as they are met. */
function numbered(edges: Int32Array, lineOf: Int32Array): Map<number, number> {
  const ports = new Map<number, number>();
  for (const e of edges) if (!ports.has(lineOf[e])) ports.set(lineOf[e], ports.size);
  return ports;
}

function emptyGraph(boxes: number, inPorts: number, outPorts: number, edges: number, weighted: boolean): PortedGraph {
  const n = boxes + inPorts + outPorts;
  return {
    n,
    width: new Float32Array(n),
    height: new Float32Array(n),
    source: new Int32Array(edges),
    target: new Int32Array(edges),
    tail: new Int32Array(edges),
    tailAt: new Float32Array(edges),
    headAt: new Float32Array(edges),
    weight: weighted ? new Float32Array(edges) : undefined,
    order: new Int32Array(n),
    inPorts,
    outPorts,
  };
}

/** The order of boxes among themselves, so that equal parts look equal. */
function ownOrder(boxes: Int32Array, order: Int32Array | undefined): Int32Array {
  const turn = boxes.map((_, i) => i);
  if (order) turn.sort((a, b) => order[boxes[a]] - order[boxes[b]] || a - b);
  const when = new Int32Array(boxes.length);
  for (let i = 0; i < turn.length; i++) when[turn[i]] = i;
  return when;
}
