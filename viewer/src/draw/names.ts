// Names of open groups at a readable size when their own headers are too small, as on a map.
import { textWidth } from '../text/widths.ts';
import type { Frame } from './frame.ts';
import { clean, fitText } from './label.ts';
import { FONT, GROUP_WEIGHT, HEADER, TITLE_SIZE } from '../picture/sizes.ts';
import { panelsIn } from './overview.ts';
import { roundRect } from './shapes.ts';
import { Bag } from '../picture/rtree.ts';

const SIZE = 11.5;
const HIGH = 18;
const PAD = 5;
const MOST = 120;
/** The least a group must be on the screen to be named, in pixels. */
const LEAST = { width: 48, height: 34 } as const;
const panels = new Bag();

export function paintGroupNames(frame: Frame): void {
  const {
    ctx,
    scene: { boxes, texts },
    theme,
    zoom,
    ox,
    oy,
    screen,
  } = frame;
  if (TITLE_SIZE * zoom >= 6 || frame.boxAlpha !== null) return;
  // All of a size or none: names on some of many equal groups would seem to say something.
  let scale = 1;
  for (; scale < 64; scale *= 1.5) {
    panelsIn(frame, LEAST.width * scale, panels);
    if (panels.size <= MOST) break;
  }
  const taken: { x: number; y: number; w: number }[] = [];
  ctx.font = `${GROUP_WEIGHT} ${SIZE}px ${FONT}`;
  for (let i = 0; i < panels.size; i++) {
    const b = panels.items[i]!;
    const [w, h] = [boxes.width[b]! * zoom, boxes.height[b]! * zoom];
    if (h < LEAST.height || w < LEAST.width) continue;
    const text = fitText(clean(texts[boxes.title[b]!] ?? ''), Math.min(220, w - 2 * (PAD + 2)), SIZE, true);
    if (text === '') continue;
    const wide = textWidth(text, SIZE, true) + 2 * PAD;
    // It stays on the screen as long as its group does.
    const x = Math.max(boxes.x[b]! * zoom + ox + 4, Math.min(4, boxes.x[b]! * zoom + ox + w - wide - 4));
    const y = Math.max(boxes.y[b]! * zoom + oy + (HEADER * zoom - HIGH) / 2, Math.min(4, boxes.y[b]! * zoom + oy + h - HIGH - 4));
    if (x > screen.width || y > screen.height || taken.some((t) => x < t.x + t.w + 2 && t.x < x + wide + 2 && Math.abs(t.y - y) < HIGH + 2))
      continue;
    taken.push({ x, y, w: wide });
    ctx.globalAlpha = 0.86;
    ctx.fillStyle = theme.edgeLabel;
    roundRect(ctx, x, y, wide, HIGH, 5);
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.fillStyle = theme.text;
    ctx.fillText(text, x + PAD, y + 13);
  }
}
