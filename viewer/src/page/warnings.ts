// What a capture warns of: places in it are links, and equal warnings stand together.

import { inChinese } from '../state/warningwords.ts';
import { h } from '../widgets/dom.ts';
import { goTo } from './drawing.ts';
import type { Page } from './page.ts';
import { pickLine, select } from './selecting.ts';

/** `model.py:12`, or `#34` for an operator. */
const PLACE = /([^\s:'"`(]+\.\w{1,4}):(\d+)|#(\d+)\b/g;
const MOST_PLACES = 6;
const LONG = 220;

interface Warning {
  text: string; // without the place that it begins with
  places: string[];
  times: number;
}

/** Equal ones but for the place at their beginning. */
export function groupedWarnings(texts: readonly string[]): Warning[] {
  const found = new Map<string, Warning>();
  for (const whole of texts) {
    const place = /^(\S+:\d+): /.exec(whole)?.[1] ?? '';
    const text = place ? whole.slice(place.length + 2) : whole;
    const known = found.get(text) ?? { text, places: [], times: 0 };
    known.times++;
    if (place && !known.places.includes(place)) known.places.push(place);
    found.set(text, known);
  }
  return [...found.values()];
}

export function warningList(page: Page, texts: readonly string[]): HTMLElement[] {
  return groupedWarnings(texts).map(({ text, places, times }) => {
    const said = page.state.language.get() === 'zh' ? inChinese(text) : text;
    const linked = places.slice(0, MOST_PLACES).flatMap((place) => [...withLinks(page, place), ' ']);
    const rest = places.length > MOST_PLACES ? `+${places.length - MOST_PLACES} ` : '';
    const words = h('span', {}, ...withLinks(page, said.length > LONG ? `${said.slice(0, LONG)}…` : said));
    const more = () => words.replaceChildren(...withLinks(page, said));
    return h(
      'p',
      { class: 'warning' },
      times > 1 ? h('b', {}, `×${times} `) : null,
      ...linked,
      rest,
      words,
      said.length > LONG
        ? h(
            'button',
            {
              class: 'link',
              'data-key': `more-${text.slice(0, 20)}`,
              onclick: (event: Event) => (more(), (event.target as Element).remove()),
            },
            page.words().more,
          )
        : null,
    );
  });
}

function withLinks(page: Page, text: string): (Node | string)[] {
  const out: (Node | string)[] = [];
  let at = 0;
  const { sources } = page.state.info.get() ?? { sources: [] };
  for (const match of text.matchAll(PLACE)) {
    const [whole, file, line, node] = match;
    const known = file === undefined ? Number(node) < (page.state.shown.get()?.nodes ?? 0) : sources.includes(file);
    const name = file === undefined ? whole : `${file.split(/[\\/]/).at(-1)}:${line}`;
    if (!known) {
      if (file === undefined || name === whole) continue;
      // No text to go to; its whole path is too long to read.
      out.push(text.slice(at, match.index), h('span', { title: whole }, name));
      at = match.index + whole.length;
      continue;
    }
    const act = async () => {
      if (file !== undefined) await pickLine(page, file, Number(line));
      else await select(page, [Number(node)], true);
      await goTo(page, page.state.selection.get());
    };
    out.push(
      text.slice(at, match.index),
      h('button', { class: 'link', 'data-key': `at-${whole}`, title: whole, onclick: () => page.run(act()) }, name),
    );
    at = match.index + whole.length;
  }
  out.push(text.slice(at));
  return out;
}
