// How large a picture in pixels may be.
import type { Rect, Size, View } from './viewport.ts';

/** Browsers give up on larger canvases, some of them silently. */
export const MOST_SIDE = 16_384;
export const MOST_PIXELS = 64_000_000;

/** The size and scale of a picture of `region`, within what browsers can do. */
export function pictureOf(region: Rect, scale: number): { size: Size; view: View } {
  const [w, h] = [Math.max(1, region.width), Math.max(1, region.height)];
  const zoom = Math.min(scale, MOST_SIDE / w, MOST_SIDE / h, Math.sqrt(MOST_PIXELS / (w * h)));
  const size = { width: Math.max(1, Math.floor(w * zoom)), height: Math.max(1, Math.floor(h * zoom)) };
  return { size, view: { x: region.x + region.width / 2, y: region.y + region.height / 2, zoom } };
}
