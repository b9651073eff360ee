// Kernels in the order they ran. Rows are asked for as they scroll into view.

import type { KernelRow } from '../engine/messages.ts';
import { kernelColours } from '../state/colours.ts';
import { Value } from '../state/store.ts';
import type { Words } from '../state/words.ts';
import { secondsText } from '../text/figures.ts';
import { h, replace, short } from '../widgets/dom.ts';
import { VirtualList } from '../widgets/list.ts';
import { register } from './panel.ts';

const LANGUAGE: Record<string, string> = { triton: 'Triton', cpp: 'C++', cpp_pybinding: 'C++' };

const CHUNK = 500;

class KernelList {
  readonly element = h('div', { class: 'list-panel' });
  private list: VirtualList;
  private count = 0;
  private chunks = new Map<number, KernelRow[]>();
  private selected = -1;
  private lit = new Set<number>();
  private colours: (string | null)[] = [];

  constructor(
    private ask: (first: number, count: number) => Promise<KernelRow[]>,
    private act: (index: number) => void,
    private words: () => Words,
  ) {
    this.list = new VirtualList(44, (i) => this.row(i), { role: 'listbox', 'aria-label': 'kernels' });
    this.list.onStep((by) => this.act(Math.max(0, Math.min(this.count - 1, this.selected + by))));
  }

  /** The first rows of so many. */
  set(count: number, rows: KernelRow[]): void {
    this.count = count;
    this.chunks = new Map([[0, rows]]);
    this.selected = -1;
    replace(
      this.element,
      h('p', { class: 'hint list-head' }, count ? this.words().kernelsRan(count) : this.words().noKernels),
      count > 0 && this.list.element,
    );
    this.list.set(count);
  }

  /** A row, if it is there; else it is asked for, with those around it. */
  private at(index: number): KernelRow | undefined {
    const chunk = Math.floor(index / CHUNK);
    const chunks = this.chunks;
    const rows = chunks.get(chunk);
    if (rows) return rows[index % CHUNK];
    chunks.set(chunk, []);
    void this.ask(chunk * CHUNK, CHUNK).then((found) => {
      chunks.set(chunk, found);
      if (chunks === this.chunks) this.list.draw();
    });
    return undefined;
  }

  /** Their colours on the drawing, or none. */
  paint(colours: (string | null)[]): void {
    this.colours = colours;
    this.list.draw();
  }

  /** The kernel that is picked, and those in which the selected operator ran. */
  mark(selected: number, lit: number[]): void {
    this.selected = selected;
    this.lit = new Set(lit);
    this.list.draw();
    const first = selected >= 0 ? selected : lit[0];
    if (first !== undefined) this.list.scrollTo(first);
  }

  private row(index: number): HTMLElement | null {
    const row = this.at(index);
    if (!row) return null;
    const words = this.words();
    const classes = ['kernel-row', index === this.selected ? 'selected' : '', this.lit.has(index) ? 'lit' : ''].join(' ');
    const facts = [
      words.ops(row.ops),
      row.runs > 1 ? words.ran(row.runs) : '',
      LANGUAGE[row.language] ?? (row.code ? 'C++' : row.language),
      row.time === null ? '' : secondsText(row.time),
    ];
    return h(
      'div',
      { class: classes, role: 'option', 'aria-selected': String(index === this.selected), onclick: () => this.act(index) },
      h(
        'div',
        { class: 'kernel-name', title: row.name },
        this.colours.length > 1
          ? h('i', { class: 'swatch', style: `background:${this.colours[1 + (index % (this.colours.length - 1))]}` })
          : null,
        h('span', { class: 'count' }, `${index}`),
        ` ${short(row.name, 80)}`,
      ),
      h('div', { class: 'kernel-facts' }, facts.filter(Boolean).join(' · ')),
    );
  }
}

register({
  name: 'kernels',
  place: 'left',
  title: (words) => words.kernels,
  isThere: (state) => (state.shown.get()?.kernels ?? 0) > 0,
  make({ state, client, act, words, follow }) {
    const list = new KernelList(
      (first, count) => client.kernels(first, count),
      (index) => act.kernel(index),
      words,
    );
    const rows = new Value<{ count: number; first: KernelRow[] }>('kernels', { count: 0, first: [] });
    follow(
      () => state.shown.get(),
      async (shown) => rows.set({ count: shown?.kernels ?? 0, first: await client.kernels(0, CHUNK) }),
    );
    follow(
      () => [rows.get(), words()] as const,
      ([now]) => list.set(now.first.length ? now.count : 0, now.first),
    );
    follow(
      () => [state.kernel.get(), state.details.get(), rows.get(), words()] as const,
      ([kernel, details]) => list.mark(kernel, kernel < 0 ? (details?.kernels.map(({ index }) => index) ?? []) : []),
    );
    follow(
      () => [state.colour.get() === 'kernel', state.theme.get()] as const,
      ([on, theme]) => list.paint(on ? kernelColours(theme.name === 'dark') : []),
    );
    return { element: list.element };
  },
});
