// How much space there is between adjacent boxes and lines.

/** Space between neighbours on a layer; lines may run closer to each other than boxes. */
export interface Gaps {
  box: number; // box to box
  side: number; // line to box
  line: number; // line to line
}

/** So many lines of a layer are drawn apart; more are drawn closer, as a bundle. */
export const APART = 100;

/** `lines`: the most that any layer has. */
export function gapsFor(gapX: number, lines = 0): Gaps {
  return { box: gapX, side: gapX * 0.5, line: gapX * 0.4 * Math.min(1, APART / Math.max(1, lines)) };
}

/** Lines that run in a bundle beside boxes are drawn closer still, as one broad band. */
const BAND = 240;

/** The distance of lines that run beside each other, where there is room. */
export function linePitch(gapX: number): number {
  return Math.max(4, 0.4 * gapX);
}

/** How broad a bundle of so many lines is. */
export function bundle(lines: number, pitch: number): number {
  return Math.min(lines * pitch, BAND + 0.05 * lines);
}

/** Least distance of the centres of neighbours a and b; items from `boxes` on are lines. */
export function separation(a: number, b: number, half: Float64Array, gaps: Gaps, boxes: number): number {
  return half[a] + half[b] + (a < boxes ? (b < boxes ? gaps.box : gaps.side) : b < boxes ? gaps.side : gaps.line);
}
