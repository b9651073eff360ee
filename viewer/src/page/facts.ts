// What the state leads to that only the engine knows: details of the selection, the total cost, the words that are drawn.

import type { CaptureInfo } from '../engine/messages.ts';
import type { Content } from '../engine/content.ts';
import { PHASES } from '../scene.ts';
import { draw } from './drawing.ts';
import type { Page } from './page.ts';

const MANY = 20_000; // operators: adding them up takes longer than the first picture
const LATER_MS = 400;

export function followFacts(page: Page): void {
  const { state, views, client } = page;
  // Some words are drawn: those the engine must know.
  views.add(
    'drawn words',
    () => page.words(),
    async ({ drawn: { phases, ...words } }) => {
      if (state.language.get() === 'en' && !state.picture.get()) return; // as it begins
      const picture = await client.speak({ ...words, phases: PHASES.map((name) => phases[name]) });
      if (picture) draw(page, picture);
    },
  );
  views.add(
    'details',
    () => [state.selection.get().at(-1), state.shown.get(), state.options.get(), page.words(), state.info.get()] as const,
    async ([item]) => {
      const details = item === undefined ? null : await client.details(item);
      if (state.selection.get().at(-1) === item) state.details.set(details);
    },
  );
  views.add(
    'totals',
    () => [state.shown.get(), state.info.get()] as const,
    async ([shown, info]) => {
      if (!info?.costs || !shown) {
        state.totals.set(null);
        return;
      }
      if (shown.nodes <= MANY) state.totals.set(await client.totals());
      else setTimeout(() => page.run(loadTotals(page, shown)), LATER_MS); // of a large one a little later
    },
  );
}

async function loadTotals({ state, client }: Page, shown: unknown): Promise<void> {
  if (state.shown.get() !== shown) return;
  const totals = await client.totals();
  if (state.shown.get() === shown) state.totals.set(totals);
}

/** A large graph is shown first and counted then. */
export async function loadCosts(page: Page, { id }: CaptureInfo, costs: Content): Promise<void> {
  const { state, client } = page;
  state.counting.set([...state.counting.get(), id]);
  try {
    const metrics = await client.attach(id, costs);
    state.captures.set(state.captures.get().map((info) => (info.id === id ? { ...info, metrics, costs: true } : info)));
  } catch (error) {
    page.fail(error);
  }
  state.counting.set(state.counting.get().filter((other) => other !== id));
}
