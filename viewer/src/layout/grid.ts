import { listsBy } from './adjacency.ts';
import { ASPECT, type Bands } from './bands.ts';
import { LayoutCache } from './cache.ts';
import { bundle } from './coordinates.ts';
import { rowWidth } from './pack.ts';
import { Pen } from './pen.ts';
import { NORMAL, strongerKind, type FlatGraph, type FlatLayout, type Options, type PortedGraph } from './types.ts';

/** A box outside that so many lines of a band lead to gets one line that all of them join. */
const FAN_IN = 3;

/** A line that leads into a band (or out of it), to (or from) some of its parts. */
interface Line {
  band: number;
  parts: number[];
  at: number[]; // of each part: where the line meets it, across the drawing
  /** Where it crosses the border of the band; where it runs level in each row, by row. */
  x: number;
  straight: boolean;
  level: Map<number, number>;
}

/** The parts of all bands: their drawings (none for one box without loops), sizes, and places within their band. */
interface Blocks {
  layout: (FlatLayout | null)[];
  width: Float64Array;
  height: Float64Array;
  x: Float64Array;
  y: Float64Array;
  row: Int32Array;
}

type Draw = (part: PortedGraph, options: Options) => FlatLayout;

/**
 * Lays out a graph with layers that are much too wide. Each part of a wide band is drawn by itself, the parts stand
 * in rows, and what comes from above runs down on the left and goes level above a row to its parts; what leads on goes
 * level below a row to the right, and down. The band as a whole is then one box among the others.
 */
export function layoutBands(graph: FlatGraph | PortedGraph, bands: Bands, options: Options, draw: Draw): FlatLayout {
  const { n, width, height, source, target, weight, order } = graph;
  const m = source.length;
  const ports = 'tail' in graph ? graph : null;
  const tailOf = ports ? ports.tail : source;
  const tailAt = (e: number) => (ports ? ports.tailAt[e] : width[source[e]] / 2);
  const headAt = (e: number) => (ports ? ports.headAt[e] : width[target[e]] / 2);
  const { part, parts, bandOf } = bands;

  // lines out of bands: one for each place they leave, or one for all that lead to the same place outside
  const tails = tailOf.reduce((most, t) => Math.max(most, t + 1), 0);
  const inner = new Uint8Array(m);
  const outLine = new Int32Array(m).fill(-1),
    inLine = new Int32Array(m).fill(-1);
  const fan = new Int32Array(n),
    fanAt = new Float32Array(n),
    fanBand = new Int32Array(n);
  for (let e = 0; e < m; e++) {
    const a = part[source[e]],
      t = target[e];
    inner[e] = a >= 0 && a === part[t] ? 1 : 0;
    if (inner[e] || a < 0 || part[t] >= 0) continue;
    if (!fan[t]) {
      fanAt[t] = headAt(e);
      fanBand[t] = bandOf[a];
    } else if (fanAt[t] !== headAt(e) || fanBand[t] !== bandOf[a]) fan[t] = -m - 1; // they cannot join
    fan[t]++;
  }
  const outs: Line[] = [],
    ins: Line[] = [];
  const line = (list: Line[], band: number) => list.push({ band, parts: [], at: [], x: 0, straight: false, level: new Map() }) - 1;
  const outOf = new Int32Array(tails).fill(-1), // a place of a part leads out by one line, which may have many ends
    outTo = new Int32Array(n).fill(-1);
  for (let e = 0; e < m; e++) {
    const a = part[source[e]];
    if (a < 0 || inner[e]) continue;
    const joins = fan[target[e]] >= FAN_IN;
    const known = joins ? outTo : outOf,
      key = joins ? target[e] : tailOf[e];
    if (known[key] < 0) known[key] = line(outs, bandOf[a]);
    outLine[e] = known[key];
  }
  const inOf = new Map<number, number>();
  for (let e = 0; e < m; e++) {
    const b = part[target[e]];
    if (b < 0 || inner[e]) continue;
    const key = (outLine[e] >= 0 ? tails + outLine[e] : tailOf[e]) * bands.count + bandOf[b];
    let k = inOf.get(key);
    if (k === undefined) inOf.set(key, (k = line(ins, bandOf[b])));
    inLine[e] = k;
  }

  // every part by itself
  const boxesOf = listsBy(parts, part);
  const local = new Int32Array(n);
  for (let p = 0; p < parts; p++)
    for (let i = boxesOf.start[p]; i < boxesOf.start[p + 1]; i++) local[boxesOf.item[i]] = i - boxesOf.start[p];
  const of = [new Int32Array(m).fill(-1), new Int32Array(m).fill(-1), new Int32Array(m).fill(-1)];
  for (let e = 0; e < m; e++) {
    if (inner[e]) of[0][e] = part[source[e]];
    if (inLine[e] >= 0) of[1][e] = part[target[e]];
    if (outLine[e] >= 0) of[2][e] = part[source[e]];
  }
  const [innerOf, entering, leaving] = of.map((list) => listsBy(parts, list));
  const blocks: Blocks = {
    layout: new Array<FlatLayout | null>(parts).fill(null),
    width: new Float64Array(parts),
    height: new Float64Array(parts),
    x: new Float64Array(parts),
    y: new Float64Array(parts),
    row: new Int32Array(parts),
  };
  const cache = new LayoutCache(Infinity); // equal parts are drawn once
  /** The pieces of an edge in its parts: the number of the edge in the layout of the part it leaves, enters, or is in. */
  const pieceOut = new Int32Array(m).fill(-1),
    pieceIn = new Int32Array(m).fill(-1);
  const still: Options = { ...options, maxHeight: undefined };
  for (let p = 0; p < parts; p++) {
    const boxes = boxesOf.item.subarray(boxesOf.start[p], boxesOf.start[p + 1]);
    const own = innerOf.item.subarray(innerOf.start[p], innerOf.start[p + 1]);
    const from = entering.item.subarray(entering.start[p], entering.start[p + 1]);
    const to = leaving.item.subarray(leaving.start[p], leaving.start[p + 1]);
    blocks.width[p] = width[boxes[0]];
    blocks.height[p] = height[boxes[0]];
    const meet = (list: Line[], k: number, at: number) => {
      const { parts: of, at: places } = list[k];
      if (of.length && of[of.length - 1] === p) return of.length - 1;
      places.push(at);
      return of.push(p) - 1;
    };
    if (boxes.length === 1 && !own.length) {
      for (const e of from) meet(ins, inLine[e], headAt(e));
      for (const e of to) meet(outs, outLine[e], tailAt(e));
      continue;
    }
    const inPort = new Map<number, number>(),
      outPort = new Map<number, number>();
    for (const e of from) if (!inPort.has(inLine[e])) inPort.set(inLine[e], inPort.size);
    for (const e of to) if (!outPort.has(outLine[e])) outPort.set(outLine[e], outPort.size);
    const firstIn = boxes.length,
      firstOut = firstIn + inPort.size;
    const count = firstOut + outPort.size,
      edges = own.length + from.length + to.length;
    const sub: PortedGraph = {
      n: count,
      width: new Float32Array(count),
      height: new Float32Array(count),
      source: new Int32Array(edges),
      target: new Int32Array(edges),
      tail: new Int32Array(edges),
      tailAt: new Float32Array(edges),
      headAt: new Float32Array(edges),
      weight: weight && new Float32Array(edges),
      order: new Int32Array(count),
      inPorts: inPort.size,
      outPorts: outPort.size,
    };
    for (let i = 0; i < boxes.length; i++) {
      sub.width[i] = width[boxes[i]];
      sub.height[i] = height[boxes[i]];
    }
    // their order among themselves, so that equal parts look equal
    const when = order ? boxes.map((v) => order[v]) : null;
    const turn = boxes.map((_, i) => i);
    if (when) turn.sort((a, b) => when[a] - when[b] || a - b);
    for (let i = 0; i < turn.length; i++) sub.order![turn[i]] = i;
    sub.order!.fill(-1, firstIn, firstOut).fill(count, firstOut);
    const tailNumber = new Map<number, number>();
    let k = 0;
    const add = (e: number, s: number, t: number, key: number, ta: number, ha: number) => {
      sub.source[k] = s;
      sub.target[k] = t;
      if (!tailNumber.has(key)) tailNumber.set(key, tailNumber.size);
      sub.tail[k] = tailNumber.get(key)!;
      sub.tailAt[k] = ta;
      sub.headAt[k] = ha;
      if (weight) sub.weight![k] = weight[e];
      return k++;
    };
    for (const e of own) pieceIn[e] = add(e, local[source[e]], local[target[e]], tailOf[e], tailAt(e), headAt(e));
    for (const e of to) pieceOut[e] = add(e, local[source[e]], firstOut + outPort.get(outLine[e])!, tailOf[e], tailAt(e), 0);
    for (const e of from) {
      const port = inPort.get(inLine[e])!;
      pieceIn[e] = add(e, firstIn + port, local[target[e]], -1 - port, 0, headAt(e));
    }
    const layout = cache.get(sub, () => draw(sub, still));
    blocks.layout[p] = layout;
    blocks.width[p] = layout.width;
    blocks.height[p] = layout.height;
    for (const [line, port] of inPort) meet(ins, line, layout.x[firstIn + port]);
    for (const [line, port] of outPort) meet(outs, line, layout.x[firstOut + port]);
  }

  // every band by itself
  const firstPart = new Int32Array(bands.count + 1).fill(parts);
  for (let p = parts - 1; p >= 0; p--) firstPart[bandOf[p]] = p;
  for (let b = bands.count - 1; b >= 0; b--) firstPart[b] = Math.min(firstPart[b], firstPart[b + 1]);
  const sizes = Array.from({ length: bands.count }, (_, b) => {
    const own = (l: Line) => l.band === b;
    return arrange(blocks, firstPart[b], firstPart[b + 1], ins.filter(own), outs.filter(own), options);
  });

  // the bands among the other boxes
  const place = new Int32Array(n); // of a box outside the bands
  let solid = 0;
  const portCount = ports ? ports.inPorts + ports.outPorts : 0;
  const firstPort = n - portCount;
  for (let v = 0; v < firstPort; v++) if (part[v] < 0) place[v] = solid++;
  const bandPlace = solid;
  solid += bands.count;
  for (let v = firstPort; v < n; v++) place[v] = solid + v - firstPort;
  const outerCount = solid + portCount;
  const outerWidth = new Float32Array(outerCount),
    outerHeight = new Float32Array(outerCount),
    outerOrder = new Int32Array(outerCount).fill(2147483647);
  for (let v = 0; v < n; v++) {
    const when = order ? order[v] : v;
    if (part[v] >= 0) {
      const b = bandPlace + bandOf[part[v]];
      outerOrder[b] = Math.min(outerOrder[b], when);
      continue;
    }
    outerWidth[place[v]] = width[v];
    outerHeight[place[v]] = height[v];
    outerOrder[place[v]] = when;
  }
  sizes.forEach((size, b) => {
    outerWidth[bandPlace + b] = size.width;
    outerHeight[bandPlace + b] = size.height;
  });
  const outerEdge = new Int32Array(m).fill(-1);
  const rows: number[] = []; // the edge that stands for each edge outside
  const intoBand = new Int32Array(ins.length).fill(-1),
    joined = new Int32Array(outs.length).fill(-1);
  for (let e = 0; e < m; e++) {
    if (inner[e]) continue;
    const [known, k] =
      inLine[e] >= 0 ? [intoBand, inLine[e]] : outLine[e] >= 0 && fan[target[e]] >= FAN_IN ? [joined, outLine[e]] : [null, 0];
    if (known && known[k] >= 0) outerEdge[e] = known[k];
    else {
      outerEdge[e] = rows.push(e) - 1;
      if (known) known[k] = outerEdge[e];
    }
  }
  const at = (v: number) => (part[v] >= 0 ? bandPlace + bandOf[part[v]] : place[v]);
  const outerWeight = weight && new Float32Array(rows.length);
  if (weight) for (let e = 0; e < m; e++) if (!inner[e]) outerWeight![outerEdge[e]] = Math.max(outerWeight![outerEdge[e]], weight[e]);
  const outer = draw(
    {
      n: outerCount,
      width: outerWidth,
      height: outerHeight,
      order: outerOrder,
      source: Int32Array.from(rows, (e) => at(source[e])),
      target: Int32Array.from(rows, (e) => at(target[e])),
      tail: Int32Array.from(rows, (e) => (outLine[e] >= 0 ? tails + outLine[e] : tailOf[e])),
      tailAt: Float32Array.from(rows, (e) => (outLine[e] >= 0 ? outs[outLine[e]].x : tailAt(e))),
      headAt: Float32Array.from(rows, (e) => (inLine[e] >= 0 ? ins[inLine[e]].x : headAt(e))),
      weight: outerWeight,
      inPorts: ports ? ports.inPorts : 0,
      outPorts: ports ? ports.outPorts : 0,
    },
    options,
  );

  // all together
  const x = new Float32Array(n),
    y = new Float32Array(n);
  const bandX = (b: number) => outer.x[bandPlace + b],
    bandY = (b: number) => outer.y[bandPlace + b];
  for (let v = 0; v < n; v++) {
    const p = part[v];
    if (p < 0) {
      x[v] = outer.x[place[v]];
      y[v] = outer.y[place[v]];
      continue;
    }
    const layout = blocks.layout[p];
    x[v] = bandX(bandOf[p]) + blocks.x[p] + (layout ? layout.x[local[v]] : 0);
    y[v] = bandY(bandOf[p]) + blocks.y[p] + (layout ? layout.y[local[v]] : 0);
  }
  const pen = new Pen(0.05);
  const pointStart = new Int32Array(m + 1);
  const edgeKind = new Uint8Array(m);
  const trace = (layout: FlatLayout, k: number, dx: number, dy: number, e: number) => {
    edgeKind[e] = strongerKind(edgeKind[e], layout.edgeKind[k]);
    for (let q = 2 * layout.pointStart[k]; q < 2 * layout.pointStart[k + 1]; q += 2)
      pen.to(dx + layout.points[q], dy + layout.points[q + 1]);
  };
  /** The pieces of edge e inside part p, to or from a border of its band. */
  const inPart = (p: number, piece: number, e: number) => {
    const layout = blocks.layout[p];
    if (layout) trace(layout, piece, bandX(bandOf[p]) + blocks.x[p], bandY(bandOf[p]) + blocks.y[p], e);
  };
  const meets = (l: Line, p: number) => {
    let lo = 0,
      hi = l.parts.length - 1; // parts come in order
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (l.parts[mid] < p) lo = mid + 1;
      else hi = mid;
    }
    return blocks.x[p] + l.at[lo];
  };
  for (let e = 0; e < m; e++) {
    const a = part[source[e]],
      b = part[target[e]];
    edgeKind[e] = NORMAL;
    pen.begin();
    if (inner[e]) inPart(a, pieceIn[e], e);
    else {
      if (a >= 0) {
        const l = outs[outLine[e]],
          dx = bandX(l.band),
          dy = bandY(l.band),
          px = dx + meets(l, a);
        inPart(a, pieceOut[e], e);
        pen.to(px, dy + blocks.y[a] + blocks.height[a]);
        if (!l.straight) {
          const level = dy + l.level.get(blocks.row[a])!;
          pen.to(px, level);
          pen.to(dx + l.x, level);
        }
      }
      trace(outer, outerEdge[e], 0, 0, e);
      if (b >= 0) {
        const l = ins[inLine[e]],
          dx = bandX(l.band),
          dy = bandY(l.band),
          px = dx + meets(l, b);
        if (!l.straight) {
          const level = dy + l.level.get(blocks.row[b])!;
          pen.to(dx + l.x, level);
          pen.to(px, level);
        }
        pen.to(px, dy + blocks.y[b]);
        inPart(b, pieceIn[e], e);
      }
    }
    pointStart[e + 1] = pen.count;
  }
  return { width: outer.width, height: outer.height, x, y, pointStart, points: pen.points.slice(0, 2 * pen.count), edgeKind };
}

/** The parts of a band (from … to-1) in rows, and the places of its lines. Answers the size of the band. */
function arrange(blocks: Blocks, from: number, to: number, ins: Line[], outs: Line[], options: Options) {
  const { gapX, gapY } = options;
  const pitch = Math.max(4, 0.4 * gapX);
  const limit = rowWidth(blocks.width.subarray(from, to), blocks.height.subarray(from, to), gapX, 1.5 * gapY, ASPECT);
  let all = 0;
  for (let p = from; p < to; p++) all += blocks.width[p] + gapX;
  const even = (1.001 * all) / Math.max(1, Math.ceil(all / limit)); // rows of about the same width
  const rowHeight: number[] = [0];
  let used = 0;
  for (let p = from; p < to; p++) {
    if (used > 0 && used + blocks.width[p] / 2 > even) {
      rowHeight.push(0);
      used = 0;
    }
    const row = rowHeight.length - 1;
    blocks.row[p] = row;
    blocks.x[p] = used;
    used += blocks.width[p] + gapX;
    rowHeight[row] = Math.max(rowHeight[row], blocks.height[p]);
  }
  const rows = rowHeight.length;
  const reach = (l: Line, i: number) => blocks.x[l.parts[i]] + l.at[i];

  // lines in and out: one that meets only one part in the first (last) row goes straight through the border
  const sides = [ins, outs].map((list, side) => {
    const edge = side ? rows - 1 : 0;
    const beside: { line: Line; end: number; far: number; touch: Map<number, number> }[] = [];
    for (const line of list) {
      if (line.parts.length === 1 && blocks.row[line.parts[0]] === edge) {
        line.straight = true;
        line.x = reach(line, 0);
        continue;
      }
      const touch = new Map<number, number>(); // by row: the farthest that it goes there
      for (let i = 0; i < line.parts.length;) {
        const row = blocks.row[line.parts[i]];
        let far = reach(line, i);
        for (i++; i < line.parts.length && blocks.row[line.parts[i]] === row; i++)
          far = side ? Math.min(far, reach(line, i)) : Math.max(far, reach(line, i));
        touch.set(row, far);
      }
      // the row where it ends (or begins)
      const end = blocks.row[line.parts[side ? 0 : line.parts.length - 1]];
      beside.push({ line, end, far: touch.get(end)!, touch });
    }
    // inside: what ends first (begins last), and of these what goes far in its row
    beside.sort((a, b) => (side ? b.end - a.end || a.far - b.far : a.end - b.end || b.far - a.far));
    const tracks: { line: Line; far: number }[][] = Array.from({ length: rows }, () => []);
    for (const { line, touch } of beside) for (const [row, far] of touch) tracks[row].push({ line, far });
    for (const list of tracks) list.sort((a, b) => b.far - a.far);
    return { beside, tracks, width: beside.length ? bundle(beside.length, pitch) + gapX : 0 };
  });
  const [left, right] = sides;

  // the space above and below rows, and where lines run level in it
  const space = (lines: number) => (lines ? Math.max(0.5 * gapY, Math.min((lines + 1) * 4, 2 * gapY)) : 0);
  let y = 0,
    across = 0;
  const tops: number[] = [];
  for (let row = 0; row < rows; row++) {
    const above = left.tracks[row],
      below = right.tracks[row];
    const room = space(above.length);
    if (row) y += Math.max(0, gapY - room - space(right.tracks[row - 1].length));
    above.forEach(({ line }, i) => line.level.set(row, y + (room * (i + 1)) / (above.length + 1)));
    y += room;
    tops.push(y);
    y += rowHeight[row];
    const under = space(below.length);
    below.forEach(({ line }, i) => line.level.set(row, y + (under * (i + 1)) / (below.length + 1)));
    y += under;
  }
  for (let p = from; p < to; p++) {
    blocks.y[p] = tops[blocks.row[p]];
    blocks.x[p] += left.width;
    across = Math.max(across, blocks.x[p] + blocks.width[p]);
  }
  for (const { beside } of sides) {
    const step = beside.length ? bundle(beside.length, pitch) / beside.length : 0;
    beside.forEach(({ line }, i) => (line.x = beside === left.beside ? left.width - gapX - i * step : across + gapX + i * step));
  }
  for (const line of [...ins, ...outs]) if (line.straight) line.x += left.width;
  return { width: across + right.width, height: y };
}
