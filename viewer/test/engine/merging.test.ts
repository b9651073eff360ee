// Neighbours that share a box: never a loop, never more than is asked for.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mergeNeighbours } from '../../src/engine/merging.ts';

/** Edges from earlier to later items. */
const graphs = fc.integer({ min: 2, max: 24 }).chain((n) =>
  fc.record({
    n: fc.constant(n),
    edges: fc.array(
      fc.tuple(fc.nat(n - 1), fc.nat(n - 1)).filter(([a, b]) => a < b),
      { maxLength: 50 },
    ),
    most: fc.integer({ min: 1, max: n }),
  }),
);

function boxes(section: Int32Array): number[] {
  return Array.from(section, (s, i) => (s < 0 ? -1 - i : s));
}

/** Whether what is merged can be run one box after the other. */
function hasLoop(edges: readonly (readonly [number, number])[], section: Int32Array): boolean {
  const box = boxes(section);
  const next = new Map<number, Set<number>>();
  for (const [a, b] of edges) if (box[a] !== box[b]) next.set(box[a]!, (next.get(box[a]!) ?? new Set()).add(box[b]!));
  const state = new Map<number, number>();
  const visit = (v: number): boolean => {
    if (state.get(v) === 1) return true;
    if (state.get(v) === 2) return false;
    state.set(v, 1);
    const found = [...(next.get(v) ?? [])].some(visit);
    state.set(v, 2);
    return found;
  };
  return box.some(visit);
}

const columns = (edges: readonly (readonly [number, number])[]) => ({
  source: Int32Array.from(edges, ([a]) => a),
  target: Int32Array.from(edges, ([, b]) => b),
});
const alone = (n: number) => new Int32Array(n).fill(-1);

describe('neighbours that share a box', () => {
  it('never form a loop', () => {
    fc.assert(
      fc.property(graphs, ({ n, edges, most }) => {
        const section = mergeNeighbours(n, columns(edges), alone(n), most, (a, b) => a.length + b.length);
        expect(hasLoop(edges, section)).toBe(false);
        expect(new Set(boxes(section)).size).toBeLessThanOrEqual(n);
      }),
    );
  });

  it('are as few as asked for in a chain, and no fewer', () => {
    const edges = Array.from({ length: 9 }, (_, i) => [i, i + 1] as const);
    for (let most = 1; most <= 10; most++) {
      const section = mergeNeighbours(10, columns(edges), alone(10), most, (a, b) => a.length + b.length);
      expect(new Set(boxes(section)).size).toBe(most);
    }
  });

  it('leave what has several makers and readers at its place', () => {
    // A skip over a chain: 0 → 1 → 2 → 3, and 0 → 3.
    const edges = [
      [0, 1],
      [1, 2],
      [2, 3],
      [0, 3],
    ] as const;
    const section = mergeNeighbours(4, columns(edges), alone(4), 3, (_a, _b, isChain) => (isChain ? 0 : 1));
    expect([...section]).toEqual([-1, 0, 0, -1]);
  });

  it('keep the clusters that are given, and what may not be merged apart', () => {
    const edges = Array.from({ length: 5 }, (_, i) => [i, i + 1] as const);
    const given = Int32Array.of(-1, 7, 7, -1, -1, -1);
    const section = mergeNeighbours(6, columns(edges), given, 1, (a, b) => ([...a, ...b].includes(5) ? Infinity : 0));
    expect([...section]).toEqual([7, 7, 7, 7, 7, -1]);
  });
});
