// Bookmarks of views: an address each, kept by the browser for the capture, and in the URL so that they go with a link.

import { readMarks, writeMarks, type Bookmark } from '../state/bookmarks.ts';
import type { Page } from './page.ts';
import { restoreView } from './restoring.ts';
import * as hash from '../state/hash.ts';
import { stepped } from './history.ts';
import { readAddress } from './address.ts';

export async function bookmark(page: Page): Promise<void> {
  const { state } = page;
  const words = page.words().habits;
  const details = state.selection.get().length ? state.details.get() : null;
  const suggested = [state.info.get()?.stages.length === 1 ? '' : state.shown.get()?.name, details?.title].filter(Boolean).join(' · ');
  const taken = new Set(state.bookmarks.get().map(({ name }) => name));
  const base = suggested || state.search.get().query || `${state.bookmarks.get().length + 1}`;
  let name = base;
  for (let n = 2; taken.has(name); n++) name = `${base} ${n}`;
  const address = await readAddress(page);
  state.bookmarks.set([...state.bookmarks.get(), { name, address }]);
  state.left.set('bookmarks');
  page.say(words.bookmarked(name));
}

export const goToBookmark = stepped(async (page: Page, { address }: Bookmark): Promise<void> => {
  await restoreView(page, hash.read(address));
});

/** Those of the address, and those that this browser keeps for these files. */
export function followBookmarks(page: Page): void {
  const { state, views } = page;
  const key = () => `opscope bookmarks ${state.captures.get()[0]?.name ?? ''}`;
  let known = '';
  views.add(
    'bookmarks',
    () => [state.ready.get(), state.bookmarks.get(), state.captures.get()[0]] as const,
    ([ready, marks]) => {
      if (!ready) return;
      if (known !== key()) {
        known = key();
        const kept = readMarks(stored(known));
        // The same view is kept once, by the name that it was given last here.
        const own = marks.map((mark) => kept.find(({ address }) => address === mark.address) ?? mark);
        state.bookmarks.set([
          ...own,
          ...kept.filter((one) => !own.some(({ name, address }) => name === one.name || address === one.address)),
        ]);
      } else keep(known, writeMarks(marks));
    },
  );
}

function stored(key: string): string {
  try {
    return localStorage.getItem(key) ?? '';
  } catch {
    return ''; // a page inside a notebook may keep nothing
  }
}

function keep(key: string, text: string): void {
  try {
    if (text) localStorage.setItem(key, text);
    else localStorage.removeItem(key);
  } catch {
    // As above.
  }
}
