// All that one picture is made from. The screen, PNG export and tests each make their own.
import type { Paint, Scene } from '../scene.ts';
import { parseColour } from './colour.ts';
import type { Fitter } from './label.ts';
import { noMarks } from './marks.ts';
import type { Pixels } from './pixels.ts';
import type { SceneIndex } from '../picture/spatial.ts';
import type { Theme } from './theme.ts';
import type { Size, View } from './viewport.ts';
import { visible } from './viewport.ts';

export type Context = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

export const SELECTED = 1;
const RELATED = 2;
const FOUND = 4;

export interface Frame {
  ctx: Context;
  scene: Scene;
  index: SceneIndex;
  theme: Theme;
  paint: Paint;
  /** By box: SELECTED, RELATED, FOUND. */
  marks: Uint8Array;
  fitter: Fitter;
  pixels: Pixels;
  screen: Size;
  /** Pixels of the device per pixel of the page. */
  ratio: number;
  /** How far things may be put on whole pixels: true when nothing moves. */
  still: boolean;
  /** Screen = world * zoom + (ox, oy). */
  zoom: number;
  ox: number;
  oy: number;
  /** The world on the screen, with a small margin. */
  x0: number;
  y0: number;
  x1: number;
  y1: number;
  /** How much of each box and edge is to be seen: while things move to a new layout; edges of ghosts always. */
  boxAlpha: Float32Array | null;
  edgeAlpha: Float32Array | null;
}

export function noPaint(): Paint {
  return { ...noMarks(), dim: false, edgeLabels: 'hover', edgeWidth: 'plain' };
}

export function marksOf(paint: Paint, count: number): Uint8Array {
  const marks = new Uint8Array(count);
  for (const [set, mark] of [
    [paint.selected, SELECTED],
    [paint.related, RELATED],
    [paint.found, FOUND],
  ] as const) {
    for (const box of set) if (box >= 0 && box < count) marks[box]! |= mark;
  }
  return marks;
}

export interface FrameInput extends Pick<
  Frame,
  'ctx' | 'scene' | 'index' | 'theme' | 'paint' | 'marks' | 'fitter' | 'pixels' | 'screen' | 'ratio' | 'still'
> {
  view: View;
  edgeAlpha?: Float32Array | null;
}

export function frameOf(input: FrameInput): Frame {
  const { view, screen } = input;
  const seen = visible(view, screen);
  const margin = 8 / view.zoom;
  return {
    ...input,
    zoom: view.zoom,
    ox: screen.width / 2 - view.x * view.zoom,
    oy: screen.height / 2 - view.y * view.zoom,
    x0: seen.x - margin,
    y0: seen.y - margin,
    x1: seen.x + seen.width + margin,
    y1: seen.y + seen.height + margin,
    boxAlpha: null,
    edgeAlpha: input.edgeAlpha ?? null,
  };
}

/** Cards turn into flat colour as they become small: 0 a card, 1 flat. */
export function flatness(zoom: number): number {
  return Math.max(0, Math.min(1, (0.55 - zoom) / 0.3));
}

/** The colour the page gave a box, or null. */
export function fillOf(paint: Paint, box: number): string | null {
  return paint.fill === null ? null : (paint.fill.colours[paint.fill.of[box]!] ?? null);
}

export function litColour(theme: Theme, mark: number): string {
  return mark & SELECTED ? theme.selected : mark & FOUND ? theme.found : theme.related;
}

export function flatRgb(theme: Theme): number[] {
  return theme.phases.map((phase) => parseColour(phase.flat));
}
