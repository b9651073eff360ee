// The graph from afar: every box a few pixels or less. Drawn into pixels, from the index's pyramid when there
// are too many boxes.
import type { Boxes, Paint } from '../scene.ts';
import { mix, parseColour } from './colour.ts';
import { levelFor } from '../picture/density.ts';
import type { Density } from '../picture/density.ts';
import type { Frame } from './frame.ts';
import { fillOf, flatRgb, litColour } from './frame.ts';
import { PANEL_SIZES, PIECE_LENGTHS } from '../picture/spatial.ts';
import { panelOf } from './theme.ts';
import type { Theme } from './theme.ts';
import { Bag, countIn, floorFor, search } from '../picture/rtree.ts';

const MOST_BLOCKS = 64_000;
const MOST_LINES = 5000;
const MOST_PANELS = 6000;
/** Edges are looked at one by one up to here; a class of more is a blur anyway. */
const MOST_SEEN_LINES = 50_000;
/** Pixels of a cell of the density, and its shades. */
const CELL = 2.6;
const COVERS = 32;
const MOST_LIT = 60_000;
const found = new Bag();
const sorted = new Bag();

/** Paints background, groups, edges and boxes; fills the whole canvas. */
export function paintOverview(frame: Frame): void {
  const { ctx, pixels, screen, theme } = frame;
  // Twice as many pixels would cost four times as much and show no more.
  const ratio = frame.ratio >= 1.5 ? 1 : frame.ratio;
  const scaled = { ...frame, zoom: frame.zoom * ratio, ox: frame.ox * ratio, oy: frame.oy * ratio };
  pixels.begin(Math.ceil(screen.width * ratio), Math.ceil(screen.height * ratio), parseColour(theme.background));
  groups(scaled);
  lines(scaled);
  blocks(scaled);
  lit(scaled);
  show(frame, ctx);
}

function show(frame: Frame, ctx: Frame['ctx']): void {
  const { pixels, ratio, screen } = frame;
  const { image } = pixels;
  if (image === null) return;
  ctx.setTransform(1, 0, 0, 1, 0, 0);
  if (pixels.width >= screen.width * ratio) {
    ctx.putImageData(image, 0, 0);
    return;
  }
  const between = scratch(pixels.width, pixels.height);
  between.putImageData(image, 0, 0);
  ctx.imageSmoothingEnabled = true;
  ctx.drawImage(between.canvas, 0, 0, screen.width * ratio, screen.height * ratio);
}

let canvas: OffscreenCanvas | null = null;

function scratch(width: number, height: number): OffscreenCanvasRenderingContext2D {
  if (canvas === null || canvas.width !== width || canvas.height !== height) canvas = new OffscreenCanvas(width, height);
  return canvas.getContext('2d')!;
}

/**
 * Ids of the open groups on the screen that are at least `least` pixels on their longer side, outer ones first.
 * Sizes of which there are more than `most` are left out.
 */
export function panelsIn(frame: Frame, least: number, out: Bag, most = Infinity): void {
  const { boxes } = frame.scene;
  found.size = 0;
  frame.index.panels.forEach((tree, c) => {
    if ((PANEL_SIZES[c] ?? Infinity) * frame.zoom < least) return;
    if (countIn(tree, frame.x0, frame.y0, frame.x1, frame.y1) <= most) search(tree, frame.x0, frame.y0, frame.x1, frame.y1, found);
  });
  const size = least / frame.zoom;
  const starts = new Int32Array(257);
  let kept = 0;
  for (let i = 0; i < found.size; i++) {
    const b = found.items[i]!;
    if (Math.max(boxes.width[b]!, boxes.height[b]!) < size || !touches(frame, boxes, b)) continue;
    found.items[kept++] = b;
    starts[boxes.depth[b]! + 1]!++;
  }
  for (let d = 0; d < 256; d++) starts[d + 1]! += starts[d]!;
  if (out.items.length < kept) out.items = new Int32Array(2 * kept);
  out.size = kept;
  for (let i = 0; i < kept; i++) out.items[starts[boxes.depth[found.items[i]!]!]!++] = found.items[i]!;
}

export function touches(frame: Frame, boxes: Boxes, b: number): boolean {
  return (
    boxes.x[b]! <= frame.x1 &&
    boxes.y[b]! <= frame.y1 &&
    boxes.x[b]! + boxes.width[b]! >= frame.x0 &&
    boxes.y[b]! + boxes.height[b]! >= frame.y0
  );
}

function groups(frame: Frame): void {
  const {
    scene: { boxes },
    pixels,
    theme,
    zoom,
    ox,
    oy,
  } = frame;
  const border = parseColour(theme.panelBorder);
  const shades = theme.panels.map((_, depth) => parseColour(panelOf(theme, depth)));
  frame.index.panels.forEach((tree, c) => {
    const count = countIn(tree, frame.x0, frame.y0, frame.x1, frame.y1);
    if (count <= MOST_PANELS || (PANEL_SIZES[c] ?? Infinity) * zoom < 3) return;
    // Too many to tell apart: their blocks stand for them.
    found.size = 0;
    search(tree, frame.x0, frame.y0, frame.x1, frame.y1, found, floorFor(count, MOST_PANELS));
    for (let i = 0; i < found.size; i++) {
      const k = 4 * found.items[i]!;
      const { bounds } = tree;
      pixels.block(bounds[k]! * zoom + ox, bounds[k + 1]! * zoom + oy, bounds[k + 2]! * zoom + ox, bounds[k + 3]! * zoom + oy, shades[0]!);
    }
  });
  panelsIn(frame, 3, sorted, MOST_PANELS);
  for (let i = 0; i < sorted.size; i++) {
    const b = sorted.items[i]!;
    const x0 = boxes.x[b]! * zoom + ox;
    const y0 = boxes.y[b]! * zoom + oy;
    const x1 = x0 + boxes.width[b]! * zoom;
    const y1 = y0 + boxes.height[b]! * zoom;
    const shade = shades[Math.min(boxes.depth[b]!, shades.length - 1)]!;
    if (y1 - y0 > 8 && x1 - x0 > 8) {
      pixels.block(x0, y0, x1, y1, shade);
      pixels.rect(x0, y0, x1, y0 + 1, border, 256);
      pixels.rect(x0, y1 - 1, x1, y1, border, 256);
      pixels.rect(x0, y0, x0 + 1, y1, border, 256);
      pixels.rect(x1 - 1, y0, x1, y1, border, 256);
    } else {
      pixels.block(x0, y0, x1, y1, mix(shade, border, 0.4));
    }
  }
}

function lines(frame: Frame): void {
  const {
    scene: { edges },
    index,
    pixels,
    theme,
    zoom,
    ox,
    oy,
    paint,
  } = frame;
  const { points } = edges;
  const colours = theme.edgeKinds.map(parseColour);
  const dim = paint.dim ? 0.5 : 1;
  // From the longest class down, while there is room: those carry the structure.
  let left = MOST_LINES;
  for (let c = index.pieces.length - 1; c >= 0; c--) {
    const longest = (PIECE_LENGTHS[c] ?? Infinity) * zoom;
    if (longest < 5 || left <= 0) break;
    const tree = index.pieces[c]!;
    const count = countIn(tree, frame.x0, frame.y0, frame.x1, frame.y1);
    if (count > MOST_SEEN_LINES) break;
    // Some by lot when there are too many; always the same ones.
    const share = Math.min(1, left / count);
    const lot = share * 2 ** 32;
    const fade = Math.min(1, (longest - 4) / 30) * Math.sqrt(share) * dim;
    const alpha = Math.round(200 * fade * Math.min(1, 0.3 + 5 * frame.zoom));
    found.size = 0;
    search(tree, frame.x0, frame.y0, frame.x1, frame.y1, found);
    left -= found.size * share;
    for (let i = 0; i < found.size; i++) {
      const piece = found.items[i]!;
      if (share < 1 && Math.imul(index.pieceEdge[piece]! + 1, 0x9e3779b1) >>> 0 > lot) continue;
      const from = index.pieceFrom[piece]!;
      const to = index.pieceTo[piece]!;
      const colour = colours[edges.kind[index.pieceEdge[piece]!]!] ?? colours[0]!;
      let x = points[2 * from]! * zoom + ox;
      let y = points[2 * from + 1]! * zoom + oy;
      for (let p = from + 1; p <= to; p++) {
        const nx = points[2 * p]! * zoom + ox;
        const ny = points[2 * p + 1]! * zoom + oy;
        // Steps of less than a pixel are joined.
        if (p < to && Math.abs(nx - x) + Math.abs(ny - y) < 1) continue;
        pixels.line(x, y, nx, ny, colour, alpha);
        x = nx;
        y = ny;
      }
    }
  }
}

function blocks(frame: Frame): void {
  const {
    scene: { boxes },
    index,
    pixels,
    theme,
    paint,
    zoom,
    ox,
    oy,
  } = frame;
  const tree = index.leaves;
  const background = parseColour(panelOf(theme, 0));
  const colours = flatRgb(theme).map((rgb) => (paint.dim ? mix(background, rgb, theme.dimmed) : rgb));
  if (countIn(tree, frame.x0, frame.y0, frame.x1, frame.y1) > MOST_BLOCKS) {
    cells(frame, colours, background);
    return;
  }
  found.size = 0;
  search(tree, frame.x0, frame.y0, frame.x1, frame.y1, found);
  for (let i = 0; i < found.size; i++) {
    const b = found.items[i]!;
    const x = boxes.x[b]! * zoom + ox;
    const y = boxes.y[b]! * zoom + oy;
    let rgb = colours[boxes.phase[b]!]!;
    if (paint.fill !== null) {
      const own = fillOf(paint, b);
      if (own !== null) rgb = paint.dim ? mix(background, parseColour(own), theme.dimmed) : parseColour(own);
    }
    pixels.rect(x, y, x + boxes.width[b]! * zoom, y + boxes.height[b]! * zoom, rgb, 256);
  }
}

function cells(frame: Frame, colours: number[], background: number): void {
  const {
    index: { density },
    pixels,
    zoom,
    ox,
    oy,
  } = frame;
  const level = levelFor(density, zoom, CELL);
  const side = density.cell * 2 ** level;
  const [columns, rows, start] = [density.columns[level]!, density.rows[level]!, density.start[level]!];
  const [left, right] = [Math.max(0, Math.floor(frame.x0 / side)), Math.min(columns - 1, Math.floor(frame.x1 / side))];
  const [top, bottom] = [Math.max(0, Math.floor(frame.y0 / side)), Math.min(rows - 1, Math.floor(frame.y1 / side))];
  // Even thin cover shows: mixed once for all of a shade, not pixel by pixel.
  const shades = colours.map((rgb) => Array.from({ length: COVERS }, (_, c) => mix(background, rgb, strength(c))));
  const colouring = colouringOf(frame, level, background);
  for (let cy = top; cy <= bottom; cy++) {
    const y0 = cy * side * zoom + oy;
    for (let cx = left; cx <= right; cx++) {
      const at = start + cy * columns + cx;
      const cover = density.cover[at]!;
      if (cover === 0) continue;
      const x0 = cx * side * zoom + ox;
      const shade = (cover * COVERS) >> 8;
      const own = colouring === null ? -1 : colouring[at - start]!;
      const rgb = own >= 0 ? own : shades[density.phase[at]!]![shade]!;
      pixels.block(x0, y0, x0 + side * zoom, y0 + side * zoom, rgb);
    }
  }
}

/** How strongly a cell of one of the shades of cover is coloured. */
function strength(shade: number): number {
  return Math.min(1, 0.15 + (1.5 * shade) / COVERS);
}

interface Colouring {
  fill: Paint['fill'];
  density: Density;
  level: number;
  theme: Theme;
  dim: boolean;
  rgb: Int32Array;
}

let lastColouring: Colouring | null = null;

/** The page's own colours of the cells of a level (-1: none), or null without any. Kept while nothing but the view changes. */
function colouringOf(frame: Frame, level: number, background: number): Int32Array | null {
  const {
    index: { density },
    paint: { fill, dim },
    theme,
  } = frame;
  if (fill === null) return null;
  const last = lastColouring;
  if (last !== null && last.fill === fill && last.density === density && last.level === level && last.theme === theme && last.dim === dim)
    return last.rgb;
  const start = density.start[level]!;
  const rgb = new Int32Array(density.columns[level]! * density.rows[level]!).fill(-1);
  for (let k = 0; k < rgb.length; k++) {
    const own = density.cover[start + k] === 0 ? null : fillOf(frame.paint, density.box[start + k]!);
    if (own !== null)
      rgb[k] = mix(background, parseColour(own), strength((density.cover[start + k]! * COVERS) >> 8) * (dim ? theme.dimmed : 1));
  }
  lastColouring = { fill, density, level, theme, dim, rgb };
  return rgb;
}

/** What is selected, related or found stays visible however small it is. */
function lit(frame: Frame): void {
  const {
    scene: { boxes },
    pixels,
    theme,
    paint,
    zoom,
    ox,
    oy,
    marks,
  } = frame;
  let left = MOST_LIT;
  for (const set of [paint.related, paint.found, paint.selected]) {
    for (const b of set) {
      if (b < 0 || b >= boxes.count || boxes.kind[b] === 2 || left-- <= 0 || !touches(frame, boxes, b)) continue;
      const [w, h] = [Math.max(3, boxes.width[b]! * zoom), Math.max(3, boxes.height[b]! * zoom)];
      const [x, y] = [(boxes.x[b]! + boxes.width[b]! / 2) * zoom + ox, (boxes.y[b]! + boxes.height[b]! / 2) * zoom + oy];
      pixels.rect(x - w / 2, y - h / 2, x + w / 2, y + h / 2, parseColour(litColour(theme, marks[b]!)), 256);
    }
  }
}
