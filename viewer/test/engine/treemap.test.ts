import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cellAt, layTreemap, squarify, type Branches } from '../../src/engine/treemap.ts';

const figures = fc
  .array(fc.double({ min: 0.001, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 60 })
  .map((list) => list.sort((a, b) => b - a));

describe('squarify', () => {
  it('gives every figure its share of the area, inside the frame', () => {
    fc.assert(
      fc.property(figures, fc.integer({ min: 20, max: 2000 }), fc.integer({ min: 20, max: 2000 }), (list, width, height) => {
        const total = list.reduce((a, b) => a + b, 0);
        const boxes = squarify(list, 5, 7, width, height);
        list.forEach((figure, i) => {
          const [x, y, w, h] = boxes.subarray(4 * i, 4 * i + 4) as unknown as [number, number, number, number];
          expect(w * h).toBeCloseTo((figure / total) * width * height, 1);
          expect(Math.min(x - 5, y - 7, w, h)).toBeGreaterThan(-1e-6);
          expect(x + w).toBeLessThan(5 + width + 1e-6 * width);
          expect(y + h).toBeLessThan(7 + height + 1e-6 * height);
        });
      }),
    );
  });

  it('keeps cells apart', () => {
    const boxes = squarify([6, 6, 4, 3, 2, 2, 1], 0, 0, 600, 400);
    for (let a = 0; a < 7; a++)
      for (let b = 0; b < a; b++) {
        const [ax, ay, aw, ah] = boxes.subarray(4 * a, 4 * a + 4) as unknown as [number, number, number, number];
        const [bx, by, bw, bh] = boxes.subarray(4 * b, 4 * b + 4) as unknown as [number, number, number, number];
        const apart = ax + aw <= bx + 1e-9 || bx + bw <= ax + 1e-9 || ay + ah <= by + 1e-9 || by + bh <= ay + 1e-9;
        expect(apart).toBe(true);
      }
  });

  it('makes cells that are nearly square', () => {
    const boxes = squarify(
      Array.from({ length: 12 }, () => 1),
      0,
      0,
      400,
      300,
    );
    for (let i = 0; i < 12; i++)
      expect(Math.max(boxes[4 * i + 2]! / boxes[4 * i + 3]!, boxes[4 * i + 3]! / boxes[4 * i + 2]!)).toBeLessThan(1.5);
  });
});

/** 0 holds 1 (which holds only 2) and 3; 2 holds n, all alike; 3 holds one with half of what it has. */
function tree(n: number): Branches {
  const children: Record<number, number[]> = { 0: [1, 3], 1: [2], 2: Array.from({ length: n }, (_, i) => 100 + i), 3: [50] };
  const figure = (item: number): number =>
    item >= 100 ? 1 : item === 50 ? n / 2 : item === 3 ? n : (children[item] ?? []).reduce((sum, child) => sum + figure(child), 0);
  return { figure, children: (item) => children[item] ?? [] };
}

describe('a map of modules', () => {
  it('puts what is inside into what is around it, and one in one in one together', () => {
    const cells = layTreemap(tree(4), 0, 800, 400);
    expect(cells.map((cell) => cell.item).sort((a, b) => a - b)).toEqual([0, 2, 3, 3, 50, 100, 101, 102, 103]);
    const two = cells.find((cell) => cell.item === 2)!;
    expect(two.also).toEqual([1]);
    for (const cell of cells.filter((one) => one.item >= 100)) {
      expect(cells[cell.around]).toBe(two);
      expect(cell.x).toBeGreaterThanOrEqual(two.x);
      expect(cell.y + cell.height).toBeLessThanOrEqual(two.y + two.height + 1e-6);
      expect(cellAt(cells, cell.x + cell.width / 2, cell.y + cell.height / 2)).toBe(cells.indexOf(cell));
    }
  });

  it('draws what is in no child as the rest of its module', () => {
    const rest = layTreemap(tree(4), 0, 800, 400).find((cell) => cell.kind === 'rest')!;
    expect([rest.item, rest.figure, rest.count]).toEqual([3, 2, 0]);
  });

  it('draws a hundred thousand operators as one rest', () => {
    const cells = layTreemap(tree(100_000), 0, 800, 400);
    expect(cells.length).toBeLessThan(50);
    expect(cells.find((cell) => cell.item === 2 && cell.kind === 'rest')?.count).toBe(100_000);
  });

  it('is empty where there is nothing', () => {
    expect(layTreemap({ figure: () => 0, children: () => [] }, 0, 800, 400)).toEqual([]);
    expect(layTreemap(tree(3), 0, 0, 0)).toEqual([]);
  });
});
