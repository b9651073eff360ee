// The Cost tab: a map of modules, memory along the execution, operators against a device.

import type { Theme } from '../draw/theme.ts';
import type { Figure } from '../engine/cost.ts';
import type { Device } from '../engine/roofs.ts';
import type { Words } from '../state/words.ts';
import { Value } from '../state/store.ts';
import { h, replace } from '../widgets/dom.ts';
import { register } from './panel.ts';
import { RooflineChart, type RooflineCalls } from './roofline.ts';
import { MemoryChart, type MemoryCalls } from './memory.ts';
import { FIGURES, Treemap, type TreemapCalls } from './treemap.ts';

const VIEWS = ['treemap', 'memory', 'roofline'] as const;
type CostView = (typeof VIEWS)[number];

interface CostCalls extends TreemapCalls, Omit<MemoryCalls, 'line'>, Omit<RooflineCalls, 'nodes'> {
  line: MemoryCalls['line'];
  changed(): void; // the address
}

class CostPanel {
  readonly element = h('div', { class: 'cost' });
  readonly treemap: Treemap;
  readonly memory: MemoryChart;
  readonly roofline: RooflineChart;
  view: CostView = 'treemap';
  private shown: { stage: string; has: boolean; why: string; theme: Theme } | null = null;

  constructor(
    devices: Device[],
    private calls: CostCalls,
    private words: () => Words,
  ) {
    this.treemap = new Treemap(calls, words);
    this.memory = new MemoryChart(calls, words);
    this.roofline = new RooflineChart(devices, { ...calls, nodes: (items) => calls.steps(items) }, words);
    this.treemap.changed = this.roofline.changed = () => calls.changed();
  }

  /** `stage` distinguishes graphs; `has`: their costs are here, else `why` says how to get them. */
  async show(stage: string, has: boolean, why: string, theme: Theme): Promise<void> {
    this.shown = { stage, has, why, theme };
    if (!has) {
      replace(this.element, h('p', { class: 'hint' }, why));
      return;
    }
    const part = this[this.view];
    if (part !== this.roofline) (part as Treemap | MemoryChart).reset(stage);
    this.redrawHead();
    await part.show(theme);
  }

  private redrawHead(): void {
    const words = this.words();
    const part = this[this.view];
    const tab = (view: CostView) =>
      h(
        'button',
        {
          class: view === this.view ? 'on' : '',
          role: 'radio',
          'aria-checked': String(view === this.view),
          title: words.costs.help[view],
          onclick: () => this.choose(view),
        },
        words.costs.views[view],
      );
    const head = h(
      'div',
      { class: 'code-head' },
      h('div', { class: 'segmented', role: 'radiogroup', 'aria-label': words.cost }, ...VIEWS.map(tab)),
      part.head,
    );
    // The chart itself stays where it is: taking it out and in would lose the focus.
    if (this.element.lastElementChild === part.element && this.element.childElementCount === 2)
      this.element.firstElementChild!.replaceWith(head);
    else replace(this.element, head, part.element);
  }

  choose(view: CostView): void {
    this.view = view;
    const { shown } = this;
    if (shown) this.calls.run(this.show(shown.stage, shown.has, shown.why, shown.theme));
    this.calls.changed();
  }

  async mark(selection: number[], path: number[]): Promise<void> {
    if (!this.shown?.has) return;
    if (this.view === 'treemap') this.treemap.mark(selection, path);
    else await this[this.view].mark(selection);
  }

  // -- the state, for the URL and for scripts -------------------------------------------------------------

  get state(): string {
    const more = { treemap: [this.treemap.figure], memory: [], roofline: [this.roofline.shownDevice, this.roofline.by] }[this.view];
    return [this.view, ...more].join('.');
  }

  set state(text: string) {
    const [view, ...more] = text.split('.');
    this.view = VIEWS.find((name) => name === view) ?? 'treemap';
    if (this.view === 'treemap' && FIGURES.includes(more[0] as Figure)) this.treemap.figure = more[0] as Figure;
    if (this.view === 'roofline' && more[0]) this.roofline.device = more[0];
    if (this.view === 'roofline' && more[1] === 'kind') this.roofline.by = 'kind';
  }

  describe(): Record<string, unknown> {
    const { map } = this.treemap;
    const { line, listed } = this.memory;
    const { roofs, shownDevice: device } = this.roofline;
    if (this.view === 'treemap')
      return {
        view: this.view,
        figure: this.treemap.figure,
        total: map?.total ?? null,
        unknown: map?.unknown ?? null,
        cells: map?.cells.map(({ item, kind, title, figure, x, y, width, height }) => ({ item, kind, title, figure, x, y, width, height })),
      };
    if (this.view === 'memory')
      return {
        view: this.view,
        peak: line?.peak,
        bytes: line?.peakBytes,
        classes: line?.classes,
        listed: listed < 0 ? line?.peak : listed,
      };
    return { view: this.view, device, seconds: roofs?.seconds, unknown: roofs?.unknown, points: this.roofline.places() };
  }
}

const MOST_MARKED = 2000;

register({
  name: 'cost',
  place: 'low',
  title: (words) => words.cost,
  isTall: true,
  make({ state, client, act, devices, words, run, follow }) {
    const address = new Value('cost', '');
    const panel = new CostPanel(
      devices,
      {
        map: (...args) => client.costMap(...args),
        line: (...args) => client.memoryLine(...args),
        alive: (...args) => client.alive(...args),
        steps: (items) => client.steps(items),
        roofs: (device) => client.roofs(device),
        reached: (items, device) => client.reached(items, device),
        names: () => client.deviceNames(),
        select: (items) => act.select(items),
        hover: (items) => act.outline(items),
        isTimed: () => state.info.get()?.metrics.includes('time') === true,
        run,
        changed: () => address.set(panel.state),
      },
      words,
    );
    follow(
      () => {
        const info = state.info.get();
        const why = info && state.counting.get().includes(info.id) ? words().costs.counting : words().costs.none;
        return [state.capture.get(), state.stage.get(), info?.costs === true, why, state.theme.get(), state.options.get()] as const;
      },
      async ([capture, stage, has, why, theme]) => {
        await panel.show(`${capture}/${stage}`, has, why, theme);
        address.set(panel.state);
      },
    );
    follow(
      () => [state.selection.get(), state.related.get(), state.details.get(), state.shown.get(), state.info.get()] as const,
      ([selection, related, details]) =>
        panel.mark(selection.length ? selection : related.slice(0, MOST_MARKED), details?.path.map((ref) => ref.item) ?? []),
    );
    return {
      element: panel.element,
      address: { get: () => address.get(), set: (text) => (panel.state = text) },
      describe: (isOpen) => ({ cost: isOpen ? panel.describe() : null }),
    };
  },
});
