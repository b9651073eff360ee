// Bits of dtypes: the table is generated from Python's, and so are the patterns around a name.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { bitsOf } from '../../src/engine/types.ts';

const file = new URL('../../../tests/dtypes.json', import.meta.url);
const spelled = JSON.parse(readFileSync(file, 'utf8')) as Record<string, Record<string, number | null>>;

describe('bits of a dtype', () => {
  it.each(Object.entries(spelled))('are those that Python says, for all of %s', (_, names) => {
    const found = Object.fromEntries(Object.keys(names).map((name) => [name, bitsOf(name) ?? null]));
    expect(found).toEqual(names);
  });

  it.each(['posit16', '', 'constructor', 'toStringx2', 'float32x0', 'float32x99999'])('are not guessed for %j', (name) =>
    expect(bitsOf(name)).toBeUndefined(),
  );
});
