// One picture: from afar as pixels, near as cards.
import { leavesOnScreen, paintHeaders, paintLeaves, paintPanels, paintRings, panelsOnScreen } from './cards.ts';
import { paintChanges, paintChangeSigns } from './changes.ts';
import type { Frame } from './frame.ts';
import { paintLinks } from './links.ts';
import { paintEdgeLabels, paintEdges, paintLitEdges } from './lines.ts';
import { paintGroupNames } from './names.ts';
import { paintNotes } from './notes.ts';
import { paintOverview } from './overview.ts';
import { countIn } from '../picture/rtree.ts';

/** Smaller than this, or more than so many boxes: cards are not worth their cost. */
const CARD_ZOOM = 0.25;
const MOST_CARDS = 2200;
/** A few large boxes still have titles from further away. */
const FEW = { zoom: 0.16, cards: 500 } as const;

export function fromAfar(frame: Frame): boolean {
  if (frame.boxAlpha !== null) return false;
  if (frame.zoom < FEW.zoom) return true;
  const cards = countIn(frame.index.leaves, frame.x0, frame.y0, frame.x1, frame.y1);
  return cards > (frame.zoom < CARD_ZOOM ? FEW.cards : MOST_CARDS);
}

export function paintFrame(frame: Frame): void {
  const { ctx, ratio, screen, theme } = frame;
  const afar = fromAfar(frame);
  ctx.globalAlpha = 1;
  ctx.textBaseline = 'alphabetic';
  ctx.textAlign = 'left';
  if (afar) {
    paintOverview(frame);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  } else {
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = theme.background;
    ctx.fillRect(0, 0, screen.width, screen.height);
    paintGrid(frame);
    paintPanels(frame);
    paintEdges(frame);
    paintLinks(frame);
    paintLitEdges(frame);
    // Over all lines, which would strike their words through.
    paintHeaders(frame);
    paintLeaves(frame);
    paintChanges(frame);
    paintRings(frame);
    paintChangeSigns(frame);
    paintNotes(frame, panelsOnScreen(), leavesOnScreen());
  }
  if (afar) {
    paintLinks(frame);
    paintLitEdges(frame);
  }
  paintGroupNames(frame);
  paintEdgeLabels(frame);
}

/** Dots that say how far one has moved where there is nothing else to see. */
function paintGrid(frame: Frame): void {
  const { ctx, screen, theme, zoom, ox, oy } = frame;
  let step = 32 * zoom;
  while (step < 32) step *= 2;
  ctx.fillStyle = theme.grid;
  const [left, top] = [((ox % step) + step) % step, ((oy % step) + step) % step];
  for (let x = left; x < screen.width; x += step) for (let y = top; y < screen.height; y += step) ctx.fillRect(x, y, 1.5, 1.5);
}
