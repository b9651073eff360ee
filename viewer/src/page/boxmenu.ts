// The menu of what is selected: where the pointer is, or beside the box when a key asks for it.

import { openMenu, type MenuItem } from '../widgets/menu.ts';
import { BoxKind } from '../scene.ts';
import { keyText, type Command } from './command.ts';
import type { Page } from './page.ts';

const ROWS: (Command['name'] | '-')[] = [
  ...(['toggle', 'goTo', '-', 'copyPath', 'copyName', 'sameClass', 'sameOp', '-'] as const),
  ...(['up', 'down', 'between', '-', 'isolate', 'hide', 'showHidden', '-', 'showSource', 'openInEditor'] as const),
];

export function openBoxMenu(page: Page, commands: readonly Command[], at?: { x: number; y: number }): void {
  const { state, places } = page;
  const words = page.words().habits;
  const rows = ROWS.map((name) =>
    name === '-'
      ? null
      : itemOf(
          page,
          commands.find((one) => one.name === name)!,
        ),
  );
  // No line at an end, nor two in a row.
  const shown = rows
    .filter((row) => row !== undefined)
    .filter((row, i, all) => row !== null || (i > 0 && i < all.length - 1 && all[i - 1]));
  const title = state.details.get()?.title ?? words.palette;
  openMenu(page.root, at ?? besideSelection(page) ?? places.canvas.getBoundingClientRect(), title, shown);
}

function itemOf(page: Page, { name, keys, isThere, run }: Command): MenuItem | undefined {
  if (isThere && !isThere(page)) return undefined;
  return { text: page.words().habits.commands[name], key: keys?.[0] && keyText(keys[0]), run: () => run(page) };
}

function besideSelection({ state, renderer, places }: Page): { x: number; y: number } | null {
  const boxes = state.picture.get()?.scene.boxes;
  const box = boxes?.item.indexOf(state.selection.get().at(-1) ?? -1) ?? -1;
  if (!boxes || box < 0) return null;
  const { left, top, width, height } = places.canvas.getBoundingClientRect();
  const deep = boxes.kind[box] === BoxKind.Open ? 24 : boxes.height[box]!;
  const { x, y } = renderer.camera.toScreen(boxes.x[box]! + Math.min(40, boxes.width[box]! / 2), boxes.y[box]! + deep);
  return { x: left + Math.max(0, Math.min(width - 40, x)), y: top + Math.max(0, Math.min(height - 40, y)) };
}
