// Opening files, and bringing back the view that the URL describes.

import type { Content } from '../engine/content.ts';
import type { CaptureInfo } from '../engine/messages.ts';
import { panelsThere } from '../panels/panel.ts';
import * as hash from '../state/hash.ts';
import { breath } from '../state/later.ts';
import { draw, fit } from './drawing.ts';
import { expandAs } from './expanding.ts';
import { loadCosts } from './facts.ts';
import type { Page } from './page.ts';
import { find, pickKernel, select } from './selecting.ts';
import { show } from './staging.ts';

/** One more capture, which is then shown; of those the page begins with (`of` in all), the one that the URL names. */
export async function addFile(page: Page, data: Content, name: string, costs?: Content, of = 0): Promise<void> {
  const { state, client } = page;
  page.say(page.words().loading);
  const info = await client.load(data, name);
  if (typeof data === 'object' && 'url' in data) page.served.set(info.id, data.url);
  state.captures.set([...state.captures.get(), info]);
  page.say('');
  const last = state.captures.get().length - 1;
  const saved = hash.read(location.hash);
  const wanted = saved.capture < of ? saved.capture : 0;
  if (!of || last === wanted) {
    const restoring = !state.ready.get() && saved.capture === wanted;
    if (restoring) restoreLook(page, saved);
    // Two graphs that were compared: begin with what is different.
    const first = info.how === 'compared' && !location.hash.includes('s=') ? 1 : 0;
    await show(page, info.id, restoring ? Math.min(saved.stage || first, info.stages.length - 1) : first);
    if (restoring) await restore(page, saved);
  }
  if (!of || last >= wanted) state.ready.set(true);
  if (costs && !info.costs) void loadCosts(page, info, costs);
}

/** One more capture that the engine has made, which is then shown. */
export async function enter(page: Page, info: CaptureInfo): Promise<void> {
  const { state } = page;
  state.captures.set([...state.captures.get(), info]);
  await show(page, info.id, info.stages.length - 1);
}

/** What the first picture depends on. */
function restoreLook({ state }: Page, saved: hash.Saved): void {
  const { edgeLabels, edgeWidth, allPairs, ...options } = hash.unpack(saved.flags);
  const overlay = saved.compare === 'overlay' || undefined;
  state.compare.set(saved.compare);
  const aligned = saved.compare === 'split' || undefined;
  state.options.set({ ...state.options.get(), ...options, direction: saved.direction, hidden: saved.hidden, overlay, aligned });
  state.phasesByHand.set(location.hash.includes('h='));
  state.edgeLabels.set(edgeLabels);
  state.edgeWidth.set(edgeWidth);
  state.allPairs.set(allPairs);
  state.colour.set(saved.colour || 'phase');
}

async function restore(page: Page, saved: hash.Saved): Promise<void> {
  const { state, client, renderer, places } = page;
  if (saved.all) await expandAs(page, saved.all);
  else if (saved.open) draw(page, await client.restore(saved.open, saved.unfolded));
  if (saved.selection.length) await select(page, await client.items(saved.selection), false);
  if (saved.query) {
    places.search.value = saved.query;
    await find(page, saved.query);
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
