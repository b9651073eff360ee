// Over the drawing: what is lit, in words, and that something of it cannot be seen, with a button that shows it.

import { PHASES } from '../scene.ts';
import { h, replace } from '../widgets/dom.ts';
import { draw, goTo } from './drawing.ts';
import { setOptions } from './expanding.ts';
import { stepped } from './history.ts';
import type { Page } from './page.ts';
import { showHidden } from './parts.ts';
import { select } from './selecting.ts';

const MOST_LOOKED_FOR = 5000;

export function showLit(page: Page): void {
  const { state, views, client, places } = page;
  const element = h('div', { class: 'lit-note', role: 'status' });
  places.note.after(element);
  views.add(
    'what is lit',
    () => [state.selection.get(), state.traced.get(), state.tracing.get(), state.kernel.get(), state.picture.get(), page.words()] as const,
    async ([selection, traced, { way, count }, , picture, words]) => {
      const { habits, phases } = words;
      const items = (traced ?? selection).slice(0, MOST_LOOKED_FOR);
      const hidden = picture && items.length ? await client.hiddenOf(items) : null;
      const parts: (HTMLElement | string)[] = [];
      if (traced && way) parts.push(h('span', {}, habits[way](count)));
      if (hidden?.count) {
        const where = hidden.phases.map((p) => phases[PHASES[p]!]).join(', ');
        parts.push(h('span', {}, habits.isHidden(hidden.count, where)));
        const show = () => page.run(reveal(page, hidden, items));
        parts.push(h('button', { 'data-key': 'show', class: 'chip', onclick: show }, habits.show));
      }
      if (parts.length && traced && way) {
        const clear = () => page.run(select(page, [], false));
        parts.push(
          h('button', { 'data-key': 'clear', class: 'link', title: habits.escape, 'aria-label': habits.escape, onclick: clear }, '×'),
        );
      }
      replace(element, ...parts);
    },
  );
}

/** Show what hides these. */
const reveal = stepped(async (page: Page, hidden: { phases: number[]; byHand: boolean }, items: number[]): Promise<void> => {
  const { state, client } = page;
  const lit = await client.paths(items);
  if (hidden.byHand) await showHidden(page);
  if (hidden.phases.length) {
    state.phasesByHand.set(true);
    await setOptions(page, { hidden: state.options.get().hidden.filter((phase) => !hidden.phases.includes(phase)) });
  }
  const now = await client.items(lit);
  if (now.length <= 50) draw(page, await client.reveal(now));
  await goTo(page, now);
});
