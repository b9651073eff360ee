// The panels at the left and below: their tabs, and the one that is open.

import { panelsThere, registered, type Acts, type PanelKind, type Site } from '../panels/panel.ts';
import { same } from '../state/store.ts';
import { h, replace } from '../widgets/dom.ts';
import { goTo } from './drawing.ts';
import type { Page } from './page.ts';

/** Makes every panel that has registered itself. */
export function makePanels(page: Page, act: Acts): void {
  for (const kind of registered()) page.panels.set(kind.name, kind.make(siteOf(page, kind, act)));
}

function siteOf(page: Page, kind: PanelKind, act: Acts): Site {
  const { state, client, services, views } = page;
  const isOpen = () => state[kind.place].get() === kind.name && state.shown.get() !== undefined;
  return {
    state,
    client,
    act,
    devices: services.devices,
    editor: services.editor,
    sourceText: (capture, file) => services.source(capture, file),
    words: () => page.words(),
    run: (work) => page.run(work),
    // While it is closed, there is nothing to show; opened again, only what is another.
    follow: (read, show) => {
      let last: ReturnType<typeof read> | null = null;
      views.add(
        kind.name,
        () => (isOpen() ? read() : null),
        (now) => {
          if (now === null || same(now, last)) return;
          last = now;
          return show(now);
        },
      );
    },
  };
}

export function showSides(page: Page): void {
  const { state, views, places } = page;
  // What a stage does not have cannot be open.
  views.add(
    'open panels',
    () => [state.left.get(), state.low.get(), state.shown.get(), state.bookmarks.get().length] as const,
    ([left, low, shown]) => {
      if (!shown) return;
      if (!panelsThere(state, 'left').some(({ name }) => name === left)) state.left.set('modules');
      if (low && !panelsThere(state, 'low').some(({ name }) => name === low)) state.low.set('');
    },
  );
  views.add(
    'left',
    () => [state.left.get(), state.shown.get(), page.words(), state.bookmarks.get().length > 0] as const,
    ([open]) => {
      replace(places.leftHead, ...panelsThere(state, 'left').map((kind) => tab(page, kind, open, () => state.left.set(kind.name))));
      put(page, places.leftBody, open);
    },
  );
  views.add(
    'low',
    () => [state.low.get(), state.shown.get(), page.words()] as const,
    ([open]) => {
      replace(places.lowHead, ...panelsThere(state, 'low').map((kind) => tab(page, kind, open, () => flipLow(page, kind.name))));
      places.low.classList.toggle('closed', open === '');
      places.low.classList.toggle(
        'tall',
        registered().some(({ name, isTall }) => name === open && isTall === true),
      );
      put(page, places.lowBody, open);
    },
  );
}

/** Put a panel in its place; where it is already, it stays: taken out and put back, a list would lose its place. */
function put({ panels }: Page, body: HTMLElement, name: string): void {
  const panel = panels.get(name);
  if (!panel || body.firstChild === panel.element) return;
  replace(body, panel.element);
  panel.opened?.();
}

function flipLow(page: Page, name: string): void {
  const { state } = page;
  state.low.set(state.low.get() === name ? '' : name);
  // What is selected must not lie under the panel.
  page.views.run();
  if (state.selection.get().length) page.run(goTo(page, state.selection.get()));
}

function tab(page: Page, kind: PanelKind, open: string, run: () => void): HTMLElement {
  const on = kind.name === open;
  const props = { 'data-key': kind.name, class: on ? 'on' : '', role: 'tab', 'aria-selected': String(on), onclick: run };
  return h('button', { ...props, title: kind.help?.(page.words()) }, kind.title(page.words()));
}
