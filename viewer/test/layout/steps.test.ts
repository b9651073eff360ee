import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { buildArcs, splitFans } from '../../src/layout/arcs.ts';
import { balance } from '../../src/layout/balance.ts';
import { placeItems } from '../../src/layout/coordinates.ts';
import { gapsFor, separation } from '../../src/layout/gaps.ts';
import { copyOrder, countCrossings, type Order } from '../../src/layout/crossings.ts';
import { BACK, breakCycles, FORWARD, SELF } from '../../src/layout/cycles.ts';
import { settle } from '../../src/layout/exchange.ts';
import { cutColumns } from '../../src/layout/fold.ts';
import { placeLanes } from '../../src/layout/lanes.ts';
import { buildLayers, spanLimit, type Layered } from '../../src/layout/layers.ts';
import { orderLayers, searchOrder, sweep } from '../../src/layout/order.ts';
import { connectedParts, packRows } from '../../src/layout/pack.ts';
import { assignRanks } from '../../src/layout/rank.ts';
import { stitch } from '../../src/layout/stitch.ts';
import type { FlatGraph } from '../../src/layout/types.ts';
import { anyChain, anyFlat, flat } from './graphs.ts';

function prepare(g: FlatGraph, limit = Infinity) {
  const kind = breakCycles(g.n, g.source, g.target, g.order);
  const arcs = buildArcs(g, kind);
  const ranks = assignRanks(g.n, arcs);
  return { kind, arcs, ranks, layered: buildLayers(g.n, arcs, ranks, limit) };
}

describe('cycles', () => {
  test('what goes forward has no cycle, and only edges on a cycle go back', () => {
    fc.assert(
      fc.property(anyFlat, (g) => {
        const kind = breakCycles(g.n, g.source, g.target, g.order);
        const next: number[][] = Array.from({ length: g.n }, () => []);
        for (let e = 0; e < kind.length; e++) if (kind[e] === FORWARD) next[g.source[e]].push(g.target[e]);
        const state = new Uint8Array(g.n);
        const visit = (v: number) => {
          state[v] = 1;
          for (const w of next[v]) {
            expect(state[w]).not.toBe(1);
            if (!state[w]) visit(w);
          }
          state[v] = 2;
        };
        for (let v = 0; v < g.n; v++) if (!state[v]) visit(v);
        const reaches = (a: number, b: number) => {
          const seen = new Set([a]),
            list = [a];
          for (const v of list)
            for (let e = 0; e < kind.length; e++)
              if (g.source[e] === v && !seen.has(g.target[e])) {
                seen.add(g.target[e]);
                list.push(g.target[e]);
              }
          return seen.has(b);
        };
        for (let e = 0; e < kind.length; e++) {
          expect(kind[e] === SELF).toBe(g.source[e] === g.target[e]);
          if (kind[e] === BACK) expect(reaches(g.target[e], g.source[e])).toBe(true);
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe('ranks', () => {
  test('every arc goes down, within the layers', () => {
    fc.assert(
      fc.property(fc.oneof(anyFlat, anyChain), (g) => {
        const { kind, ranks } = prepare(g);
        for (let e = 0; e < kind.length; e++)
          if (kind[e] === FORWARD) expect(ranks.rank[g.target[e]]).toBeGreaterThan(ranks.rank[g.source[e]]);
        for (const r of ranks.rank) expect(r >= 0 && r < ranks.layers).toBe(true);
      }),
      { numRuns: 150 },
    );
  });
  test('a part that only feeds something far below sinks as a whole', () => {
    // a chain 0…9; 10 -> 11 -> {12, 13}, both used by 9
    const edges: [number, number][] = [
      [10, 11],
      [11, 12],
      [11, 13],
      [12, 9],
      [13, 9],
    ];
    for (let i = 1; i < 10; i++) edges.push([i - 1, i]);
    expect([...prepare(flat(14, edges)).ranks.rank.slice(10)]).toEqual([6, 7, 8, 8]);
  });
  test('what one line feeds many times sinks to where it is used', () => {
    // a chain 0…9; 10 feeds 11 and 12, used by 5 and 9
    const edges: [number, number][] = [
      [10, 11],
      [10, 12],
      [11, 5],
      [12, 9],
    ];
    for (let i = 1; i < 10; i++) edges.push([i - 1, i]);
    const { rank } = prepare(flat(13, edges)).ranks;
    expect([rank[10], rank[11], rank[12]]).toEqual([3, 4, 8]);
  });
});

describe('layers', () => {
  test('all lines of a tail share one chain', () => {
    const edges: [number, number][] = [
      [0, 5],
      [0, 6],
      [0, 7],
    ];
    for (let i = 1; i < 8; i++) edges.push([i - 1, i]);
    const { layered } = prepare(flat(8, edges));
    expect(layered.count).toBe(8 + 6);
    for (let l = 0; l < layered.links; l++) expect(layered.layer[layered.lower[l]] - layered.layer[layered.upper[l]]).toBe(1);
  });
  test('the limit keeps bends within the budget', () => {
    fc.assert(
      fc.property(anyChain, fc.integer({ min: 0, max: 500 }), (g, budget) => {
        const { arcs, ranks } = prepare(g);
        const limit = spanLimit(arcs, ranks.rank, ranks.layers, budget, Infinity);
        expect(buildLayers(g.n, arcs, ranks, limit).count - g.n).toBeLessThanOrEqual(budget);
      }),
      { numRuns: 80 },
    );
  });
  test('a fan may run apart', () => {
    const { arcs, ranks } = prepare(
      flat(5, [
        [0, 1],
        [1, 2],
        [0, 3],
        [0, 4],
        [2, 3],
        [2, 4],
      ]),
    );
    const split = splitFans(arcs, ranks.rank, 24)!;
    expect(split.tails).toBe(arcs.tails + 2);
    expect(buildLayers(5, split, ranks, Infinity).count).toBe(5 + 4);
    expect(splitFans(arcs, ranks.rank, 2)).toBeNull();
  });
});

function isOrder(layered: Layered, order: Order): void {
  expect([...order.at].sort((a, b) => a - b)).toEqual([...order.at.keys()]);
  for (let r = 0; r < layered.layers; r++) {
    for (let i = order.start[r]; i < order.start[r + 1]; i++) {
      expect(layered.layer[order.at[i]]).toBe(r);
      expect(order.pos[order.at[i]]).toBe(i - order.start[r]);
    }
  }
}

function naiveCrossings(layered: Layered, order: Order): number {
  const { upper, lower, layer } = layered,
    { pos } = order;
  let sum = 0;
  for (let a = 0; a < layered.links; a++) {
    for (let b = 0; b < a; b++) {
      if (layer[upper[a]] === layer[upper[b]] && (pos[upper[a]] - pos[upper[b]]) * (pos[lower[a]] - pos[lower[b]]) < 0) sum++;
    }
  }
  return sum;
}

describe('order', () => {
  test('crossings are counted right, for few links and for many', () => {
    fc.assert(
      fc.property(anyFlat, (g) => {
        const { layered } = prepare(g);
        const order = searchOrder(layered, true, false);
        isOrder(layered, order);
        expect(countCrossings(layered, order)).toBe(naiveCrossings(layered, order));
      }),
      { numRuns: 100 },
    );
    const many: [number, number][] = [];
    for (let i = 0; i < 60; i++) many.push([i % 12, 12 + ((i * 7) % 11)]);
    const { layered } = prepare(flat(23, many));
    const order = searchOrder(layered, false, false);
    expect(countCrossings(layered, order)).toBe(naiveCrossings(layered, order));
  });
  test('every step keeps all items, and the result is never worse than the first order', () => {
    fc.assert(
      fc.property(fc.oneof(anyFlat, anyChain), fc.boolean(), (g, down) => {
        const { layered } = prepare(g);
        const first = searchOrder(layered, true, false);
        const before = countCrossings(layered, first);
        const swept = copyOrder(first);
        sweep(layered, swept, 3, down, null);
        isOrder(layered, swept);
        const settled = copyOrder(first);
        settle(layered, settled, down);
        isOrder(layered, settled);
        expect(countCrossings(layered, settled)).toBeLessThanOrEqual(before);
        const gaps = (o: Order) =>
          Int32Array.from({ length: Math.max(0, layered.layers - 1) }, (_, r) => {
            const one: Order = o;
            return naiveGap(layered, one, r);
          });
        const joined = stitch(layered, first, gaps(first), swept, gaps(swept)) ?? first;
        isOrder(layered, joined);
        expect(countCrossings(layered, joined)).toBeLessThanOrEqual(Math.min(before, countCrossings(layered, swept)));
        const best = orderLayers(layered, { left: 100_000 });
        isOrder(layered, best.order);
        expect(best.crossings).toBe(countCrossings(layered, best.order));
        expect(best.crossings).toBeLessThanOrEqual(before);
      }),
      { numRuns: 60 },
    );
  });
  test('parameters stand on both sides of the flow', () => {
    const { layered } = prepare(
      flat(7, [
        [0, 1],
        [1, 6],
        [2, 6],
        [3, 6],
        [4, 6],
        [5, 6],
      ]),
    );
    const order = searchOrder(layered, true, false);
    balance(layered, order, new Float64Array(layered.count).fill(30));
    expect(order.pos[1]).toBe(2);
  });
});

function naiveGap(layered: Layered, order: Order, r: number): number {
  const { upper, lower, layer } = layered,
    { pos } = order;
  let sum = 0;
  for (let a = 0; a < layered.links; a++) {
    if (layer[upper[a]] !== r) continue;
    for (let b = 0; b < a; b++) if (layer[upper[b]] === r && (pos[upper[a]] - pos[upper[b]]) * (pos[lower[a]] - pos[lower[b]]) < 0) sum++;
  }
  return sum;
}

describe('coordinates', () => {
  test('neighbours keep their distance', () => {
    fc.assert(
      fc.property(fc.oneof(anyFlat, anyChain), (g) => {
        const { layered } = prepare(g);
        const order = searchOrder(layered, true, false);
        const half = new Float64Array(layered.count);
        for (let v = 0; v < g.n; v++) half[v] = g.width[v] / 2;
        const gaps = gapsFor(20);
        const x = placeItems({ layered, order, half, gaps, rounds: 3, passes: 4 });
        for (let r = 0; r < layered.layers; r++) {
          for (let i = order.start[r] + 1; i < order.start[r + 1]; i++) {
            const a = order.at[i - 1],
              b = order.at[i];
            expect(x[b] - x[a]).toBeGreaterThanOrEqual(separation(a, b, half, gaps, g.n) - 1e-6);
          }
        }
      }),
      { numRuns: 80 },
    );
  });
  test('a deep drawing does not drift sideways', () => {
    // a chain of 3000 where every box has a parameter of its own on the same side, and skips
    const edges: [number, number][] = [];
    for (let i = 0; i < 3000; i++) {
      if (i) edges.push([2 * i - 2, 2 * i]);
      edges.push([2 * i + 1, 2 * i]);
      if (i > 6 && i % 5 === 0) edges.push([2 * i - 12, 2 * i]);
    }
    const { layered } = prepare(flat(6000, edges));
    const order = orderLayers(layered, { left: 0 }).order;
    const half = new Float64Array(layered.count);
    half.fill(30, 0, 6000);
    const x = placeItems({ layered, order, half, gaps: gapsFor(20), rounds: 2, passes: 0 });
    expect(Math.max(...x) - Math.min(...x)).toBeLessThan(2000);
  });
});

describe('lanes, columns, packing', () => {
  test('short lanes run inside long ones, and a bundle is never too wide', () => {
    const layers = 50,
      count = 20;
    const lanes = {
      count,
      tail: new Int32Array(count),
      back: new Uint8Array(count),
      origin: new Int32Array(count),
      first: Int32Array.from({ length: count }, (_, k) => k),
      last: Int32Array.from({ length: count }, (_, k) => layers - 1 - k),
      side: new Int8Array(count).fill(1),
      ofEdge: new Int32Array(0),
    };
    const places = placeLanes(lanes, new Int32Array(layers), new Float64Array(layers), new Float64Array(layers).fill(100), 10, 8, 80);
    for (let k = 1; k < count; k++) expect(places.x[k - 1]).toBeGreaterThan(places.x[k]);
    expect(places.x[count - 1]).toBeGreaterThanOrEqual(110 - 1e-9);
    expect(places.x[0] - places.x[count - 1]).toBeLessThanOrEqual(80);
  });
  test('columns are cut where few lines pass', () => {
    const height = new Float64Array(20).fill(28),
      gap = new Float64Array(19).fill(30);
    const crossing = new Int32Array(20).fill(5);
    crossing[8] = 1;
    const cut = (width: number) =>
      cutColumns(height, gap, crossing, 600, new Float64Array(20), new Float64Array(20).fill(width), (lines) => 8 * lines);
    const column = cut(60);
    expect(column[8]).toBe(0);
    expect(column[9]).toBe(1);
    expect(cut(3000)[19]).toBe(0); // two columns of wide layers would only be a wide drawing
  });
  test('rows do not overlap and stay within their width', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: 1, max: 90 }), fc.integer({ min: 1, max: 90 })), { maxLength: 30 }), (sizes) => {
        const packed = packRows(
          sizes.map((s) => s[0]),
          sizes.map((s) => s[1]),
          200,
          10,
          10,
        );
        expect(packed.width).toBeLessThanOrEqual(200);
        for (let a = 0; a < sizes.length; a++) {
          for (let b = 0; b < a; b++) {
            const apart =
              packed.x[a] >= packed.x[b] + sizes[b][0] ||
              packed.x[b] >= packed.x[a] + sizes[a][0] ||
              packed.y[a] >= packed.y[b] + sizes[b][1] ||
              packed.y[b] >= packed.y[a] + sizes[a][1];
            expect(apart).toBe(true);
          }
        }
      }),
    );
  });
  test('connected parts', () => {
    const { part, parts } = connectedParts(6, Int32Array.from([0, 3]), Int32Array.from([2, 4]));
    expect([...part]).toEqual([0, -1, 0, 1, 1, -1]);
    expect(parts).toBe(2);
  });
});
