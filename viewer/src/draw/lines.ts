// Edges near enough to follow: rounded lines with arrowheads, in batches of one style.
import type { Edges } from '../scene.ts';
import { EdgeKind } from '../scene.ts';
import { textWidth } from '../text/widths.ts';
import type { Frame } from './frame.ts';
import { SELECTED } from './frame.ts';
import { clean, fitText } from './label.ts';
import { FONT, HEADER, LABEL_SIZE, mostKept, PANEL_LEFT, TEXT_RIGHT, widthOfBytes, widthOfRung } from '../picture/sizes.ts';
import { panelsIn } from './overview.ts';
import { arrow, roundRect } from './shapes.ts';
import { PIECE_LENGTHS } from '../picture/spatial.ts';
import { Bag, countIn, firstOf, floorFor, search } from '../picture/rtree.ts';

const MOST_PIECES = 3500;
/** Long paths are slow to stroke, many short ones are slow to record. */
const BATCH = 96;
const MOST_LIT = 1500;
const CORNER = 9;
const found = new Bag();
const heads = new Bag();

/** The pieces of edges on the screen. */
function piecesIn(frame: Frame): void {
  found.size = 0;
  let left = MOST_PIECES;
  for (let c = frame.index.pieces.length - 1; c >= 0 && left > 0; c--) {
    if ((PIECE_LENGTHS[c] ?? Infinity) * frame.zoom < 5) break;
    const tree = frame.index.pieces[c]!;
    const floor = floorFor(countIn(tree, frame.x0, frame.y0, frame.x1, frame.y1), left);
    const before = found.size;
    search(tree, frame.x0, frame.y0, frame.x1, frame.y1, found, floor);
    left -= found.size - before;
    if (floor < 0) continue;
    const level = Math.min(floor, tree.levels.length - 2);
    for (let i = before; i < found.size; i++) found.items[i] = firstOf(tree, found.items[i]!, level);
  }
}

export function paintEdges(frame: Frame): void {
  const {
    ctx,
    scene: { edges },
    index,
    theme,
    paint,
    zoom,
    edgeAlpha,
  } = frame;
  piecesIn(frame);
  const base = Math.min(1, 0.55 + zoom * 0.6) * (paint.dim ? 0.4 : 1);
  ctx.lineCap = 'butt';
  ctx.lineJoin = 'round';
  const byBytes = paint.edgeWidth === 'bytes';
  const widths = byBytes ? [1.2, 2, 3, 4.2, 5.6, 7] : [1.3];
  paintRungs(frame, base);
  for (const kind of ARROWS) {
    ctx.strokeStyle = ctx.fillStyle = theme.edgeKinds[kind]!;
    for (let w = 0; w < widths.length; w++) {
      let [count, any] = [0, false];
      heads.size = 0;
      ctx.lineWidth = Math.max(0.7, widths[w]! * Math.min(1, 0.35 + zoom * 0.65));
      for (let i = 0; i < found.size; i++) {
        const piece = found.items[i]!;
        const edge = index.pieceEdge[piece]!;
        if (edges.kind[edge] !== kind || (byBytes && step(widths, edges.bytes[edge]!) !== w)) continue;
        if (!any) {
          ctx.setLineDash((kind === EdgeKind.Loop || kind === EdgeKind.Tied) && zoom > 0.3 ? [5 * zoom, 4 * zoom] : []);
          any = true;
        }
        if (count === 0) ctx.beginPath();
        trace(frame, edges.points, index.pieceFrom[piece]!, index.pieceTo[piece]!);
        if (index.pieceTo[piece] === edges.start[edge + 1]! - 1) heads.push(edge);
        if (++count === BATCH || edgeAlpha !== null) {
          ctx.globalAlpha = base * (edgeAlpha?.[edge] ?? 1);
          ctx.stroke();
          count = 0;
        }
      }
      if (count > 0) {
        ctx.globalAlpha = base;
        ctx.stroke();
      }
      if (any) ctx.setLineDash([]);
      if (zoom >= 0.3 && heads.size > 0) paintHeads(frame, base);
    }
  }
  ctx.globalAlpha = 1;
}

/** What is kept for the backward pass: bands as wide as their bytes, without a head, for nothing flows there yet. */
function paintRungs(frame: Frame, base: number): void {
  const { ctx, index, theme, zoom, edgeAlpha } = frame;
  const { edges } = frame.scene;
  const { kind, bytes, points, start } = edges;
  const most = mostKept(edges);
  ctx.strokeStyle = theme.edgeKinds[EdgeKind.Rung]!;
  for (let i = 0; i < found.size; i++) {
    const edge = index.pieceEdge[found.items[i]!]!;
    if (kind[edge] !== EdgeKind.Rung) continue;
    const width = widthOfRung(bytes[edge]!, most) * zoom;
    ctx.setLineDash(bytes[edge]! > 0 || zoom < 0.3 ? [] : [2 * zoom, 4 * zoom]);
    ctx.lineWidth = Math.max(0.7, width);
    ctx.globalAlpha = base * (edgeAlpha?.[edge] ?? 1);
    ctx.beginPath();
    trace(frame, points, start[edge]!, start[edge + 1]! - 1);
    ctx.stroke();
  }
  ctx.setLineDash([]);
}

const ARROWS = [EdgeKind.Between, EdgeKind.Normal, EdgeKind.Lane, EdgeKind.Loop, EdgeKind.Wrap, EdgeKind.Tied];

function step(widths: number[], bytes: number): number {
  const width = widthOfBytes(bytes);
  let best = 0;
  for (let w = 1; w < widths.length; w++) if (Math.abs(widths[w]! - width) < Math.abs(widths[best]! - width)) best = w;
  return best;
}

function paintHeads(frame: Frame, base: number): void {
  const {
    ctx,
    scene: { edges },
    edgeAlpha,
    zoom,
  } = frame;
  const size = Math.max(3, (6 + (ctx.lineWidth - 1) * 1.2) * Math.min(1.4, zoom));
  ctx.globalAlpha = base;
  ctx.beginPath();
  for (let i = 0; i < heads.size; i++) {
    const edge = heads.items[i]!;
    if (edgeAlpha !== null) ctx.globalAlpha = base * edgeAlpha[edge]!;
    head(frame, edges, edge, size);
    if (i % BATCH === BATCH - 1 || edgeAlpha !== null) {
      ctx.fill();
      ctx.beginPath();
    }
  }
  ctx.fill();
}

/** The arrowhead at the end of an edge, added to the current path. */
function head(frame: Frame, edges: Edges, edge: number, size: number): void {
  const { points, start } = edges;
  const { zoom, ox, oy } = frame;
  const p = start[edge + 1]! - 1;
  let q = p - 1;
  // The last step may have no length.
  while (q > start[edge]! && points[2 * q] === points[2 * p] && points[2 * q + 1] === points[2 * p + 1]) q--;
  const [dx, dy] = [points[2 * p]! - points[2 * q]!, points[2 * p + 1]! - points[2 * q + 1]!];
  const length = Math.hypot(dx, dy);
  if (length === 0) return;
  arrow(frame.ctx, points[2 * p]! * zoom + ox, points[2 * p + 1]! * zoom + oy, dx / length, dy / length, size);
}

/** Adds a polyline to the current path; corners are rounded when they can be seen. */
function trace(frame: Frame, points: Float32Array, from: number, to: number): void {
  const { ctx, zoom, ox, oy } = frame;
  let [x, y] = [points[2 * from]! * zoom + ox, points[2 * from + 1]! * zoom + oy];
  ctx.moveTo(x, y);
  const corner = CORNER * zoom;
  for (let p = from + 1; p < to; p++) {
    const [cx, cy] = [points[2 * p]! * zoom + ox, points[2 * p + 1]! * zoom + oy];
    if (corner < 3) {
      ctx.lineTo(cx, cy);
      continue;
    }
    const [nx, ny] = [points[2 * p + 2]! * zoom + ox, points[2 * p + 3]! * zoom + oy];
    const [back, ahead] = [Math.hypot(cx - x, cy - y), Math.hypot(nx - cx, ny - cy)];
    const r = Math.min(corner, back / 2, ahead / 2);
    if (r < 0.5) {
      ctx.lineTo(cx, cy);
    } else {
      ctx.lineTo(cx - ((cx - x) * r) / back, cy - ((cy - y) * r) / back);
      ctx.quadraticCurveTo(cx, cy, cx + ((nx - cx) * r) / ahead, cy + ((ny - cy) * r) / ahead);
    }
    x = cx;
    y = cy;
  }
  ctx.lineTo(points[2 * to]! * zoom + ox, points[2 * to + 1]! * zoom + oy);
}

/** Edges of what is selected or under the pointer, above the others. */
export function paintLitEdges(frame: Frame): void {
  const {
    ctx,
    scene: { edges },
    index,
    theme,
    paint,
    marks,
  } = frame;
  const out: number[] = [];
  const into: number[] = [];
  const gather = (box: number): void => {
    if (box < 0 || box + 1 >= index.touchStart.length) return;
    for (let i = index.touchStart[box]!; i < index.touchStart[box + 1]! && out.length + into.length < MOST_LIT; i++) {
      const edge = index.touching[i]!;
      (edges.source[edge] === box ? out : into).push(edge);
    }
  };
  if (paint.selected.size <= 200) for (const box of paint.selected) gather(box);
  if (paint.hovered >= 0 && !(marks[paint.hovered]! & SELECTED)) gather(paint.hovered);
  // Between two selected boxes an edge is in both lists: once is enough.
  const outs = new Set(out);
  strokeLit(
    frame,
    into.filter((edge) => !outs.has(edge)),
    theme.incoming,
    2,
  );
  strokeLit(frame, [...outs], theme.outgoing, 2);
  if (paint.litEdges) strokeLit(frame, onPath(frame, paint.litEdges), theme.related, 2.4);
  if (paint.hoveredEdge >= 0 && paint.hoveredEdge < edges.count) strokeLit(frame, [paint.hoveredEdge], theme.selected, 2.6);
  ctx.globalAlpha = 1;
}

/** Those on the screen that are lit. */
function onPath(frame: Frame, lit: Uint8Array): number[] {
  piecesIn(frame);
  const edges = new Set<number>();
  for (let i = 0; i < found.size && edges.size < MOST_LIT; i++) {
    const edge = frame.index.pieceEdge[found.items[i]!]!;
    if (lit[edge]) edges.add(edge);
  }
  return [...edges];
}

function strokeLit(frame: Frame, list: number[], colour: string, width: number): void {
  if (list.length === 0) return;
  const {
    ctx,
    scene: { edges },
    zoom,
  } = frame;
  ctx.strokeStyle = ctx.fillStyle = colour;
  ctx.lineWidth = Math.max(1.2, width * Math.min(1.2, 0.4 + zoom * 0.6));
  ctx.setLineDash([]);
  ctx.globalAlpha = 0.95;
  for (let i = 0; i < list.length; i += BATCH) {
    ctx.beginPath();
    for (const edge of list.slice(i, i + BATCH)) trace(frame, edges.points, edges.start[edge]!, edges.start[edge + 1]! - 1);
    ctx.stroke();
  }
  const size = Math.max(5, 8.5 * Math.min(1.3, zoom));
  ctx.beginPath();
  for (const edge of list) {
    head(frame, edges, edge, size);
    if (list.length < 300) flow(frame, edge, size * 0.85);
  }
  ctx.fill();
}

/** Arrowheads along an edge so that its direction shows where its end does not. */
function flow(frame: Frame, edge: number, size: number): void {
  const {
    ctx,
    scene: {
      edges: { points, start },
    },
    zoom,
    ox,
    oy,
    screen,
  } = frame;
  for (let p = start[edge]!; p + 1 < start[edge + 1]!; p++) {
    const [ax, ay] = [points[2 * p]! * zoom + ox, points[2 * p + 1]! * zoom + oy];
    const [bx, by] = [points[2 * p + 2]! * zoom + ox, points[2 * p + 3]! * zoom + oy];
    const length = Math.hypot(bx - ax, by - ay);
    if (length < 140) continue;
    const [dx, dy] = [(bx - ax) / length, (by - ay) / length];
    // Only the part near the screen: an edge may be a million pixels long.
    const middle = (screen.width / 2 - ax) * dx + (screen.height / 2 - ay) * dy;
    const reach = screen.width + screen.height;
    for (let at = Math.max(70, Math.floor((middle - reach) / 140) * 140 + 70); at < Math.min(length - 30, middle + reach); at += 140) {
      arrow(ctx, ax + dx * at, ay + dy * at, dx, dy, size);
    }
  }
}

/** Shape and dtype at the middle of edges: of the one under the pointer, or of all that have room. */
export function paintEdgeLabels(frame: Frame): void {
  const { scene, index, paint, zoom } = frame;
  const { edges } = scene;
  const all = paint.edgeLabels === 'always';
  // What a rung keeps is said in any case.
  if ((all || scene.layout === 'u') && zoom >= 0.6 && frame.boxAlpha === null) {
    piecesIn(frame);
    const taken: Placed[] = titlesIn(frame);
    const most = taken.length + 240;
    for (let i = 0; i < found.size && taken.length < most; i++) {
      const edge = index.pieceEdge[found.items[i]!]!;
      const told = all || edges.kind[edge] === EdgeKind.Rung || edges.kind[edge] === EdgeKind.Tied;
      if (told && edge !== paint.hoveredEdge) label(frame, edge, taken, false);
    }
  }
  if (paint.hoveredEdge >= 0 && paint.hoveredEdge < edges.count) label(frame, paint.hoveredEdge, [], true);
}

/** What a label must not lie on: another label, or (edge -1) the words of a group's header. */
interface Placed {
  x: number;
  y: number;
  w: number;
  h: number;
  edge: number;
}

function titlesIn(frame: Frame): Placed[] {
  const {
    scene: { boxes },
    fitter,
    zoom,
    ox,
    oy,
  } = frame;
  panelsIn(frame, 40, under);
  const out: Placed[] = [];
  for (let i = 0; i < under.size; i++) {
    const b = under.items[i]!;
    const { titleWidth, detailWidth, countWidth } = fitter.of(b);
    const y = (boxes.y[b]! + HEADER / 2) * zoom + oy;
    const place = (left: number, wide: number) => out.push({ x: (left + wide / 2) * zoom + ox, y, w: wide * zoom, h: 18 * zoom, edge: -1 });
    place(boxes.x[b]!, PANEL_LEFT + titleWidth + 8 + detailWidth);
    place(boxes.x[b]! + boxes.width[b]! - TEXT_RIGHT - countWidth - 4, countWidth + 4);
  }
  return out;
}

/** Along a line: in its middle, or as near to it as there is room. */
const PLACES = [0.5, 0.36, 0.64, 0.24, 0.76];

function label(frame: Frame, edge: number, taken: Placed[], hovered: boolean): void {
  const {
    ctx,
    scene: { edges, texts, direction },
    theme,
  } = frame;
  const text = fitText(clean(texts[edges.label[edge]!] ?? ''), 260, LABEL_SIZE);
  if (text === '') return;
  const size = hovered ? 12 : LABEL_SIZE * Math.min(1.2, frame.zoom);
  const w = textWidth(text, size) * 1.04 + 10;
  const h = size + 6;
  const middle = middleOf(frame, edge);
  if (middle === null) return;
  let { x, y } = middle;
  if (hovered) {
    x = Math.max(w / 2 + 4, Math.min(frame.screen.width - w / 2 - 4, x));
    y = Math.max(h / 2 + 4, Math.min(frame.screen.height - h / 2 - 4, y));
  } else {
    const level = Math.abs(middle.by - middle.ay) < Math.abs(middle.bx - middle.ax);
    if ((direction === 'down' && !level ? middle.length : middle.length - w) < h || taken.some((p) => p.edge === edge)) return;
    const place = PLACES.find((t) => {
      [x, y] = [middle.ax + (middle.bx - middle.ax) * t, middle.ay + (middle.by - middle.ay) * t];
      if (taken.some((p) => Math.abs(p.x - x) < (p.w + w) / 2 && Math.abs(p.y - y) < (p.h + h) / 2)) return false;
      return !onBox(frame, x - w / 2, y - h / 2, x + w / 2, y + h / 2);
    });
    if (place === undefined) return;
    taken.push({ x, y, w, h, edge });
  }
  ctx.fillStyle = theme.edgeLabel;
  roundRect(ctx, x - w / 2, y - h / 2, w, h, 5);
  ctx.globalAlpha = hovered ? 1 : 0.92;
  ctx.fill();
  ctx.globalAlpha = 1;
  if (hovered) {
    ctx.strokeStyle = theme.selected;
    ctx.lineWidth = 1.2;
    ctx.stroke();
  }
  ctx.font = `400 ${size}px ${FONT}`;
  ctx.fillStyle = hovered ? theme.text : theme.edgeLabelText;
  ctx.textAlign = 'center';
  ctx.fillText(text, x, y + size * 0.36);
  ctx.textAlign = 'left';
}

const under = new Bag();

/** Whether a rectangle of the screen would hide part of a box. */
function onBox(frame: Frame, left: number, top: number, right: number, bottom: number): boolean {
  const {
    scene: { boxes },
    index,
    zoom,
    ox,
    oy,
  } = frame;
  const [x0, y0, x1, y1] = [(left - ox) / zoom, (top - oy) / zoom, (right - ox) / zoom, (bottom - oy) / zoom];
  under.size = 0;
  search(index.leaves, x0, y0, x1, y1, under);
  for (let i = 0; i < under.size; i++) {
    const b = under.items[i]!;
    if (boxes.x[b]! < x1 && boxes.y[b]! < y1 && boxes.x[b]! + boxes.width[b]! > x0 && boxes.y[b]! + boxes.height[b]! > y0) return true;
  }
  return false;
}

/** A straight part of a line, with its middle, in pixels. */
interface Stretch {
  x: number;
  y: number;
  length: number;
  ax: number;
  ay: number;
  bx: number;
  by: number;
}

/** The middle of the longest piece of an edge that is on the screen. */
function middleOf(frame: Frame, edge: number): Stretch | null {
  const {
    scene: {
      edges: { points, start },
    },
    zoom,
    ox,
    oy,
    screen,
  } = frame;
  let best: Stretch | null = null;
  for (let p = start[edge]!; p + 1 < start[edge + 1]!; p++) {
    const [ax, ay] = [points[2 * p]! * zoom + ox, points[2 * p + 1]! * zoom + oy];
    const [bx, by] = [points[2 * p + 2]! * zoom + ox, points[2 * p + 3]! * zoom + oy];
    let [t0, t1] = [0, 1];
    for (const [d, a, most] of [
      [bx - ax, ax, screen.width],
      [by - ay, ay, screen.height],
    ] as const) {
      if (d === 0) {
        if (a < 0 || a > most) t1 = -1;
        continue;
      }
      t0 = Math.max(t0, Math.min(-a / d, (most - a) / d));
      t1 = Math.min(t1, Math.max(-a / d, (most - a) / d));
    }
    if (t1 <= t0) continue;
    const length = Math.hypot(bx - ax, by - ay) * (t1 - t0);
    if (best !== null && length <= best.length) continue;
    const at = (t: number): [number, number] => [ax + (bx - ax) * t, ay + (by - ay) * t];
    const [[x, y], from, to] = [at((t0 + t1) / 2), at(t0), at(t1)];
    best = { x, y, length, ax: from[0], ay: from[1], bx: to[0], by: to[1] };
  }
  return best;
}
