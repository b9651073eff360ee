// Panels register themselves once, and are there where they have something to show.

import { describe, expect, it } from 'vitest';
import { light } from '../../src/draw/theme.ts';
import { panelsThere, register, registered } from '../../src/panels/panel.ts';
import { newState } from '../../src/state/page.ts';
import { LANGUAGES } from '../../src/state/words.ts';
import '../../src/panels/all.ts';

describe('panels', () => {
  it('have a name of their own, and a title in every language', () => {
    const names = registered().map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const words of Object.values(LANGUAGES)) for (const kind of registered()) expect(kind.title(words)).not.toBe('');
    expect(() => register({ ...registered()[0]! })).toThrow(names[0]);
  });

  it('without anything to show are not there', () => {
    const state = newState({ language: 'en', theme: light });
    expect(panelsThere(state, 'left').map(({ name }) => name)).toEqual(['modules', 'results']);
    expect(panelsThere(state, 'low').map(({ name }) => name)).toEqual(['source', 'cost', 'table']);
  });
});
