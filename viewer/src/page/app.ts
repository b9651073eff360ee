// The page put together: what follows from the state, in the order in which it is drawn, and what the user may do.

import '../panels/all.ts';
import type { Acts } from '../panels/panel.ts';
import type { Client } from '../state/client.ts';
import { showAddress } from './address.ts';
import { showAside } from './aside.ts';
import { showBar } from './bar.ts';
import { followBookmarks, goToBookmark } from './bookmarks.ts';
import { showChips } from './chips.ts';
import { showDialogs } from './dialogs.ts';
import { bindEvents, menuOf } from './events.ts';
import { toggle } from './expanding.ts';
import { followFacts } from './facts.ts';
import { followBrowser } from './history.ts';
import { showLit } from './lit.ts';
import { showPalette } from './palette.ts';
import { showPanes } from './panes.ts';
import { handle } from './handle.ts';
import { showHelp } from './help.ts';
import { bindKeys } from './keys.ts';
import { Page, type Services } from './page.ts';
import { showSticky } from './sticky.ts';
import { showPaint } from './painting.ts';
import { showPlayer } from './playing.ts';
import { showStrip } from './strip.ts';
import { outline, pickKernel, pickLine, select, stepResult } from './selecting.ts';
import { makePanels, showSides } from './sides.ts';
import { SplitPane } from './split.ts';
import { showStageBar } from './stagebar.ts';
import { goToNodes, pickChange } from './staging.ts';
import { showTip } from './tip.ts';

/** The page in `root`, and its handle for scripts. */
export function openPage(root: HTMLElement, client: Client, services: Services): { page: Page; handle: Record<string, unknown> } {
  const page = new Page(root, client, services);
  const split = new SplitPane(page);
  const act: Acts = {
    select: (items) => page.run(select(page, items, true)),
    nodes: (stage, nodes) => page.run(goToNodes(page, stage, nodes)),
    toggle: (item) => page.run(toggle(page, item)),
    menu: (item, at) => page.run(menuOf(page, item, at)),
    bookmark: (mark) => page.run(goToBookmark(page, mark)),
    stepResult: (by) => page.run(stepResult(page, by)),
    kernel: (index, beside) => page.run(pickKernel(page, index, beside)),
    line: (file, line) => page.run(pickLine(page, file, line)),
    change: (row) => page.run(pickChange(page, row, (items) => split.select(items))),
    outline: (items) => page.run(outline(page, items)),
  };
  followFacts(page);
  showBar(page);
  showStageBar(page);
  showChips(page);
  showSticky(page);
  showSides(page);
  showPaint(page);
  makePanels(page, act);
  showAside(page);
  showPanes(page);
  showLit(page);
  showTip(page);
  showHelp(page);
  showDialogs(page);
  showPlayer(page);
  showStrip(page);
  showPalette(page);
  followBookmarks(page);
  showAddress(page);
  followBrowser(page);
  bindEvents(page);
  bindKeys(page);
  page.views.run();
  return { page, handle: handle(page, split) };
}
