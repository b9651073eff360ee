import fc from 'fast-check';
import type { FlatGraph, NestedGraph, Options } from '../../src/layout/types.ts';

export const OPTIONS: Options = { direction: 'down', gapX: 20, gapY: 30 };

export function flat(n: number, edges: [number, number][], size: [number, number] = [60, 28]): FlatGraph {
  return {
    n,
    width: new Float32Array(n).fill(size[0]),
    height: new Float32Array(n).fill(size[1]),
    source: Int32Array.from(edges, (e) => e[0]),
    target: Int32Array.from(edges, (e) => e[1]),
  };
}

/** Any graph: cycles, loops, parallel edges, single boxes, boxes of different size. */
export const anyFlat: fc.Arbitrary<FlatGraph> = fc.integer({ min: 0, max: 40 }).chain((n) =>
  fc
    .record({
      size: fc.array(fc.tuple(fc.integer({ min: 1, max: 200 }), fc.integer({ min: 1, max: 120 })), { minLength: n, maxLength: n }),
      edges: n ? fc.array(fc.tuple(fc.nat(n - 1), fc.nat(n - 1)), { maxLength: 80 }) : fc.constant([]),
      order: fc.boolean(),
      seed: fc.nat(1000),
    })
    .map(({ size, edges, order, seed }) => ({
      n,
      width: Float32Array.from(size, (s) => s[0]),
      height: Float32Array.from(size, (s) => s[1]),
      source: Int32Array.from(edges, (e) => e[0]),
      target: Int32Array.from(edges, (e) => e[1]),
      ...(order ? { order: Int32Array.from({ length: n }, (_, i) => (i * 7919 + seed) % 97) } : {}),
    })),
);

/** Long graphs with short and long skips, like a network. */
export const anyChain: fc.Arbitrary<FlatGraph> = fc
  .record({
    n: fc.integer({ min: 2, max: 300 }),
    skips: fc.array(fc.tuple(fc.nat(299), fc.nat(299)), { maxLength: 60 }),
    backs: fc.array(fc.tuple(fc.nat(299), fc.nat(299)), { maxLength: 3 }),
  })
  .map(({ n, skips, backs }) => {
    const edges: [number, number][] = [];
    for (let i = 1; i < n; i++) if (i % 7) edges.push([i - 1, i]);
    for (const [a, b] of skips) if (a % n !== b % n) edges.push([Math.min(a % n, b % n), Math.max(a % n, b % n)]);
    for (const [a, b] of backs) edges.push([Math.max(a % n, b % n), Math.min(a % n, b % n)]);
    return flat(n, edges);
  });

/** Any tree of open groups and leaves, with edges between any two leaves. */
export const anyNested: fc.Arbitrary<NestedGraph> = fc
  .record({
    boxes: fc.array(
      fc.record({ up: fc.nat(1000), open: fc.boolean(), w: fc.integer({ min: 5, max: 150 }), h: fc.integer({ min: 5, max: 80 }) }),
      { maxLength: 50 },
    ),
    pairs: fc.array(fc.tuple(fc.nat(1000), fc.nat(1000)), { maxLength: 90 }),
    ordered: fc.boolean(),
  })
  .map(({ boxes, pairs, ordered }) => {
    const n = boxes.length;
    const open = Uint8Array.from(boxes, (b) => (b.open ? 1 : 0));
    const parent = new Int32Array(n).fill(-1);
    const groups: number[] = [];
    const leaves: number[] = [];
    for (let v = 0; v < n; v++) {
      const k = boxes[v].up % (groups.length + 1);
      if (k < groups.length) parent[v] = groups[k];
      (open[v] ? groups : leaves).push(v);
    }
    const edges = leaves.length ? pairs.map(([a, b]) => [leaves[a % leaves.length], leaves[b % leaves.length]]) : [];
    return {
      n,
      parent,
      open,
      width: Float32Array.from(boxes, (b) => (b.open ? 0 : b.w)),
      height: Float32Array.from(boxes, (b) => (b.open ? 0 : b.h)),
      header: 20,
      padding: 10,
      source: Int32Array.from(edges, (e) => e[0]),
      target: Int32Array.from(edges, (e) => e[1]),
      ...(ordered ? { order: Int32Array.from({ length: n }, (_, i) => (i * 31) % 17) } : {}),
    };
  });
