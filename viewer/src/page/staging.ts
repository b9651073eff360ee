// Commands about stages: to another one, and what it is compared with.

import type { ChangeRow, StageInfo } from '../engine/messages.ts';
import { BREAKS } from '../panels/listing.ts';
import { breath } from '../state/later.ts';
import type { Compare } from '../state/page.ts';
import { begin, beginAtChange, draw, drawStage } from './drawing.ts';
import { stepped } from './history.ts';
import type { Page } from './page.ts';
import { select } from './selecting.ts';
import { PHASES } from '../scene.ts';

const MOST_KEPT = 200; // selected operators that are looked for in another stage
const [INIT, FORWARD] = [PHASES.indexOf('init'), PHASES.indexOf('forward')];

/** `gently`: from the stage in view, moving as little as can be. */
export const show = stepped(async (page: Page, capture: number, stage: number, gently = false): Promise<void> => {
  const { state, client } = page;
  const info = state.captures.get()[capture];
  const to = info?.stages[stage];
  if (!to) {
    page.say('this capture has no graph', true);
    return;
  }
  const options = { ...state.options.get() };
  // Making parameters is rarely what one came to see, and most of a training graph's first lines.
  if (!state.phasesByHand.get()) options.hidden = to.phases[FORWARD]! > 0 && to.phases[INIT]! > 0 ? [INIT] : [];
  const from = { stage: state.stage.get(), overlaid: state.overlaid.get() };
  const picture = await client.stage(capture, stage, options);
  const kin = gently && state.picture.get() ? await client.kin(from.stage, from.overlaid) : null;
  const isOther = capture !== state.capture.get() || stage !== from.stage;
  state.capture.set(capture);
  state.stage.set(stage);
  state.options.set(options);
  state.overlaid.set(options.overlay === true && to.changes !== null);
  state.selection.set([]);
  state.details.set(null);
  state.traced.set(null);
  state.kernel.set(-1);
  if (isOther) state.totals.set(null);
  state.search.set({ query: state.search.get().query, nodes: [], modules: [], error: '' });
  state.result.set(-1);
  if (kin) drawStage(page, picture, kin);
  else {
    draw(page, picture);
    // The bars take some of the drawing's room.
    page.views.run();
    if (state.compare.get() === 'split') beginAtChange(page);
    else begin(page);
    await breath(); // the picture first, then what it leads to
  }
  // What was searched for is found here too.
  const { query } = state.search.get();
  if (query.trim()) state.search.set({ query, ...(await client.find(query, true)) });
});

/** To another stage, by its number or name; what is selected stays selected where the two are linked. */
export const goToStage = stepped(async (page: Page, stage: number | string): Promise<void> => {
  const { state, client } = page;
  const stages = state.info.get()?.stages ?? [];
  const to = typeof stage === 'number' ? stage : stages.findIndex((other) => other.name === stage);
  if (to === state.stage.get() || !stages[to]) return;
  const selection = state.selection.get().slice(0, MOST_KEPT);
  const kept = selection.length ? await client.across(selection, state.stage.get(), to) : [];
  await show(page, state.capture.get(), to, true);
  await selectPaths(page, kept);
});

async function selectPaths(page: Page, paths: string[]): Promise<void> {
  const items = paths.length ? await page.client.drawn(await page.client.items(paths)) : [];
  if (items.length) await select(page, [...new Set(items)], true);
}

/** Some operators of a stage. */
export const goToNodes = stepped(async (page: Page, stage: number, nodes: number[]): Promise<void> => {
  const { state } = page;
  if (stage !== state.stage.get()) await show(page, state.capture.get(), stage, true);
  await selectPaths(
    page,
    nodes.slice(0, MOST_KEPT).map((node) => `#${node}`),
  );
});

/** To the stage before or after in the bar. */
export async function stepStage(page: Page, by: number): Promise<void> {
  const { state } = page;
  const listed = barStages(state.info.get()?.stages ?? [], state.stage.get(), state.hideUnchanged.get());
  const to = listed[listed.indexOf(state.stage.get()) + by];
  if (to !== undefined) await goToStage(page, to);
}

/** Why a graph ended where it did. */
export async function showBreaks(page: Page, stage: number): Promise<void> {
  await goToStage(page, stage);
  page.state.listing.set(BREAKS);
  page.state.low.set('ir');
}

/** Only this stage, what is gone too, or the stage before beside it. */
export const setCompare = stepped(async (page: Page, compare: Compare): Promise<void> => {
  const { state, client } = page;
  const before = state.compare.get();
  if (compare === before) return;
  const overlay = compare === 'overlay';
  // Ghosts are numbered after all others: where they are not drawn, there is no operator with such a number.
  const kept = await client.paths(state.selection.get());
  state.compare.set(compare);
  state.options.set({ ...state.options.get(), overlay: overlay || undefined, aligned: compare === 'split' || undefined });
  // There is another room to draw in with a picture beside it.
  await show(page, state.capture.get(), state.stage.get(), compare !== 'split' && before !== 'split');
  await selectPaths(page, kept);
});

/** Select what a change made; what it took away where it made nothing. */
export const pickChange = stepped(async (page: Page, row: ChangeRow, selectBefore: (items: number[]) => Promise<void>): Promise<void> => {
  if (row.items.length) {
    await select(page, [...new Set([...row.items, ...row.ghosts])], true);
    return;
  }
  if (page.state.compare.get() === 'split') {
    await selectBefore(row.before);
    return;
  }
  await setCompare(page, 'overlay');
  const now = (await page.client.changes()).find((other) => other.index === row.index);
  if (now?.ghosts.length) await select(page, now.ghosts, true);
});

/** Whether a stage is known to have changed nothing. */
export function isUnchanged(stage: StageInfo | undefined): boolean {
  return stage?.changes !== null && stage?.changes !== undefined && stage.changes.counts.every((n) => n === 0);
}

/** The stages of the bar, by number. The one in view always stands there. */
export function barStages(stages: StageInfo[], shown: number, hideUnchanged: boolean): number[] {
  return stages.flatMap((stage, i) => (hideUnchanged && i !== shown && isUnchanged(stage) ? [] : [i]));
}
