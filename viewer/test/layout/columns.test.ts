import fc from 'fast-check';
import { expect, test } from 'vitest';
import { layoutColumns } from '../../src/layout/columns.ts';
import { overlaps, through } from '../../src/picture/quality.ts';
import { LayoutCache } from '../../src/layout/nested.ts';
import { LANE, type NestedGraph, type NestedLayout, type Options } from '../../src/layout/types.ts';
import { isAround } from './checks.ts';
import { anyNested, OPTIONS } from './graphs.ts';

/** A column for every box: that of the outermost group around it. */
function columnsOf(graph: NestedGraph, many: number): Int32Array {
  const column = new Int32Array(graph.n);
  const used = new Map<number, number>();
  for (let v = 0; v < graph.n; v++) {
    const wish = graph.parent[v]! >= 0 ? -1 : (v * 7) % many;
    if (wish >= 0 && !used.has(wish)) used.set(wish, used.size);
    column[v] = wish >= 0 ? used.get(wish)! : column[graph.parent[v]!]!;
  }
  return column;
}

const lay = (graph: NestedGraph, column: Int32Array, options: Options): NestedLayout =>
  layoutColumns(graph, column, options, new LayoutCache());

function expectGood(graph: NestedGraph, column: Int32Array, options: Options): void {
  const out = lay(graph, column, options);
  const boxes = { ...out, n: graph.n };
  const { parent, source, target } = graph;
  expect(overlaps(boxes, (a, b) => isAround(parent, a, b) || isAround(parent, b, a), 0.05)).toBe(0);
  const around = (e: number, box: number) => isAround(parent, box, source[e]!) || isAround(parent, box, target[e]!);
  expect(through(boxes, out, around, 0.2)).toBe(0); // not even its own ends
  for (let e = 0; e < source.length; e++) {
    if (column[source[e]!] !== column[target[e]!]) expect(out.edgeKind[e]).toBe(LANE);
    for (let i = out.pointStart[e]!; i < out.pointStart[e + 1]!; i++) {
      const [x, y] = [out.points[2 * i]!, out.points[2 * i + 1]!];
      if (!(x >= -0.1 && y >= -0.1 && x <= out.totalWidth + 0.1 && y <= out.totalHeight + 0.1))
        throw new Error(`edge ${e} leaves the drawing`);
    }
  }
  expect(lay(graph, column, options)).toEqual(out);
}

test('lines between columns run around the boxes of their columns', () => {
  fc.assert(
    fc.property(anyNested, fc.integer({ min: 2, max: 4 }), (g, many) => expectGood(g, columnsOf(g, many), OPTIONS)),
    { numRuns: 200 },
  );
  fc.assert(
    fc.property(anyNested, (g) => expectGood(g, columnsOf(g, 3), { ...OPTIONS, direction: 'right' })),
    { numRuns: 100 },
  );
  fc.assert(
    fc.property(anyNested, (g) => expectGood(g, columnsOf(g, 3), { ...OPTIONS, maxHeight: 150 })),
    { numRuns: 100 },
  );
});

test('lines from one box share their way and their lane', () => {
  const graph: NestedGraph = {
    n: 4,
    parent: Int32Array.from([-1, -1, -1, -1]),
    open: new Uint8Array(4),
    width: new Float32Array(4).fill(60),
    height: new Float32Array(4).fill(28),
    header: 20,
    padding: 10,
    source: Int32Array.from([0, 0, 1, 2]),
    target: Int32Array.from([2, 3, 2, 3]),
  };
  const out = lay(graph, Int32Array.from([0, 0, 1, 1]), OPTIONS);
  const line = (e: number) => Array.from(out.points.subarray(2 * out.pointStart[e]!, 2 * out.pointStart[e + 1]!));
  expect(line(0).slice(0, 8)).toEqual(line(1).slice(0, 8));
  expect(line(0).slice(-4)).toEqual(line(2).slice(-4));
  expect(line(0)[6]).not.toBe(line(2)[6]);
  expect([line(0)[1], line(0).at(-1)]).toEqual([out.y[0]! + 28, out.y[2]]); // from the bottom to the top
});
