// What the user does with the mouse and with files.

import { bindGestures } from '../draw/gestures.ts';
import { compareGraphs } from './comparing.ts';
import { addFile } from './files.ts';
import { openBoxMenu } from './boxmenu.ts';
import { COMMANDS } from './commands.ts';
import { toggle } from './expanding.ts';
import { grab } from './history.ts';
import type { Page } from './page.ts';
import { BoxKind } from '../scene.ts';
import { takeTable } from './tables.ts';
import { bindSearch } from './searching.ts';
import { select, selectEdge } from './selecting.ts';

export function bindEvents(page: Page): void {
  bindDrawing(page);
  bindSearch(page);
  bindDrop(page);
  page.places.note.addEventListener('click', () => page.say(''));
}

function bindDrawing(page: Page): void {
  const { state, renderer, places } = page;
  const itemAt = (x: number, y: number): number => {
    const box = renderer.hitBox(x, y);
    return box >= 0 ? state.picture.get()!.scene.boxes.item[box]! : -1;
  };
  /** An edge lies over what is around it, and under what is a box of its own. */
  const isOpen = (x: number, y: number): boolean => {
    const box = renderer.hitBox(x, y);
    return box < 0 || state.picture.get()!.scene.boxes.kind[box] === BoxKind.Open;
  };
  bindGestures(places.canvas, renderer.camera, {
    tap: (x, y, event) => {
      const item = itemAt(x, y);
      const selection = state.selection.get();
      places.canvas.focus();
      const edge = isOpen(x, y) ? renderer.hitEdge(x, y) : -1;
      if (edge >= 0) page.run(selectEdge(page, edge));
      else if (item < 0) page.run(select(page, [], false));
      else page.run(select(page, event.shiftKey && !selection.includes(item) ? [...selection, item] : [item], false));
    },
    doubleTap: (x, y) => {
      const item = itemAt(x, y);
      if (item >= 0) page.run(toggle(page, item));
    },
    hover: (x, y) => state.pointer.set(x < 0 ? null : { x, y }),
    grab: () => grab(page),
    menu: (x, y, event) => {
      // A key asks for it where the selection is.
      if (event.button !== 2 || (event.clientX === 0 && event.clientY === 0)) return;
      const item = itemAt(x, y);
      if (item >= 0) page.run(menuOf(page, item, { x: event.clientX, y: event.clientY }));
    },
  });
  new ResizeObserver(() => renderer.resize()).observe(places.canvas);
}

/** The menu of a box, which is then selected; of several that are selected, if it is one of them. */
export async function menuOf(page: Page, item: number, at: { x: number; y: number }): Promise<void> {
  const { state } = page;
  if (!state.selection.get().includes(item)) await select(page, [item], false);
  state.details.set(await page.client.details(state.selection.get().at(-1)!));
  openBoxMenu(page, COMMANDS, at);
}

function bindDrop(page: Page): void {
  const { root } = page;
  root.addEventListener('dragover', (event) => {
    event.preventDefault();
    root.classList.add('dropping');
    root.dataset.drop = event.altKey ? page.words().dropCompare : page.words().drop;
  });
  for (const name of ['dragleave', 'drop']) root.addEventListener(name, () => root.classList.remove('dropping'));
  root.addEventListener('drop', (event) => {
    event.preventDefault();
    for (const file of event.dataTransfer?.files ?? []) page.run(drop(page, file, event.altKey));
  });
}

/** `against`: compared with what is in view. */
async function drop(page: Page, file: File, against: boolean): Promise<void> {
  if (await takeTable(page, file)) return;
  const before = { capture: page.state.capture.get(), stage: page.state.stage.get() };
  const { content, name, costs } = await page.services.convert(file);
  await addFile(page, content, name, costs);
  const capture = page.state.capture.get();
  if (against && before.capture >= 0) await compareGraphs(page, before, { capture, stage: 0 });
}
