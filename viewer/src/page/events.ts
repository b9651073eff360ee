// What the user does with mouse, keys and files.

import { bytesText } from '../text/figures.ts';
import { bindGestures } from '../draw/gestures.ts';
import { dark, light } from '../draw/theme.ts';
import { BoxKind } from '../scene.ts';
import type { App } from './app.ts';
import { closeHelp, help } from './chrome.ts';
import { clean } from '../draw/label.ts';
import { TEXT_LEFT, TITLE_SIZE } from '../picture/sizes.ts';
import { textWidth } from '../text/widths.ts';
import { stepStage } from './stages.ts';

const TIP_ZOOM = 0.62; // below it, boxes say too little themselves

export function bind(app: App): void {
  bindGestures(app.canvas, app.renderer.camera, {
    tap: (x, y, event) => {
      const box = app.renderer.hitBox(x, y);
      const item = box >= 0 ? app.picture!.scene.boxes.item[box]! : -1;
      app.canvas.focus();
      if (item < 0) app.run(app.select([], false));
      else app.run(app.select(event.shiftKey && !app.selection.includes(item) ? [...app.selection, item] : [item], false));
    },
    doubleTap: (x, y) => {
      const box = app.renderer.hitBox(x, y);
      if (box >= 0) app.run(app.toggle(app.picture!.scene.boxes.item[box]!));
    },
    hover: (x, y) => hover(app, x, y),
  });
  new ResizeObserver(() => app.renderer.resize()).observe(app.canvas);
  let typing = 0; // counts as work under way, so that `idle` waits for what was typed
  app.search.addEventListener('input', () => {
    if (typing) clearTimeout(typing);
    else app.pending++;
    typing = window.setTimeout(() => {
      typing = 0;
      app.pending--;
      app.run(app.find(app.search.value));
    }, 150);
  });
  app.search.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') app.results.step(event.shiftKey ? -1 : 1);
    if (event.key === 'Escape') {
      app.search.value = '';
      app.run(app.find(''));
      app.canvas.focus();
    }
    event.stopPropagation();
  });
  // In the bar of stages the arrow keys step; everywhere, < and > without Shift do.
  app.stages.addEventListener('keydown', (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || event.altKey || event.ctrlKey || event.metaKey || !(event.target as HTMLElement).classList.contains('stage')) return;
    event.preventDefault();
    event.stopPropagation();
    stepStage(app, by);
  });
  document.addEventListener('keydown', (event) => key(app, event));
  // A menu closes when one does something else.
  document.addEventListener('pointerdown', (event) => {
    const menu = app.chips.querySelector<HTMLDetailsElement>('.menu[open]');
    if (menu && !menu.contains(event.target as Node)) menu.open = false;
  });
  app.note.addEventListener('click', () => app.say(''));
  app.renderer.camera.listen(() => app.remember());
  app.root.addEventListener('dragover', (event) => {
    event.preventDefault();
    app.root.classList.add('dropping');
    app.root.dataset.drop = app.words.drop;
  });
  for (const name of ['dragleave', 'drop']) app.root.addEventListener(name, () => app.root.classList.remove('dropping'));
  app.root.addEventListener('drop', (event) => {
    event.preventDefault();
    for (const file of event.dataTransfer?.files ?? []) app.run(drop(app, file));
  });
}

export async function drop(app: App, file: File): Promise<void> {
  const { content, name, costs } = await app.services.convert(file);
  await app.add(content, name, costs);
}

export function hover(app: App, x: number, y: number): void {
  const box = x < 0 ? -1 : app.renderer.hitBox(x, y);
  const scene = app.picture?.scene;
  const onBox = box >= 0 && scene && scene.boxes.kind[box] !== BoxKind.Open;
  const edge = x < 0 || onBox ? -1 : app.renderer.hitEdge(x, y);
  app.renderer.setPaint({ hovered: box, hoveredEdge: edge });
  app.canvas.style.cursor = onBox ? 'pointer' : '';
  const label = edge >= 0 && scene ? scene.texts[scene.edges.label[edge]!]! : onBox ? boxTip(app, box) : '';
  if (label && scene) {
    const bytes = edge >= 0 ? scene.edges.bytes[edge]! : -1;
    app.tip.textContent = bytes >= 0 ? `${label} · ${bytesText(bytes)}` : label;
    app.tip.style.transform = `translate(${x + 14}px, ${y + 14}px)`;
  }
  app.tip.classList.toggle('on', Boolean(label));
}

/** What a box says that is too small to be read, or whose title is cut; else nothing. */
function boxTip(app: App, box: number): string {
  const { boxes, texts } = app.picture!.scene;
  const [title, detail] = [texts[boxes.title[box]!] ?? '', texts[boxes.detail[box]!] ?? ''];
  const cut = textWidth(title, TITLE_SIZE, true) > boxes.width[box]! - TEXT_LEFT;
  if (app.renderer.camera.view.zoom >= TIP_ZOOM && !cut) return '';
  return clean([title, detail].filter(Boolean).join(' · '));
}

export function key(app: App, event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName) && !(event.key === 'Escape' && target.closest('.menu'))) return;
  const dialog = app.root.querySelector('.dialog');
  if (dialog) {
    // It has one button, which has the focus.
    if (event.key === 'Escape' || event.key === '?') closeHelp(app);
    if (event.key !== 'Enter' && event.key !== ' ') event.preventDefault();
    return;
  }
  const item = app.selection.at(-1);
  const pan = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
  const commands: Record<string, () => void> = {
    '/': () => app.search.focus(),
    '?': () => help(app),
    '0': () => app.fit(),
    '+': () => app.zoom(1.25),
    '=': () => app.zoom(1.25),
    '-': () => app.zoom(0.8),
    '[': () => app.run(app.expandTo(app.level - 1)),
    ']': () => app.run(app.expandTo(app.level + 1)),
    E: () => app.run(app.expandAll()),
    C: () => app.run(app.expandTo(1)),
    ',': () => stepStage(app, -1),
    '.': () => stepStage(app, 1),
    n: () => app.results.step(1),
    N: () => app.results.step(-1),
    u: () => app.run(app.trace('up')),
    j: () => app.run(app.trace('down')),
    f: () => app.run(app.goTo(app.selection)),
    d: () => app.flip(),
    t: () => app.setTheme(app.theme === dark ? light : dark),
    Enter: () => item !== undefined && app.run(app.toggle(item)),
    Escape: () => {
      const menu = app.chips.querySelector<HTMLDetailsElement>('.menu[open]');
      if (menu) menu.open = false;
      else if (app.note.textContent) app.say('');
      else app.run(app.select([], false));
    },
  };
  if (event.altKey && event.key === 'ArrowLeft') app.run(app.step(app.past, app.future));
  else if (event.altKey && event.key === 'ArrowRight') app.run(app.step(app.future, app.past));
  else if (event.ctrlKey || event.metaKey || event.altKey) return;
  else if (pan && item !== undefined && app.picture) neighbour(app, event.key, item);
  else if (pan) app.renderer.camera.pan(pan[0]!, pan[1]!);
  else if (commands[event.key]) commands[event.key]!();
  else return;
  event.preventDefault();
}

/** From box to box with the arrow keys: along the edges, or to the nearest box at that side. */
export function neighbour(app: App, key: string, item: number): void {
  const { boxes } = app.picture!.scene;
  const from = app.boxOf(item);
  if (from < 0) return;
  const centre = (box: number): [number, number] => [boxes.x[box]! + boxes.width[box]! / 2, boxes.y[box]! + boxes.height[box]! / 2];
  const [x, y] = centre(from);
  let best = -1;
  let least = Infinity;
  for (let box = 0; box < boxes.count; box++) {
    if (box === from || boxes.kind[box] === BoxKind.Open) continue;
    const [cx, cy] = centre(box);
    const [dx, dy] = [cx - x, cy - y];
    const along = { ArrowLeft: -dx, ArrowRight: dx, ArrowUp: -dy, ArrowDown: dy }[key]!;
    const across = key === 'ArrowLeft' || key === 'ArrowRight' ? Math.abs(dy) : Math.abs(dx);
    if (along > 1 && along + 2 * across < least) {
      least = along + 2 * across;
      best = box;
    }
  }
  if (best >= 0) app.run(app.select([boxes.item[best]!], true));
}
