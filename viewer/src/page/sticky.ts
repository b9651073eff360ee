// Where one is: the headers of the open boxes under the middle of the window that have scrolled out of it, one after the
// other; each leads back to its box.

import { BoxKind, PHASES } from '../scene.ts';
import { h, replace } from '../widgets/dom.ts';
import type { Page } from './page.ts';
import { select } from './selecting.ts';

/** The headers, over the drawing. */
export function showSticky(page: Page): void {
  const { renderer, state } = page;
  const element = h('nav', { class: 'sticky' });
  page.places.canvas.after(element);
  let shown = '';
  let asked = 0;
  const draw = (): void => {
    asked = 0;
    const items = hidden(page);
    const scene = state.picture.get()?.scene;
    const boxes = scene?.boxes;
    const texts = scene?.texts ?? [];
    const names = items.map((box) => texts[boxes!.title[box]!] ?? '');
    const key = `${state.language.get()}/${items.map((box) => boxes!.item[box]).join('/')}/${names.join('/')}`;
    if (key === shown) return;
    shown = key;
    element.setAttribute('aria-label', page.words().around);
    replace(
      element,
      ...items.map((box, i) => {
        const item = boxes!.item[box]!;
        const phase = PHASES[boxes!.phase[box]!];
        return h(
          'button',
          { 'data-key': String(item), title: names[i]!, onclick: () => page.run(select(page, [item], true)) },
          h('span', { class: `dot phase-${phase}` }),
          names[i]!,
        );
      }),
    );
  };
  const ask = (): void => {
    asked ||= requestAnimationFrame(draw);
  };
  renderer.camera.listen(ask);
  renderer.listen(ask);
  page.views.add('sticky headers', () => [page.words(), state.picture.get()], ask);
}

/** Open boxes around the middle of the window whose headers are above it, outermost first. */
function hidden({ state, renderer }: Page): number[] {
  const scene = state.picture.get()?.scene;
  if (!scene || renderer.scene !== scene) return [];
  const { camera } = renderer;
  const { width, height } = camera.screen;
  const top = camera.toWorld(0, 0).y;
  const found: number[] = [];
  for (let box = renderer.hitBox(width / 2, height / 2); box >= 0; box = scene.boxes.parent[box]!) {
    if (scene.boxes.kind[box] === BoxKind.Open && scene.boxes.y[box]! < top) found.unshift(box);
  }
  return found;
}
