// The search box: it finds while one types, and offers fields, values and earlier searches.

import { h, replace } from '../widgets/dom.ts';
import type { Page } from './page.ts';
import { find, stepResult } from './selecting.ts';

const TYPING_MS = 150;
const KEPT = 'opscope searches';
const MOST_KEPT = 6;

export function bindSearch(page: Page): void {
  const { search, canvas } = page.places;
  const list = h('div', { class: 'popup offers', id: 'offers', role: 'listbox', hidden: true });
  page.root.querySelector('main')!.append(list);
  for (const [name, value] of Object.entries({
    role: 'combobox',
    'aria-autocomplete': 'list',
    'aria-controls': 'offers',
    'aria-expanded': 'false',
  }))
    search.setAttribute(name, value);
  let offered: string[] = []; // what all of the box would be
  let at = -1;
  let typing = 0; // counts as work under way, so that `idle` waits for what was typed

  const mark = (): void => {
    [...list.children].forEach((row, i) => row.setAttribute('aria-selected', String(i === at)));
    search.setAttribute('aria-activedescendant', at < 0 ? '' : `offer-${at}`);
  };
  const offer = (texts: string[], shown: string[]): void => {
    offered = texts;
    at = -1;
    const take = (i: number) => (event: Event) => (event.preventDefault(), accept(texts[i]!));
    replace(
      list,
      ...shown.map((text, i) => h('div', { class: 'palette-row', role: 'option', id: `offer-${i}`, onpointerdown: take(i) }, text)),
    );
    list.hidden = !texts.length;
    const { left, bottom } = search.getBoundingClientRect();
    list.style.left = `${left}px`;
    list.style.top = `${bottom + 4}px`;
    list.setAttribute('aria-label', search.getAttribute('aria-label') ?? '');
    search.setAttribute('aria-expanded', String(!list.hidden));
    mark();
  };
  /** Of the word before the caret; of an empty box what was searched for before. */
  const complete = async (): Promise<void> => {
    const caret = search.selectionStart ?? search.value.length;
    const [head, tail] = [search.value.slice(0, caret), search.value.slice(caret)];
    const word = /\S*$/.exec(head)![0];
    const made = word && page.state.shown.get() ? await page.client.completions(word) : [];
    if (document.activeElement !== search || search.value !== head + tail) return;
    if (!search.value) offer(kept(), kept());
    else
      offer(
        made.map((one) => head.slice(0, head.length - word.length) + one + tail),
        made,
      );
  };
  const look = (): void => page.run(find(page, search.value, true));
  const accept = (text: string): void => {
    search.value = text;
    look();
    page.run(complete());
  };
  search.addEventListener('input', () => {
    if (typing) clearTimeout(typing);
    else page.wait();
    typing = window.setTimeout(() => {
      typing = 0;
      page.done();
      look();
      page.run(complete());
    }, TYPING_MS);
  });
  search.addEventListener('focus', () => page.run(complete()));
  search.addEventListener('blur', () => {
    offer([], []);
    keep(search.value);
  });
  search.addEventListener('keydown', (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by && offered.length) {
      at = ((at + by + 1 + offered.length + 1) % (offered.length + 1)) - 1;
      mark();
      event.preventDefault();
    } else if ((event.key === 'Enter' || event.key === 'Tab') && at >= 0) {
      accept(offered[at]!);
      event.preventDefault();
    } else if (event.key === 'Enter') {
      keep(search.value);
      offer([], []);
      page.run(stepResult(page, event.shiftKey ? -1 : 1));
    } else if (event.key === 'Escape') {
      keep(search.value);
      search.value = '';
      page.run(find(page, ''));
      canvas.focus();
    }
    event.stopPropagation();
  });
}

function kept(): string[] {
  try {
    const list: unknown = JSON.parse(localStorage.getItem(KEPT) ?? '[]');
    return Array.isArray(list) ? list.filter((one) => typeof one === 'string').slice(0, MOST_KEPT) : [];
  } catch {
    return []; // a page inside a notebook may keep nothing
  }
}

function keep(query: string): void {
  if (!query.trim()) return;
  try {
    localStorage.setItem(KEPT, JSON.stringify([query, ...kept().filter((one) => one !== query)].slice(0, MOST_KEPT)));
  } catch {
    // As above.
  }
}
