// Lines that come into one box at different ports do not cross before it.

import { describe, expect, it } from 'vitest';
import { layoutNested } from '../../src/layout/nested.ts';
import { crossings, segments } from '../../src/picture/quality.ts';
import type { NestedGraph } from '../../src/layout/types.ts';

/** Inputs of an open group, to the boxes of a row in it: the first input to the last box, and so on. */
function fed(inputs: number): NestedGraph {
  const n = 2 * inputs + 1;
  const group = inputs;
  const last = inputs - 1;
  // What is in the group stands in an order that a chain of later boxes holds.
  return {
    n,
    parent: Int32Array.from({ length: n }, (_, v) => (v > group ? group : -1)),
    open: Uint8Array.from({ length: n }, (_, v) => (v === group ? 1 : 0)),
    width: new Float32Array(n).fill(60),
    height: new Float32Array(n).fill(30),
    header: 24,
    padding: 12,
    source: Int32Array.from({ length: inputs }, (_, i) => i),
    target: Int32Array.from({ length: inputs }, (_, i) => group + 1 + last - i),
    order: Int32Array.from({ length: n }, (_, v) => v),
  };
}

describe('ports', () => {
  it.each([2, 3, 5])('of %i inputs: no crossing, whichever is read first', (inputs) => {
    for (const side of [undefined, 1, -1] as const) {
      const laid = layoutNested(fed(inputs), { direction: 'down', gapX: 20, gapY: 30, side });
      expect(crossings(segments(laid))).toBe(0);
    }
  });
});
