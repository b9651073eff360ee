// Beside the pointer: what a box or an edge is, where the drawing does not say it. It goes when the drawing moves, is laid out
// anew, or a key is pressed: what is under the pointer then is something else.

import { clean } from '../draw/label.ts';
import { TEXT_LEFT, TITLE_SIZE } from '../picture/sizes.ts';
import { BoxKind, type Scene } from '../scene.ts';
import { bytesText } from '../text/figures.ts';
import { textWidth } from '../text/widths.ts';
import type { Page } from './page.ts';

const TIP_ZOOM = 0.62; // below it, boxes say too little themselves
const BESIDE = 14; // pixels from the pointer

export function showTip(page: Page): void {
  const { state, views, renderer, places } = page;
  views.add(
    'tip',
    () => [state.pointer.get(), state.picture.get()] as const,
    ([at, picture]) => {
      const box = at ? renderer.hitBox(at.x, at.y) : -1;
      const scene = picture?.scene;
      const onBox = box >= 0 && scene !== undefined && scene.boxes.kind[box] !== BoxKind.Open;
      const edge = !at || onBox ? -1 : renderer.hitEdge(at.x, at.y);
      renderer.setPaint({ hovered: box, hoveredEdge: edge });
      places.canvas.style.cursor = onBox ? 'pointer' : '';
      const text = !scene ? '' : onBox ? boxText(scene, box, renderer.camera.view.zoom) : edge >= 0 ? edgeText(scene, edge) : '';
      if (at && text) {
        places.tip.textContent = text;
        places.tip.style.transform = `translate(${at.x + BESIDE}px, ${at.y + BESIDE}px)`;
      }
      places.tip.classList.toggle('on', text !== '');
    },
  );
  const gone = () => state.pointer.set(null);
  renderer.camera.listen(gone);
  document.addEventListener('keydown', gone, true);
}

function edgeText({ texts, edges }: Scene, edge: number): string {
  const label = texts[edges.label[edge]!]!;
  return label && edges.bytes[edge]! >= 0 ? `${label} · ${bytesText(edges.bytes[edge]!)}` : label;
}

/** What a box says that is too small to be read, or whose title is cut; else nothing. */
function boxText({ boxes, texts }: Scene, box: number, zoom: number): string {
  const [title, detail] = [texts[boxes.title[box]!] ?? '', texts[boxes.detail[box]!] ?? ''];
  const isCut = textWidth(title, TITLE_SIZE, true) > boxes.width[box]! - TEXT_LEFT;
  return zoom >= TIP_ZOOM && !isCut ? '' : clean([title, detail].filter(Boolean).join(' · '));
}
