// Titles of cards seen from some way off: their own size could not be read any more, so they keep a size that can
// and are cut to the width of the card.
import { BoxKind } from '../scene.ts';
import type { Frame } from './frame.ts';
import { BAR, cardHeight, FONT, SMALL, TITLE_WEIGHT } from '../picture/sizes.ts';
import type { Bag } from '../picture/rtree.ts';

/** A card must be this large on the screen. */
const LEAST = { width: 20, height: 10 } as const;
/** More would be too much to read, and to draw in time. */
const MOST = 1300;

/** `ink` says the colour of a card's title. */
export function paintSmallTitles(frame: Frame, leaves: Bag, ink: (box: number) => string): void {
  const { ctx, zoom, ox, oy, boxAlpha, still, ratio } = frame;
  const { boxes } = frame.scene;
  if (leaves.size > MOST) return;
  ctx.font = `${TITLE_WEIGHT} ${SMALL.size}px ${FONT}`;
  let last = '';
  for (let i = 0; i < leaves.size; i++) {
    const b = leaves.items[i]!;
    const [w, h] = [boxes.width[b]! * zoom, cardHeight(boxes, b) * zoom];
    if (w < LEAST.width || h < LEAST.height) continue;
    const text = frame.fitter.small(b, zoom);
    if (text === '') continue;
    const colour = ink(b);
    if (colour !== last) ctx.fillStyle = last = colour;
    if (boxAlpha !== null) ctx.globalAlpha = boxAlpha[b]!;
    const input = boxes.kind[b] === BoxKind.Input || boxes.kind[b] === BoxKind.Loss;
    const x = boxes.x[b]! * zoom + ox + (input ? w / 2 : (BAR.left + BAR.width) * zoom + SMALL.gap);
    const y = boxes.y[b]! * zoom + oy + h / 2 + SMALL.size * 0.35;
    if (input) ctx.textAlign = 'center';
    ctx.fillText(text, x, still ? Math.round(y * ratio) / ratio : y);
    if (input) ctx.textAlign = 'left';
  }
}
