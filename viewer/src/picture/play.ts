// Where the bead of a run is, and the curve of what is in memory: the same on the page, in a video and in an SVG.

import type { Scene } from '../scene.ts';

export const PLAY_SECONDS = 8;
export const STRIP = 84; // the height of the memory curve, with its words

/** What an engine says about a run (engine/playback.ts). */
export interface Run {
  box: Int32Array;
  at: Float64Array;
  live: Float64Array;
  peakBytes: number;
}

export interface Spot {
  x: number;
  y: number;
}

/** At the left end of a box, where it hides no word. */
export function spotOf({ boxes }: Scene, box: number): Spot {
  return { x: boxes.x[box]!, y: boxes.y[box]! + boxes.height[box]! / 2 };
}

/** The bead at a time from 0 to 1: it stays where something is computed, and hurries to the next. */
export function beadAt(scene: Scene, { box, at }: Run, time: number): Spot | null {
  if (!box.length) return null;
  let i = at.length - 1;
  while (i > 0 && at[i]! > time) i--;
  const here = spotOf(scene, box[i]!);
  if (i === box.length - 1) return here;
  const there = spotOf(scene, box[i + 1]!);
  const part = Math.max(0, Math.min(1, (time - at[i]!) / (at[i + 1]! - at[i]! || 1)));
  return { x: here.x + (there.x - here.x) * part, y: here.y + (there.y - here.y) * part };
}

/** What is in memory at a time, and how high that is against the peak. */
export function liveAt({ live, peakBytes }: Run, time: number): { bytes: number; part: number } {
  const bytes = live[Math.min(live.length - 1, Math.floor(time * live.length))] ?? NaN;
  return { bytes, part: bytes / peakBytes };
}

/** The curve as points in a rectangle of this size, from the left bottom. */
export function curve({ live, peakBytes }: Run, width: number, height: number): [number, number][] {
  return Array.from(live, (bytes, i) => [((i + 0.5) / live.length) * width, height - (bytes / (peakBytes || 1)) * height]);
}
