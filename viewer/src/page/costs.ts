// The Cost tab and the page: what it asks for, and costs that come later than the graph.

import type { Address } from '../engine/content.ts';
import type { CaptureInfo } from '../engine/messages.ts';
import { CostPanel } from '../panels/cost.ts';
import { h, replace } from '../panels/dom.ts';
import type { App } from './app.ts';
import { redrawChrome } from './chrome.ts';
import { showLow } from './lower.ts';
import { outline } from './painting.ts';

export function costPanel(app: App): CostPanel {
  return new CostPanel(
    app.services.devices,
    {
      map: (...args) => app.client.costMap(...args),
      line: (...args) => app.client.memoryLine(...args),
      alive: (...args) => app.client.alive(...args),
      steps: (items) => app.client.steps(items),
      roofs: (device) => app.client.roofs(device),
      select: (items) => app.run(app.select(items, true)),
      hover: (items) => app.run(outline(app, items)),
      run: (work) => app.run(work),
      changed: () => app.remember(),
    },
    () => app.words,
  );
}

const MANY = 20_000; // operators: adding them up takes longer than the first picture
const LATER = 400; // milliseconds

/** What all of the stage in view costs, for the panel that shows it. Of a large one it comes a little later. */
export async function loadTotals(app: App): Promise<void> {
  const { capture, stage, shown } = app;
  app.totals = null;
  if (!app.captures[capture]?.costs || !shown) return;
  if (shown.nodes <= MANY) app.totals = await app.client.totals();
  else
    setTimeout(() => {
      if (app.capture === capture && app.stage === stage) app.run(showTotals(app));
    }, LATER);
}

async function showTotals(app: App): Promise<void> {
  const { capture, stage } = app;
  const totals = await app.client.totals();
  if (app.capture !== capture || app.stage !== stage) return;
  app.totals = totals;
  if (!app.details) await app.redrawPanels();
}

const counting = new WeakSet<CaptureInfo>();

/** A large graph is shown first and counted then. */
export async function loadCosts(app: App, info: CaptureInfo, costs: Address): Promise<void> {
  counting.add(info);
  try {
    info.metrics = await app.client.attach(info.id, costs);
    info.costs = true;
  } catch (error) {
    app.say(error instanceof Error ? error.message : String(error), true);
  }
  counting.delete(info);
  if (app.captures[app.capture] !== info) return;
  await loadTotals(app);
  if (!app.details) app.run(app.redrawPanels());
  redrawChrome(app);
  if (app.lowTab === 'cost' || app.lowTab === 'table') app.run(showLow(app));
}

export async function showCosts(app: App): Promise<void> {
  const info = app.captures[app.capture];
  if (app.low.firstChild !== app.cost.element) replace(app.low, app.cost.element);
  if (!info) {
    replace(app.low, h('p', { class: 'hint' }, app.words.costs.none));
    return;
  }
  const why = counting.has(info) ? app.words.costs.counting : app.words.costs.none;
  await app.cost.show(`${app.capture}/${app.stage}`, info.costs, why, app.theme);
  await app.cost.mark(app.selection.length ? app.selection : app.related.slice(0, 2000), app.details?.path.map((ref) => ref.item) ?? []);
}
