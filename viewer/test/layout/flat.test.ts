import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { layoutFlat } from '../../src/layout/flat.ts';
import { crossings, segments } from '../../src/picture/quality.ts';
import { LANE, LOOP, NORMAL, WRAP } from '../../src/layout/types.ts';
import { expectGoodFlat } from './checks.ts';
import { anyChain, anyFlat, flat, OPTIONS } from './graphs.ts';

describe('any graph', () => {
  test('is drawn without overlaps, lines outside boxes, down unless marked', () => {
    fc.assert(
      fc.property(anyFlat, (g) => expectGoodFlat(g, layoutFlat(g, OPTIONS))),
      { numRuns: 300 },
    );
  });
  test('also fast, also to the right', () => {
    fc.assert(
      fc.property(anyFlat, (g) => expectGoodFlat(g, layoutFlat(g, { ...OPTIONS, quality: 'fast' }))),
      { numRuns: 150 },
    );
    fc.assert(
      fc.property(anyFlat, (g) => expectGoodFlat(g, layoutFlat(g, { ...OPTIONS, direction: 'right' }), true)),
      { numRuns: 150 },
    );
  });
  test('also long ones, and folded into columns', () => {
    fc.assert(
      fc.property(anyChain, (g) => expectGoodFlat(g, layoutFlat(g, { ...OPTIONS, quality: 'fast' }))),
      { numRuns: 40 },
    );
    fc.assert(
      fc.property(anyChain, fc.integer({ min: 50, max: 2000 }), (g, maxHeight) =>
        expectGoodFlat(g, layoutFlat(g, { ...OPTIONS, maxHeight })),
      ),
      { numRuns: 100 },
    );
    fc.assert(
      fc.property(anyFlat, (g) => expectGoodFlat(g, layoutFlat(g, { ...OPTIONS, maxHeight: 150 }))),
      { numRuns: 100 },
    );
  });
  test('gives the same drawing every time', () => {
    fc.assert(
      fc.property(anyFlat, (g) => {
        expect(layoutFlat(g, OPTIONS)).toEqual(layoutFlat(g, OPTIONS));
      }),
      { numRuns: 60 },
    );
  });
});

describe('small shapes', () => {
  test('nothing, and one box', () => {
    expectGoodFlat(flat(0, []), layoutFlat(flat(0, []), OPTIONS));
    const one = layoutFlat(flat(1, []), OPTIONS);
    expect([one.x[0], one.y[0], one.width, one.height]).toEqual([0, 0, 60, 28]);
  });
  test('a chain is straight', () => {
    const g = flat(5, [
      [0, 1],
      [1, 2],
      [2, 3],
      [3, 4],
    ]);
    const out = layoutFlat(g, OPTIONS);
    expect(new Set(out.x)).toEqual(new Set([0]));
    expect([...out.y]).toEqual([0, 58, 116, 174, 232]);
    expect(out.points.length).toBe(4 * 4);
  });
  test('parallel edges share one line', () => {
    const out = layoutFlat(
      flat(2, [
        [0, 1],
        [0, 1],
        [0, 1],
      ]),
      OPTIONS,
    );
    expect(segments(out).length).toBe(4);
  });
  test('a loop and a back edge are marked', () => {
    const g = flat(3, [
      [0, 1],
      [1, 2],
      [2, 0],
      [1, 1],
    ]);
    const out = layoutFlat(g, OPTIONS);
    expect([...out.edgeKind]).toEqual([NORMAL, NORMAL, LOOP, LOOP]);
    expectGoodFlat(g, out);
  });
  test('an edge against the index is no back edge when it closes no cycle', () => {
    const g = flat(3, [
      [2, 1],
      [1, 0],
    ]);
    expect([...layoutFlat(g, OPTIONS).edgeKind]).toEqual([NORMAL, NORMAL]);
  });
  test('the execution order says which edge of a cycle goes back', () => {
    const g = {
      ...flat(2, [
        [0, 1],
        [1, 0],
      ]),
      order: Int32Array.from([5, 3]),
    };
    expect([...layoutFlat(g, OPTIONS).edgeKind]).toEqual([LOOP, NORMAL]);
  });
  test('two lines that need not cross do not', () => {
    const out = layoutFlat(
      flat(4, [
        [0, 3],
        [1, 2],
      ]),
      OPTIONS,
    );
    expect(crossings(segments(out))).toBe(0);
    const mixed = layoutFlat(
      flat(8, [
        [0, 4],
        [1, 5],
        [2, 4],
        [3, 5],
        [4, 6],
        [5, 6],
        [0, 7],
        [7, 6],
      ]),
      OPTIONS,
    );
    expect(crossings(segments(mixed))).toBe(0);
  });
  test('what feeds only one box stands just above it', () => {
    // 0-1-2-3-4 with a parameter 5 of box 4
    const out = layoutFlat(
      flat(6, [
        [0, 1],
        [1, 2],
        [2, 3],
        [3, 4],
        [5, 4],
      ]),
      OPTIONS,
    );
    expect(out.y[5]).toBe(out.y[3]);
  });
  test('a very long skip of a large graph is a lane', () => {
    const n = 7000,
      edges: [number, number][] = [];
    for (let i = 1; i < n; i++) edges.push([i - 1, i]);
    for (let i = 0; i < 60; i++) edges.push([i, n - 1 - i]); // more than the bends a large graph may have
    const g = flat(n, edges);
    const out = layoutFlat(g, OPTIONS);
    expect(out.edgeKind[n - 1]).toBe(LANE); // the longest of them
    expectGoodFlat(g, out);
  });
  test('a long chain folds into columns, and the lines between them are marked', () => {
    const n = 100,
      edges: [number, number][] = [];
    for (let i = 1; i < n; i++) edges.push([i - 1, i]);
    const out = layoutFlat(flat(n, edges), { ...OPTIONS, maxHeight: 800 });
    expect(out.height).toBeLessThan(900);
    expect([...out.edgeKind].filter((k) => k === WRAP).length).toBeGreaterThan(5);
    expect([...out.edgeKind].filter((k) => k === NORMAL).length).toBeGreaterThan(80);
  });
  test('single boxes are packed in a grid, not in one row', () => {
    const out = layoutFlat(flat(100, [[0, 1]]), OPTIONS);
    expect(out.width).toBeLessThan(1500);
    expect(out.height).toBeLessThan(1500);
  });
});
