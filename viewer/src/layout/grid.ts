// A graph with layers that are much too wide, as a grid: the wide bands are broken into rows of their parts, and each
// band as a whole is one box among the others.

import { collectBandLines, endsOf, meetsAt, outerTail, type BandLines, type Ends, type Line } from './bandlines.ts';
import type { Bands } from './bands.ts';
import { drawParts, type Draw, type Parts } from './parts.ts';
import { Pen } from './pen.ts';
import { arrangeRows } from './rows.ts';
import { NORMAL, strongerKind, type FlatGraph, type FlatLayout, type Options, type PortedGraph } from './types.ts';

interface Size {
  width: number;
  height: number;
}

/** The parts of bands by themselves, then the bands, then the bands among the other boxes, then all together. */
export function layoutBands(graph: FlatGraph | PortedGraph, bands: Bands, options: Options, draw: Draw): FlatLayout {
  const ends = endsOf(graph);
  const lines = collectBandLines(graph, ends, bands);
  const parts = drawParts(graph, ends, bands, lines, options, draw);
  const sizes = arrangeBands(bands, lines, parts, options);
  const outside = graphOutside(graph, ends, bands, lines, sizes);
  const outer = draw(outside.graph, options);
  return new Joiner(graph, bands, lines, parts, outside, outer).join();
}

/** Every band by itself. Parts of one band are consecutive. */
function arrangeBands({ count, parts: many, bandOf }: Bands, { ins, outs }: BandLines, { blocks }: Parts, options: Options): Size[] {
  const first = new Int32Array(count + 1).fill(many);
  for (let p = many - 1; p >= 0; p--) first[bandOf[p]] = p;
  for (let b = count - 1; b >= 0; b--) first[b] = Math.min(first[b], first[b + 1]);
  return Array.from({ length: count }, (_, b) => {
    const own = (l: Line) => l.band === b;
    return arrangeRows(blocks, first[b], first[b + 1], ins.filter(own), outs.filter(own), options);
  });
}

/** The boxes outside the bands, and each band as one box. */
interface Outside {
  graph: PortedGraph;
  /** The number there of a box outside; bands are numbered from `firstBand` on. */
  place: Int32Array;
  firstBand: number;
  /** Of each edge of the whole graph, except those inside parts: the edge there that it is a part of. */
  edge: Int32Array;
}

function graphOutside(graph: FlatGraph | PortedGraph, ends: Ends, bands: Bands, lines: BandLines, sizes: Size[]): Outside {
  const { source, target } = graph;
  const { part, bandOf } = bands;
  const { ins, outs, inLine, outLine } = lines;
  const inPorts = 'tail' in graph ? graph.inPorts : 0,
    outPorts = 'tail' in graph ? graph.outPorts : 0;
  const { place, firstBand, count } = placesOutside(graph.n, inPorts + outPorts, bands);
  const { edge, shown } = edgesOutside(graph, lines);
  const at = (v: number) => (part[v] >= 0 ? firstBand + bandOf[part[v]] : place[v]);
  return {
    graph: {
      n: count,
      ...boxesOutside(graph, bands, at, count, firstBand, sizes),
      source: Int32Array.from(shown, (e) => at(source[e])),
      target: Int32Array.from(shown, (e) => at(target[e])),
      tail: Int32Array.from(shown, (e) => outerTail(ends, outLine, e)),
      tailAt: Float32Array.from(shown, (e) => (outLine[e] >= 0 ? outs[outLine[e]].x : ends.tailAt(e))),
      headAt: Float32Array.from(shown, (e) => (inLine[e] >= 0 ? ins[inLine[e]].x : ends.headAt(e))),
      weight: graph.weight && heaviest(graph.weight, edge, shown.length),
      inPorts,
      outPorts,
    },
    place,
    firstBand,
    edge,
  };
}

/** Numbers what is outside: boxes, then bands, then ports, which have to be the last. */
function placesOutside(n: number, ports: number, { count, part }: Bands) {
  const place = new Int32Array(n);
  const firstPort = n - ports;
  let firstBand = 0;
  for (let v = 0; v < firstPort; v++) if (part[v] < 0) place[v] = firstBand++;
  const solid = firstBand + count;
  for (let v = firstPort; v < n; v++) place[v] = solid + v - firstPort;
  return { place, firstBand, count: solid + ports };
}

/** Sizes and order of what is outside; a band comes when the first of its boxes does. */
function boxesOutside(graph: FlatGraph, { part }: Bands, at: (v: number) => number, count: number, firstBand: number, sizes: Size[]) {
  const width = new Float32Array(count),
    height = new Float32Array(count),
    order = new Int32Array(count).fill(2147483647);
  for (let v = 0; v < graph.n; v++) {
    const k = at(v);
    order[k] = Math.min(order[k], graph.order ? graph.order[v] : v);
    if (part[v] >= 0) continue;
    width[k] = graph.width[v];
    height[k] = graph.height[v];
  }
  sizes.forEach((size, b) => {
    width[firstBand + b] = size.width;
    height[firstBand + b] = size.height;
  });
  return { width, height, order };
}

/** Edges that share a line into a band, or join on their way out of one, are one edge outside: the first of them is shown. */
function edgesOutside({ source, target }: FlatGraph, { ins, outs, inner, inLine, outLine, joins }: BandLines) {
  const m = source.length;
  const edge = new Int32Array(m).fill(-1);
  const shown: number[] = [];
  const intoBand = new Int32Array(ins.length).fill(-1),
    joined = new Int32Array(outs.length).fill(-1);
  for (let e = 0; e < m; e++) {
    if (inner[e]) continue;
    const known = inLine[e] >= 0 ? intoBand : outLine[e] >= 0 && joins[target[e]] ? joined : null;
    const line = inLine[e] >= 0 ? inLine[e] : outLine[e];
    if (known && known[line] >= 0) {
      edge[e] = known[line];
      continue;
    }
    edge[e] = shown.push(e) - 1;
    if (known) known[line] = edge[e];
  }
  return { edge, shown };
}

/** An edge outside weighs as much as the heaviest that it stands for. */
function heaviest(weight: Float32Array, edge: Int32Array, count: number): Float32Array {
  const out = new Float32Array(count);
  for (let e = 0; e < edge.length; e++) if (edge[e] >= 0) out[edge[e]] = Math.max(out[edge[e]], weight[e]);
  return out;
}

/** Puts the drawings of parts into the drawing around them. */
class Joiner {
  private readonly pen = new Pen(0.05);
  private readonly edgeKind: Uint8Array;

  constructor(
    private readonly graph: FlatGraph,
    private readonly bands: Bands,
    private readonly lines: BandLines,
    private readonly parts: Parts,
    private readonly outside: Outside,
    private readonly outer: FlatLayout,
  ) {
    this.edgeKind = new Uint8Array(graph.source.length).fill(NORMAL);
  }

  join(): FlatLayout {
    const { pen, outer, edgeKind } = this;
    const m = edgeKind.length;
    const pointStart = new Int32Array(m + 1);
    for (let e = 0; e < m; e++) {
      pen.begin();
      if (this.lines.inner[e]) this.drawInPart(this.bands.part[this.graph.source[e]], this.parts.pieceIn[e], e);
      else this.drawAcross(e);
      pointStart[e + 1] = pen.count;
    }
    const points = pen.points.slice(0, 2 * pen.count);
    return { width: outer.width, height: outer.height, ...this.placeBoxes(), pointStart, points, edgeKind };
  }

  private placeBoxes(): { x: Float32Array; y: Float32Array } {
    const { outer } = this;
    const { n } = this.graph;
    const { part, bandOf } = this.bands;
    const { blocks, local } = this.parts;
    const x = new Float32Array(n),
      y = new Float32Array(n);
    for (let v = 0; v < n; v++) {
      const p = part[v];
      if (p < 0) {
        x[v] = outer.x[this.outside.place[v]];
        y[v] = outer.y[this.outside.place[v]];
        continue;
      }
      const layout = blocks.layout[p];
      x[v] = this.bandX(bandOf[p]) + blocks.x[p] + (layout ? layout.x[local[v]] : 0);
      y[v] = this.bandY(bandOf[p]) + blocks.y[p] + (layout ? layout.y[local[v]] : 0);
    }
    return { x, y };
  }

  private bandX(band: number): number {
    return this.outer.x[this.outside.firstBand + band];
  }

  private bandY(band: number): number {
    return this.outer.y[this.outside.firstBand + band];
  }

  /** An edge that is not inside one part: out of its band, through the drawing outside, into a band. */
  private drawAcross(e: number): void {
    const { part } = this.bands;
    const a = part[this.graph.source[e]],
      b = part[this.graph.target[e]];
    if (a >= 0) this.drawOut(a, e);
    this.trace(this.outer, this.outside.edge[e], 0, 0, e);
    if (b >= 0) this.drawIn(b, e);
  }

  private drawOut(p: number, e: number): void {
    const { pen } = this;
    const { blocks, pieceOut } = this.parts;
    const line = this.lines.outs[this.lines.outLine[e]];
    const dx = this.bandX(line.band),
      dy = this.bandY(line.band);
    const x = dx + (blocks.x[p] + meetsAt(line, p));
    this.drawInPart(p, pieceOut[e], e);
    pen.to(x, dy + blocks.y[p] + blocks.height[p]);
    if (line.straight) return;
    const level = dy + line.level.get(blocks.row[p])!;
    pen.to(x, level);
    pen.to(dx + line.x, level);
  }

  private drawIn(p: number, e: number): void {
    const { pen } = this;
    const { blocks, pieceIn } = this.parts;
    const line = this.lines.ins[this.lines.inLine[e]];
    const dx = this.bandX(line.band),
      dy = this.bandY(line.band);
    const x = dx + (blocks.x[p] + meetsAt(line, p));
    if (!line.straight) {
      const level = dy + line.level.get(blocks.row[p])!;
      pen.to(dx + line.x, level);
      pen.to(x, level);
    }
    pen.to(x, dy + blocks.y[p]);
    this.drawInPart(p, pieceIn[e], e);
  }

  /** The piece of edge e inside part p; a box alone has none. */
  private drawInPart(p: number, piece: number, e: number): void {
    const { blocks } = this.parts;
    const layout = blocks.layout[p],
      band = this.bands.bandOf[p];
    if (layout) this.trace(layout, piece, this.bandX(band) + blocks.x[p], this.bandY(band) + blocks.y[p], e);
  }

  private trace({ points, pointStart, edgeKind }: FlatLayout, k: number, dx: number, dy: number, e: number): void {
    this.edgeKind[e] = strongerKind(this.edgeKind[e], edgeKind[k]);
    for (let q = 2 * pointStart[k]; q < 2 * pointStart[k + 1]; q += 2) this.pen.to(dx + points[q], dy + points[q + 1]);
  }
}
