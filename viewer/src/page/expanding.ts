// Commands about what is open in the drawing, and how it is laid out.

import type { ViewOptions } from '../engine/messages.ts';
import { BoxKind } from '../scene.ts';
import { draw, fit } from './drawing.ts';
import { stepped, undo } from './history.ts';
import type { Page } from './page.ts';

const MANY = 40; // boxes more or fewer: worth a word

/** Open or close a group where it stands; an operator is only selected. */
export const toggle = stepped(async (page: Page, item: number): Promise<void> => {
  const { state, client } = page;
  const boxes = state.picture.get()?.scene.boxes;
  const box = boxes?.item.indexOf(item) ?? -1;
  if (!boxes || box < 0) return;
  const kind = boxes.kind[box];
  if (kind === BoxKind.Op || kind === BoxKind.Input || kind === BoxKind.Loss) return;
  state.opened.set('');
  const picture = await (boxes.repeat[box]! > 1 ? client.unfold(item) : client.open([item], kind !== BoxKind.Open));
  draw(page, picture, item);
  if (kind !== BoxKind.Open) bringIn(page, item);
});

/** What has been opened comes into view, its header first, at the zoom that is set. */
function bringIn({ state, renderer }: Page, item: number): void {
  const boxes = state.picture.get()!.scene.boxes;
  const box = boxes.item.indexOf(item);
  if (box < 0) return;
  const rect = { x: boxes.x[box]!, y: boxes.y[box]!, width: boxes.width[box]!, height: boxes.height[box]! };
  const { zoom } = renderer.camera.view;
  void renderer.camera.arrive(rect, zoom, zoom, 24);
}

export const expand = stepped(async (page: Page, item: number, open: boolean): Promise<void> => {
  page.state.opened.set('');
  draw(page, await page.client.open([item], open), item);
});

const boxCount = ({ state }: Page) => state.picture.get()?.scene.boxes.count ?? 0;

/** What a large change was, and that there is a way back. */
function tell(page: Page, before: number): void {
  const { habits } = page.words();
  const now = boxCount(page);
  if (Math.abs(now - before) < MANY) return;
  page.say(now > before ? habits.expanded(now) : habits.collapsed(now), false, { text: habits.undo, run: () => page.run(undo(page)) });
}

export const expandAll = stepped(async (page: Page): Promise<void> => {
  const before = boxCount(page);
  draw(page, await page.client.openAll());
  page.state.opened.set('*');
  fit(page);
  tell(page, before);
});

export const expandTo = stepped(async (page: Page, depth: number): Promise<void> => {
  const level = Math.max(1, depth);
  const before = boxCount(page);
  page.state.level.set(level);
  draw(page, await page.client.openDepth(level));
  page.state.opened.set(`*${level}`);
  fit(page);
  tell(page, before);
});

/** As `opened` says (state/page.ts). */
export async function expandAs(page: Page, opened: string): Promise<void> {
  if (opened === '*') await expandAll(page);
  else await expandTo(page, Number(opened.slice(1)) || 1);
}

/** Lay out anew; what is selected stays so, though its number may be another. */
export const setOptions = stepped(async (page: Page, changed: Partial<ViewOptions>): Promise<void> => {
  const { state, client } = page;
  const options = { ...state.options.get(), ...changed };
  const keep = await client.paths(state.selection.get());
  const picture = await client.options(options);
  const selection = await client.items(keep);
  state.options.set(options);
  state.selection.set(selection);
  draw(page, picture);
  fit(page);
});

export async function flip(page: Page): Promise<void> {
  await setOptions(page, { direction: page.state.options.get().direction === 'down' ? 'right' : 'down' });
}
