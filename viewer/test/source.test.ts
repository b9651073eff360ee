// The house rules of viewer/src: which folder may import which, how long a function may be, what a file says first.

import { describe, expect, it } from 'vitest';
import { cycleIn, folderOf, importsOf, longFunctions, sourceFiles, type Files } from './source.ts';

/** What each folder may import, types too. The lists go one way: from the page down to the bytes. */
const LAYERS: Record<string, string[]> = {
  wire: [],
  text: [],
  layout: [],
  'scene.ts': ['wire'],
  picture: ['scene.ts', 'wire'],
  find: ['scene.ts', 'wire'],
  engine: ['find', 'layout', 'picture', 'scene.ts', 'text', 'wire'],
  draw: ['picture', 'scene.ts', 'text'],
  svg: ['draw', 'picture', 'scene.ts', 'text'],
  state: ['draw', 'engine', 'picture', 'text', 'wire'],
  widgets: ['state'],
  panels: ['draw', 'engine', 'picture', 'scene.ts', 'state', 'text', 'widgets', 'wire'],
  page: ['draw', 'engine', 'panels', 'picture', 'scene.ts', 'state', 'svg', 'text', 'widgets'],
  headless: [],
  'headless.ts': ['draw', 'engine', 'headless', 'picture', 'scene.ts', 'svg', 'wire'],
  'main.ts': ['engine', 'page', 'state'],
  'worker.ts': ['engine', 'headless.ts'],
};
const LONGEST = 100;

const files = sourceFiles();

/** Imports that the layers do not allow. */
function forbidden(of: Files): string[] {
  const wrong = importsOf(of).filter(({ from, to }) => {
    const [here, there] = [folderOf(from), folderOf(to)];
    return here !== there && !LAYERS[here]?.includes(there);
  });
  return wrong.map(({ from, to }) => `${from} imports ${to}`);
}

function between(of: Files): { from: string; to: string }[] {
  return importsOf(of).map(({ from, to }) => ({ from: folderOf(from), to: folderOf(to) }));
}

describe('layers', () => {
  it('are kept: every import is allowed, and every permission is used', () => {
    expect(forbidden(files)).toEqual([]);
    const used = new Set(between(files).map(({ from, to }) => `${from} → ${to}`));
    const idle = Object.entries(LAYERS).flatMap(([from, list]) => list.map((to) => `${from} → ${to}`).filter((rule) => !used.has(rule)));
    expect(idle).toEqual([]);
    expect([...files.keys()].map(folderOf).filter((folder) => !LAYERS[folder])).toEqual([]);
  });

  it('allow no cycle, and there is none between folders', () => {
    expect(cycleIn(Object.entries(LAYERS).flatMap(([from, list]) => list.map((to) => ({ from, to }))))).toBeNull();
    expect(cycleIn(between(files))).toBeNull();
  });

  it('a planted import the wrong way is found, of a type too', () => {
    for (const line of [
      "import { draw } from '../draw/renderer.ts';",
      "import type { Theme } from '../draw/theme.ts';",
      "import {\n  a,\n  b,\n} from '../draw/renderer.ts';",
      "export { draw } from '../draw/renderer.ts';",
      "let view: import('../draw/renderer.ts').Renderer;",
      "import '../draw/renderer.ts';",
    ]) {
      const planted = new Map(files)
        .set('engine/planted.ts', `// Planted.\n${line}\n`)
        .set('draw/planted.ts', "import '../engine/tree.ts';");
      expect(forbidden(planted)).toHaveLength(2);
      expect(cycleIn(between(planted))).not.toBeNull();
    }
  });
});

describe('files', () => {
  it('load each other in one direction', () => {
    expect(cycleIn(importsOf(files).filter(({ isType }) => !isType))).toBeNull();
  });

  it('of the page know each other in one direction, types too', () => {
    const upper = new Set(['page', 'panels', 'state', 'widgets', 'draw', 'picture']);
    expect(cycleIn(importsOf(files).filter(({ from }) => upper.has(folderOf(from))))).toBeNull();
  });

  it('say their idea in the first line', () => {
    const silent = [...files].filter(([, text]) => !/^\/\/ \S.*[.:,\w]/.test(text)).map(([path]) => path);
    expect(silent).toEqual([]);
  });

  it(`have no function above ${LONGEST} lines that is not defended`, () => {
    expect(longFunctions(files, LONGEST).filter(({ isDefended }) => !isDefended)).toEqual([]);
  });

  it('a planted long function is found, and a defended one is not', () => {
    const long = `function f() {\n${'  g();\n'.repeat(LONGEST)}}\n`;
    const found = longFunctions(
      new Map([
        ['a.ts', long],
        ['b.ts', `/** Long: a table of cases. */\n${long}`],
      ]),
      LONGEST,
    );
    expect(found.map(({ place, isDefended }) => [place, isDefended])).toEqual([
      ['a.ts:1', false],
      ['b.ts:2', true],
    ]);
  });
});
