// The tree of modules at the left: children are asked for when a row is opened.

import { VirtualList } from '../widgets/list.ts';
import { PHASES } from '../scene.ts';
import { h, short } from '../widgets/dom.ts';
import { register, type Acts } from './panel.ts';
import { TreeRows, type Ask, type Row } from './rows.ts';

class ModuleTree {
  readonly element: HTMLElement;
  private tree: TreeRows;
  private list: VirtualList;
  private selected = new Set<number>();
  private at = 0;

  constructor(
    children: Ask,
    private act: Pick<Acts, 'select' | 'toggle' | 'menu'>,
  ) {
    this.tree = new TreeRows(children);
    this.list = new VirtualList(26, (i) => this.row(i), { role: 'tree' });
    this.element = this.list.element;
    this.element.addEventListener('keydown', (event) => void this.key(event));
  }

  private get rows(): readonly Row[] {
    return this.tree.rows;
  }

  async reset(label: string): Promise<void> {
    this.element.setAttribute('aria-label', label);
    await this.tree.reset();
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
    await this.tree.reveal(path);
    this.list.set(this.rows.length);
  }

  private async toggle(row: Row): Promise<void> {
    await this.tree.toggle(row);
    this.list.set(this.rows.length);
  }

  private async key(event: KeyboardEvent): Promise<void> {
    const row = this.rows[this.at];
    if (!row) return;
    if (event.key === 'ArrowDown') this.at = Math.min(this.at + 1, this.rows.length - 1);
    else if (event.key === 'ArrowUp') this.at = Math.max(this.at - 1, 0);
    else if (event.key === 'ArrowRight' && !this.tree.isOpen(row)) await this.toggle(row);
    else if (event.key === 'ArrowLeft' && this.tree.isOpen(row)) await this.toggle(row);
    else if (event.key === 'Enter') await this.pick(row);
    else return;
    event.preventDefault();
    event.stopPropagation();
    this.list.draw();
    this.list.scrollTo(this.at);
  }

  private async pick(row: Row): Promise<void> {
    if (row.rest) await this.toggle(row);
    else this.act.select([row.item]);
  }

  private row(index: number): HTMLElement | null {
    const row = this.rows[index];
    if (!row) return null;
    if (row.rest) return this.rest(row, index);
    const open = this.tree.isOpen(row);
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
        oncontextmenu: (event: MouseEvent) => (event.preventDefault(), this.act.menu(row.item, { x: event.clientX, y: event.clientY })),
      },
      h(
        'span',
        { class: row.children ? 'twist' : 'twist none', onclick: (e: Event) => (e.stopPropagation(), void this.toggle(row)) },
        row.children ? (open ? '▾' : '▸') : '',
      ),
      h('span', { class: `dot phase-${PHASES[row.phase]}` }),
      h('span', { class: row.isGroup ? 'name' : 'name op', title: row.full ?? row.title }, short(row.title, 60)),
      row.cls ? h('span', { class: 'cls' }, short(row.cls, 30)) : null,
      row.isGroup ? h('span', { class: 'count' }, row.size.toLocaleString()) : null,
    );
  }

  /** In place of rows that are not there yet. */
  private rest(row: Row, index: number): HTMLElement {
    return h(
      'div',
      {
        class: index === this.at ? 'tree-row at' : 'tree-row',
        role: 'treeitem',
        style: `padding-left:${8 + row.depth * 14}px`,
        onclick: () => {
          this.at = index;
          void this.toggle(row);
        },
      },
      h('span', { class: 'twist' }, '▸'),
      h('span', { class: 'count' }, `… ${row.title}`),
    );
  }
}

register({
  name: 'modules',
  place: 'left',
  title: (words) => words.modules,
  make({ state, client, act, words, follow }) {
    const tree = new ModuleTree((...page) => client.children(...page), act);
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
