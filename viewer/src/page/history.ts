// One way back for everything: what is open, folded and hidden, what is selected, which graph, where one looks. A command
// that changes any of it is a step; so is a row of movements of the camera. The browser's Back goes the same way.

import type { Moment } from '../state/page.ts';
import { same } from '../state/store.ts';
import { put } from './drawing.ts';
import type { Page } from './page.ts';

const MOST_STEPS = 200;
/** Steps of an earlier load of this page are in the browser's list too: they are not ours. */
const OURS = `${Date.now()}-${Math.random()}`;

/** Carries out a command; where anything is another then, there is a way back. A command inside another belongs to that. */
async function step<T>(page: Page, work: () => Promise<T>): Promise<T> {
  if (page.inStep || !page.state.ready.get()) return work();
  page.inStep = true;
  const before = moment(page);
  try {
    return await work();
  } finally {
    page.inStep = false;
    if (isOther(page, before)) remember(page, before);
  }
}

/** A command that is a step by itself. */
export function stepped<A extends unknown[], R>(command: (page: Page, ...args: A) => Promise<R>) {
  return (page: Page, ...args: A): Promise<R> => step(page, () => command(page, ...args));
}

/** The camera is about to move by hand: several movements are one step. */
export function grab(page: Page): void {
  const { state } = page;
  if (page.inStep || !state.picture.get() || !state.ready.get()) return;
  if (state.past.get().at(-1)?.isCamera && !state.future.get().length) return;
  remember(page, { ...moment(page), isCamera: true });
}

const pictures = new WeakMap<Moment, unknown>();

function moment({ state, client, renderer }: Page): Moment {
  const now: Moment = {
    capture: state.capture.get(),
    stage: state.stage.get(),
    compare: state.compare.get(),
    overlaid: state.overlaid.get(),
    options: state.options.get(),
    opened: state.opened.get(),
    level: state.level.get(),
    kept: client.keep(),
    selection: state.selection.get(),
    traced: state.traced.get(),
    tracing: state.tracing.get(),
    kernel: state.kernel.get(),
    view: renderer.camera.goal,
    isCamera: false,
  };
  pictures.set(now, state.picture.get());
  return now;
}

function isOther({ state }: Page, before: Moment): boolean {
  return (
    pictures.get(before) !== state.picture.get() ||
    before.capture !== state.capture.get() ||
    before.stage !== state.stage.get() ||
    before.kernel !== state.kernel.get() ||
    !same(before.selection, state.selection.get()) ||
    !same(before.traced, state.traced.get())
  );
}

function remember(page: Page, before: Moment): void {
  const { state } = page;
  const past = [...state.past.get(), before];
  page.dropped += Math.max(0, past.length - MOST_STEPS);
  state.past.set(past.slice(-MOST_STEPS));
  state.future.set([]);
  tellBrowser('pushState', page);
}

/** Which step the browser's list is at is written beside the address. */
function tellBrowser(how: 'pushState' | 'replaceState', page: Page): void {
  try {
    history[how]({ opscope: OURS, at: place(page) }, '');
  } catch {
    // A page inside a notebook has no list of its own.
  }
}

function place(page: Page): number {
  return page.dropped + page.state.past.get().length;
}

/** The browser's Back and Forward are ours as well. */
export function followBrowser(page: Page): void {
  tellBrowser('replaceState', page);
  window.addEventListener('popstate', ({ state }: PopStateEvent) => {
    const { opscope, at } = (state ?? {}) as { opscope?: string; at?: number };
    if (opscope !== undefined && opscope !== OURS)
      location.reload(); // the address says what was shown
    else if (opscope && at !== undefined) page.run(goTo(page, at));
    if (page.awaited) page.done();
    page.awaited = false;
  });
}

export async function undo(page: Page): Promise<void> {
  if (page.state.past.get().length) await leave(page, -1);
}

export async function redo(page: Page): Promise<void> {
  if (page.state.future.get().length) await leave(page, 1);
}

/** Through the browser's own list where it is at the same step, so that both stay together. */
async function leave(page: Page, by: -1 | 1): Promise<void> {
  const { opscope, at } = (globalThis.history?.state ?? {}) as { opscope?: string; at?: number };
  if (opscope !== OURS || at !== place(page) || page.awaited) return goTo(page, place(page) + by);
  page.awaited = true;
  page.wait();
  history.go(by);
}

/** To the step of this number. Steps that follow fast are one way. */
async function goTo(page: Page, wanted: number): Promise<void> {
  const { state } = page;
  let to: Moment | undefined;
  while (place(page) !== wanted) {
    const [from, into] = wanted < place(page) ? [state.past, state.future] : [state.future, state.past];
    const next = from.get().at(-1);
    if (!next) break;
    into.set([...into.get(), to ?? moment(page)]);
    from.set(from.get().slice(0, -1));
    to = next;
  }
  if (to) await recall(page, to);
}

async function recall(page: Page, to: Moment): Promise<void> {
  const { state, client, renderer } = page;
  const picture = await client.recall(await to.kept);
  if (!picture) return;
  const isElsewhere = to.capture !== state.capture.get() || to.stage !== state.stage.get();
  state.capture.set(to.capture);
  state.stage.set(to.stage);
  state.compare.set(to.compare);
  state.overlaid.set(to.overlaid);
  state.options.set(to.options);
  state.opened.set(to.opened);
  state.level.set(to.level);
  if (isElsewhere) {
    state.totals.set(null);
    state.details.set(null);
    state.result.set(-1);
  }
  state.selection.set(to.selection);
  state.traced.set(to.traced);
  state.tracing.set(to.tracing);
  state.kernel.set(to.kernel);
  put(page, picture);
  page.views.run();
  renderer.camera.set(to.view);
  const { query } = state.search.get();
  if (isElsewhere && query.trim()) state.search.set({ query, ...(await client.find(query, true)) });
}
