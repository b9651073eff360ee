// Commands about a part of the graph: hide it, or see nothing but it.

import { draw } from './drawing.ts';
import { stepped, undo } from './history.ts';
import type { Page } from './page.ts';
import { clear } from './selecting.ts';
import { show } from './staging.ts';

/** Leave these out of the drawing. */
export const hide = stepped(async (page: Page, items: number[]): Promise<void> => {
  const { state, client } = page;
  if (!items.length) return;
  const words = page.words().habits;
  const before = state.picture.get()!.hidden.length;
  const picture = await client.hide(items);
  if (!picture) {
    page.say(words.nothingLeft, true);
    return;
  }
  clear(page);
  draw(page, picture);
  page.say(words.hiddenByHand(picture.hidden.length - before), false, { text: words.undo, run: () => page.run(undo(page)) });
});

export const showHidden = stepped(async (page: Page): Promise<void> => {
  const { state, client } = page;
  // Items have other numbers then.
  const kept = await client.paths(state.selection.get());
  const picture = await client.showHidden();
  state.selection.set(await client.items(kept));
  draw(page, picture);
});

/** A tab in which nothing but these stands. */
export const isolate = stepped(async (page: Page, items: number[], title: string): Promise<void> => {
  const { state, client } = page;
  const stage = state.stage.get();
  const info = await client.isolate(items, title);
  state.captures.set([...state.captures.get(), info]);
  await show(page, info.id, stage);
});

/** A tab that was made by `isolate` goes; one is back where it came from. */
export const closeTab = stepped(async (page: Page, id: number): Promise<void> => {
  const { state } = page;
  state.closed.set([...state.closed.get(), id]);
  if (state.capture.get() === id) await show(page, state.captures.get()[id]?.of ?? 0, state.stage.get());
});
