// Where one is: the headers of the open boxes under the middle of the window that have scrolled out of it, one after the
// other; each leads back to its box.

import { h, replace } from '../panels/dom.ts';
import { BoxKind, PHASES } from '../scene.ts';
import type { App } from './app.ts';

export function bindSticky(app: App): HTMLElement {
  const element = h('nav', { class: 'sticky' });
  let shown = '';
  let asked = 0;
  const draw = (): void => {
    asked = 0;
    const items = hidden(app);
    const boxes = app.picture?.scene.boxes;
    const texts = app.picture?.scene.texts ?? [];
    const names = items.map((box) => texts[boxes!.title[box]!] ?? '');
    const key = `${app.language}/${items.map((box) => boxes!.item[box]).join('/')}/${names.join('/')}`;
    if (key === shown) return;
    shown = key;
    element.setAttribute('aria-label', app.words.around);
    replace(
      element,
      ...items.map((box, i) => {
        const item = boxes!.item[box]!;
        const phase = PHASES[boxes!.phase[box]!];
        return h(
          'button',
          { title: names[i]!, onclick: () => app.run(app.select([item], true)) },
          h('span', { class: `dot phase-${phase}` }),
          names[i]!,
        );
      }),
    );
  };
  const ask = (): void => {
    asked ||= requestAnimationFrame(draw);
  };
  app.renderer.camera.listen(ask);
  app.renderer.listen(ask);
  return element;
}

/** Open boxes around the middle of the window whose headers are above it, outermost first. */
function hidden(app: App): number[] {
  const scene = app.picture?.scene;
  if (!scene) return [];
  const { camera } = app.renderer;
  const { width, height } = camera.screen;
  const top = camera.toWorld(0, 0).y;
  const found: number[] = [];
  for (let box = app.renderer.hitBox(width / 2, height / 2); box >= 0; box = scene.boxes.parent[box]!) {
    if (scene.boxes.kind[box] === BoxKind.Open && scene.boxes.y[box]! < top) found.unshift(box);
  }
  return found;
}
