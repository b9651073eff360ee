// Kernels in the order they ran, and search results.

import { VirtualList } from '../widgets/list.ts';
import type { KernelRow, Label } from '../engine/messages.ts';
import { PHASES } from '../scene.ts';
import type { Words } from '../state/words.ts';
import { h, replace, short } from '../widgets/dom.ts';

export class KernelList {
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
      row.code ? 'C++' : '',
      row.time === null ? '' : `${(row.time / 1000).toPrecision(3)} µs`,
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

export class ResultList {
  readonly element = h('div', { class: 'list-panel' });
  private list: VirtualList;
  private head = h('p', { class: 'hint' });
  private nodes: number[] = [];
  private names = new Map<number, Label>();
  private at = -1;
  private asking = false;

  constructor(
    private labels: (items: number[]) => Promise<Label[]>,
    private act: (item: number) => void,
    private words: () => Words,
  ) {
    this.list = new VirtualList(40, (i) => this.row(i), { role: 'listbox', 'aria-label': 'results' });
    this.list.onStep((by) => this.step(by));
    replace(this.element, this.head);
    this.head.textContent = words().searchFirst;
  }

  set(nodes: number[], error: string, asked = true): void {
    this.nodes = nodes;
    this.names.clear();
    this.at = -1;
    this.head.className = error ? 'hint error' : 'hint';
    const words = this.words();
    this.head.textContent = error || (nodes.length ? words.found(nodes.length) : asked ? words.noResults : words.searchFirst);
    replace(this.element, this.head, nodes.length ? this.list.element : null);
    this.list.set(nodes.length);
  }

  /** To the next result, or the one before. */
  step(by: number): void {
    if (!this.nodes.length) return;
    this.at = (this.at + by + this.nodes.length) % this.nodes.length;
    this.list.draw();
    this.list.scrollTo(this.at);
    this.act(this.nodes[this.at]!);
  }

  private row(index: number): HTMLElement | null {
    const item = this.nodes[index];
    if (item === undefined) return null;
    const known = this.names.get(item);
    if (!known && !this.asking) void this.ask();
    return h(
      'div',
      {
        class: index === this.at ? 'result-row selected' : 'result-row',
        role: 'option',
        onclick: () => ((this.at = index), this.act(item), this.list.draw()),
      },
      h(
        'div',
        { class: 'name', title: known?.label },
        h('span', { class: `dot phase-${PHASES[known?.phase ?? 5]}` }),
        h('span', { class: 'count' }, `${item}`),
        ` ${short(known?.label ?? '…', 60)}`,
      ),
      h('div', { class: 'where', title: known?.where }, short([known?.type, known?.where].filter(Boolean).join(' · '), 90)),
    );
  }

  private async ask(): Promise<void> {
    this.asking = true;
    const [first, last] = this.list.range();
    const missing = this.nodes.slice(first, last).filter((item) => !this.names.has(item));
    for (const entry of await this.labels(missing)) this.names.set(entry.item, entry);
    this.asking = false;
    this.list.draw();
  }
}
