import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { segments } from '../../src/picture/quality.ts';
import { LayoutCache, layoutNested } from '../../src/layout/nested.ts';
import type { NestedGraph } from '../../src/layout/types.ts';
import { expectGoodNested } from './checks.ts';
import { anyNested, OPTIONS } from './graphs.ts';

describe('any tree of groups', () => {
  test('children inside parents, lines outside boxes, down unless marked', () => {
    fc.assert(
      fc.property(anyNested, (g) => expectGoodNested(g, layoutNested(g, OPTIONS))),
      { numRuns: 300 },
    );
  });
  test('also to the right, and folded', () => {
    fc.assert(
      fc.property(anyNested, (g) => {
        const turned = layoutNested(g, { ...OPTIONS, direction: 'right' });
        expectGoodNested(g, turned, true);
      }),
      { numRuns: 100 },
    );
    fc.assert(
      fc.property(anyNested, (g) => expectGoodNested(g, layoutNested(g, { ...OPTIONS, maxHeight: 150 }))),
      { numRuns: 100 },
    );
  });
  test('with a cache, cold or warm, gives the same drawing', () => {
    const cache = new LayoutCache();
    fc.assert(
      fc.property(anyNested, (g) => {
        const plain = layoutNested(g, OPTIONS);
        expect(layoutNested(g, OPTIONS, cache)).toEqual(plain);
        expect(layoutNested(g, OPTIONS, cache)).toEqual(plain);
      }),
      { numRuns: 100 },
    );
  });
});

/** Three equal groups in a row, each a chain of three boxes with a skip. */
function blocks(): NestedGraph {
  const parent: number[] = [],
    open: number[] = [];
  const edges: [number, number][] = [];
  let last = -1;
  for (let b = 0; b < 3; b++) {
    const g = parent.length;
    parent.push(-1, g, g, g);
    open.push(1, 0, 0, 0);
    if (last >= 0) edges.push([last, g + 1], [last, g + 3]);
    edges.push([g + 1, g + 2], [g + 2, g + 3]);
    last = g + 3;
  }
  const n = parent.length;
  return {
    n,
    parent: Int32Array.from(parent),
    open: Uint8Array.from(open),
    width: Float32Array.from(open, (o) => (o ? 0 : 60)),
    height: Float32Array.from(open, (o) => (o ? 0 : 28)),
    header: 20,
    padding: 10,
    source: Int32Array.from(edges, (e) => e[0]),
    target: Int32Array.from(edges, (e) => e[1]),
  };
}

describe('groups', () => {
  test('nothing, and an open group without content', () => {
    const none: NestedGraph = {
      ...blocks(),
      n: 0,
      parent: new Int32Array(0),
      open: new Uint8Array(0),
      source: new Int32Array(0),
      target: new Int32Array(0),
    };
    expect(layoutNested(none, OPTIONS).totalWidth).toBe(0);
    const empty: NestedGraph = {
      ...none,
      n: 1,
      parent: Int32Array.from([-1]),
      open: Uint8Array.from([1]),
      width: Float32Array.from([80]),
      height: new Float32Array(1),
    };
    const out = layoutNested(empty, OPTIONS);
    expect([out.width[0], out.height[0]]).toEqual([80, 40]);
  });
  test('edges into one group from one source share the way to its border', () => {
    const g = blocks();
    const out = layoutNested(g, OPTIONS);
    expectGoodNested(g, out);
    const into = [...g.source.keys()].filter((e) => g.source[e] === 3 && g.target[e] > 3);
    expect(into.length).toBe(2);
    const [a, b] = into.map((e) => [...out.points.subarray(2 * out.pointStart[e], 2 * out.pointStart[e + 1])]);
    expect(a.slice(0, 2)).toEqual(b.slice(0, 2));
    const together = segments(out).length,
      apart = segments({ pointStart: out.pointStart, points: out.points.map((v, i) => v + i * 1e-4) }).length;
    expect(together).toBeLessThan(apart);
  });
  test('equal groups are laid out once', () => {
    const cache = new LayoutCache();
    const g = blocks();
    // give the first block the same border as the second: make the second and third equal
    layoutNested(g, OPTIONS, cache);
    expect(cache.hits + cache.misses).toBe(4);
    const before = cache.misses;
    layoutNested(g, OPTIONS, cache);
    expect(cache.misses).toBe(before);
    layoutNested(g, { ...OPTIONS, gapX: 30 }, cache);
    expect(cache.misses).toBe(2 * before);
  });
  test('a group that must not be cached is not', () => {
    const cache = new LayoutCache();
    const g = { ...blocks(), key: () => null };
    layoutNested(g, OPTIONS, cache);
    layoutNested(g, OPTIONS, cache);
    expect(cache.misses).toBe(1); // the outermost level only
  });
  test('opening one group recomputes it and what is around it', () => {
    const cache = new LayoutCache();
    const g = blocks();
    const closed: NestedGraph = { ...g };
    layoutNested(closed, OPTIONS, cache);
    cache.misses = 0;
    const wider: NestedGraph = { ...g, width: g.width.slice() };
    wider.width[2] = 90; // something inside the first group changes
    layoutNested(wider, OPTIONS, cache);
    expect(cache.misses).toBe(2);
  });
});
