// What the keys do.

import { dark, light } from '../draw/theme.ts';
import { setMenu } from './chips.ts';
import { fit, goTo, zoom } from './drawing.ts';
import { expandAll, expandTo, flip, toggle } from './expanding.ts';
import type { Page } from './page.ts';
import { select, selectNeighbour, stepResult, traceWay } from './selecting.ts';
import { stepHistory, stepStage } from './staging.ts';

/** Controls that a browser works by these keys itself. */
const CONTROLS = 'button, summary, a, label, [role=tab], [role=radio]';
const THEIRS = new Set(['Enter', ' ', 'ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown']);
const PAN = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] } as Record<string, [number, number]>;

export function bindKeys(page: Page): void {
  document.addEventListener('keydown', (event) => key(page, event));
}

function key(page: Page, event: KeyboardEvent): void {
  const { state } = page;
  const target = event.target as HTMLElement;
  const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
  if (isTyping && !(event.key === 'Escape' && target.closest('.menu'))) return;
  if (state.helpOpen.get()) {
    // It has one button, which has the focus.
    if (event.key === 'Escape' || event.key === '?') state.helpOpen.set(false);
    if (event.key !== 'Enter' && event.key !== ' ') event.preventDefault();
    return;
  }
  if (THEIRS.has(event.key) && !event.altKey && target.closest(CONTROLS)) return;
  const run = commandOf(page, event);
  if (!run) return;
  run();
  event.preventDefault();
}

function commandOf(page: Page, event: KeyboardEvent): (() => void) | undefined {
  const { state, renderer } = page;
  if (event.altKey && event.key === 'ArrowLeft') return () => page.run(stepHistory(page, 'back'));
  if (event.altKey && event.key === 'ArrowRight') return () => page.run(stepHistory(page, 'forward'));
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  const pan = PAN[event.key];
  if (!pan) return Object.hasOwn(COMMANDS, event.key) ? () => COMMANDS[event.key]!(page) : undefined;
  const item = state.selection.get().at(-1);
  if (item === undefined || !state.picture.get()) return () => renderer.camera.pan(...pan);
  return () => page.run(selectNeighbour(page, event.key, item));
}

const COMMANDS: Record<string, (page: Page) => void> = {
  '/': ({ places }) => places.search.focus(),
  '?': ({ state }) => state.helpOpen.set(true),
  '0': (page) => fit(page),
  '+': (page) => zoom(page, 1.25),
  '=': (page) => zoom(page, 1.25),
  '-': (page) => zoom(page, 0.8),
  '[': (page) => page.run(expandTo(page, page.state.level.get() - 1)),
  ']': (page) => page.run(expandTo(page, page.state.level.get() + 1)),
  E: (page) => page.run(expandAll(page)),
  C: (page) => page.run(expandTo(page, 1)),
  ',': (page) => page.run(stepStage(page, -1)),
  '.': (page) => page.run(stepStage(page, 1)),
  n: (page) => page.run(stepResult(page, 1)),
  N: (page) => page.run(stepResult(page, -1)),
  u: (page) => page.run(traceWay(page, 'up')),
  j: (page) => page.run(traceWay(page, 'down')),
  f: (page) => page.run(goTo(page, page.state.selection.get())),
  d: (page) => page.run(flip(page)),
  t: ({ state }) => state.theme.set(state.theme.get() === dark ? light : dark),
  Enter: (page) => {
    const item = page.state.selection.get().at(-1);
    if (item !== undefined) page.run(toggle(page, item));
  },
  Escape: (page) => {
    if (page.state.menuOpen.get()) setMenu(page, false);
    else if (page.places.note.textContent) page.say('');
    else page.run(select(page, [], false));
  },
};
