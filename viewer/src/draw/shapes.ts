// Outlines shared by boxes, edges and labels on the canvas.
import type { Context } from './frame.ts';

export function roundRect(ctx: Context, x: number, y: number, w: number, h: number, r: number): void {
  ctx.beginPath();
  ctx.roundRect(x, y, w, h, Math.max(0, Math.min(r, w / 2, h / 2)));
}

/**
 * A triangle with its tip at (x, y), pointing along (dx, dy) of length 1; added to the current path, to be filled. It is
 * not closed: filling does that, and Chromium's closePath looks at the whole path each time.
 */
export function arrow(ctx: Context, x: number, y: number, dx: number, dy: number, size: number): void {
  const [bx, by] = [x - dx * size, y - dy * size];
  const half = size * 0.46;
  ctx.moveTo(x, y);
  ctx.lineTo(bx - dy * half, by + dx * half);
  ctx.lineTo(bx + dy * half, by - dx * half);
}
