import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { layoutFlat } from '../../src/layout/flat.ts';
import { crossings, segments } from '../../src/picture/quality.ts';
import { layoutNested } from '../../src/layout/nested.ts';
import type { FlatGraph, FlatLayout } from '../../src/layout/types.ts';
import { expectGoodFlat, expectGoodNested } from './checks.ts';
import { flat, OPTIONS } from './graphs.ts';

/** Parallel branches between sources and sinks, some of them joined, with lines that pass them by and back edges. */
const anyWide: fc.Arbitrary<FlatGraph> = fc
  .record({
    branches: fc.integer({ min: 30, max: 120 }),
    length: fc.integer({ min: 1, max: 4 }),
    hubs: fc.integer({ min: 0, max: 3 }),
    sinks: fc.integer({ min: 0, max: 3 }),
    more: fc.array(fc.tuple(fc.nat(600), fc.nat(600)), { maxLength: 25 }),
    size: fc.array(fc.tuple(fc.integer({ min: 20, max: 200 }), fc.integer({ min: 10, max: 80 })), { minLength: 7, maxLength: 7 }),
    tail: fc.integer({ min: 0, max: 5 }),
  })
  .map(({ branches, length, hubs, sinks, more, size, tail }) => {
    const edges: [number, number][] = [];
    const first = hubs,
      last = first + branches * length,
      n = last + sinks + tail;
    for (let b = 0; b < branches; b++) {
      const box = first + b * length;
      for (let i = 1; i < length; i++) edges.push([box + i - 1, box + i]);
      for (let h = 0; h < hubs; h++) if ((b * 7) % (h + 2) === 0) edges.push([h, box + ((b * h) % length)]);
      for (let s = 0; s < sinks; s++) if ((b * 5) % (s + 1) === 0) edges.push([box + length - 1, last + s]);
    }
    for (let i = 1; i < tail; i++) edges.push([last + sinks + i - 1, last + sinks + i]);
    if (tail && sinks) edges.push([last, last + sinks]);
    for (const [a, b] of more) edges.push([a % n, b % n]);
    const g = flat(n, edges);
    for (let v = 0; v < n; v++) [g.width[v], g.height[v]] = size[v % 7];
    return g;
  });

const shape = (layout: FlatLayout) => layout.width / layout.height;

describe('layers that are much too wide', () => {
  test('are drawn without overlaps, lines outside boxes, down unless marked', () => {
    fc.assert(
      fc.property(anyWide, (g) => expectGoodFlat(g, layoutFlat(g, OPTIONS))),
      { numRuns: 120 },
    );
    fc.assert(
      fc.property(anyWide, (g) => expectGoodFlat(g, layoutFlat(g, { ...OPTIONS, quality: 'fast', maxHeight: 900 }))),
      { numRuns: 50 },
    );
    fc.assert(
      fc.property(anyWide, (g) => expectGoodFlat(g, layoutFlat(g, { ...OPTIONS, direction: 'right' }), true)),
      { numRuns: 50 },
    );
  });
  test('give a drawing of sane shape, the same every time', () => {
    fc.assert(
      fc.property(anyWide, (g) => {
        const out = layoutFlat(g, OPTIONS);
        // What hangs together is not broken: of 6,000 such graphs the widest was 8.8 times as wide as high.
        if (out.width > 4000) expect(shape(out)).toBeLessThan(12);
        expect(layoutFlat(g, OPTIONS)).toEqual(out);
      }),
      { numRuns: 60 },
    );
  });
  test('also inside groups', () => {
    fc.assert(
      fc.property(anyWide, fc.nat(5), (g, every) => {
        const n = g.n + 2;
        const nested = {
          n,
          parent: Int32Array.from({ length: n }, (_, v) => (v < 2 ? v - 1 : v % (every + 2) ? 1 : v % 2 ? 0 : -1)),
          open: Uint8Array.from({ length: n }, (_, v) => (v < 2 ? 1 : 0)),
          width: Float32Array.from({ length: n }, (_, v) => (v < 2 ? 0 : g.width[v - 2])),
          height: Float32Array.from({ length: n }, (_, v) => (v < 2 ? 0 : g.height[v - 2])),
          header: 20,
          padding: 10,
          source: g.source.map((v) => v + 2),
          target: g.target.map((v) => v + 2),
        };
        expectGoodNested(nested, layoutNested(nested, OPTIONS));
      }),
      { numRuns: 80 },
    );
  });

  const many = 2000;
  const boxes = Array.from({ length: many }, (_, i) => i);
  test('a thousand readers of one box, and one reader of a thousand', () => {
    for (const edges of [
      boxes.map((i): [number, number] => [0, i + 1]),
      boxes.map((i): [number, number] => [i, many]),
      boxes.flatMap((i): [number, number][] => [
        [0, i + 1],
        [i + 1, many + 1],
      ]),
    ]) {
      const g = flat(Math.max(...edges.flat()) + 1, edges);
      const out = layoutFlat(g, OPTIONS);
      expectGoodFlat(g, out);
      expect(shape(out)).toBeGreaterThan(1);
      expect(shape(out)).toBeLessThan(3.5);
      expect(crossings(segments(out))).toBe(0);
    }
  });
  test('branches stay together, and what all of them read does not tie them', () => {
    // an optimizer: a parameter and its gradient each, a chain of three, and a step that all of them read
    const edges = boxes.slice(0, 300).flatMap((i): [number, number][] => {
      const a = 1 + 5 * i;
      return [
        [a, a + 2],
        [a + 1, a + 2],
        [a + 2, a + 3],
        [0, a + 3],
        [a + 3, a + 4],
      ];
    });
    const g = flat(1501, edges);
    const out = layoutFlat(g, OPTIONS);
    expectGoodFlat(g, out);
    expect(shape(out)).toBeLessThan(3.5);
    for (let i = 0; i < 300; i++) {
      const a = 1 + 5 * i;
      expect(Math.abs(out.x[a + 2] - out.x[a + 4])).toBeLessThan(120);
      expect(out.y[a + 4] - out.y[a + 2]).toBe(2 * (out.y[a + 3] - out.y[a + 2]));
    }
  });
  test('a few boxes in a row stay in a row', () => {
    const g = flat(
      15,
      Array.from({ length: 14 }, (_, i): [number, number] => [0, i + 1]),
    );
    expect(new Set(layoutFlat(g, OPTIONS).y).size).toBe(2);
  });
});
