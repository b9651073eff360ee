// The bar at the top: the files, the search, the tools.

import { dark, light } from '../draw/theme.ts';
import type { CaptureInfo } from '../engine/messages.ts';
import { colourParts } from '../state/colours.ts';
import { metricName } from '../state/figures.ts';
import type { Words } from '../state/words.ts';
import { h, replace, short, straight } from '../widgets/dom.ts';
import { openMenu } from '../widgets/menu.ts';
import { icon, ICONS, type Icon } from '../widgets/icons.ts';
import { fit } from './drawing.ts';
import { expandAll, expandTo, flip } from './expanding.ts';
import { redo, undo } from './history.ts';
import type { Page } from './page.ts';
import { closeTab } from './parts.ts';
import { show } from './staging.ts';

const MOST_TABS = 4;

export function showBar(page: Page): void {
  const { state, views, places } = page;
  views.add(
    'words',
    () => [page.words(), state.language.get()] as const,
    ([w, language]) => {
      document.documentElement.lang = language;
      places.search.placeholder = w.search;
      places.search.title = w.searchHelp;
      const names = { search: w.search, right: w.details, left: w.panels.left, leftHead: w.panels.left, low: w.panels.low };
      const more = { lowHead: w.panels.low, toolbar: w.panels.tools, tabs: w.panels.files, before: w.compareModes.split };
      for (const [place, name] of Object.entries({ ...names, ...more }))
        places[place as keyof typeof places].setAttribute('aria-label', name);
    },
  );
  views.add(
    'theme',
    () => state.theme.get(),
    (theme) => {
      page.root.dataset.theme = theme.name;
      page.renderer.setTheme(theme);
      page.minimap.setTheme(theme);
    },
  );
  views.add(
    'files',
    () => [state.captures.get(), state.capture.get(), state.closed.get(), page.words()] as const,
    () => showTabs(page),
  );
  views.add(
    'tools',
    () => [page.words(), state.options.get().direction, state.theme.get(), state.colour.get(), state.info.get(), state.shown.get()],
    () => replace(places.toolbar, ...tools(page)),
  );
  views.add(
    'what the drawing is called',
    () => [page.words(), state.details.get()] as const,
    ([{ panels }, details]) => {
      // A screen reader says where the arrow keys have led.
      places.canvas.setAttribute('aria-label', details ? `${panels.graph}: ${straight(short(details.title, 80))}` : panels.graph);
    },
  );
}

/** A tab for each file; those that find no room are in a list at the end. */
function showTabs(page: Page): void {
  const { state, places } = page;
  const words = page.words().habits;
  const now = state.capture.get();
  const open = state.captures.get().filter(({ id }) => !state.closed.get().includes(id));
  const title = ({ name, of }: CaptureInfo) =>
    `${of === undefined ? '' : '◱ '}${short(name.replaceAll('.opscope', '').split(/[\\/]/).at(-1)!, 32)}`;
  const go = (id: number) => page.run(show(page, id, 0));
  const tabs = open.map((info) => {
    const on = info.id === now;
    const close = (event: Event) => (event.stopPropagation(), page.run(closeTab(page, info.id)));
    const props = { 'data-key': info.id, class: on ? 'tab on' : 'tab', 'aria-current': on && 'page', title: info.name };
    const tab = h('button', { ...props, onclick: () => go(info.id) }, title(info));
    if (info.of === undefined) return tab;
    const name = `${words.closeTab}: ${info.name}`;
    const cross = h('button', { 'data-key': `close ${info.id}`, class: 'tab-close', title: name, 'aria-label': name, onclick: close }, '×');
    return h('span', { class: 'tab-pair' }, tab, cross);
  });
  const list = (event: Event) => {
    const { left, bottom } = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const items = open.map((info) => ({ text: `${info.id === now ? '✓ ' : ''}${title(info)}`, run: () => go(info.id) }));
    openMenu(page.root, { x: left, y: bottom + 4 }, words.more, items);
  };
  const props = { 'data-key': 'more', class: 'tab more-tabs', title: words.more, 'aria-label': words.more, 'aria-haspopup': 'menu' };
  const more = open.length > MOST_TABS && h('button', { ...props, onclick: list }, `▾ ${open.length}`);
  // The one in view is always among those that are seen.
  const at = open.findIndex(({ id }) => id === now);
  const first = Math.max(0, Math.min(at, open.length - MOST_TABS));
  replace(places.tabs, ...tabs.slice(at < MOST_TABS ? 0 : first, (at < MOST_TABS ? 0 : first) + MOST_TABS), more);
}

function tools(page: Page): HTMLElement[] {
  const { state } = page;
  const w = page.words();
  const isDark = state.theme.get() === dark;
  const tool = (key: string, image: Icon | string, title: string, run: () => void, label = '') =>
    h(
      'button',
      { 'data-key': key, class: 'tool', title, 'aria-label': title, onclick: run },
      image in ICONS ? icon(image as Icon) : image,
      label && h('span', { class: 'label' }, label),
    );
  const gap = () => h('span', { class: 'gap' });
  return [
    tool('back', 'back', w.back, () => page.run(undo(page))),
    tool('forward', 'forward', w.forward, () => page.run(redo(page))),
    gap(),
    tool('less', 'less', w.shallower, () => page.run(expandTo(page, state.level.get() - 1))),
    tool('more', 'more', w.deeper, () => page.run(expandTo(page, state.level.get() + 1))),
    tool('all', 'all', w.expandAll, () => page.run(expandAll(page))),
    tool('fit', 'fit', w.fit, () => fit(page)),
    tool('direction', state.options.get().direction, w.direction, () => page.run(flip(page))),
    colourPicker(page),
    gap(),
    tool('play', 'play', w.play, () => state.playing.set(!state.playing.get()), w.playNow),
    tool('compare', 'compare', w.compareTitle, () => state.sheet.set('compare'), w.compareNow),
    tool('export', 'export', w.exportTitle, () => state.sheet.set('export'), w.exportNow),
    tool('theme', isDark ? 'sun' : 'moon', w.theme, () => state.theme.set(isDark ? light : dark)),
    tool('language', w.language, w.language, () => state.language.set(state.language.get() === 'en' ? 'zh' : 'en')),
    tool('palette', '⌘', w.habits.paletteKey, () => state.paletteOpen.set(true)),
    tool('help', '?', w.help, () => state.helpOpen.set(true)),
  ];
}

/** What boxes may be coloured by, and what that is called. */
export function colours({ state }: Page): [string, (words: Words) => string][] {
  return [
    ['phase', (w) => w.byPhase],
    ['family', (w) => w.byFamily],
    ...(state.shown.get()?.kernels ? [['kernel', (w: Words) => w.byKernel] as [string, (words: Words) => string]] : []),
    ...(state.info.get()?.metrics ?? []).map((name): [string, (words: Words) => string] => [name, (w) => metricName(name, w)]),
  ];
}

function colourPicker(page: Page): HTMLElement {
  const { state } = page;
  const w = state.words.get();
  const choose = (event: Event) => state.colour.set((event.target as HTMLSelectElement).value);
  return h(
    'select',
    { 'data-key': 'colour', class: 'tool', title: w.colour, 'aria-label': w.colour, onchange: choose },
    ...colours(page).map(([value, text]) =>
      h('option', { value, selected: value === colourParts(state.colour.get()).base }, `${w.colour}: ${text(w)}`),
    ),
  );
}
