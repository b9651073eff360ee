// Bringing back a view from an address: that of the page, or a bookmark's.

import { panelsThere } from '../panels/panel.ts';
import * as hash from '../state/hash.ts';
import { breath } from '../state/later.ts';
import { draw, fit } from './drawing.ts';
import { expandAs } from './expanding.ts';
import type { Page } from './page.ts';
import { isolate } from './parts.ts';
import { find, pickKernel, select } from './selecting.ts';
import { show } from './staging.ts';

/** The capture and the stage too: a view that may be of another one than is shown. */
export async function restoreView(page: Page, saved: hash.Saved): Promise<void> {
  const { state } = page;
  const info = state.captures.get()[saved.capture];
  if (!info) return;
  restoreLook(page, saved);
  await show(page, saved.capture, Math.min(saved.stage, info.stages.length - 1));
  await restore(page, saved);
}

/** What the first picture depends on. */
export function restoreLook({ state }: Page, saved: hash.Saved): void {
  const { edgeLabels, edgeWidth, allPairs, ...options } = hash.unpack(saved.flags);
  const overlay = saved.compare === 'overlay' || undefined;
  state.compare.set(saved.compare);
  const aligned = saved.compare === 'split' || undefined;
  state.options.set({ ...state.options.get(), ...options, direction: saved.direction, hidden: saved.hidden, overlay, aligned });
  state.phasesByHand.set(saved.hidden.length > 0 || location.hash.includes('h='));
  state.edgeLabels.set(edgeLabels);
  state.edgeWidth.set(edgeWidth);
  state.allPairs.set(allPairs);
  state.colour.set(saved.colour || 'phase');
}

export async function restore(page: Page, saved: hash.Saved): Promise<void> {
  const { state, client, renderer, places } = page;
  if (saved.alone.length) {
    const items = await client.items([...saved.alone]);
    const title = (await client.labels(items.slice(0, 1)))[0]?.label ?? '';
    if (items.length) await isolate(page, items, title);
  }
  if (saved.all) await expandAs(page, saved.all);
  else if (saved.open || saved.without.length) draw(page, await client.restore(saved.open ?? [], saved.unfolded, saved.without));
  if (saved.selection.length) await select(page, await client.items(saved.selection), false);
  if (saved.query) {
    places.search.value = saved.query;
    await find(page, saved.query, true);
  }
  if (panelsThere(state, 'low').some(({ name }) => name === saved.tab)) {
    page.panels.get(saved.tab)?.address?.set(saved.kind);
    state.low.set(saved.tab);
  }
  if (saved.kernel >= 0 && saved.kernel < (state.shown.get()?.kernels ?? 0))
    await pickKernel(page, saved.kernel, state.selection.get().length > 0);
  page.views.run();
  await breath();
  renderer.resize(); // to the room that the panels left
  if (saved.view) renderer.camera.set(saved.view);
  else if (saved.open || saved.all) fit(page, 0);
}
