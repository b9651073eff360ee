// Commands about what is lit: selecting, searching, following data, kernels and lines of source.

import { BoxKind } from '../scene.ts';
import type { Tracing } from '../state/page.ts';
import { about, draw, goTo } from './drawing.ts';
import { stepped } from './history.ts';
import type { Page } from './page.ts';

const MOST_REVEALED = 50;

/** Select items; with `reveal`, what is around them opens, and they come into view. */
export const select = stepped(async (page: Page, items: number[], reveal: boolean): Promise<void> => {
  const { state, client } = page;
  clear(page);
  state.selection.set(items);
  if (!reveal || !items.length) return;
  const answer = await client.boxes(items);
  const shown = state.picture.get()!.scene.boxes;
  const boxes = about(state.picture.get(), answer) ?? [];
  const isHidden = boxes.length < items.length || boxes.some((box) => shown.repeat[box]! > 1 || !items.includes(shown.item[box]!));
  if (isHidden && items.length <= MOST_REVEALED) {
    state.opened.set('');
    draw(page, await client.reveal(items), items[0]);
  }
  await goTo(page, items);
});

/** Nothing is lit. */
export function clear({ state }: Page): void {
  state.selection.set([]);
  state.kernel.set(-1);
  state.traced.set(null);
  // In the source, the selection leads again.
  state.source.set({ ...state.source.get(), line: 0, byHand: false });
}

/** Light operators and dim the rest. */
function trace({ state }: Page, nodes: number[], way: Tracing['way'], count = nodes.length): void {
  state.traced.set(nodes);
  state.tracing.set({ way, count });
}

/** The tensors that an edge stands for. */
export const selectEdge = stepped(async (page: Page, edge: number): Promise<void> => {
  const { state, client } = page;
  const { edges, number } = state.picture.get()!.scene;
  const items = await client.edgeTensors(number, edges.source[edge]!, edges.target[edge]!);
  await select(page, items, false);
});

/** All that the selected one depends on, or that depends on it. */
export const traceWay = stepped(async (page: Page, way: 'up' | 'down'): Promise<void> => {
  const item = page.state.selection.get().at(-1);
  if (item === undefined) return;
  const [nodes, own] = await Promise.all([page.client.trace(item, way), page.client.sizeOf(item)]);
  trace(page, nodes, way === 'up' ? 'before' : 'after', nodes.length - own);
});

/** The paths between the first and the last of what is selected. */
export const traceBetween = stepped(async (page: Page): Promise<void> => {
  const selection = page.state.selection.get();
  if (selection.length >= 2) trace(page, await page.client.between(selection[0]!, selection.at(-1)!), 'onPaths');
});

/** A kernel by itself, or (`beside`) one of the operator that stays selected. */
export const pickKernel = stepped(async (page: Page, index: number, beside = false): Promise<void> => {
  const { state, client } = page;
  if (!beside && state.selection.get().length) await select(page, [], false);
  const { nodes } = await client.kernel(index);
  state.kernel.set(index);
  trace(page, nodes, '');
  state.left.set('kernels');
  if (state.low.get() !== 'compiler') state.low.set('code');
  await goTo(page, nodes);
});

/** A line of source: its operators light up. */
export const pickLine = stepped(async (page: Page, file: string, line: number): Promise<void> => {
  const { state, client } = page;
  const nodes = await client.lineNodes(file, line);
  state.source.set({ file, line, byHand: true });
  state.low.set('source');
  trace(page, nodes, 'onLine');
  await goTo(page, nodes);
});

/** The operators that a search finds; a list of them opens. */
export async function find({ state, client }: Page, query: string, gently = false): Promise<number[]> {
  const found = query.trim() ? await client.find(query, gently) : { nodes: [], modules: [], error: '' };
  state.search.set({ query, ...found });
  state.result.set(-1);
  if (query.trim()) state.left.set('results');
  else if (state.left.get() === 'results') state.left.set('modules');
  return found.nodes;
}

/** To the next result, or the one before. */
export const stepResult = stepped(async (page: Page, by: number): Promise<void> => {
  const { state } = page;
  const { nodes } = state.search.get();
  if (!nodes.length) return;
  const from = state.result.get() < 0 && by < 0 ? 0 : state.result.get(); // before the first is the last
  const at = (from + by + nodes.length) % nodes.length;
  state.result.set(at);
  // What the result before opened is closed again, unless something else has been done since.
  const { lastHit } = page;
  if (lastHit && lastHit.shown === state.picture.get()) {
    const picture = await page.client.recall(await lastHit.before);
    if (picture) draw(page, picture);
  }
  const [before, was] = [page.client.keep(), state.picture.get()];
  await select(page, [nodes[at]!], true);
  const shown = state.picture.get();
  page.lastHit = shown === was ? null : { before, shown };
});

/** The first of some operators that is on the screen is drawn as if the mouse were over it. */
export async function outline({ client, renderer, state }: Page, items: number[]): Promise<void> {
  const boxes = items.length ? about(state.picture.get(), await client.boxes(items)) : [];
  renderer.setPaint({ hovered: boxes?.[0] ?? -1 });
}

/** From box to box with the arrow keys: to the nearest box at that side. */
export const selectNeighbour = stepped(async (page: Page, key: string, item: number): Promise<void> => {
  const { boxes } = page.state.picture.get()!.scene;
  const from = boxes.item.indexOf(item);
  if (from < 0) return;
  const centre = (box: number): [number, number] => [boxes.x[box]! + boxes.width[box]! / 2, boxes.y[box]! + boxes.height[box]! / 2];
  const [x, y] = centre(from);
  let best = -1;
  let least = Infinity;
  for (let box = 0; box < boxes.count; box++) {
    if (box === from || boxes.kind[box] === BoxKind.Open) continue;
    const [cx, cy] = centre(box);
    const [dx, dy] = [cx - x, cy - y];
    const along = { ArrowLeft: -dx, ArrowRight: dx, ArrowUp: -dy, ArrowDown: dy }[key]!;
    const across = key === 'ArrowLeft' || key === 'ArrowRight' ? Math.abs(dy) : Math.abs(dx);
    if (along > 1 && along + 2 * across < least) {
      least = along + 2 * across;
      best = box;
    }
  }
  if (best >= 0) await select(page, [boxes.item[best]!], true);
});
