// All operators in a table: sorted, filtered by the search, copied as CSV. Rows are asked for as they scroll into view.

import type { TableRow } from '../engine/messages.ts';
import { bytesText } from '../engine/types.ts';
import type { Words } from '../state/words.ts';
import { h, replace, short, VirtualList } from './dom.ts';

const CHUNK = 200;

export interface TableCalls {
  table(sort: number, down: boolean, filter: number[] | null, first: number, count: number): Promise<{ total: number; rows: TableRow[] }>;
  csv(filter: number[] | null): Promise<string>;
  select(item: number): void;
  text(metric: string, value: number | null): string;
}

export class NodeTable {
  readonly element = h('div', { class: 'table-panel' });
  private list: VirtualList;
  private chunks = new Map<number, TableRow[]>();
  private asked = new Set<number>();
  private sort = 0;
  private down = false;
  private filter: number[] | null = null;
  private selected = new Set<number>();
  private metrics: string[] = [];

  constructor(
    private calls: TableCalls,
    private words: () => Words,
  ) {
    this.list = new VirtualList(24, (i) => this.row(i), { role: 'grid', 'aria-label': 'operators' });
  }

  async show(metrics: string[], filter: number[] | null): Promise<void> {
    this.metrics = metrics;
    this.filter = filter;
    await this.refresh();
  }

  select(items: number[]): void {
    this.selected = new Set(items);
    this.list.draw(true);
  }

  private async refresh(): Promise<void> {
    this.chunks.clear();
    this.asked.clear();
    const { total, rows } = await this.calls.table(this.sort, this.down, this.filter, 0, CHUNK);
    this.chunks.set(0, rows);
    this.asked.add(0);
    const names = [...this.words().columns, ...this.metrics];
    const head = h(
      'div',
      { class: 'table-row head', role: 'row' },
      ...names.map((name, i) =>
        h(
          'button',
          { class: `cell c${Math.min(i, 6)}`, onclick: () => this.sortBy(i) },
          name + (i === this.sort ? (this.down ? ' ↓' : ' ↑') : ''),
        ),
      ),
      h('button', { class: 'chip copy', onclick: () => void this.copy() }, this.words().copyCsv),
    );
    replace(this.element, head, this.list.element);
    this.list.set(total);
  }

  private sortBy(column: number): void {
    this.down = this.sort === column ? !this.down : column >= 6;
    this.sort = column;
    void this.refresh();
  }

  private async copy(): Promise<void> {
    await navigator.clipboard.writeText(await this.calls.csv(this.filter));
    const button = this.element.querySelector('.copy');
    if (button) button.textContent = this.words().copied;
  }

  private row(index: number): HTMLElement | null {
    const chunk = Math.floor(index / CHUNK);
    const row = this.chunks.get(chunk)?.[index - chunk * CHUNK];
    if (!row) {
      if (!this.asked.has(chunk)) {
        this.asked.add(chunk);
        void this.calls.table(this.sort, this.down, this.filter, chunk * CHUNK, CHUNK).then(({ rows }) => {
          this.chunks.set(chunk, rows);
          this.list.draw(true);
        });
      }
      return h('div', { class: 'table-row' });
    }
    return h(
      'div',
      { class: this.selected.has(row.item) ? 'table-row selected' : 'table-row', role: 'row', onclick: () => this.calls.select(row.item) },
      ...row.cells.map((cell, i) =>
        h(
          'span',
          { class: `cell c${Math.min(i, 6)}`, role: 'gridcell', title: i === 3 ? String(cell) : undefined },
          i >= 6 ? this.calls.text(this.metrics[i - 6]!, cell as number | null) : short(String(cell ?? ''), 60),
        ),
      ),
    );
  }
}

export function metricText(metric: string, value: number | null, words: Words): string {
  if (value === null) return words.unknown;
  if (metric === 'output size') return bytesText(value);
  if (metric === 'kernel time') return value >= 1e6 ? `${(value / 1e6).toPrecision(3)} ms` : `${(value / 1e3).toPrecision(3)} µs`;
  return value.toLocaleString();
}
