// The tree of modules at the left: children are asked for when a row is opened.

import type { TreeRow } from '../engine/messages.ts';
import { PHASES } from '../scene.ts';
import { h, short, VirtualList } from './dom.ts';

interface Row extends TreeRow {
  depth: number;
}

export class ModuleTree {
  readonly element: HTMLElement;
  private rows: Row[] = [];
  private list: VirtualList;
  private openRows = new Set<number>();
  private selected = new Set<number>();
  private at = 0;

  constructor(
    private children: (item: number) => Promise<TreeRow[]>,
    private act: { select(items: number[], reveal: boolean): void; toggle(item: number): void },
    label: string,
  ) {
    this.list = new VirtualList(26, (i) => this.row(i), { role: 'tree', 'aria-label': label });
    this.element = this.list.element;
    this.element.addEventListener('keydown', (event) => void this.key(event));
  }

  async reset(): Promise<void> {
    this.openRows.clear();
    this.rows = (await this.children(-1)).map((row) => ({ ...row, depth: 0 }));
    // What is alone is opened: one row says nothing.
    for (let guard = 0; guard < 4 && this.rows.filter((row) => row.isGroup).length <= 4; guard++) {
      const closed = this.rows.filter((row) => row.isGroup && !this.openRows.has(row.item) && row.phase !== 0);
      if (closed.length === 0) break;
      for (const row of closed.slice(0, 2)) await this.toggle(this.rows.indexOf(row));
      if (this.rows.length > 12) break;
    }
    this.list.set(this.rows.length);
  }

  select(items: number[]): void {
    this.selected = new Set(items);
    const index = this.rows.findIndex((row) => this.selected.has(row.item));
    this.list.draw();
    if (index >= 0) this.list.scrollTo(index);
  }

  /** Open the rows around an item: its path, outermost first. */
  async reveal(path: number[]): Promise<void> {
    for (const item of path) {
      const index = this.rows.findIndex((row) => row.item === item);
      if (index < 0) return;
      if (!this.openRows.has(item)) await this.toggle(index);
    }
  }

  private async toggle(index: number): Promise<void> {
    const row = this.rows[index]!;
    if (!row.children) return;
    if (this.openRows.delete(row.item)) {
      let end = index + 1;
      while (end < this.rows.length && this.rows[end]!.depth > row.depth) this.openRows.delete(this.rows[end++]!.item);
      this.rows.splice(index + 1, end - index - 1);
    } else {
      this.openRows.add(row.item);
      const inner = (await this.children(row.item)).map((child) => ({ ...child, depth: row.depth + 1 }));
      this.rows = [...this.rows.slice(0, index + 1), ...inner, ...this.rows.slice(index + 1)];
    }
    this.list.set(this.rows.length);
  }

  private async key(event: KeyboardEvent): Promise<void> {
    const row = this.rows[this.at];
    if (!row) return;
    if (event.key === 'ArrowDown') this.at = Math.min(this.at + 1, this.rows.length - 1);
    else if (event.key === 'ArrowUp') this.at = Math.max(this.at - 1, 0);
    else if (event.key === 'ArrowRight' && !this.openRows.has(row.item)) await this.toggle(this.at);
    else if (event.key === 'ArrowLeft' && this.openRows.has(row.item)) await this.toggle(this.at);
    else if (event.key === 'Enter') this.act.select([row.item], true);
    else return;
    event.preventDefault();
    event.stopPropagation();
    this.list.draw();
    this.list.scrollTo(this.at);
  }

  private row(index: number): HTMLElement | null {
    const row = this.rows[index];
    if (!row) return null;
    const open = this.openRows.has(row.item);
    const classes = ['tree-row', this.selected.has(row.item) ? 'selected' : '', index === this.at ? 'at' : ''].join(' ');
    return h(
      'div',
      {
        class: classes,
        role: 'treeitem',
        'aria-expanded': row.children ? String(open) : undefined,
        'aria-selected': String(this.selected.has(row.item)),
        style: `padding-left:${8 + row.depth * 14}px`,
        onclick: () => {
          this.at = index;
          this.act.select([row.item], true);
        },
        ondblclick: () => this.act.toggle(row.item),
      },
      h(
        'span',
        { class: row.children ? 'twist' : 'twist none', onclick: (e: Event) => (e.stopPropagation(), void this.toggle(index)) },
        row.children ? (open ? '▾' : '▸') : '',
      ),
      h('span', { class: `dot phase-${PHASES[row.phase]}` }),
      h('span', { class: row.isGroup ? 'name' : 'name op', title: row.full ?? row.title }, short(row.title, 60)),
      row.cls ? h('span', { class: 'cls' }, short(row.cls, 30)) : null,
      row.isGroup ? h('span', { class: 'count' }, row.size.toLocaleString()) : null,
    );
  }
}
