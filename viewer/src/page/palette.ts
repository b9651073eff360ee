// The palette: every command by its words in either language, panels, colours, stages, files and bookmarks too.

import { panelsThere } from '../panels/panel.ts';
import { PHASES } from '../scene.ts';
import { LANGUAGES, type Words } from '../state/words.ts';
import { h, replace } from '../widgets/dom.ts';
import { colours } from './bar.ts';
import { goToBookmark } from './bookmarks.ts';
import { flipPhase, options, present } from './chips.ts';
import { keyText } from './command.ts';
import { COMMANDS } from './commands.ts';
import type { Page } from './page.ts';
import { goToStage, show } from './staging.ts';

interface Entry {
  text(words: Words): string;
  key?: string;
  run(): void;
}

const MOST = 60;

export function showPalette(page: Page): void {
  const { state, views } = page;
  let dialog: HTMLElement | null = null;
  let before: HTMLElement | null = null;
  views.add(
    'palette',
    () => [state.paletteOpen.get(), page.words()] as const,
    ([open]) => {
      if (dialog?.contains(document.activeElement)) before?.focus({ preventScroll: true });
      dialog?.remove();
      dialog = null;
      if (!open) return;
      before = document.activeElement as HTMLElement | null;
      dialog = sheet(page);
      page.root.append(dialog);
      dialog.querySelector('input')!.focus();
    },
  );
}

/** All that can be done now. */
function entries(page: Page): Entry[] {
  const { state } = page;
  const commands = COMMANDS.filter(({ name, isThere }) => name !== 'palette' && (isThere?.(page) ?? true)).map(
    ({ name, keys, run }): Entry => ({ text: (w) => w.habits.commands[name], key: keys?.[0] && keyText(keys[0]), run: () => run(page) }),
  );
  const panels = (['left', 'low'] as const).flatMap((place) =>
    panelsThere(state, place).map((kind): Entry => ({
      text: (w) => w.habits.panel(kind.title(w)),
      run: () => state[place].set(kind.name),
    })),
  );
  const shades = colours(page).map(([value, text]): Entry => ({
    text: (w) => w.habits.colour(text(w)),
    run: () => state.colour.set(value),
  }));
  const phases = present(page).map((phase): Entry => ({
    text: (w) => w.habits.phase(w.phases[PHASES[phase]!]),
    run: () => flipPhase(page, phase),
  }));
  const view = options(page)
    .filter((option) => option.isThere())
    .map((option): Entry => ({ text: (w) => w.habits.view(option.text(w)), run: () => option.flip() }));
  const stages = (state.info.get()?.stages ?? []).map(({ name }, i): Entry => ({
    text: (w) => w.habits.stage(name),
    run: () => page.run(goToStage(page, i)),
  }));
  const files = state.captures
    .get()
    .map(({ name }, i): Entry => ({ text: (w) => w.habits.file(name), run: () => page.run(show(page, i, 0)) }));
  const marks = state.bookmarks
    .get()
    .map((mark): Entry => ({ text: (w) => w.habits.bookmarkOf(mark.name), run: () => page.run(goToBookmark(page, mark)) }));
  return [
    ...commands,
    ...marks,
    ...panels,
    ...shades,
    ...view,
    ...phases,
    ...(stages.length > 1 ? stages : []),
    ...(files.length > 1 ? files : []),
  ];
}

function sheet(page: Page): HTMLElement {
  const { state } = page;
  const words = page.words();
  const all = entries(page);
  let shown: Entry[] = [];
  let at = 0;
  const close = (): void => state.paletteOpen.set(false);
  const run = (entry: Entry | undefined): void => {
    if (!entry) return;
    close();
    page.views.run(); // the focus is back before the command may move it
    entry.run();
  };
  const list = h('div', { class: 'palette-list', role: 'listbox', id: 'palette-list', 'aria-label': words.habits.palette });
  const input = h('input', {
    class: 'palette-input',
    type: 'text',
    role: 'combobox',
    'aria-expanded': 'true',
    'aria-controls': 'palette-list',
    'aria-label': words.habits.palette,
    placeholder: words.habits.paletteHint,
    spellcheck: 'false',
    autocomplete: 'off',
  });
  const mark = (): void => {
    [...list.children].forEach((row, i) => row.setAttribute('aria-selected', String(i === at)));
    list.children[at]?.scrollIntoView({ block: 'nearest' });
    input.setAttribute('aria-activedescendant', shown.length ? `palette-${at}` : '');
  };
  const draw = (): void => {
    shown = ranked(all, input.value).slice(0, MOST);
    at = 0;
    replace(
      list,
      ...shown.map((entry, i) =>
        h(
          'div',
          { class: 'palette-row', role: 'option', id: `palette-${i}`, onclick: () => run(entry) },
          h('span', {}, entry.text(words)),
          entry.key ? h('kbd', {}, entry.key) : null,
        ),
      ),
      shown.length ? null : h('p', { class: 'hint' }, words.habits.noCommand),
    );
    mark();
  };
  input.addEventListener('input', draw);
  input.addEventListener('keydown', (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (by) at = Math.max(0, Math.min(shown.length - 1, at + by));
    else if (event.key === 'Enter') run(shown[at]);
    else if (event.key === 'Escape' || (event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey))) close();
    else if (event.key !== 'Tab') return event.stopPropagation();
    event.preventDefault(); // the focus stays in it
    event.stopPropagation();
    mark();
  });
  draw();
  const box = h('div', { class: 'sheet palette', role: 'dialog', 'aria-modal': 'true', 'aria-label': words.habits.palette }, input, list);
  return h('div', { class: 'dialog', onpointerdown: (event: Event) => !box.contains(event.target as Node) && close() }, box);
}

/** Those that have all the words, in either language; those that begin with them first. */
function ranked(all: Entry[], query: string): Entry[] {
  const wanted = query.trim().toLowerCase().split(/\s+/).filter(Boolean);
  if (!wanted.length) return all;
  const rank = (entry: Entry): number => {
    const texts = Object.values(LANGUAGES).map((words) => entry.text(words).toLowerCase());
    const best = texts.map((text) => {
      if (!wanted.every((word) => text.includes(word))) return wanted.length === 1 && initials(text).startsWith(wanted[0]!) ? 1 : 0;
      return text.startsWith(wanted[0]!) ? 3 : 2;
    });
    return Math.max(...best);
  };
  return all
    .map((entry, i) => ({ entry, i, rank: rank(entry) }))
    .filter(({ rank: r }) => r > 0)
    .sort((a, b) => b.rank - a.rank || a.i - b.i)
    .map(({ entry }) => entry);
}

function initials(text: string): string {
  return text
    .split(/\s+/)
    .map((word) => word[0])
    .join('');
}
