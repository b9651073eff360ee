// All operators in a table: sorted, filtered by the search, copied as CSV, its columns as wide as one likes. Rows are asked
// for as they scroll into view.

import { Columns } from '../widgets/columns.ts';
import { VirtualList } from '../widgets/list.ts';
import type { TableRow } from '../engine/messages.ts';
import { shortNumber } from '../text/figures.ts';
import { howText, metricName, metricText } from '../state/figures.ts';
import type { Words } from '../state/words.ts';
import { h, replace, short } from '../widgets/dom.ts';
import { register } from './panel.ts';

const CHUNK = 200;
const LONGEST = 240; // letters of a cell
const KEYS = ['#', 'op', 'phase', 'module', 'name', 'type']; // of the first columns, where their widths are remembered
const LEAST = [64, 133, 84, 133, 133, 133, 88]; // their widths, and that of all others
const BARE = new Set(['MACs', 'other FLOPs', 'intensity']); // their unit is above

interface TableCalls {
  table(
    sort: number,
    down: boolean,
    filter: number[] | null,
    first: number,
    count: number,
  ): Promise<{ total: number; named: boolean; rows: TableRow[] }>;
  csv(filter: number[] | null): Promise<string>;
  select(item: number): void;
  text(metric: string, value: number | null): string;
}

class NodeTable {
  readonly element = h('div', { class: 'table-panel' });
  private list: VirtualList;
  private chunks = new Map<number, TableRow[]>();
  private asked = new Set<number>();
  private sort = 0;
  private down = false;
  private filter: number[] | null = null;
  private selected = new Set<number>();
  private all = 0; // operators, without a filter
  private metrics: string[] = [];
  private total = 0;
  private at = -1; // the row that was picked last
  private how = false; // a last column says what is known of the costs
  private columns = new Columns(
    'opscope columns',
    () => this.element,
    () => this.resized(),
  );
  private named = true;

  constructor(
    private calls: TableCalls,
    private words: () => Words,
  ) {
    this.list = new VirtualList(24, (i) => this.row(i), { role: 'rowgroup' });
    this.list.onStep((by) => this.step(by));
  }

  async show(metrics: string[], how: boolean, filter: number[] | null, all: number): Promise<void> {
    this.all = all;
    this.metrics = metrics;
    this.how = how;
    this.filter = filter;
    await this.refresh();
  }

  select(items: number[]): void {
    this.selected = new Set(items);
    this.list.draw();
  }

  private async refresh(): Promise<void> {
    this.chunks.clear();
    this.asked.clear();
    const { total, named, rows } = await this.calls.table(this.sort, this.down, this.filter, 0, CHUNK);
    this.chunks.set(0, rows);
    this.asked.add(0);
    this.named = named;
    const words = this.words();
    const names = [...words.columns, ...this.metrics.map((name) => metricName(name, words)), ...(this.how ? [words.costs.how] : [])];
    const head = h(
      'div',
      { class: 'table-row head', role: 'row' },
      ...names.map((name, i) =>
        h(
          'div',
          {
            class: `cell ${this.column(i)}`,
            role: 'columnheader',
            'aria-sort': i === this.sort ? (this.down ? 'descending' : 'ascending') : undefined,
            style: this.columns.style(this.key(i)),
          },
          h(
            'button',
            { 'data-key': `column-${i}`, title: name, onclick: () => this.sortBy(i) },
            name + (i === this.sort ? (this.down ? ' ↓' : ' ↑') : ''),
          ),
          this.columns.grip({ key: this.key(i), index: i, label: words.habits.columnWidth(name), hint: words.habits.columnHint }),
        ),
      ),
    );
    const copy = h(
      'div',
      { class: 'table-tools' },
      h('span', { class: 'hint' }, words.tableRows(total, this.all)),
      h('button', { class: 'chip copy', onclick: () => void this.copy() }, words.copyCsv),
    );
    replace(
      this.element,
      h(
        'div',
        { class: 'table-scroll' },
        h(
          'div',
          { class: named ? 'table-wide' : 'table-wide no-names', role: 'grid', 'aria-label': words.table, style: this.least(names.length) },
          head,
          this.list.element,
        ),
      ),
      copy,
    );
    this.total = total;
    this.at = -1;
    this.list.set(total);
  }

  /** What a column is remembered by, in any language. */
  private key(index: number): string {
    return KEYS[index] ?? this.metrics[index - KEYS.length] ?? 'how';
  }

  /** The width below which the table is scrolled. */
  private least(columns: number): string {
    let sum = 28;
    for (let i = 0; i < columns; i++)
      if (this.named || i !== 4) sum += this.columns.width(this.key(i)) ?? LEAST[Math.min(i, LEAST.length - 1)]!;
    return `min-width:${sum}px`;
  }

  /** Other widths: nothing is asked for again, and the grip keeps the focus and the pointer. */
  private resized(): void {
    const heads = [...this.element.querySelectorAll<HTMLElement>('[role=columnheader]')];
    heads.forEach((head, i) => {
      head.style.cssText = this.columns.style(this.key(i)) ?? '';
      head.querySelector('.column-grip')!.setAttribute('aria-valuenow', String(Math.round(head.getBoundingClientRect().width)));
    });
    this.element.querySelector<HTMLElement>('.table-wide')!.style.cssText = this.least(heads.length);
    this.list.draw();
  }

  private sortBy(column: number): void {
    this.down = this.sort === column ? !this.down : column >= 6;
    this.sort = column;
    void this.refresh();
  }

  /** To the row below or above. */
  private step(by: number): void {
    const at = Math.max(0, Math.min(this.total - 1, this.at + by));
    const row = this.chunks.get(Math.floor(at / CHUNK))?.[at % CHUNK];
    if (!row) return;
    this.at = at;
    this.list.scrollTo(at);
    this.calls.select(row.item);
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
          this.list.draw();
        });
      }
      return h('div', { class: 'table-row' });
    }
    return h(
      'div',
      {
        class: this.selected.has(row.item) ? 'table-row selected' : 'table-row',
        role: 'row',
        onclick: () => ((this.at = index), this.calls.select(row.item)),
      },
      ...row.cells.map((cell, i) =>
        h(
          'span',
          { class: `cell ${this.column(i)}`, role: 'gridcell', title: this.title(i, cell), style: this.columns.style(this.key(i)) },
          this.text(i, cell),
        ),
      ),
    );
  }

  private column(index: number): string {
    return index < 6 ? `c${index}` : index - 6 < this.metrics.length ? 'c6' : 'c7';
  }

  private text(index: number, cell: string | number | null): string {
    const metric = this.metrics[index - 6];
    if (metric)
      return cell === ''
        ? ''
        : cell === null
          ? '?'
          : BARE.has(metric)
            ? shortNumber(cell as number)
            : this.calls.text(metric, cell as number);
    if (index === 2) return (this.words().phases as Record<string, string>)[String(cell)] ?? String(cell ?? '');
    if (index >= 6) return howText(String(cell ?? ''), this.words());
    return short(String(cell ?? ''), LONGEST);
  }

  private title(index: number, cell: string | number | null): string | undefined {
    if (index >= 6 && cell === null) return this.words().unknown;
    if (index >= 6 && typeof cell === 'number') return cell.toLocaleString();
    return index === 3 || index === 1 ? String(cell) : undefined;
  }
}

register({
  name: 'table',
  place: 'low',
  title: (words) => words.table,
  make({ state, client, act, words, follow }) {
    const table = new NodeTable(
      {
        table: (...args) => client.table(...args),
        csv: (filter) => client.csv(filter),
        select: (item) => act.select([item]),
        text: (metric, value) => metricText(metric, value, words()),
      },
      words,
    );
    follow(
      () => [state.info.get(), state.shown.get(), state.search.get(), words()] as const,
      ([info, shown, { query, nodes }]) =>
        table.show(info?.metrics ?? [], info?.costs === true, query.trim() ? nodes : null, shown?.nodes ?? 0),
    );
    follow(
      () => state.selection.get(),
      (selection) => table.select(selection),
    );
    return { element: table.element };
  },
});
