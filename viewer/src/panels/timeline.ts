// The timeline of a measured profile: CPU threads and GPU streams, with the modules and phases that ran on them.

import type { SpanFacts } from '../engine/timeline/timeline.ts';
import { Value } from '../state/store.ts';
import { secondsText } from '../text/figures.ts';
import { h, replace } from '../widgets/dom.ts';
import { register, type Panel, type Site } from './panel.ts';
import { TimelineChart } from './timeline/chart.ts';
import { WonList } from './timeline/won.ts';
import { timelineWords } from './timeline/words.ts';

const ROOMY = 1000; // pixels
const MOST_MARKED = 2000; // items

class TimelinePanel {
  readonly head = h('div', { class: 'code-head' });
  readonly chart: TimelineChart;
  readonly body: HTMLElement;
  readonly list: WonList;
  private hasList: boolean | null = null; // as the user wants it; null: where there is room
  readonly element: HTMLElement;
  private shown = -2; // the capture

  constructor(
    private site: Site,
    private changed: () => void,
  ) {
    const { client, run } = site;
    this.chart = new TimelineChart(
      { client, run, pick: (facts) => run(this.pick(facts)), changed: () => this.redrawHead() },
      () => this.words,
    );
    this.list = new WonList(
      {
        pick: ({ stage, nodes }) => nodes.length && this.choose(stage, nodes),
        close: () => this.setList(false),
      },
      () => this.words,
    );
    this.body = h('div', { class: 'timeline-body' }, this.chart.chart.element);
    this.element = h('div', { class: 'timeline' }, this.head, this.body);
  }

  get words() {
    return timelineWords(this.site.words());
  }

  async show(capture: number): Promise<void> {
    const theme = this.site.state.theme.get();
    if (capture !== this.shown) {
      this.shown = capture;
      this.chart.view.show(0, 1);
      this.chart.marked = null;
      replace(this.head, h('span', { class: 'hint' }, this.words.reading));
      const info = await this.chart.open(theme);
      await this.showList();
      if (info) await this.chart.resized();
      await this.mark(...this.lit);
    } else this.chart.setTheme(theme);
    this.redrawHead();
  }

  /** The list of what could be won; costs may come after the picture. */
  async showList(): Promise<void> {
    this.list.show(await this.site.client.savings());
    this.arrange();
  }

  private arrange(): void {
    const chart = this.chart.info ? this.chart.chart.element : h('p', { class: 'hint' }, this.words.unknown);
    replace(this.body, chart, this.showsList && !this.list.isEmpty ? this.list.element : null);
    this.redrawHead();
  }

  private get showsList(): boolean {
    return this.hasList ?? (this.body.clientWidth >= ROOMY || !this.chart.info);
  }

  private setList(on: boolean): void {
    this.hasList = on;
    this.arrange();
  }

  private choose(stage: number, nodes: number[]): void {
    const { act, state } = this.site;
    if (stage === state.stage.get()) act.select(nodes);
    else act.nodes(stage, nodes);
  }

  private lit: [items: number[], found: number[]] = [[], []];

  async mark(items: number[], found: number[]): Promise<void> {
    this.lit = [items, found];
    if (this.chart.info) await this.chart.mark(items, found);
  }

  redrawHead(): void {
    const { chart, words } = this;
    const { info, marked } = chart;
    this.changed();
    if (!info) {
      replace(this.head);
      return;
    }
    const lost = info.tracks.reduce((sum, track) => sum + track.leftOut, 0);
    const isSelected = this.site.state.selection.get().length > 0;
    const said = marked?.spans ? words.lit(marked.spans, marked.kernels, secondsText(marked.gpu)) : isSelected && marked ? words.apart : '';
    const button = (key: string, text: string, run: () => void, props: Record<string, unknown> = {}) =>
      h('button', { class: 'chip', 'data-key': key, onclick: run, ...props }, text);
    replace(
      this.head,
      h(
        'div',
        { class: 'chart-head' },
        said
          ? h('b', { class: 'chart-total' }, said)
          : h('span', { class: 'chart-facts' }, words.count(info.events, secondsText(info.span))),
        lost ? h('span', { class: 'chart-warning', title: words.leftOutHelp }, words.leftOut(lost)) : null,
        h('span', { class: 'grow' }),
        info.python
          ? button('python', words.python(info.python), () => this.site.run(chart.setPython(!chart.python)), {
              title: words.pythonHelp,
              class: chart.python ? 'chip on' : 'chip',
              'aria-pressed': String(chart.python),
            })
          : null,
        !this.list.isEmpty && !this.showsList ? button('won', words.won, () => this.setList(true), { title: words.wonHelp }) : null,
        marked?.spans ? button('fit', words.fit, () => chart.fitSelection(), { title: 'F' }) : null,
        chart.view.isZoomed ? button('whole', words.whole, () => chart.whole(), { title: '0' }) : null,
      ),
    );
  }

  /** A span selects what it belongs to: a module, or the operators of a stage. */
  private async pick(facts: SpanFacts | null): Promise<void> {
    const { act, client } = this.site;
    const items = facts?.path ? await client.items([facts.path]) : [];
    if (items.length) act.select(items);
    else if (!facts?.nodes.length) act.select([]);
    else this.choose(facts.stage, facts.nodes);
  }
}

function make(site: Site): Panel {
  const { state, follow } = site;
  const address = new Value('timeline', '');
  const panel = new TimelinePanel(site, () => {
    const { view, info } = panel.chart;
    address.set(info && view.isZoomed ? `${view.from.toPrecision(8)}-${view.to.toPrecision(8)}` : '');
  });
  let asked = '';
  follow(
    () => [state.capture.get(), state.theme.get(), state.language.get()] as const,
    async ([capture]) => {
      await panel.show(capture);
      const [from, to] = asked.split('-').map(Number);
      asked = '';
      if (from !== undefined && to !== undefined && to > from) panel.chart.showTimes(from, to);
    },
  );
  follow(
    () =>
      [state.selection.get(), state.related.get(), state.found.get(), state.stage.get(), state.capture.get(), state.shown.get()] as const,
    async ([selection, related, found]) => {
      await panel.mark(selection.length ? selection : state.traced.get() ? related.slice(0, MOST_MARKED) : [], found);
    },
  );
  return {
    element: panel.element,
    address: { get: () => address.get(), set: (text) => (asked = text) },
    describe: (isOpen) => ({
      timeline: isOpen
        ? {
            events: panel.chart.info?.events ?? null,
            tracks: panel.chart.info?.tracks ?? [],
            lanes: panel.chart.info?.lanes ?? [],
            from: panel.chart.view.from,
            to: panel.chart.view.to,
            marked: panel.chart.marked,
            current: panel.chart.current,
            spans: panel.chart.places(),
            frames: [...panel.chart.frames],
            won: panel.list.won,
          }
        : null,
    }),
  };
}

register({
  name: 'timeline',
  place: 'low',
  title: (words) => timelineWords(words).title,
  help: (words) => timelineWords(words).help,
  isTall: true,
  isThere: (state) => state.info.get()?.metrics.includes('time') === true,
  make,
});
