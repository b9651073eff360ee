// A part of the timeline as few rectangles: what would be narrower than a pixel or two is one with its neighbours.

import { busyUntil, firstAfter, type Lane } from './lanes.ts';

/** What is lit of a lane: how many of its first spans are selected, and found. */
export interface Lit {
  selected: Int32Array;
  found: Int32Array;
}

export const [SELECTED, FOUND, SEVERAL] = [1, 2, 4] as const;

/** Rectangles of some lanes; the buffers go to the page. */
export interface Window {
  from: number; // seconds
  to: number;
  pixels: number; // that the times are wide
  firstLane: number;
  /** By lane from the first on: where its rectangles begin; one more at the end. */
  starts: Int32Array;
  /** Pixels of the width that was asked for. */
  x: Float32Array;
  width: Float32Array;
  tone: Uint8Array;
  /** How much of the rectangle is covered, of 255. */
  share: Uint8Array;
  flags: Uint8Array;
  /** The first span in its lane, and how many there are. */
  span: Int32Array;
  count: Int32Array;
  /** In `labels`; -1: too narrow for a title. */
  label: Int32Array;
  labels: string[];
}

const LEAST = 2; // pixels
const LEAST_TITLE = 24;
const STEPS = 8; // shades of how much is covered

export interface Titled {
  tone(lane: Lane, span: number): number;
  title(lane: Lane, span: number): string;
  lit(lane: Lane): Lit | null;
}

class Rectangles {
  x: number[] = [];
  width: number[] = [];
  tone: number[] = [];
  share: number[] = [];
  flags: number[] = [];
  span: number[] = [];
  count: number[] = [];
  label: number[] = [];
  labels: string[] = [];
  private numbers = new Map<string, number>();

  add(x: number, width: number, tone: number, share: number, flags: number, span: number, count: number, title: string): void {
    this.x.push(x);
    this.width.push(width);
    this.tone.push(tone);
    this.share.push(share);
    this.flags.push(flags);
    this.span.push(span);
    this.count.push(count);
    let label = -1;
    if (title) {
      label = this.numbers.get(title) ?? -1;
      if (label < 0) this.numbers.set(title, (label = this.labels.push(title) - 1));
    }
    this.label.push(label);
  }
}

/** The lanes from `first` up to `last` between two times, in `pixels`. */
export function windowOf(
  lanes: readonly Lane[],
  titled: Titled,
  [from, to]: [number, number],
  pixels: number,
  [first, last]: [number, number],
): Window {
  const out = new Rectangles();
  const starts = [0];
  const scale = pixels / Math.max(to - from, 1e-12);
  for (let l = first; l < last; l++) {
    if (lanes[l]) fill(out, lanes[l]!, titled, from, to, scale, starts.at(-1)!);
    starts.push(out.x.length);
  }
  return {
    from,
    to,
    pixels,
    firstLane: first,
    starts: Int32Array.from(starts),
    x: Float32Array.from(out.x),
    width: Float32Array.from(out.width),
    tone: Uint8Array.from(out.tone),
    share: Uint8Array.from(out.share),
    flags: Uint8Array.from(out.flags),
    span: Int32Array.from(out.span),
    count: Int32Array.from(out.count),
    label: Int32Array.from(out.label),
    labels: out.labels,
  };
}

function fill(out: Rectangles, lane: Lane, titled: Titled, from: number, to: number, scale: number, begin: number): void {
  const lit = titled.lit(lane);
  const least = LEAST / scale;
  const { start, end, busy } = lane;
  const flagsOf = (a: number, b: number) =>
    lit ? (lit.selected[b]! > lit.selected[a]! ? SELECTED : 0) | (lit.found[b]! > lit.found[a]! ? FOUND : 0) : 0;
  for (let i = firstAfter(lane, from); i < start.length && start[i]! < to;) {
    const took = end[i]! - start[i]!;
    if (took >= least) {
      const width = took * scale;
      const title = width >= LEAST_TITLE ? titled.title(lane, i) : '';
      out.add((start[i]! - from) * scale, width, titled.tone(lane, i), 255, flagsOf(i, i + 1), i, 1, title);
      i++;
      continue;
    }
    // Up to the first that ends behind the pixel, and is not a rectangle by itself.
    let next = Math.max(i + 1, firstAfter(lane, start[i]! + least, i + 1));
    if (next - 1 > i && end[next - 1]! - start[next - 1]! >= least) next--;
    const covered = Math.min(1, (busy[next]! - busy[i]!) / least);
    const share = Math.max(1, Math.ceil(covered * STEPS)) * (255 / STEPS);
    const [tone, flags, x] = [titled.tone(lane, i), flagsOf(i, next), (start[i]! - from) * scale];
    const before = out.x.length - 1;
    const touches = before >= begin && out.flags[before]! & SEVERAL && x - (out.x[before]! + out.width[before]!) < LEAST / 2;
    if (touches && out.tone[before] === tone && out.share[before] === share && (out.flags[before]! & ~SEVERAL) === flags) {
      out.width[before] = x + LEAST - out.x[before]!;
      out.count[before]! += next - i;
    } else out.add(x, LEAST, tone, share, flags | SEVERAL, i, next - i, '');
    i = next;
  }
}

/** How much of each pixel is covered by a lane. */
export function coverage(lane: Lane, from: number, to: number, pixels: number): Float32Array {
  const out = new Float32Array(pixels);
  const step = (to - from) / pixels;
  let before = busyUntil(lane, from);
  for (let p = 0; p < pixels; p++) {
    const now = busyUntil(lane, from + (p + 1) * step);
    out[p] = step > 0 ? Math.min(1, (now - before) / step) : 0;
    before = now;
  }
  return out;
}
