// Between two drawings beside each other: bands from boxes to what became of them.

import type { Ribbon } from '../picture/changes.ts';
import { cardHeight } from '../picture/sizes.ts';
import { BoxKind, type Scene } from '../scene.ts';
import type { Camera } from './camera.ts';
import type { Theme } from './theme.ts';
import type { Rect } from './viewport.ts';
import { CHANGES } from '../picture/changes.ts';

/** One of the two drawings, and where it is on the page. */
export interface Pane {
  scene: Scene;
  camera: Camera;
  left: number;
  lit: ReadonlySet<number>;
}

interface End {
  x: number;
  top: number;
  bottom: number;
}

/** Tints that tell neighbours apart, on both grounds. */
export function tint(number: number, dark: boolean, strong = false): string {
  const hue = ((number * 137.508) % 360).toFixed(0);
  if (strong) return dark ? `hsl(${hue} 70% 62%)` : `hsl(${hue} 65% 42%)`;
  return dark ? `hsl(${hue} 45% 30%)` : `hsl(${hue} 75% 86%)`;
}

export function paintRibbons(
  ctx: CanvasRenderingContext2D,
  size: { width: number; height: number },
  panes: [Pane, Pane],
  { ribbons, pairs }: { ribbons: readonly Ribbon[]; pairs: Int32Array },
  theme: Theme,
): void {
  ctx.clearRect(0, 0, size.width, size.height);
  const [one, other] = panes;
  const drawn = new Set<number>();
  const [seen, there] = [one.camera.visible(), other.camera.visible()];
  for (const { kind, number, before, after } of ribbons) {
    if (isOutside(one.scene, seen, before) && isOutside(other.scene, there, after)) continue;
    const colour = number ? tint(number, theme.name === 'dark', true) : theme.changes[CHANGES.indexOf(kind)]!.accent;
    const lit = before.some((box) => one.lit.has(box)) || after.some((box) => other.lit.has(box));
    bands(ctx, panes, before, after, colour, lit, drawn);
  }
  // What has not changed is joined when one looks at it.
  for (let i = 0; i < pairs.length; i += 2) {
    const [box, to] = [pairs[i]!, pairs[i + 1]!];
    if (one.lit.has(box) || other.lit.has(to)) bands(ctx, panes, [box], [to], theme.related, false, drawn);
  }
}

/** Whether all of these boxes are above the window, or all below it: most are, of a large graph that is looked at closely. */
function isOutside({ boxes }: Scene, { y: top, height }: Rect, which: readonly number[]): boolean {
  const bottom = top + height;
  let [above, below] = [true, true];
  for (const box of which) {
    if (boxes.y[box]! + boxes.height[box]! >= top) above = false;
    if (boxes.y[box]! <= bottom) below = false;
  }
  return above || below;
}

/** Below this height, in pixels, a band is a line. */
const THIN = 1.5;

/** Each box goes into its share of those that it became. From afar, bands that fall on each other are drawn once. */
function bands(
  ctx: CanvasRenderingContext2D,
  [one, other]: [Pane, Pane],
  before: number[],
  after: number[],
  colour: string,
  lit: boolean,
  drawn: Set<number>,
): void {
  const from = before.map((box) => endOf(one, box, true));
  const to = after.map((box) => endOf(other, box, false));
  const most = Math.max(from.length, to.length);
  ctx.fillStyle = ctx.strokeStyle = colour;
  ctx.lineWidth = lit ? 2 : 1;
  for (let i = 0; i < most; i++) {
    const a = shareOf(from, i, most);
    const b = shareOf(to, i, most);
    if (Math.max(a.bottom, b.bottom) < 0 || Math.min(a.top, b.top) > one.camera.screen.height) continue;
    const middle = (a.x + b.x) / 2;
    ctx.beginPath();
    if (!lit && Math.max(a.bottom - a.top, b.bottom - b.top) < THIN) {
      const place = ((Math.round(a.top) * 4096 + Math.round(b.top)) * 4096 + Math.round(a.x)) * 4096 + Math.round(b.x);
      if (drawn.has(place)) continue;
      drawn.add(place);
      ctx.moveTo(a.x, a.top);
      ctx.bezierCurveTo(middle, a.top, middle, b.top, b.x, b.top);
      ctx.globalAlpha = 0.5;
      ctx.stroke();
      continue;
    }
    ctx.moveTo(a.x, a.top);
    ctx.bezierCurveTo(middle, a.top, middle, b.top, b.x, b.top);
    ctx.lineTo(b.x, b.bottom);
    ctx.bezierCurveTo(middle, b.bottom, middle, a.bottom, a.x, a.bottom);
    ctx.closePath();
    ctx.globalAlpha = lit ? 0.42 : 0.2;
    ctx.fill();
    ctx.globalAlpha = lit ? 0.9 : 0.5;
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
}

/** The i-th of `most` bands at these ends, in their order; several at one box share its side. */
function shareOf(ends: End[], i: number, most: number): End {
  const at = Math.floor((i * ends.length) / most);
  const end = ends[at]!;
  const first = Math.ceil((at * most) / ends.length);
  const here = Math.ceil(((at + 1) * most) / ends.length) - first;
  const high = (end.bottom - end.top) / here;
  return { x: end.x, top: end.top + (i - first) * high, bottom: end.top + (i - first + 1) * high };
}

function endOf({ scene: { boxes }, camera, left }: Pane, box: number, onRight: boolean): End {
  const x = boxes.x[box]! + (onRight ? boxes.width[box]! : 0);
  const { y } = camera.toScreen(x, boxes.y[box]!);
  const high = (boxes.kind[box] === BoxKind.Open ? 30 : cardHeight(boxes, box)) * camera.view.zoom;
  const place = Math.max(0, Math.min(camera.screen.width, camera.toScreen(x, 0).x));
  return { x: left + place, top: y, bottom: y + high };
}
