// The bar at the top: the files, the search, the tools.

import { dark, light } from '../draw/theme.ts';
import { metricName } from '../state/figures.ts';
import { h, replace, short, straight } from '../widgets/dom.ts';
import { icon, ICONS, type Icon } from '../widgets/icons.ts';
import { fit } from './drawing.ts';
import { expandAll, expandTo, flip } from './expanding.ts';
import type { Page } from './page.ts';
import { show, stepHistory } from './staging.ts';

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
    () => [state.captures.get(), state.capture.get()] as const,
    ([captures, now]) =>
      replace(
        places.tabs,
        ...captures.map(({ name }, i) => {
          const props = { 'data-key': i, class: i === now ? 'tab on' : 'tab', 'aria-current': i === now && 'page', title: name };
          return h('button', { ...props, onclick: () => page.run(show(page, i, 0)) }, short(name.split(/[\\/]/).at(-1)!, 32));
        }),
      ),
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

function tools(page: Page): HTMLElement[] {
  const { state } = page;
  const w = page.words();
  const isDark = state.theme.get() === dark;
  const tool = (key: string, image: Icon | string, title: string, run: () => void) =>
    h('button', { 'data-key': key, class: 'tool', title, 'aria-label': title, onclick: run }, image in ICONS ? icon(image as Icon) : image);
  const gap = () => h('span', { class: 'gap' });
  return [
    tool('back', 'back', w.back, () => page.run(stepHistory(page, 'back'))),
    tool('forward', 'forward', w.forward, () => page.run(stepHistory(page, 'forward'))),
    gap(),
    tool('less', 'less', w.shallower, () => page.run(expandTo(page, state.level.get() - 1))),
    tool('more', 'more', w.deeper, () => page.run(expandTo(page, state.level.get() + 1))),
    tool('all', 'all', w.expandAll, () => page.run(expandAll(page))),
    tool('fit', 'fit', w.fit, () => fit(page)),
    tool('direction', state.options.get().direction, w.direction, () => page.run(flip(page))),
    colourPicker(page),
    gap(),
    tool('play', 'play', w.play, () => state.playing.set(!state.playing.get())),
    tool('compare', 'compare', w.compareTitle, () => state.sheet.set('compare')),
    tool('export', 'export', w.exportTitle, () => state.sheet.set('export')),
    tool('theme', isDark ? 'sun' : 'moon', w.theme, () => state.theme.set(isDark ? light : dark)),
    tool('language', w.language, w.language, () => state.language.set(state.language.get() === 'en' ? 'zh' : 'en')),
    tool('help', '?', w.help, () => state.helpOpen.set(true)),
  ];
}

function colourPicker({ state }: Page): HTMLElement {
  const w = state.words.get();
  const names: [string, string][] = [
    ['phase', w.byPhase],
    ...(state.shown.get()?.kernels ? [['kernel', w.byKernel] as [string, string]] : []),
    ...(state.info.get()?.metrics ?? []).map((name): [string, string] => [name, metricName(name, w)]),
  ];
  const choose = (event: Event) => state.colour.set((event.target as HTMLSelectElement).value);
  return h(
    'select',
    { 'data-key': 'colour', class: 'tool', title: w.colour, 'aria-label': w.colour, onchange: choose },
    ...names.map(([value, text]) => h('option', { value, selected: value === state.colour.get() }, `${w.colour}: ${text}`)),
  );
}
