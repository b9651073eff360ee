// Sizes of what is in a box, in units of the world; the canvas and the SVG writer use the same.
// They follow the sizes the engine gives boxes (engine/scene.ts).
import { BoxKind, EdgeKind } from '../scene.ts';
import type { Boxes, Edges } from '../scene.ts';

/** Faces about as wide as text/widths.ts says. */
export const FONT =
  'Inter, "Segoe UI", Roboto, "Noto Sans", Helvetica, Arial, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif';
export const TITLE_SIZE = 13;
export const DETAIL_SIZE = 11;
export const LABEL_SIZE = 10.5;
export const BADGE_SIZE = 11;
export const TITLE_WEIGHT = 500;
export const GROUP_WEIGHT = 600;
export const RADIUS = 7;
export const PANEL_RADIUS = 10;
export const HEADER = 30;
/** Where text starts, right of the bar, and what stays free at the right. */
export const TEXT_LEFT = 15;
export const TEXT_RIGHT = 10;
/** The same in the header of an open group. */
export const PANEL_LEFT = 20;
export const PANEL_BAR = 10;
export const BAR = { left: 6, width: 3, gap: 7 } as const;
/** Titles of cards that are too small for their own: pixels, whatever the zoom; and what stays free beside them. */
export const SMALL = { size: 8, gap: 2.5 } as const;
/** How far each further card of a stack looks out below. */
export const STACK = 3;
/** A box at least this high has a second line. */
export const TWO_LINES = 36;

/** Inputs, and the loss at the bend of a training step: round, without a bar. */
export function isPill(kind: number): boolean {
  return kind === BoxKind.Input || kind === BoxKind.Loss;
}

/** How many cards look out below a box. */
export function stackOf(kind: number): number {
  return kind === BoxKind.Closed ? 1 : kind === BoxKind.Folded ? 2 : 0;
}

/** The height of the front card of a box. */
export function cardHeight(boxes: Boxes, box: number): number {
  return boxes.height[box]! - STACK * stackOf(boxes.kind[box]!);
}

/** 12345 as "12,345", as the panels write it; what would be longer is shortened. */
export function grouped(n: number): string {
  return n < 100_000 ? String(n).replace(/\B(?=(\d{3})+$)/g, ',') : compact(n);
}

/** 1234567 as "1.2M". */
export function compact(n: number): string {
  if (n < 1000) return String(n);
  const [unit, name] = n < 999_500 ? [1e3, 'k'] : n < 999_500_000 ? [1e6, 'M'] : [1e9, 'G'];
  const v = n / unit;
  return `${v < 9.95 ? v.toFixed(1).replace(/\.0$/, '') : Math.round(v)}${name}`;
}

/** What a rung of a training step is wide, where the widest of the drawing keeps `most` bytes: as the bytes, but to be seen. */
export function widthOfRung(bytes: number, most: number): number {
  return bytes > 0 && most > 0 ? Math.max(2, (24 * bytes) / most) : 1.5;
}

const largest = new WeakMap<Edges, number>();

/** The most bytes that a rung of these edges keeps. */
export function mostKept(edges: Edges): number {
  let most = largest.get(edges);
  if (most === undefined) {
    most = 0;
    for (let e = 0; e < edges.count; e++) if (edges.kind[e] === EdgeKind.Rung) most = Math.max(most, edges.bytes[e]!);
    largest.set(edges, most);
  }
  return most;
}

/** Pixels of an edge that carries `bytes`: 1.2 for a kilobyte or less, 7 for a gigabyte. */
export function widthOfBytes(bytes: number): number {
  if (!(bytes > 1024)) return 1.2;
  return Math.min(7, 1.2 + 0.29 * (Math.log2(bytes) - 10));
}
