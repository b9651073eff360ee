// The list of keys, and the sheet that shows it.

import { h } from '../widgets/dom.ts';
import type { Page } from './page.ts';

const WORDS = /^(click|double-click|drag|wheel|arrow|keys|\p{Script=Han}+)$/u;

/** `Alt ← →` as keys; words that are no keys (`click`) stay words. */
function caps(text: string): (HTMLElement | string)[] {
  return text.split(' ').flatMap((part, i) => {
    const comma = part.length > 1 && part.endsWith(',') ? ',' : '';
    const name = comma ? part.slice(0, -1) : part;
    return [i ? ' ' : '', WORDS.test(name) ? name : h('kbd', {}, name), comma];
  });
}

/** Keys, and what they do. */
export function keyList(rows: [string, string][]): HTMLElement {
  return h('dl', { class: 'keys-list' }, ...rows.flatMap(([keys, text]) => [h('dt', {}, ...caps(keys)), h('dd', {}, text)]));
}

export function showHelp(page: Page): void {
  const { state, views, places } = page;
  let dialog: HTMLElement | null = null;
  views.add(
    'help',
    () => [state.helpOpen.get(), page.words()] as const,
    ([open]) => {
      // The focus comes into it, and goes back to the drawing.
      if (!open && dialog) places.canvas.focus();
      dialog?.remove();
      dialog = open ? sheet(page) : null;
      if (dialog) page.root.append(dialog);
      dialog?.querySelector('button')?.focus();
    },
  );
}

function sheet({ state }: Page): HTMLElement {
  const words = state.words.get();
  const close = () => state.helpOpen.set(false);
  const queries = words.queries.flatMap(([query, text]) => [h('dt', {}, h('code', {}, query)), h('dd', {}, text)]);
  const dialog: HTMLElement = h(
    'div',
    {
      class: 'dialog',
      role: 'dialog',
      'aria-modal': 'true',
      'aria-label': words.help,
      onclick: (event: Event) => event.target === dialog && close(),
    },
    h(
      'div',
      { class: 'sheet' },
      h('h2', {}, words.keysTitle),
      keyList(words.keys),
      h('h3', {}, words.searchTitle),
      h('dl', { class: 'keys-list' }, ...queries),
      h('button', { class: 'chip', onclick: close }, words.close),
    ),
  );
  return dialog;
}
