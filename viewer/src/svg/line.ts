// Edges as path data: the same rounded corners and arrowheads as on the canvas.
import type { Edges } from '../scene.ts';
import { num } from './escape.ts';

const CORNER = 9;

export function linePath(edges: Edges, e: number): string {
  const { points, start } = edges;
  const [from, to] = [start[e]!, start[e + 1]! - 1];
  if (to <= from) return '';
  let [x, y] = [points[2 * from]!, points[2 * from + 1]!];
  const parts = [`M${num(x)} ${num(y)}`];
  for (let p = from + 1; p < to; p++) {
    const [cx, cy] = [points[2 * p]!, points[2 * p + 1]!];
    const [nx, ny] = [points[2 * p + 2]!, points[2 * p + 3]!];
    const [back, ahead] = [Math.hypot(cx - x, cy - y), Math.hypot(nx - cx, ny - cy)];
    const r = Math.min(CORNER, back / 2, ahead / 2);
    if (r < 0.5) {
      parts.push(`L${num(cx)} ${num(cy)}`);
    } else {
      parts.push(`L${num(cx - ((cx - x) * r) / back)} ${num(cy - ((cy - y) * r) / back)}`);
      parts.push(`Q${num(cx)} ${num(cy)} ${num(cx + ((nx - cx) * r) / ahead)} ${num(cy + ((ny - cy) * r) / ahead)}`);
    }
    [x, y] = [cx, cy];
  }
  parts.push(`L${num(points[2 * to]!)} ${num(points[2 * to + 1]!)}`);
  return parts.join('');
}

export function arrowPath(edges: Edges, e: number, size: number): string {
  const { points, start } = edges;
  const p = start[e + 1]! - 1;
  let q = p - 1;
  while (q > start[e]! && points[2 * q] === points[2 * p] && points[2 * q + 1] === points[2 * p + 1]) q--;
  if (q < start[e]!) return '';
  const [x, y] = [points[2 * p]!, points[2 * p + 1]!];
  const length = Math.hypot(x - points[2 * q]!, y - points[2 * q + 1]!);
  if (length === 0) return '';
  const [dx, dy] = [(x - points[2 * q]!) / length, (y - points[2 * q + 1]!) / length];
  const [bx, by, half] = [x - dx * size, y - dy * size, size * 0.46];
  return `M${num(x)} ${num(y)}L${num(bx - dy * half)} ${num(by + dx * half)}L${num(bx + dy * half)} ${num(by - dx * half)}Z`;
}

/** A straight part of an edge. */
export interface Part {
  length: number;
  at(t: number): { x: number; y: number };
}

/** The straight parts of an edge, the longest first. */
export function partsOf(edges: Edges, e: number): Part[] {
  const { points, start } = edges;
  const parts: Part[] = [];
  for (let p = start[e]!; p + 1 < start[e + 1]!; p++) {
    const [ax, ay, bx, by] = [points[2 * p]!, points[2 * p + 1]!, points[2 * p + 2]!, points[2 * p + 3]!];
    const length = Math.hypot(bx - ax, by - ay);
    parts.push({ length, at: (t) => ({ x: ax + (bx - ax) * t, y: ay + (by - ay) * t }) });
  }
  return parts.sort((a, b) => b.length - a.length);
}
