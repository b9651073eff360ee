// What changed since the stage before: a border and a badge on a box, dashed where the box is only a ghost of it.
import { CHANGES, GHOST, SYMBOLS } from '../picture/changes.ts';
import { BoxKind, type Scene } from '../scene.ts';
import { leavesOnScreen } from './cards.ts';
import type { Frame } from './frame.ts';
import { cardHeight, compact, FONT, isPill, RADIUS } from '../picture/sizes.ts';
import { roundRect } from './shapes.ts';
import { tint } from './ribbons.ts';
import { textOn, type Theme } from './theme.ts';
import type { Point } from './viewport.ts';

const SIZE = 11;
/** Badges below this zoom would be specks; the colour of the box is left. */
const LEAST_ZOOM = 0.42;

/** By edge: how much of it is to be seen, where some lead to boxes that are not there any more. */
export function ghostEdges({ edges }: Scene, change: Uint8Array | null): Float32Array | null {
  if (!change?.some((kind) => kind & GHOST)) return null;
  return Float32Array.from(edges.source, (source, e) => ((change[source]! | change[edges.target[e]!]!) & GHOST ? 0.4 : 1));
}

export function paintChanges(frame: Frame): void {
  const {
    ctx,
    paint: { change },
    zoom,
    ox,
    oy,
    boxAlpha,
    scene: { boxes },
  } = frame;
  if (!change) return;
  const list = leavesOnScreen();
  ctx.save();
  for (let i = 0; i < list.size; i++) {
    const b = list.items[i]!;
    const kind = change[b]! & ~GHOST;
    if (!kind) continue;
    const [w, h] = [boxes.width[b]! * zoom, cardHeight(boxes, b) * zoom];
    const radius = isPill(boxes.kind[b]!) ? h / 2 : RADIUS * Math.min(1.2, zoom);
    ctx.globalAlpha = boxAlpha?.[b] ?? 1;
    ctx.strokeStyle = accentOf(frame, b, kind);
    ctx.lineWidth = Math.max(1, 1.6 * Math.min(1, zoom));
    ctx.setLineDash(change[b]! & GHOST ? [5 * zoom, 4 * zoom] : []);
    roundRect(ctx, boxes.x[b]! * zoom + ox + 0.5, boxes.y[b]! * zoom + oy + 0.5, w - 1, h - 1, radius);
    ctx.stroke();
  }
  ctx.restore();
}

/** The colour of a change: by its number where changes are numbered, by its class otherwise. */
function accentOf({ paint: { numbers }, theme }: Frame, b: number, kind: number): string {
  const number = numbers?.[b];
  return number ? tint(number, theme.name === 'dark', true) : theme.changes[kind - 1]!.accent;
}

/** Signs at the corner of boxes, over the rings of what is selected: not by colour alone. */
export function paintChangeSigns(frame: Frame): void {
  const {
    ctx,
    paint: { change, changed, numbers },
    theme,
    zoom,
    ox,
    oy,
    boxAlpha,
    scene: { boxes },
  } = frame;
  if (!change || zoom < LEAST_ZOOM) return;
  const list = leavesOnScreen();
  ctx.save();
  ctx.textAlign = 'center';
  ctx.font = `700 ${SIZE * zoom}px ${FONT}`;
  for (let i = 0; i < list.size; i++) {
    const b = list.items[i]!;
    const kind = change[b]! & ~GHOST;
    if (!kind) continue;
    const number = numbers?.[b];
    const accent = accentOf(frame, b, kind);
    const sign = SYMBOLS[CHANGES[kind - 1]!];
    const many = boxes.kind[b] !== BoxKind.Op && (changed?.[b] ?? 0) > 1;
    const text = number ? `${sign} ${number}` : many ? `${sign}${compact(changed![b]!)}` : sign;
    const high = (SIZE + 5) * zoom;
    const wide = Math.max(high, (SIZE * 0.62 * text.length + 8) * zoom);
    const [right, middle] = [(boxes.x[b]! + boxes.width[b]! + 5) * zoom + ox, boxes.y[b]! * zoom + oy];
    ctx.globalAlpha = boxAlpha?.[b] ?? 1;
    ctx.fillStyle = accent;
    roundRect(ctx, right - wide, middle - high / 2, wide, high, high / 2);
    ctx.fill();
    ctx.lineWidth = 1.2 * zoom;
    ctx.strokeStyle = theme.background;
    ctx.stroke();
    ctx.fillStyle = textOn(theme, accent);
    ctx.fillText(text, right - wide / 2, middle + SIZE * 0.36 * zoom);
  }
  ctx.restore();
}

/** In a picture of the whole graph: where changes are, large enough to be seen. */
export function markChanges(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  change: Uint8Array | null,
  theme: Theme,
  place: (x: number, y: number) => Point,
): void {
  for (let b = 0; change && b < scene.boxes.count; b++) {
    const kind = change[b]! & ~GHOST;
    if (!kind) continue;
    const from = place(scene.boxes.x[b]!, scene.boxes.y[b]!);
    const to = place(scene.boxes.x[b]! + scene.boxes.width[b]!, scene.boxes.y[b]! + scene.boxes.height[b]!);
    const [w, h] = [Math.max(4, to.x - from.x), Math.max(3, to.y - from.y)];
    ctx.fillStyle = theme.changes[kind - 1]!.accent;
    ctx.fillRect((from.x + to.x - w) / 2, (from.y + to.y - h) / 2, w, h);
  }
}
