// Commands about what is open in the drawing, and how it is laid out.

import type { ViewOptions } from '../engine/messages.ts';
import { BoxKind } from '../scene.ts';
import { draw, fit } from './drawing.ts';
import type { Page } from './page.ts';

/** Open or close a group where it stands; an operator is only selected. */
export async function toggle(page: Page, item: number): Promise<void> {
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
}

/** What has been opened comes into view, its header first, at the zoom that is set. */
function bringIn({ state, renderer }: Page, item: number): void {
  const boxes = state.picture.get()!.scene.boxes;
  const box = boxes.item.indexOf(item);
  if (box < 0) return;
  const rect = { x: boxes.x[box]!, y: boxes.y[box]!, width: boxes.width[box]!, height: boxes.height[box]! };
  const { zoom } = renderer.camera.view;
  void renderer.camera.arrive(rect, zoom, zoom, 24);
}

export async function expand(page: Page, item: number, open: boolean): Promise<void> {
  page.state.opened.set('');
  draw(page, await page.client.open([item], open), item);
}

export async function expandAll(page: Page): Promise<void> {
  draw(page, await page.client.openAll());
  page.state.opened.set('*');
  fit(page);
}

export async function expandTo(page: Page, depth: number): Promise<void> {
  const level = Math.max(1, depth);
  page.state.level.set(level);
  draw(page, await page.client.openDepth(level));
  page.state.opened.set(`*${level}`);
  fit(page);
}

/** As `opened` says (state/page.ts). */
export async function expandAs(page: Page, opened: string): Promise<void> {
  if (opened === '*') await expandAll(page);
  else await expandTo(page, Number(opened.slice(1)) || 1);
}

/** Lay out anew; what is selected stays so, though its number may be another. */
export async function setOptions(page: Page, changed: Partial<ViewOptions>): Promise<void> {
  const { state, client } = page;
  const options = { ...state.options.get(), ...changed };
  const keep = await client.paths(state.selection.get());
  const picture = await client.options(options);
  const selection = await client.items(keep);
  state.options.set(options);
  state.selection.set(selection);
  draw(page, picture);
  fit(page);
}

export async function flip(page: Page): Promise<void> {
  await setOptions(page, { direction: page.state.options.get().direction === 'down' ? 'right' : 'down' });
}
