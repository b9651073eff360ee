import { expect } from 'vitest';
import { overlaps, through } from '../../src/picture/quality.ts';
import {
  LANE,
  LOOP,
  NORMAL,
  WRAP,
  type EdgeLines,
  type FlatGraph,
  type FlatLayout,
  type NestedGraph,
  type NestedLayout,
} from '../../src/layout/types.ts';

const NEAR = 0.1;

export function expectFinite(...columns: Float32Array[]): void {
  for (const column of columns) expect(column.every((v) => Number.isFinite(v))).toBe(true);
}

interface Placed {
  x: ArrayLike<number>;
  y: ArrayLike<number>;
  width: ArrayLike<number>;
  height: ArrayLike<number>;
}

function onBorder(b: Placed, v: number, x: number, y: number): boolean {
  const left = Math.abs(x - b.x[v]),
    right = Math.abs(x - b.x[v] - b.width[v]);
  const top = Math.abs(y - b.y[v]),
    bottom = Math.abs(y - b.y[v] - b.height[v]);
  const inX = x >= b.x[v] - NEAR && x <= b.x[v] + b.width[v] + NEAR,
    inY = y >= b.y[v] - NEAR && y <= b.y[v] + b.height[v] + NEAR;
  return inX && inY && Math.min(left, right, top, bottom) <= NEAR;
}

/** Lines start and end on their boxes, point down (or right) unless marked, and stay within the drawing. */
function expectLines(
  lines: EdgeLines,
  boxes: Placed,
  source: Int32Array,
  target: Int32Array,
  width: number,
  height: number,
  right: boolean,
): void {
  const { pointStart, points, edgeKind } = lines;
  expect(pointStart.length).toBe(source.length + 1);
  expect(points.length).toBe(2 * pointStart[source.length]);
  for (let e = 0; e < source.length; e++) {
    const a = pointStart[e],
      b = pointStart[e + 1] - 1;
    expect(b).toBeGreaterThan(a);
    expect([NORMAL, LANE, LOOP, WRAP]).toContain(edgeKind[e]);
    expect(onBorder(boxes, source[e], points[2 * a], points[2 * a + 1]), `edge ${e} starts on box ${source[e]}`).toBe(true);
    expect(onBorder(boxes, target[e], points[2 * b], points[2 * b + 1]), `edge ${e} ends on box ${target[e]}`).toBe(true);
    const along = right ? 0 : 1,
      marked = edgeKind[e] === LOOP || edgeKind[e] === WRAP;
    for (let i = a; i <= b; i++) {
      const x = points[2 * i],
        y = points[2 * i + 1];
      if (!(x >= -NEAR && x <= width + NEAR && y >= -NEAR && y <= height + NEAR)) throw new Error(`edge ${e} leaves the drawing`);
      if (i > a && !marked && points[2 * i + along] < points[2 * i - 2 + along] - NEAR) throw new Error(`edge ${e} goes back`);
    }
  }
}

export function expectGoodFlat(graph: FlatGraph, layout: FlatLayout, right = false): void {
  const boxes = { n: graph.n, x: layout.x, y: layout.y, width: graph.width, height: graph.height };
  expectFinite(layout.x, layout.y, layout.points);
  expect(overlaps(boxes, undefined, 0.05)).toBe(0);
  for (let v = 0; v < graph.n; v++) {
    expect(layout.x[v]).toBeGreaterThanOrEqual(-NEAR);
    expect(layout.y[v]).toBeGreaterThanOrEqual(-NEAR);
    expect(layout.x[v] + graph.width[v]).toBeLessThanOrEqual(layout.width + NEAR);
    expect(layout.y[v] + graph.height[v]).toBeLessThanOrEqual(layout.height + NEAR);
  }
  expectLines(layout, boxes, graph.source, graph.target, layout.width, layout.height, right);
  expect(through(boxes, layout, () => false, 0.2)).toBe(0); // not even its own boxes
}

export function isAround(parent: Int32Array, group: number, box: number): boolean {
  for (let v = parent[box]; v >= 0; v = parent[v]) if (v === group) return true;
  return false;
}

export function expectGoodNested(graph: NestedGraph, layout: NestedLayout, right = false): void {
  const { parent } = graph;
  const boxes = { n: graph.n, x: layout.x, y: layout.y, width: layout.width, height: layout.height };
  expectFinite(layout.x, layout.y, layout.width, layout.height, layout.points);
  expect(overlaps(boxes, (a, b) => isAround(parent, a, b) || isAround(parent, b, a), 0.05)).toBe(0);
  for (let v = 0; v < graph.n; v++) {
    const g = parent[v];
    if (!graph.open[v]) {
      expect(layout.width[v]).toBe(graph.width[v]);
      expect(layout.height[v]).toBe(graph.height[v]);
    }
    const left = g < 0 ? 0 : layout.x[g] + graph.padding,
      top = g < 0 ? 0 : layout.y[g] + graph.header + graph.padding;
    const end = g < 0 ? layout.totalWidth : layout.x[g] + layout.width[g] - graph.padding;
    const bottom = g < 0 ? layout.totalHeight : layout.y[g] + layout.height[g] - graph.padding;
    expect(layout.x[v]).toBeGreaterThanOrEqual(left - NEAR);
    expect(layout.y[v]).toBeGreaterThanOrEqual(top - NEAR);
    expect(layout.x[v] + layout.width[v]).toBeLessThanOrEqual(end + NEAR);
    expect(layout.y[v] + layout.height[v]).toBeLessThanOrEqual(bottom + NEAR);
  }
  expectLines(layout, boxes, graph.source, graph.target, layout.totalWidth, layout.totalHeight, right);
  const inside = (e: number, box: number) => isAround(parent, box, graph.source[e]) || isAround(parent, box, graph.target[e]);
  expect(through(boxes, layout, inside, 0.2)).toBe(0);
}
