// What the keys do: they carry out commands (commands.ts), or move the camera and the selection.

import { keyOf } from './command.ts';
import { COMMANDS } from './commands.ts';
import { grab } from './history.ts';
import type { Page } from './page.ts';
import { selectNeighbour } from './selecting.ts';

/** Controls that a browser works by these keys itself. */
const CONTROLS = 'button, summary, a, label, [role=tab], [role=radio], [role=separator]';
const THEIRS = new Set(['Enter', ' ', 'ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown']);
const PAN = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] } as Record<string, [number, number]>;
/** Works while one types, too. */
const ALWAYS = new Set(['ctrl+k']);
const WAYS_BACK = new Set(['ctrl+z', 'ctrl+shift+z', 'ctrl+y']);

export function bindKeys(page: Page): void {
  document.addEventListener('keydown', (event) => key(page, event));
}

function key(page: Page, event: KeyboardEvent): void {
  const { state } = page;
  const target = event.target as HTMLElement;
  const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
  const isTicking = isTyping && /^(checkbox|radio|range|select-one)$/.test((target as HTMLInputElement).type); // has no way back of its own
  const isAllowed = ALWAYS.has(keyOf(event)) || (isTicking && WAYS_BACK.has(keyOf(event)));
  if (isTyping && !(event.key === 'Escape' && target.closest('.menu')) && !isAllowed) return;
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
  const pressed = keyOf(event);
  const command = COMMANDS.find(({ keys }) => keys?.includes(pressed));
  if (command) return () => (command.isThere?.(page) ?? true) && command.run(page);
  const pan = PAN[pressed];
  if (!pan) return undefined;
  const item = state.selection.get().at(-1);
  if (item === undefined || !state.picture.get()) return () => (grab(page), renderer.camera.pan(...pan));
  return () => page.run(selectNeighbour(page, event.key, item));
}
