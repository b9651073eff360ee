// A picture of the current view, or of the whole scene, as PNG.
import type { Paint, Scene } from '../scene.ts';
import { frameOf, marksOf, noPaint } from './frame.ts';
import { Fitter } from './label.ts';
import { paintFrame } from './paint.ts';
import { Pixels } from './pixels.ts';
import type { Renderer } from './renderer.ts';
import type { SceneIndex } from '../picture/spatial.ts';
import type { Theme } from './theme.ts';
import type { Rect, Size, View } from './viewport.ts';

/** Browsers give up on larger canvases, some of them silently. */
export const MOST_SIDE = 16_384;
export const MOST_PIXELS = 64_000_000;

export interface PngOptions {
  /** What to show: all of the scene, or this part of it. */
  region?: Rect;
  /** Pixels per unit of the world; less where the picture would be too large. */
  scale?: number;
  margin?: number;
}

/** The size and scale of a picture of `region`, within what browsers can do. */
export function pictureOf(region: Rect, scale: number): { size: Size; view: View } {
  const [w, h] = [Math.max(1, region.width), Math.max(1, region.height)];
  const zoom = Math.min(scale, MOST_SIDE / w, MOST_SIDE / h, Math.sqrt(MOST_PIXELS / (w * h)));
  const size = { width: Math.max(1, Math.floor(w * zoom)), height: Math.max(1, Math.floor(h * zoom)) };
  return { size, view: { x: region.x + region.width / 2, y: region.y + region.height / 2, zoom } };
}

export async function writePng(
  scene: Scene,
  index: SceneIndex,
  theme: Theme,
  paint: Partial<Paint> = {},
  options: PngOptions = {},
): Promise<Blob> {
  const margin = options.margin ?? 24;
  const region = options.region ?? { x: -margin, y: -margin, width: scene.width + 2 * margin, height: scene.height + 2 * margin };
  const { size, view } = pictureOf(region, options.scale ?? 2);
  const canvas = new OffscreenCanvas(size.width, size.height);
  const ctx = canvas.getContext('2d', { alpha: false });
  if (ctx === null) throw new Error(`This browser cannot make a picture of ${size.width} × ${size.height} pixels; export a part, or SVG.`);
  const full = { ...noPaint(), ...paint };
  paintFrame(
    frameOf({
      ctx,
      scene,
      index,
      theme,
      paint: full,
      marks: marksOf(full, scene.boxes.count),
      fitter: new Fitter(scene),
      pixels: new Pixels(),
      screen: size,
      ratio: 1,
      still: true,
      view,
    }),
  );
  return canvas.convertToBlob({ type: 'image/png' });
}

/** Saves what the renderer shows (or, with `whole`, all of its scene) as a file. */
export async function savePng(renderer: Renderer, name: string, whole = false): Promise<void> {
  const { scene, index, theme, paint, camera } = renderer;
  const scale = whole ? 2 : camera.view.zoom * Math.max(2, globalThis.devicePixelRatio || 1);
  const blob = await writePng(
    scene,
    index,
    theme,
    { ...paint, hovered: -1, hoveredEdge: -1 },
    whole ? { scale } : { scale, region: camera.visible() },
  );
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
