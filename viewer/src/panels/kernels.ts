// Kernels in the order they ran.

import type { KernelRow } from '../engine/messages.ts';
import { kernelColours } from '../state/colours.ts';
import { Value } from '../state/store.ts';
import type { Words } from '../state/words.ts';
import { secondsText } from '../text/figures.ts';
import { h, replace, short } from '../widgets/dom.ts';
import { VirtualList } from '../widgets/list.ts';
import { register } from './panel.ts';

const LANGUAGE: Record<string, string> = { triton: 'Triton', cpp: 'C++', cpp_pybinding: 'C++' };

class KernelList {
  readonly element = h('div', { class: 'list-panel' });
  private list: VirtualList;
  private rows: KernelRow[] = [];
  private selected = -1;
  private lit = new Set<number>();
  private colours: (string | null)[] = [];

  constructor(
    private act: (index: number) => void,
    private words: () => Words,
  ) {
    this.list = new VirtualList(44, (i) => this.row(i), { role: 'listbox', 'aria-label': 'kernels' });
    this.list.onStep((by) => this.act(Math.max(0, Math.min(this.rows.length - 1, this.selected + by))));
  }

  set(rows: KernelRow[]): void {
    this.rows = rows;
    this.selected = -1;
    replace(
      this.element,
      h('p', { class: 'hint list-head' }, rows.length ? this.words().kernelsRan(rows.length) : this.words().noKernels),
      rows.length > 0 && this.list.element,
    );
    this.list.set(rows.length);
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
    const row = this.rows[index];
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
    const list = new KernelList((index) => act.kernel(index), words);
    const rows = new Value<KernelRow[]>('kernels', []);
    follow(
      () => state.shown.get(),
      async () => rows.set(await client.kernels()),
    );
    follow(
      () => [rows.get(), words()] as const,
      ([now]) => list.set(now),
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
