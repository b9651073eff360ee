// All that the user may do, as one list: keys, the palette and the menus are made from it.

import { dark, light } from '../draw/theme.ts';
import { bookmark } from './bookmarks.ts';
import { setMenu } from './chips.ts';
import type { Command } from './command.ts';
import { copyName, copyPath, findSame, openInEditor, showSource } from './copying.ts';
import { fit, goTo, zoom } from './drawing.ts';
import { expandAll, expandTo, flip, toggle } from './expanding.ts';
import { savePng, saveSvg } from './exporting.ts';
import { grab, redo, undo } from './history.ts';
import { openBoxMenu } from './boxmenu.ts';
import { fold, setFull } from './panes.ts';
import type { Page } from './page.ts';
import { hide, isolate, showHidden } from './parts.ts';
import { copyLink, savePage } from './sharing.ts';
import { select, stepResult, traceBetween, traceWay } from './selecting.ts';
import { stepStage } from './staging.ts';
import { pickTable } from './tables.ts';

const selected = ({ state }: Page) => state.selection.get().length > 0;
const last = ({ state }: Page) => state.selection.get().at(-1);
const isModule = ({ state }: Page) => state.details.get()?.kind === 'group' && state.selection.get().length === 1;
const hasStages = ({ state }: Page) => (state.info.get()?.stages.length ?? 0) > 1;
const found = ({ state }: Page) => state.search.get().nodes.length > 0;
/** A step of the camera alone. */
const look = (move: (page: Page) => void) => (page: Page) => {
  grab(page);
  move(page);
};

export const COMMANDS: readonly Command[] = [
  { name: 'palette', keys: ['ctrl+k'], run: ({ state, views }) => (state.paletteOpen.set(true), views.run()) },
  { name: 'search', keys: ['/'], run: ({ places }) => places.search.focus() },
  {
    name: 'undo',
    keys: ['ctrl+z', 'alt+ArrowLeft'],
    isThere: ({ state }) => state.past.get().length > 0,
    run: (page) => page.run(undo(page)),
  },
  {
    name: 'redo',
    keys: ['ctrl+shift+z', 'ctrl+y', 'alt+ArrowRight'],
    isThere: ({ state }) => state.future.get().length > 0,
    run: (page) => page.run(redo(page)),
  },
  { name: 'fit', keys: ['0'], run: look((page) => fit(page)) },
  { name: 'zoomIn', keys: ['+', '='], run: look((page) => zoom(page, 1.25)) },
  { name: 'zoomOut', keys: ['-'], run: look((page) => zoom(page, 0.8)) },
  { name: 'deeper', keys: [']'], run: (page) => page.run(expandTo(page, page.state.level.get() + 1)) },
  { name: 'shallower', keys: ['['], run: (page) => page.run(expandTo(page, page.state.level.get() - 1)) },
  { name: 'expandAll', keys: ['E'], run: (page) => page.run(expandAll(page)) },
  { name: 'collapseAll', keys: ['C'], run: (page) => page.run(expandTo(page, 1)) },
  {
    name: 'toggle',
    keys: ['Enter'],
    isThere: selected,
    run: (page) => {
      const item = last(page);
      if (item !== undefined) page.run(toggle(page, item));
    },
  },
  { name: 'goTo', keys: ['f'], isThere: selected, run: look((page) => page.run(goTo(page, page.state.selection.get()))) },
  { name: 'up', keys: ['u'], isThere: selected, run: (page) => page.run(traceWay(page, 'up')) },
  { name: 'down', keys: ['j'], isThere: selected, run: (page) => page.run(traceWay(page, 'down')) },
  { name: 'between', isThere: ({ state }) => state.selection.get().length > 1, run: (page) => page.run(traceBetween(page)) },
  { name: 'hide', keys: ['h'], isThere: selected, run: (page) => page.run(hide(page, page.state.selection.get())) },
  {
    name: 'showHidden',
    keys: ['H'],
    isThere: ({ state }) => Boolean(state.picture.get()?.hidden.length),
    run: (page) => page.run(showHidden(page)),
  },
  {
    name: 'isolate',
    keys: ['i'],
    isThere: isModule,
    run: (page) => isModule(page) && page.run(isolate(page, page.state.selection.get(), page.state.details.get()!.title)),
  },
  { name: 'copyPath', keys: ['y'], isThere: selected, run: (page) => page.run(copyPath(page)) },
  { name: 'copyName', isThere: selected, run: (page) => page.run(copyName(page)) },
  {
    name: 'sameClass',
    isThere: (page) => isModule(page) && Boolean(page.state.details.get()!.cls),
    run: (page) => page.run(findSame(page)),
  },
  { name: 'sameOp', isThere: ({ state }) => state.details.get()?.kind === 'op', run: (page) => page.run(findSame(page)) },
  { name: 'showSource', isThere: ({ state }) => Boolean(state.details.get()?.frames.length), run: (page) => showSource(page) },
  { name: 'openInEditor', isThere: ({ state }) => Boolean(state.details.get()?.frames.length), run: (page) => openInEditor(page) },
  { name: 'menu', keys: ['shift+F10', 'ContextMenu'], isThere: selected, run: (page) => openBoxMenu(page, COMMANDS) },
  { name: 'stageBefore', keys: [','], isThere: hasStages, run: (page) => page.run(stepStage(page, -1)) },
  { name: 'stageAfter', keys: ['.'], isThere: hasStages, run: (page) => page.run(stepStage(page, 1)) },
  { name: 'nextResult', keys: ['n'], isThere: found, run: (page) => page.run(stepResult(page, 1)) },
  { name: 'lastResult', keys: ['N'], isThere: found, run: (page) => page.run(stepResult(page, -1)) },
  { name: 'bookmark', keys: ['b'], run: (page) => page.run(bookmark(page)) },
  { name: 'full', keys: ['\\'], run: (page) => setFull(page, !page.state.full.get()) },
  { name: 'left', run: (page) => fold(page, 'left') },
  { name: 'right', run: (page) => fold(page, 'right') },
  { name: 'direction', keys: ['d'], run: (page) => page.run(flip(page)) },
  { name: 'theme', keys: ['t'], run: ({ state }) => state.theme.set(state.theme.get() === dark ? light : dark) },
  { name: 'language', run: ({ state }) => state.language.set(state.language.get() === 'en' ? 'zh' : 'en') },
  { name: 'export', keys: ['x'], run: ({ state }) => state.sheet.set('export') },
  { name: 'table', run: (page) => pickTable(page) },
  { name: 'svg', run: (page) => page.run(saveSvg(page)) },
  { name: 'png', run: (page) => page.run(savePng(page)) },
  { name: 'savePage', run: (page) => page.run(savePage(page)) },
  { name: 'copyLink', run: (page) => page.run(copyLink(page)) },
  { name: 'play', keys: ['p'], run: ({ state }) => state.playing.set(!state.playing.get()) },
  { name: 'compare', keys: ['v'], run: ({ state }) => state.sheet.set('compare') },
  { name: 'help', keys: ['?'], run: ({ state }) => state.helpOpen.set(true) },
  {
    name: 'clear',
    keys: ['Escape'],
    run: (page) => {
      const { state } = page;
      if (state.menuOpen.get()) setMenu(page, false);
      else if (state.playing.get()) state.playing.set(false);
      else if (state.full.get() && !selected(page) && state.traced.get() === null) setFull(page, false);
      else {
        page.say('');
        if (selected(page) || state.traced.get() !== null || state.kernel.get() >= 0) page.run(select(page, [], false));
      }
    },
  },
];
