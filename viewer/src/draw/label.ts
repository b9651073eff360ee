// Text that fits: cleaned of what would disturb its neighbours, cut with an ellipsis by the table of widths.
import type { Scene } from '../scene.ts';
import { BoxKind } from '../scene.ts';
import { textWidth } from '../text/widths.ts';
import {
  BADGE_SIZE,
  BAR,
  compact,
  grouped,
  isPill,
  DETAIL_SIZE,
  PANEL_LEFT,
  SMALL,
  TEXT_LEFT,
  TEXT_RIGHT,
  TITLE_SIZE,
  TWO_LINES,
} from '../picture/sizes.ts';

/** No text on the drawing needs more; a name of 100 kB must not cost anything. */
const LONGEST = 400;
// Control characters, marks that turn the direction of writing, halves of surrogate pairs.
const DISTURBING =
  /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

export function clean(text: string): string {
  const short = text.length > LONGEST ? text.slice(0, LONGEST) + '…' : text;
  return short.replace(DISTURBING, (c) => (c === '\n' || c === '\t' || c === '\r' ? ' ' : '\ufffd'));
}

/** `text`, or as much of its beginning as fits with an ellipsis; "" where not even one letter does. */
export function fitText(text: string, room: number, size: number, bold = false): string {
  if (room <= 0) return '';
  if (textWidth(text, size, bold) <= room) return text;
  const rest = room - textWidth('…', size, bold);
  const letters = [...text];
  let [low, high] = [0, letters.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (textWidth(letters.slice(0, middle).join(''), size, bold) <= rest) low = middle;
    else high = middle - 1;
  }
  return low > 0 ? letters.slice(0, low).join('').trimEnd() + '…' : '';
}

export interface Fitted {
  title: string;
  detail: string;
  /** "×32", or "". */
  badge: string;
  badgeWidth: number;
  /** Operators inside, at the right; "" where there is no room. */
  count: string;
  countWidth: number;
  /** Widths as in the table. */
  titleWidth: number;
  detailWidth: number;
}

/** Small titles are fitted again at so many steps of zoom per unit, not in every frame of a zoom. */
const STEPS = 64;

/** The texts of the boxes of one scene, fitted once each. */
export class Fitter {
  #scene: Scene;
  #done = new Map<number, Fitted>();
  #small = new Map<number, string>();
  #step = -1;

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  of(box: number): Fitted {
    let fitted = this.#done.get(box);
    if (fitted === undefined) {
      if (this.#done.size > 50_000) this.#done.clear();
      fitted = fitBox(this.#scene, box);
      this.#done.set(box, fitted);
    }
    return fitted;
  }

  /** The title of a card from some way off (small.ts), or "". */
  small(box: number, zoom: number): string {
    const step = Math.floor(zoom * STEPS);
    if (step !== this.#step) {
      this.#step = step;
      this.#small.clear();
    }
    let text = this.#small.get(box);
    if (text === undefined) {
      const { boxes, texts } = this.#scene;
      // Measured at the lower end of the step, so that it fits at all of it.
      const bar = isPill(boxes.kind[box]!) ? 0 : BAR.left + BAR.width;
      const room = (boxes.width[box]! - bar) * (step / STEPS) - 2 * SMALL.gap;
      const times = boxes.repeat[box]! > 1 ? ` ×${compact(boxes.repeat[box]!)}` : '';
      const wide = times ? textWidth(times, SMALL.size, true) : 0;
      text = fitText(clean(texts[boxes.title[box]!] ?? ''), room - wide, SMALL.size, true);
      // One letter and three dots say nothing.
      if (text.endsWith('…') && [...text].length < 3) text = '';
      // That it is several is said as long as there is room for it.
      if (wide <= room) text = (text + times).trim();
      this.#small.set(box, text);
    }
    return text;
  }
}

export function fitBox(scene: Scene, box: number): Fitted {
  const { boxes, texts } = scene;
  const kind = boxes.kind[box]!;
  const panel = kind === BoxKind.Open;
  const badge = boxes.repeat[box]! > 1 ? `×${compact(boxes.repeat[box]!)}` : '';
  const badgeWidth = badge ? textWidth(badge, BADGE_SIZE, true) + 12 : 0;
  let room = boxes.width[box]! - (panel ? PANEL_LEFT : TEXT_LEFT) - TEXT_RIGHT;
  const full = clean(texts[boxes.title[box]!] ?? '');
  const below = clean(texts[boxes.detail[box]!] ?? '');
  const title = fitText(full, room - (badge ? badgeWidth + 4 : 0), TITLE_SIZE, true);
  const titleWidth = textWidth(title, TITLE_SIZE, true);
  room -= titleWidth + (badge ? badgeWidth + 4 : 0);
  let count = '';
  let countWidth = 0;
  if (kind !== BoxKind.Op && !isPill(kind) && (panel || below === '' || boxes.height[box]! < TWO_LINES)) {
    count = grouped(boxes.size[box]!);
    countWidth = textWidth(count, DETAIL_SIZE);
    if (countWidth + 10 > room) [count, countWidth] = ['', 0];
  }
  // A panel has its second line beside the title.
  const detailRoom = panel ? room - countWidth - 20 : boxes.width[box]! - TEXT_LEFT - TEXT_RIGHT;
  const two = panel || boxes.height[box]! >= TWO_LINES;
  const detail = two ? fitText(below, detailRoom, DETAIL_SIZE) : '';
  return { title, titleWidth, badge, badgeWidth, count, countWidth, detail, detailWidth: textWidth(detail, DETAIL_SIZE) };
}
