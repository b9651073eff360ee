// Dotted arcs between boxes that belong together without data flowing: a forward operator and its gradients.
import type { Frame } from './frame.ts';

const MOST = 3000;

export function paintLinks(frame: Frame): void {
  const { ctx, zoom, ox, oy, theme } = frame;
  const { boxes } = frame.scene;
  const links = frame.paint.links;
  if (!links?.length) return;
  ctx.save();
  ctx.setLineDash([2, 4]);
  ctx.lineWidth = links.length > 200 ? 1 : 1.5;
  ctx.strokeStyle = theme.related;
  ctx.globalAlpha = links.length > 200 ? 0.5 : 0.9;
  ctx.beginPath();
  for (let i = 0; i + 1 < Math.min(links.length, 2 * MOST); i += 2) {
    const [a, b] = [links[i]!, links[i + 1]!];
    if (a >= boxes.count || b >= boxes.count) continue;
    const [ax, ay, bx, by] = [boxes.x[a]!, boxes.y[a]!, boxes.x[b]!, boxes.y[b]!];
    const beside = bx > ax + boxes.width[a]! || ax > bx + boxes.width[b]!;
    // From the facing sides where one is next to the other, else around the right.
    const left = beside && bx < ax;
    const x0 = (left ? ax : ax + boxes.width[a]!) * zoom + ox;
    const x1 = (beside && !left ? bx : bx + boxes.width[b]!) * zoom + ox;
    const y0 = (ay + boxes.height[a]! / 2) * zoom + oy;
    const y1 = (by + boxes.height[b]! / 2) * zoom + oy;
    const bend = beside ? (x1 - x0) / 2 : 60 * zoom;
    ctx.moveTo(x0, y0);
    ctx.bezierCurveTo(x0 + bend, y0, beside ? x1 - bend : x1 + bend, y1, x1, y1);
  }
  ctx.stroke();
  ctx.restore();
}
