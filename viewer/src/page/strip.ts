// Over two drawings that are compared: what is different in all.

import type { StageInfo, Totals } from '../engine/messages.ts';
import { bytesText, secondsText, shortNumber } from '../text/figures.ts';
import { h, replace } from '../widgets/dom.ts';
import type { Page } from './page.ts';

interface Figure {
  name: string;
  before: number; // NaN: not known
  after: number;
  least: [boolean, boolean]; // it may be more
  text: (value: number) => string;
}

export function showStrip(page: Page): void {
  const { state, views, client, places } = page;
  views.add(
    'what is different in all',
    () => [state.shown.get(), state.info.get(), state.compare.get(), state.totals.get(), page.words()] as const,
    async ([shown, info, compare, totals]) => {
      const before = shown?.changes?.before;
      const isShown = before !== undefined && (compare !== 'after' || info?.how === 'compared');
      places.strip.hidden = !isShown;
      if (!isShown || !info || !shown) return;
      const then = info.costs ? await client.aside(before, 'totals', []) : null;
      if (state.shown.get() !== shown) return;
      replace(places.strip, ...figures(page, info.stages[before]!, shown, then as Totals | null, totals).map(cell));
    },
  );
}

function figures(page: Page, was: StageInfo, now: StageInfo, then: Totals | null, totals: Totals | null): Figure[] {
  const w = page.words().strip;
  const pair = (
    name: string,
    of: (totals: Totals) => number,
    text: (value: number) => string,
    least?: (totals: Totals) => boolean,
  ): Figure => ({
    name,
    before: then ? of(then) : NaN,
    after: totals ? of(totals) : NaN,
    least: [then && least ? least(then) : false, totals && least ? least(totals) : false],
    text,
  });
  const plain = (name: string, before: number, after: number): Figure => ({
    name,
    before,
    after,
    least: [false, false],
    text: (n) => n.toLocaleString(),
  });
  return [
    plain(w.operators, was.nodes, now.nodes),
    pair(
      w.parameters,
      (of) => of.parameters,
      shortNumber,
      (of) => of.parametersAtLeast,
    ),
    pair(
      w.macs,
      (of) => of.macs,
      shortNumber,
      (of) => of.atLeast,
    ),
    pair(
      w.peak,
      (of) => of.peak,
      bytesText,
      () => true,
    ),
    plain(w.kernels, was.kernels, now.kernels),
    pair(w.time, (of) => of.time, secondsText),
  ].filter(({ before, after }) => before > 0 || after > 0);
}

/** `25.6 M → 30.0 M (+4.5 M)`; what is not known is said to be so. */
function cell({ name, before, after, least, text }: Figure): HTMLElement {
  const said = (value: number, isLeast: boolean) => (Number.isNaN(value) ? '?' : `${isLeast ? '≥ ' : ''}${text(value)}`);
  const change = after - before;
  const by = Number.isNaN(change) ? '' : change === 0 ? '=' : `${change > 0 ? '+' : '−'}${text(Math.abs(change))}`;
  return h(
    'span',
    { class: 'strip-cell' },
    h('b', {}, name),
    change === 0 ? said(after, least[1]) : `${said(before, least[0])} → ${said(after, least[1])}`,
    by && by !== '=' ? h('span', { class: change > 0 ? 'strip-more' : 'strip-less' }, by) : null,
  );
}
