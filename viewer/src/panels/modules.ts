// The tree of modules at the left: children are asked for when a row is opened.

import { VirtualList } from '../widgets/list.ts';
import type { TreeRow } from '../engine/messages.ts';
import { PHASES } from '../scene.ts';
import { h, short } from '../widgets/dom.ts';
import { register } from './panel.ts';

interface Row extends TreeRow {
  depth: number;
}

class ModuleTree {
  readonly element: HTMLElement;
  private rows: Row[] = [];
  private list: VirtualList;
  private openRows = new Set<number>();
  private selected = new Set<number>();
  private at = 0;

  constructor(
    private children: (item: number) => Promise<TreeRow[]>,
    private act: { select(items: number[]): void; toggle(item: number): void },
  ) {
    this.list = new VirtualList(26, (i) => this.row(i), { role: 'tree' });
    this.element = this.list.element;
    this.element.addEventListener('keydown', (event) => void this.key(event));
  }

  async reset(label: string): Promise<void> {
    this.element.setAttribute('aria-label', label);
    this.openRows.clear();
    this.rows = (await this.children(-1)).map((row) => ({ ...row, depth: 0 }));
    // What stands alone is opened: nobody wants to see one row.
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
    else if (event.key === 'Enter') this.act.select([row.item]);
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
          this.act.select([row.item]);
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

register({
  name: 'modules',
  place: 'left',
  title: (words) => words.modules,
  make({ state, client, act, words, follow }) {
    const tree = new ModuleTree((item) => client.children(item), {
      select: (items) => act.select(items),
      toggle: (item) => act.toggle(item),
    });
    let shownFor: unknown[] = [];
    follow(
      () => [state.selection.get(), state.details.get(), state.shown.get(), state.options.get(), words()] as const,
      async ([selection, details, ...tells]) => {
        if (tells.some((what, i) => what !== shownFor[i])) await tree.reset(words().modules);
        shownFor = tells;
        tree.select(selection);
        if (!details || details.item !== selection.at(-1)) return;
        await tree.reveal(details.path.map((ref) => ref.item));
        tree.select(selection);
      },
    );
    return { element: tree.element };
  },
});
