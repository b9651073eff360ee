// The lines that lead into wide bands and out of them. Edges that run together share one.

import type { Bands } from './bands.ts';
import type { FlatGraph, PortedGraph } from './types.ts';

/** A box outside that so many lines of a band lead to gets one line that all of them join. */
const FAN_IN = 3;

/** A line that leads into a band (or out of it), to (or from) some of its parts. */
export interface Line {
  band: number;
  parts: number[];
  at: number[]; // of each part: where the line meets it, across the drawing
  /** Where it crosses the border of the band; where it runs level in each row, by row. */
  x: number;
  straight: boolean;
  level: Map<number, number>;
}

/** Where edges leave and enter their boxes, whether or not these have ports. */
export interface Ends {
  /** Edges with the same tail start at the same place; tails are 0 … tails-1. */
  tailOf: Int32Array;
  tails: number;
  tailAt: (e: number) => number;
  headAt: (e: number) => number;
}

export function endsOf(graph: FlatGraph | PortedGraph): Ends {
  const { width, source, target } = graph;
  const ports = 'tail' in graph ? graph : null;
  const tailOf = ports ? ports.tail : source;
  return {
    tailOf,
    tails: tailOf.reduce((most, t) => Math.max(most, t + 1), 0),
    tailAt: (e) => (ports ? ports.tailAt[e] : width[source[e]] / 2),
    headAt: (e) => (ports ? ports.headAt[e] : width[target[e]] / 2),
  };
}

/** Every edge is inside one part, or leads out of a band, into one, both, or neither. */
export interface BandLines {
  ins: Line[];
  outs: Line[];
  /** Of each edge: 1 where it is inside one part. */
  inner: Uint8Array;
  /** The line by which an edge enters, and by which it leaves, a band; or -1. */
  inLine: Int32Array;
  outLine: Int32Array;
  /** Of each box outside: 1 where all lines that lead to it from a band join. */
  joins: Uint8Array;
}

export function collectBandLines(graph: FlatGraph, ends: Ends, bands: Bands): BandLines {
  const { source, target } = graph;
  const { part } = bands;
  const m = source.length;
  const inner = new Uint8Array(m);
  for (let e = 0; e < m; e++) inner[e] = part[source[e]] >= 0 && part[source[e]] === part[target[e]] ? 1 : 0;
  const joins = joiningBoxes(graph, ends, bands);
  const { lines: outs, of: outLine } = linesOut(graph, ends, bands, inner, joins);
  const { lines: ins, of: inLine } = linesIn(graph, ends, bands, inner, outLine);
  return { ins, outs, inner, inLine, outLine, joins };
}

/** The boxes outside where many lines from one band end at one place. */
function joiningBoxes({ n, source, target }: FlatGraph, { headAt }: Ends, { part, bandOf }: Bands): Uint8Array {
  const m = source.length;
  const fan = new Int32Array(n),
    fanAt = new Float32Array(n),
    fanBand = new Int32Array(n);
  for (let e = 0; e < m; e++) {
    const a = part[source[e]],
      t = target[e];
    if (a < 0 || part[t] >= 0) continue;
    if (!fan[t]) {
      fanAt[t] = headAt(e);
      fanBand[t] = bandOf[a];
    } else if (fanAt[t] !== headAt(e) || fanBand[t] !== bandOf[a]) fan[t] = -m - 1; // they cannot join
    fan[t]++;
  }
  return Uint8Array.from(fan, (lines) => (lines >= FAN_IN ? 1 : 0));
}

/** Lines out of bands: one for each place they leave, or one for all that lead to the same place outside. */
function linesOut(
  { n, source, target }: FlatGraph,
  { tailOf, tails }: Ends,
  { part, bandOf }: Bands,
  inner: Uint8Array,
  joins: Uint8Array,
) {
  const lines: Line[] = [];
  const of = new Int32Array(source.length).fill(-1);
  const byTail = new Int32Array(tails).fill(-1), // a place of a part leads out by one line, which may have many ends
    byTarget = new Int32Array(n).fill(-1);
  for (let e = 0; e < of.length; e++) {
    const a = part[source[e]];
    if (a < 0 || inner[e]) continue;
    const known = joins[target[e]] ? byTarget : byTail,
      key = joins[target[e]] ? target[e] : tailOf[e];
    if (known[key] < 0) known[key] = addLine(lines, bandOf[a]);
    of[e] = known[key];
  }
  return { lines, of };
}

/** Lines into bands: one into each band for all that comes from the same place, or out of another band by the same line. */
function linesIn({ source, target }: FlatGraph, ends: Ends, { count, part, bandOf }: Bands, inner: Uint8Array, outLine: Int32Array) {
  const lines: Line[] = [];
  const of = new Int32Array(source.length).fill(-1);
  const known = new Map<number, number>();
  for (let e = 0; e < of.length; e++) {
    const b = part[target[e]];
    if (b < 0 || inner[e]) continue;
    const key = outerTail(ends, outLine, e) * count + bandOf[b];
    let k = known.get(key);
    if (k === undefined) known.set(key, (k = addLine(lines, bandOf[b])));
    of[e] = k;
  }
  return { lines, of };
}

function addLine(lines: Line[], band: number): number {
  return lines.push({ band, parts: [], at: [], x: 0, straight: false, level: new Map() }) - 1;
}

/** The tail of an edge as it is seen outside the bands: the line by which it leaves its band, or its own. */
export function outerTail({ tailOf, tails }: Ends, outLine: Int32Array, e: number): number {
  return outLine[e] >= 0 ? tails + outLine[e] : tailOf[e];
}

/** Notes where a line meets a part. Parts come in order. */
export function meet(line: Line, part: number, at: number): void {
  if (line.parts.length && line.parts[line.parts.length - 1] === part) return;
  line.parts.push(part);
  line.at.push(at);
}

/** Where a line meets a part, from the left end of the part. */
export function meetsAt({ parts, at }: Line, part: number): number {
  let lo = 0,
    hi = parts.length - 1;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (parts[mid] < part) lo = mid + 1;
    else hi = mid;
  }
  return at[lo];
}
