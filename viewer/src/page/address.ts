// The view in the URL, so that it can be shared.

import { writeMarks } from '../state/bookmarks.ts';
import * as hash from '../state/hash.ts';
import type { Page } from './page.ts';

const REST_MS = 250;
const MOST_OPEN = 60;

export function showAddress(page: Page): void {
  let timer = 0;
  const soon = () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => page.state.ready.get() && page.run(writeAddress(page)), REST_MS);
  };
  page.views.add('address', () => parts(page), soon);
  page.renderer.camera.listen(soon);
}

/** What the URL holds, without what the engine must name. */
function parts({ state, panels }: Page) {
  const options = state.options.get();
  const flags = { ...options, edgeLabels: state.edgeLabels.get(), edgeWidth: state.edgeWidth.get(), allPairs: state.allPairs.get() };
  const tab = state.low.get();
  const picture = state.picture.get();
  return [
    state.ready.get(),
    picture,
    state.selection.get(),
    {
      capture: state.info.get()?.of ?? state.capture.get(),
      alone: state.info.get()?.alone ?? [],
      without: picture?.hidden ?? [],
      stage: state.stage.get(),
      all: state.opened.get(),
      query: state.search.get().query,
      direction: options.direction,
      hidden: options.hidden,
      tab,
      kind: panels.get(tab)?.address?.get() ?? '',
      compare: state.compare.get(),
      colour: state.colour.get(),
      flags: hash.pack(flags),
      kernel: state.kernel.get(),
    },
    state.bookmarks.get(),
  ] as const;
}

/** What is seen now, as an address: without the bookmarks, which are addresses themselves. */
export async function readAddress(page: Page): Promise<string> {
  return textOf(page, '');
}

async function textOf(page: Page, marks: string): Promise<string> {
  const [, picture, selection, rest] = parts(page);
  const { open = [], unfolded = [] } = picture ?? {};
  const name = (items: number[]) => page.client.paths(items);
  return hash.write({
    ...rest,
    marks,
    open: open.length <= MOST_OPEN ? await name(open) : null,
    unfolded: unfolded.length <= MOST_OPEN ? await name(unfolded) : [],
    selection: await name(selection),
    view: page.renderer.camera.goal,
  });
}

export async function writeAddress(page: Page): Promise<void> {
  const text = await textOf(page, writeMarks(page.state.bookmarks.get()));
  try {
    history.replaceState(history.state, '', `#${text}`);
  } catch {
    // A page inside a notebook has no URL of its own.
  }
}
