// Boxes near enough to be cards, and open groups as panels. Passes of one style each: changing fonts and
// colours costs more than drawing.
import { BoxKind } from '../scene.ts';
import { mixCss } from './colour.ts';
import type { Context, Frame } from './frame.ts';
import { fillOf, flatness, litColour } from './frame.ts';
import {
  BADGE_SIZE,
  BAR,
  cardHeight,
  DETAIL_SIZE,
  FONT,
  GROUP_WEIGHT,
  HEADER,
  isPill,
  PANEL_BAR,
  PANEL_LEFT,
  PANEL_RADIUS,
  RADIUS,
  SMALL,
  STACK,
  stackOf,
  TEXT_LEFT,
  TEXT_RIGHT,
  TITLE_SIZE,
  TITLE_WEIGHT,
} from '../picture/sizes.ts';
import { panelsIn, touches } from './overview.ts';
import { roundRect } from './shapes.ts';
import { paintSmallTitles } from './small.ts';
import { panelOf, textOn } from './theme.ts';
import { Bag, search } from '../picture/rtree.ts';

/** Text smaller than this is not read. */
export const LEAST_TEXT = 6;
/** Second lines of more boxes than this would be too much to read, and to draw in time. */
const MOST_DETAILS = 1200;
const panels = new Bag();
const leaves = new Bag();

/** On whole pixels of the device when nothing moves; anywhere while it does, or it would tremble. */
function snapped(frame: Frame, v: number): number {
  return frame.still ? Math.round(v * frame.ratio) / frame.ratio : v;
}

export function paintPanels(frame: Frame): void {
  const {
    ctx,
    scene: { boxes },
    theme,
    zoom,
    ox,
    oy,
    boxAlpha,
  } = frame;
  panelsIn(frame, 3, panels);
  ctx.lineWidth = 1;
  ctx.strokeStyle = theme.panelBorder;
  for (let i = 0; i < panels.size; i++) {
    const b = panels.items[i]!;
    const [x, y] = [snapped(frame, boxes.x[b]! * zoom + ox), snapped(frame, boxes.y[b]! * zoom + oy)];
    const [w, h] = [boxes.width[b]! * zoom, boxes.height[b]! * zoom];
    if (boxAlpha !== null) ctx.globalAlpha = boxAlpha[b]!;
    ctx.fillStyle = panelOf(theme, boxes.depth[b]!);
    roundRect(ctx, x + 0.5, y + 0.5, w - 1, h - 1, PANEL_RADIUS * Math.min(1, zoom));
    ctx.fill();
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
}

/** Titles of open groups, above the edges that pass under them. */
export function paintHeaders(frame: Frame): void {
  const {
    ctx,
    scene: { boxes },
    theme,
    zoom,
    ox,
    oy,
    fitter,
    boxAlpha,
  } = frame;
  if (TITLE_SIZE * zoom < LEAST_TEXT) return;
  const middle = (HEADER / 2) * zoom;
  for (const pass of ['title', 'detail', 'badge'] as const) {
    const own = (pass === 'title' ? TITLE_SIZE : pass === 'badge' ? BADGE_SIZE : DETAIL_SIZE) * zoom;
    if (own < LEAST_TEXT) continue;
    // Without the rest of the header there is room for a title of a size that can be read.
    const size = pass === 'title' && DETAIL_SIZE * zoom < LEAST_TEXT ? Math.max(SMALL.size, own) : own;
    const larger = size / own;
    ctx.font = `${pass === 'detail' ? 400 : GROUP_WEIGHT} ${size}px ${FONT}`;
    for (let i = 0; i < panels.size; i++) {
      const b = panels.items[i]!;
      if (boxAlpha !== null) ctx.globalAlpha = boxAlpha[b]!;
      const text = fitter.of(b);
      const [left, y] = [snapped(frame, boxes.x[b]! * zoom + ox), snapped(frame, boxes.y[b]! * zoom + oy)];
      if (y + HEADER * zoom < 0 || y > frame.screen.height) continue;
      // The title stays on the screen while its group's header does.
      const end = left + boxes.width[b]! * zoom;
      const x = Math.max(left, Math.min(-2, end - (PANEL_LEFT + text.titleWidth + 16 + text.badgeWidth) * zoom));
      // While it grows out of a closed one there may not be room for everything yet.
      const all =
        x === left &&
        boxes.width[b]! >= PANEL_LEFT + text.titleWidth + text.detailWidth + text.countWidth + text.badgeWidth + TEXT_RIGHT + 12;
      const phase = theme.phases[boxes.phase[b]!]!;
      if (pass === 'title') {
        ground(
          frame,
          b,
          x + (PANEL_LEFT - 3) * zoom,
          y + middle,
          larger * text.titleWidth + (all && text.detail && larger === 1 ? text.detailWidth + 8 : 0) + 6,
        );
        if (text.count && larger === 1 && (all || x !== left)) {
          const from = end - (TEXT_RIGHT + (text.badge ? text.badgeWidth + 4 : 0) + text.countWidth + 3) * zoom;
          ground(frame, b, from, y + middle, text.countWidth + 6);
        }
        ctx.fillStyle = phase.accent;
        roundRect(ctx, x + PANEL_BAR * zoom, y + middle - 6 * zoom, BAR.width * zoom, 12 * zoom, 2 * zoom);
        ctx.fill();
        ctx.fillStyle = theme.text;
        ctx.fillText(text.title, x + PANEL_LEFT * zoom, y + middle + 4.6 * zoom);
      } else if (pass === 'detail') {
        ctx.fillStyle = theme.dimText;
        if (text.detail && all) ctx.fillText(text.detail, x + (PANEL_LEFT + text.titleWidth + 8) * zoom, y + middle + 4.4 * zoom);
        const right = end - (TEXT_RIGHT + (text.badge ? text.badgeWidth + 4 : 0)) * zoom;
        if (text.count && (all || x !== left)) {
          ctx.textAlign = 'right';
          ctx.fillText(text.count, right, y + middle + 4.4 * zoom);
          ctx.textAlign = 'left';
        }
      } else if (text.badge) {
        badge(frame, text.badge, text.badgeWidth, end, y + middle, phase.accent);
      }
    }
  }
  ctx.globalAlpha = 1;
}

/** Under the words of a header: a line that passes there would strike them through. */
function ground(frame: Frame, box: number, x: number, middle: number, width: number): void {
  const { ctx, zoom, theme, scene } = frame;
  ctx.fillStyle = panelOf(theme, scene.boxes.depth[box]!);
  ctx.fillRect(x, middle - (TITLE_SIZE / 2 + 2) * zoom, width * zoom, (TITLE_SIZE + 4) * zoom);
}

function badge(frame: Frame, text: string, width: number, right: number, middle: number, accent: string): void {
  const { ctx, zoom, theme } = frame;
  const h = (BADGE_SIZE + 6) * zoom;
  const w = width * zoom;
  const left = right - (TEXT_RIGHT - 3) * zoom - w;
  ctx.fillStyle = accent;
  roundRect(ctx, left, middle - h / 2, w, h, h / 2);
  ctx.fill();
  ctx.fillStyle = textOn(theme, accent);
  ctx.textAlign = 'center';
  ctx.fillText(text, left + w / 2, middle + BADGE_SIZE * 0.36 * zoom);
  ctx.textAlign = 'left';
}

/** The open groups that the last paintPanels drew. */
export function panelsOnScreen(): Bag {
  return panels;
}

/** The boxes that the last paintLeaves drew. */
export function leavesOnScreen(): Bag {
  return leaves;
}

export function paintLeaves(frame: Frame): void {
  const {
    scene: { boxes },
    paint,
  } = frame;
  leaves.size = 0;
  search(frame.index.leaves, frame.x0, frame.y0, frame.x1, frame.y1, leaves);
  let kept = 0;
  for (let i = 0; i < leaves.size; i++) {
    const b = leaves.items[i]!;
    if (touches(frame, boxes, b)) leaves.items[kept++] = b;
  }
  leaves.size = kept;
  shapes(frame, false);
  if (paint.dim) shapes(frame, true);
  if (DETAIL_SIZE * frame.zoom >= LEAST_TEXT) texts(frame);
  else paintSmallTitles(frame, leaves, inkOf(frame));
  frame.ctx.globalAlpha = 1;
}

/** Whether a box steps back because others are lit. Its colours pale; transparent ones would show what is behind. */
function isDim(frame: Frame, b: number): boolean {
  return frame.paint.dim && frame.marks[b] === 0 && frame.paint.hovered !== b;
}

function pale(frame: Frame, colour: string, dim: boolean): string {
  return dim ? mixCss(panelOf(frame.theme, 1), colour, frame.theme.dimmed) : colour;
}

function shapes(frame: Frame, dim: boolean): void {
  const {
    ctx,
    scene: { boxes },
    theme,
    paint,
    zoom,
    ox,
    oy,
    boxAlpha,
  } = frame;
  const flat = flatness(zoom);
  const radius = RADIUS * Math.min(1.2, zoom);
  const bordered = zoom >= 0.3;
  ctx.lineWidth = 1;
  for (let p = 0; p < theme.phases.length; p++) {
    const colours = theme.phases[p]!;
    const tint = pale(frame, mixCss(colours.tint, colours.flat, flat), dim);
    const border = pale(frame, mixCss(colours.border, colours.flat, flat), dim);
    const behind = mixCss(tint, border, 0.45);
    ctx.fillStyle = tint;
    ctx.strokeStyle = border;
    for (let i = 0; i < leaves.size; i++) {
      const b = leaves.items[i]!;
      if (boxes.phase[b] !== p || isDim(frame, b) !== dim) continue;
      if (boxAlpha !== null) ctx.globalAlpha = boxAlpha[b]!;
      const kind = boxes.kind[b]!;
      const x = snapped(frame, boxes.x[b]! * zoom + ox);
      const y = snapped(frame, boxes.y[b]! * zoom + oy);
      const w = boxes.width[b]! * zoom;
      const h = boxes.height[b]! * zoom;
      let own = paint.fill === null ? null : fillOf(paint, b);
      if (own !== null) own = pale(frame, own, dim);
      if (h < 8) {
        if (own !== null) ctx.fillStyle = own;
        ctx.fillRect(x, y, w, h);
        if (own !== null) ctx.fillStyle = tint;
        continue;
      }
      const stack = stackOf(kind);
      const front = h - stack * STACK * zoom;
      if (stack > 0 && bordered) {
        ctx.fillStyle = own === null ? behind : mixCss(own, theme.background, 0.3);
        for (let s = stack; s > 0; s--) {
          const inset = 5 * s * zoom;
          roundRect(ctx, x + inset + 0.5, y + front - 12 * zoom + s * STACK * zoom, w - 2 * inset - 1, 12 * zoom - 0.5, radius);
          ctx.fill();
          ctx.stroke();
        }
        ctx.fillStyle = tint;
      }
      if (own !== null) {
        ctx.fillStyle = own;
        ctx.strokeStyle = mixCss(own, theme.text, 0.2);
      }
      const r = isPill(kind) ? Math.min(front / 2, 14 * zoom) : radius;
      if (kind === BoxKind.Loss && own === null) ctx.fillStyle = pale(frame, theme.text, dim);
      roundRect(ctx, x + 0.5, y + 0.5, w - 1, front - 1, r);
      ctx.fill();
      if (bordered) ctx.stroke();
      if (own !== null || kind === BoxKind.Loss) {
        ctx.fillStyle = tint;
        ctx.strokeStyle = border;
      }
    }
    bars(frame, p, pale(frame, colours.accent, dim), dim);
  }
}

/** The coloured bar at the left of a card. */
function bars(frame: Frame, phase: number, accent: string, dim: boolean): void {
  const {
    ctx,
    scene: { boxes },
    paint,
    zoom,
    ox,
    oy,
    boxAlpha,
  } = frame;
  if (zoom < 0.34) return;
  ctx.fillStyle = accent;
  const w = BAR.width * zoom;
  for (let i = 0; i < leaves.size; i++) {
    const b = leaves.items[i]!;
    if (boxes.phase[b] !== phase || isPill(boxes.kind[b]!) || fillOf(paint, b) !== null || isDim(frame, b) !== dim) continue;
    if (boxAlpha !== null) ctx.globalAlpha = boxAlpha[b]!;
    const x = snapped(frame, boxes.x[b]! * zoom + ox) + BAR.left * zoom;
    const y = snapped(frame, boxes.y[b]! * zoom + oy) + BAR.gap * zoom;
    const h = (cardHeight(boxes, b) - 2 * BAR.gap) * zoom;
    if (zoom < 0.8) {
      ctx.fillRect(x, y, w, h);
    } else {
      roundRect(ctx, x, y, w, h, w / 2);
      ctx.fill();
    }
  }
}

/** The colour of a title on a card that has turned into flat colour. */
function inkOf(frame: Frame): (box: number) => string {
  const { theme, paint, zoom, scene } = frame;
  const flat = flatness(zoom);
  const inks = theme.phases.map(({ tint, flat: full }) => textOn(theme, mixCss(tint, full, flat)));
  return (b) => {
    const own = paint.fill === null ? null : fillOf(paint, b);
    const ink = own === null ? inks[scene.boxes.phase[b]!]! : textOn(theme, own);
    return isDim(frame, b) ? pale(frame, ink, true) : ink;
  };
}

function texts(frame: Frame): void {
  const {
    ctx,
    scene: { boxes },
    theme,
    paint,
    zoom,
    ox,
    oy,
    fitter,
    boxAlpha,
  } = frame;
  const detailed = leaves.size <= MOST_DETAILS;
  for (const pass of ['title', 'group', 'detail', 'badge'] as const) {
    if (pass !== 'title' && pass !== 'group' && !detailed) continue;
    setFont(ctx, pass, zoom);
    const colour = pass === 'detail' ? theme.dimText : theme.text;
    const paled = pale(frame, colour, true);
    ctx.fillStyle = colour;
    for (let i = 0; i < leaves.size; i++) {
      const b = leaves.items[i]!;
      const kind = boxes.kind[b]!;
      const group = kind === BoxKind.Closed || kind === BoxKind.Folded;
      if ((pass === 'title' && group) || (pass === 'group' && !group) || (pass === 'badge' && boxes.repeat[b]! <= 1)) continue;
      const text = fitter.of(b);
      if (boxAlpha !== null) ctx.globalAlpha = boxAlpha[b]!;
      const dim = isDim(frame, b);
      const [x, y] = [snapped(frame, boxes.x[b]! * zoom + ox), snapped(frame, boxes.y[b]! * zoom + oy)];
      const half = cardHeight(boxes, b) / 2;
      if (pass === 'badge') {
        badge(
          frame,
          text.badge,
          text.badgeWidth,
          x + boxes.width[b]! * zoom,
          y + (text.detail ? half - 7 : half) * zoom,
          pale(frame, theme.phases[boxes.phase[b]!]!.accent, dim),
        );
        continue;
      }
      const own = paint.fill === null ? null : fillOf(paint, b);
      const loss = kind === BoxKind.Loss && own === null;
      if (loss) ctx.fillStyle = pale(frame, theme.background, dim);
      else if (own !== null) ctx.fillStyle = pale(frame, textOn(theme, own), dim);
      else if (dim) ctx.fillStyle = paled;
      if (pass === 'detail') {
        if (text.detail) line(frame, kind, text.detail, x, y + (half + 12) * zoom, boxes.width[b]!);
        if (text.count) {
          ctx.textAlign = 'right';
          const room = TEXT_RIGHT + (text.badge ? text.badgeWidth + 4 : 0);
          ctx.fillText(text.count, x + (boxes.width[b]! - room) * zoom, y + (half + 4) * zoom);
          ctx.textAlign = 'left';
        }
      } else {
        line(frame, kind, text.title, x, y + (text.detail ? half - 2.8 : half + 4.5) * zoom, boxes.width[b]!);
      }
      if (own !== null || dim || loss) ctx.fillStyle = colour;
    }
  }
}

function setFont(ctx: Context, pass: 'title' | 'group' | 'detail' | 'badge', zoom: number): void {
  const size = pass === 'detail' ? DETAIL_SIZE : pass === 'badge' ? BADGE_SIZE : TITLE_SIZE;
  const weight = pass === 'title' ? TITLE_WEIGHT : pass === 'detail' ? 400 : GROUP_WEIGHT;
  ctx.font = `${weight} ${size * zoom}px ${FONT}`;
}

function line(frame: Frame, kind: number, text: string, x: number, baseline: number, width: number): void {
  const { ctx, zoom } = frame;
  if (!isPill(kind)) {
    ctx.fillText(text, x + TEXT_LEFT * zoom, baseline);
    return;
  }
  ctx.textAlign = 'center';
  ctx.fillText(text, x + (width / 2) * zoom, baseline);
  ctx.textAlign = 'left';
}

/** Rings around what is selected, related, found, and under the pointer. */
export function paintRings(frame: Frame): void {
  const {
    ctx,
    scene: { boxes },
    theme,
    paint,
    marks,
    boxAlpha,
  } = frame;
  const ring = (b: number, colour: string, width: number, glow: boolean): void => {
    if (b < 0 || b >= boxes.count || !touches(frame, boxes, b)) return;
    const { zoom, ox, oy } = frame;
    const panel = boxes.kind[b] === BoxKind.Open;
    const [x, y] = [snapped(frame, boxes.x[b]! * zoom + ox), snapped(frame, boxes.y[b]! * zoom + oy)];
    const [w, h] = [boxes.width[b]! * zoom, cardHeight(boxes, b) * zoom];
    const out = width / 2 + (panel ? 0 : 0.5);
    const radius = isPill(boxes.kind[b]!) ? Math.min(h / 2, 14 * zoom) : (panel ? PANEL_RADIUS : RADIUS) * Math.min(1.2, zoom);
    const alpha = boxAlpha?.[b] ?? 1;
    ctx.strokeStyle = colour;
    if (glow) {
      ctx.globalAlpha = 0.22 * alpha;
      ctx.lineWidth = width + 5;
      roundRect(ctx, x - out, y - out, w + 2 * out, h + 2 * out, radius + out);
      ctx.stroke();
    }
    ctx.globalAlpha = alpha;
    ctx.lineWidth = width;
    roundRect(ctx, x - out, y - out, w + 2 * out, h + 2 * out, radius + out);
    ctx.stroke();
  };
  for (const list of [panels, leaves]) {
    for (let i = 0; i < list.size; i++) {
      const b = list.items[i]!;
      const mark = marks[b]!;
      if (mark !== 0) ring(b, litColour(theme, mark), mark & 1 ? 2.4 : 2, (mark & 1) !== 0);
    }
  }
  if (paint.hovered >= 0 && marks[paint.hovered] === 0) ring(paint.hovered, theme.hover, 1.6, false);
  ctx.globalAlpha = 1;
}
