// Where time could be won, as a list beside the timeline: a row selects what it is about.

import type { Saving, Won } from '../../engine/work.ts';
import { percent, secondsText } from '../../text/figures.ts';
import { h, replace } from '../../widgets/dom.ts';
import type { TimelineWords } from './words.ts';

export interface WonCalls {
  pick(saving: Saving): void;
  close(): void;
}

export class WonList {
  readonly element = h('section', { class: 'won' });
  won: Won | null = null;
  private open = -1; // the row whose rule is shown

  constructor(
    private calls: WonCalls,
    private words: () => TimelineWords,
  ) {}

  get isEmpty(): boolean {
    return !this.won?.rows.length;
  }

  show(won: Won): void {
    this.won = won;
    this.open = -1;
    this.redraw();
  }

  redraw(): void {
    const { won } = this;
    const words = this.words();
    this.element.setAttribute('aria-label', words.won);
    if (!won) return;
    const most = Math.max(...won.rows.map((row) => row.most ?? 0), 1e-12);
    replace(
      this.element,
      h(
        'header',
        {},
        h('b', { title: words.wonHelp }, words.won),
        h('span', { class: 'grow' }),
        h('span', { class: 'dim', title: words.atMostHelp }, words.atMost),
        h(
          'button',
          { class: 'link', 'data-key': 'close-won', 'aria-label': words.hideWon, title: words.hideWon, onclick: () => this.calls.close() },
          '×',
        ),
      ),
      this.used(won),
      h('ol', { class: 'won-rows' }, ...won.rows.map((row, i) => h('li', {}, ...this.row(row, i, most)))),
    );
  }

  /** What the step made of its device. */
  private used({ used, device, atLeast }: Won): HTMLElement | null {
    const words = this.words();
    const step = used['step_seconds'];
    if (step === undefined) return null;
    const share = (name: string) => `${atLeast ? '≥ ' : ''}${percent(used[name] ?? 0, 1)}`;
    const parts = [words.step(secondsText(step), percent(used['busy_seconds'] ?? 0, step))];
    if ('mfu' in used) parts.push(words.used('MFU', share('mfu')));
    return h('div', { class: 'won-used', title: device }, parts.join(' · '));
  }

  private row(row: Saving, i: number, most: number): (HTMLElement | null)[] {
    const words = this.words();
    const isOpen = i === this.open;
    const where = row.module.split('/').slice(-2).join('/');
    const limit = row.most === null ? '?' : secondsText(row.most);
    return [
      h(
        'button',
        {
          class: isOpen ? 'won-row on' : 'won-row',
          'data-key': `won-${i}`,
          'aria-expanded': String(isOpen),
          title: row.module,
          onclick: () => {
            this.open = isOpen ? -1 : i;
            this.redraw();
            if (!isOpen) this.calls.pick(row);
          },
        },
        h('span', { class: 'won-bar', style: `width:${((100 * (row.most ?? 0)) / most).toFixed(1)}%` }),
        h('span', { class: 'won-kind' }, words.savings[row.kind]),
        h('span', { class: 'won-most', title: row.most === null ? words.nobody : '' }, limit),
        h('span', { class: 'won-name' }, [row.name, where].filter(Boolean).join(' · ')),
        h('span', { class: 'dim' }, row.kind === 'unknown-device' ? '' : words.took(secondsText(row.seconds), row.count)),
      ),
      isOpen ? h('p', { class: 'won-why' }, row.why) : null,
    ];
  }
}
