// Bits of dtypes: the table is generated from Python's, and so are the patterns around a name.

import { describe, expect, it } from 'vitest';
import { bitsOf } from '../../src/engine/types.ts';

describe('bits of a dtype', () => {
  it.each([
    ['float32', 32],
    ['torch.float8_e4m3fnuz', 8],
    ['torch.float4_e2m1fn_x2', 8],
    ['tensor(float)', 32],
    ['FLOAT8E4M3FN', 8],
    ['QuantizedS8', 8],
    ['quint4x2', 4],
    ['float16x2', 32],
    ['int4b', 4],
    ['complex32', 32],
    ['s8', 8],
  ])('%s has %d', (name, bits) => expect(bitsOf(name)).toBe(bits));

  it('are not guessed', () => {
    expect(bitsOf('posit16')).toBeUndefined();
    expect(bitsOf('')).toBeUndefined();
  });
});
