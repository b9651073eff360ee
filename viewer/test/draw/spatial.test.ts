import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { buildDensity, levelFor } from '../../src/picture/density.ts';
import { boxAt, buffersOf, buildIndex, distance2, edgeAt } from '../../src/picture/spatial.ts';
import { Bag, buildRTree, countIn, firstOf, floorFor, search } from '../../src/picture/rtree.ts';
import { BoxKind } from '../../src/scene.ts';
import type { Scene } from '../../src/scene.ts';
import { bigScene, makeBoxes } from './synthetic.ts';

const at = fc.integer({ min: 0, max: 4000 });
const size = fc.integer({ min: 0, max: 700 });
const rect = fc.tuple(at, at, size, size);

/** Rectangles and polylines as they come: overlapping, empty, anywhere. */
const scenes = fc
  .tuple(
    fc.array(fc.tuple(rect, fc.boolean(), fc.nat(5)), { maxLength: 80 }),
    fc.array(fc.array(fc.tuple(at, at), { minLength: 1, maxLength: 7 }), { maxLength: 40 }),
  )
  .map(([rects, lines]): Scene => {
    const boxes = makeBoxes(rects.length);
    rects.forEach(([[x, y, w, h], open, phase], b) => {
      [boxes.x[b], boxes.y[b], boxes.width[b], boxes.height[b]] = [x, y, w, h];
      boxes.kind[b] = open ? BoxKind.Open : BoxKind.Op;
      boxes.phase[b] = phase;
      boxes.depth[b] = open ? 0 : 1;
    });
    const n = rects.length === 0 ? 0 : lines.length;
    const start = new Int32Array(n + 1);
    for (let e = 0; e < n; e++) start[e + 1] = start[e]! + lines[e]!.length;
    return {
      width: 4700,
      height: 4700,
      direction: 'down',
      number: 0,
      layout: 'plain',
      rows: 0,
      texts: [''],
      boxes,
      edges: {
        count: n,
        source: Int32Array.from({ length: n }, (_, e) => e % rects.length),
        target: Int32Array.from({ length: n }, (_, e) => (e * 7) % rects.length),
        start,
        points: Float32Array.from(lines.slice(0, n).flat(2)),
        kind: new Uint8Array(n),
        uses: new Int32Array(n),
        bytes: new Float64Array(n),
        label: new Int32Array(n),
      },
    };
  });

const inside = (scene: Scene, b: number, x: number, y: number): boolean => {
  const { boxes } = scene;
  return x >= boxes.x[b]! && y >= boxes.y[b]! && x <= boxes.x[b]! + boxes.width[b]! && y <= boxes.y[b]! + boxes.height[b]!;
};

describe('tree', () => {
  it('finds everything that touches a rectangle, each once; counts no fewer', () => {
    fc.assert(
      fc.property(fc.array(rect, { maxLength: 200 }), rect, (rects, [qx, qy, qw, qh]) => {
        const corners = {
          x0: Float32Array.from(rects, (r) => r[0]),
          y0: Float32Array.from(rects, (r) => r[1]),
          x1: Float32Array.from(rects, (r) => r[0] + r[2]),
          y1: Float32Array.from(rects, (r) => r[1] + r[3]),
        };
        const tree = buildRTree(corners);
        expect([...tree.ids].sort((a, b) => a - b)).toEqual(rects.map((_, i) => i));
        const out = new Bag();
        search(tree, qx, qy, qx + qw, qy + qh, out);
        const found = [...out.taken()];
        expect(new Set(found).size).toBe(found.length);
        const touching = rects.flatMap(([x, y, w, h], i) => (x <= qx + qw && y <= qy + qh && x + w >= qx && y + h >= qy ? [i] : []));
        for (const i of touching) expect(found).toContain(i);
        expect(countIn(tree, qx, qy, qx + qw, qy + qh)).toBeGreaterThanOrEqual(touching.length);
        expect(countIn(tree, -1, -1, 1e6, 1e6)).toBe(rects.length);
      }),
    );
  });

  it('gives blocks of neighbours when asked to stop early', () => {
    const n = 1000;
    const x0 = Float32Array.from({ length: n }, (_, i) => (i % 40) * 10);
    const y0 = Float32Array.from({ length: n }, (_, i) => Math.floor(i / 40) * 10);
    const tree = buildRTree({ x0, y0, x1: x0.map((x) => x + 5), y1: y0.map((y) => y + 5) });
    const floor = floorFor(n, 100);
    const out = new Bag();
    search(tree, 0, 0, 1000, 1000, out, floor);
    expect(out.size).toBeLessThanOrEqual(100);
    const firsts = [...out.taken()].map((node) => firstOf(tree, node, floor));
    expect(new Set(firsts).size).toBe(out.size);
    expect(floorFor(50, 100)).toBe(-1);
  });
});

describe('index', () => {
  it('hits the box that brute force hits', () => {
    fc.assert(
      fc.property(scenes, at, at, (scene, x, y) => {
        const { boxes } = scene;
        const hits = Array.from({ length: boxes.count }, (_, b) => b).filter((b) => inside(scene, b, x, y));
        const leaves = hits.filter((b) => boxes.kind[b] !== BoxKind.Open);
        expect(boxAt(scene, buildIndex(scene), x, y)).toBe((leaves.length > 0 ? leaves : hits).at(-1) ?? -1);
      }),
      { numRuns: 200 },
    );
  });

  it('hits the edge that brute force hits', () => {
    fc.assert(
      fc.property(scenes, at, at, fc.integer({ min: 1, max: 300 }), (scene, x, y, reach) => {
        const { edges } = scene;
        const distance = (e: number): number => {
          let least = Infinity;
          for (let p = edges.start[e]!; p + 1 < edges.start[e + 1]!; p++) {
            const q = edges.points.subarray(2 * p, 2 * p + 4);
            least = Math.min(least, distance2(x, y, q[0]!, q[1]!, q[2]!, q[3]!));
          }
          return least;
        };
        let [best, least] = [-1, reach * reach];
        for (let e = 0; e < edges.count; e++) if (distance(e) < least) [best, least] = [e, distance(e)];
        const hit = edgeAt(scene, buildIndex(scene), x, y, reach);
        if (hit !== best) expect(distance(hit)).toBe(least);
      }),
      { numRuns: 200 },
    );
  });

  it('knows the edges at each box', () => {
    fc.assert(
      fc.property(scenes, (scene) => {
        const { touchStart, touching } = buildIndex(scene);
        const { source, target, count } = scene.edges;
        for (let b = 0; b < scene.boxes.count; b++) {
          const expected = Array.from({ length: count }, (_, e) => e).filter((e) => source[e] === b || target[e] === b);
          expect([...touching.subarray(touchStart[b], touchStart[b + 1])]).toEqual(expected);
        }
      }),
    );
  });

  it('cuts edges into pieces without losing a step, but for those that lie on one that is drawn', () => {
    fc.assert(
      fc.property(scenes, (scene) => {
        const { pieceEdge, pieceFrom, pieceTo, pieces } = buildIndex(scene);
        const { start, count, points } = scene.edges;
        const drawn = new Set<number>(); // steps, by the point at which they end
        for (let i = 0; i < pieceEdge.length; i++) {
          for (let p = pieceFrom[i]! + 1; p <= pieceTo[i]!; p++) drawn.add(p);
          expect(pieceFrom[i]).toBeGreaterThanOrEqual(start[pieceEdge[i]!]!);
          expect(pieceTo[i]).toBeLessThan(start[pieceEdge[i]! + 1]!);
        }
        const corners = (p: number) => {
          const [x, y, u, v] = [points[2 * p - 2]!, points[2 * p - 1]!, points[2 * p]!, points[2 * p + 1]!];
          return [Math.min(x, u), Math.min(y, v), Math.max(x, u), Math.max(y, v)] as const;
        };
        for (let e = 0; e < count; e++) {
          for (let p = start[e]! + 1; p < start[e + 1]!; p++) {
            if (drawn.has(p)) continue;
            const [x0, y0, x1, y1] = corners(p);
            expect(x0 === x1 || y0 === y1).toBe(true);
            const under = [...drawn].some((q) => {
              const [l, t, r, b] = corners(q);
              return (l === r || t === b) && l <= x0 && t <= y0 && r >= x1 && b >= y1;
            });
            expect(under).toBe(true);
          }
        }
        expect(pieces.reduce((sum, tree) => sum + tree.ids.length, 0)).toBe(pieceEdge.length);
      }),
    );
  });

  it('survives being handed to another thread', () => {
    const scene = bigScene(300);
    const index = buildIndex(scene);
    const copy = structuredClone(index, { transfer: buffersOf(index) });
    expect(boxAt(scene, copy, scene.boxes.x[5]! + 1, scene.boxes.y[5]! + 1)).toBe(5);
    expect(index.leaves.ids.length).toBe(0);
  });
});

describe('density', () => {
  it('holds the area and the phase of what lies in a cell', () => {
    const boxes = makeBoxes(3);
    // Two of phase 2 at the left, a smaller one of phase 4 at the far right.
    boxes.x.set([0, 0, 900]);
    boxes.y.set([0, 60, 0]);
    boxes.width.set([100, 100, 50]);
    boxes.height.set([50, 50, 20]);
    boxes.phase.set([2, 2, 4]);
    const density = buildDensity(boxes, Int32Array.of(0, 1, 2), 1000, 1000);
    let area = 0;
    for (let k = 0; k < density.columns[0]! * density.rows[0]!; k++) area += (density.cover[k]! / 255) * density.cell ** 2;
    expect(area / 11_000).toBeGreaterThan(0.97);
    expect(area / 11_000).toBeLessThan(1.03);
    expect(density.phase[0]).toBe(2);
    expect(density.phase[Math.floor(910 / density.cell)]).toBe(4);
    const top = density.start.length - 1;
    expect(density.columns[top]! * density.rows[top]!).toBeLessThanOrEqual(4);
    expect(levelFor(density, 0.001, 3)).toBe(top);
    expect(levelFor(density, 1, 3)).toBe(0);
  });
});
