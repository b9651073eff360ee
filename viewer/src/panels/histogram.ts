// How the numbers of a tensor are distributed over powers of two.

import { h } from '../widgets/dom.ts';
import { EXPONENTS } from '../wire/facts.ts';

/** Bars from the first range that holds any to the last; null without counts. `isSmall`: without its axis. */
export function histogram(counts: readonly number[], isSmall = false): HTMLElement | null {
  const first = counts.findIndex((count) => count > 0);
  if (first < 0) return null;
  const last = counts.reduce((at, count, i) => (count > 0 ? i : at), first);
  const shown = counts.slice(first, last + 1);
  const [most, all] = [Math.max(...shown), shown.reduce((a, b) => a + b, 0)];
  const end = (range: number) => `2^${EXPONENTS.lowest + range * EXPONENTS.width}`;
  const bars = shown.map((count, i) =>
    h('i', {
      style: `height:${count ? Math.max(4, (100 * count) / most) : 0}%`,
      title: `${end(first + i)} … ${end(first + i + 1)}: ${((100 * count) / all).toPrecision(2)} %`,
    }),
  );
  const label = `${end(first)} … ${end(last + 1)}`;
  const chart = h('div', { class: 'histogram', role: 'img', 'aria-label': label, title: label }, ...bars);
  if (isSmall) return chart;
  return h('div', {}, chart, h('div', { class: 'histogram-ends' }, h('span', {}, end(first)), h('span', {}, end(last + 1))));
}
