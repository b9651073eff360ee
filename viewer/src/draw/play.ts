// A run on a canvas: the bead, and the curve of what is in memory.

import { beadAt, curve, liveAt, STRIP, type Run } from '../picture/play.ts';
import type { Scene } from '../scene.ts';
import { FONT } from '../picture/sizes.ts';
import type { Theme } from './theme.ts';
import type { Point, Size } from './viewport.ts';

const MARGIN = 16;
const WORDS = 22; // above the curve

export function paintBead(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  run: Run,
  time: number,
  theme: Theme,
  place: (x: number, y: number) => Point,
): void {
  const spot = beadAt(scene, run, time);
  if (!spot) return;
  const { x, y } = place(spot.x, spot.y);
  ctx.beginPath();
  ctx.arc(x, y, 8, 0, 2 * Math.PI);
  ctx.fillStyle = theme.selected;
  ctx.fill();
  ctx.lineWidth = 2.5;
  ctx.strokeStyle = theme.background;
  ctx.stroke();
}

/** Along the lower edge of `size`. */
export function paintMemory(
  ctx: CanvasRenderingContext2D,
  size: Size,
  run: Run,
  time: number,
  theme: Theme,
  words: (bytes: number) => string,
): void {
  if (!run.live.length) return;
  const [width, height, top] = [size.width - 2 * MARGIN, STRIP - WORDS - 6, size.height - STRIP];
  ctx.fillStyle = theme.panels[0]!;
  ctx.fillRect(0, top, size.width, STRIP);
  const points = curve(run, width, height);
  const area = (to: number): void => {
    ctx.beginPath();
    ctx.moveTo(MARGIN, top + WORDS + height);
    let last = points[0]![1];
    ctx.lineTo(MARGIN, top + WORDS + last);
    for (const [x, y] of points) if (x <= to) ctx.lineTo(MARGIN + x, top + WORDS + (last = y));
    ctx.lineTo(MARGIN + to, top + WORDS + last);
    ctx.lineTo(MARGIN + to, top + WORDS + height);
    ctx.closePath();
  };
  ctx.fillStyle = theme.panels[3]!;
  area(width);
  ctx.fill();
  ctx.fillStyle = theme.selected;
  area(time * width);
  ctx.globalAlpha = 0.75;
  ctx.fill();
  ctx.globalAlpha = 1;
  ctx.fillRect(MARGIN + time * width - 0.5, top + WORDS, 1, height);
  ctx.fillStyle = theme.text;
  ctx.font = `600 12px ${FONT}`;
  ctx.textAlign = 'left';
  ctx.fillText(words(liveAt(run, time).bytes), MARGIN, top + 15);
}
