// Figures on boxes: what the colour of each says, as a small sign on its upper edge.
import { BoxKind } from '../scene.ts';
import { textWidth } from '../text/widths.ts';
import { FONT, isPill } from '../picture/sizes.ts';
import type { Bag } from '../picture/rtree.ts';
import type { Frame } from './frame.ts';
import { roundRect } from './shapes.ts';

const SIZE = 10;
const LEAST_ZOOM = 0.5; // below it, they could not be read
const MOST = 1200;

export function paintNotes(frame: Frame, ...lists: Bag[]): void {
  const { ctx, scene, theme, paint, zoom, ox, oy } = frame;
  const { boxes } = scene;
  if (!paint.notes || zoom < LEAST_ZOOM) return;
  const size = SIZE * Math.min(1.2, Math.max(0.9, zoom));
  ctx.font = `600 ${size}px ${FONT}`;
  ctx.textAlign = 'right';
  ctx.lineWidth = 1;
  let drawn = 0;
  for (const list of lists) {
    for (let i = 0; i < list.size && drawn < MOST; i++) {
      const b = list.items[i]!;
      const text = paint.notes[b];
      if (!text || isPill(boxes.kind[b]!) || (paint.dim && !frame.marks[b])) continue;
      const w = textWidth(text, size, true) + 8;
      const h = size + 5;
      const inset = boxes.kind[b] === BoxKind.Open ? 8 : 6;
      // At the right of what is folded is how often it repeats.
      const isFolded = boxes.repeat[b]! > 1;
      const right = isFolded ? (boxes.x[b]! + inset) * zoom + ox + w : (boxes.x[b]! + boxes.width[b]! - inset) * zoom + ox;
      const top = boxes.y[b]! * zoom + oy - h / 2;
      ctx.globalAlpha = frame.boxAlpha?.[b] ?? 1;
      ctx.fillStyle = theme.edgeLabel;
      ctx.strokeStyle = theme.panelBorder;
      roundRect(ctx, right - w, top, w, h, h / 2);
      ctx.fill();
      ctx.stroke();
      ctx.fillStyle = theme.text;
      ctx.fillText(text, right - 4, top + h / 2 + size * 0.36);
      drawn++;
    }
  }
  ctx.globalAlpha = 1;
  ctx.textAlign = 'left';
}
