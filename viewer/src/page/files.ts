// Opening files, and bringing back the view that the URL describes.

import type { Content } from '../engine/content.ts';
import type { CaptureInfo } from '../engine/messages.ts';
import { readMarks } from '../state/bookmarks.ts';
import * as hash from '../state/hash.ts';
import { loadCosts } from './facts.ts';
import type { Page } from './page.ts';
import { restore, restoreLook } from './restoring.ts';
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
    if (restoring) {
      restoreLook(page, saved);
      state.bookmarks.set(readMarks(saved.marks));
    }
    // Two graphs that were compared: begin with what is different.
    // Of graphs with breaks between them, all of them.
    const whole = info.stages.findIndex(({ seams }) => seams > 0);
    const first = location.hash.includes('s=') ? 0 : info.how === 'compared' ? 1 : Math.max(0, whole);
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
