// What a stage changed: one row for each change.

import { CHANGES, type ChangeKind } from '../picture/changes.ts';
import { VirtualList } from '../widgets/list.ts';
import type { ChangeRow } from '../engine/messages.ts';
import type { Words } from '../state/words.ts';
import { Value } from '../state/store.ts';
import { h, replace, short } from '../widgets/dom.ts';
import { badge } from './fates.ts';
import { register } from './panel.ts';

class ChangeList {
  readonly element = h('div', { class: 'list-panel' });
  private list: VirtualList;
  private head = h('div', { class: 'change-head' });
  private rows: ChangeRow[] = [];
  private all: ChangeRow[] = [];
  private without = new Set<ChangeKind>();
  private selected = -1;
  private lit = new Set<number>();

  constructor(
    private act: (row: ChangeRow) => void,
    private words: () => Words,
  ) {
    this.list = new VirtualList(58, (i) => this.row(i), { role: 'listbox', 'aria-label': 'changes' });
    this.list.element.addEventListener('keydown', (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step || !this.rows.length) return;
      event.preventDefault();
      event.stopPropagation();
      const at = this.rows.findIndex((row) => row.index === this.selected);
      this.pick(this.rows[Math.max(0, Math.min(this.rows.length - 1, at + step))]!);
    });
  }

  set(rows: ChangeRow[], title: string): void {
    this.all = rows;
    this.selected = -1;
    this.lit.clear();
    this.draw(title);
  }

  /** The changes that operators of the picture are in. */
  mark(items: ReadonlySet<number>): void {
    this.lit = new Set(this.all.filter((row) => [...row.items, ...row.ghosts].some((item) => items.has(item))).map((row) => row.index));
    if (!this.lit.has(this.selected)) this.selected = -1;
    this.list.draw();
    const first = this.rows.findIndex((row) => this.lit.has(row.index));
    if (first >= 0) this.list.scrollTo(first);
  }

  private draw(title: string): void {
    const words = this.words();
    const present = CHANGES.filter((kind) => this.all.some((row) => row.kind === kind));
    this.rows = this.all.filter((row) => !this.without.has(row.kind));
    replace(
      this.head,
      h('p', { class: 'change-title' }, title),
      h(
        'div',
        { class: 'change-filter' },
        ...present.map((kind) => {
          const on = !this.without.has(kind);
          const flip = () => {
            if (on) this.without.add(kind);
            else this.without.delete(kind);
            this.draw(title);
          };
          return h(
            'button',
            { class: on ? 'chip on' : 'chip', 'aria-pressed': String(on), 'data-kind': kind, onclick: flip },
            badge(kind, words),
            `${words.changes[kind]} ${this.all.filter((row) => row.kind === kind).length.toLocaleString()}`,
          );
        }),
      ),
    );
    replace(this.element, this.head, this.all.length ? this.list.element : h('p', { class: 'hint' }, words.unchanged));
    this.list.set(this.rows.length);
  }

  private pick(row: ChangeRow): void {
    this.selected = row.index;
    this.list.draw();
    this.act(row);
  }

  private row(index: number): HTMLElement | null {
    const row = this.rows[index];
    if (!row) return null;
    const words = this.words();
    const on = row.index === this.selected;
    return h(
      'div',
      {
        class: ['change-row', on ? 'selected' : '', this.lit.has(row.index) ? 'lit' : ''].join(' '),
        role: 'option',
        'aria-selected': String(on),
        'data-kind': row.kind,
        title: row.detail,
        onclick: () => this.pick(row),
      },
      badge(row.kind, words),
      h(
        'div',
        { class: 'change-text' },
        h('div', { class: 'change-what' }, short(row.detail, 120)),
        h(
          'div',
          { class: 'where' },
          [words.changes[row.kind], `${row.before.length} → ${row.after.length}`, row.evidence && words.evidence[row.evidence]]
            .filter(Boolean)
            .join(' · '),
        ),
      ),
    );
  }
}

register({
  name: 'changes',
  place: 'left',
  title: (words) => words.changesTab,
  help: (words) => words.changesHelp,
  isThere: (state) => Boolean(state.shown.get()?.changes),
  make({ state, client, act, words, follow }) {
    const list = new ChangeList((row) => act.change(row), words);
    const rows = new Value<ChangeRow[]>('changes', []);
    // Ghosts are in the picture or not: their items follow from how stages are compared.
    follow(
      () => [state.shown.get(), state.overlaid.get()] as const,
      async () => rows.set(await client.changes()),
    );
    follow(
      () => [rows.get(), state.shown.get(), words()] as const,
      ([now, shown]) => list.set(now, shown?.changes ? `${state.info.get()!.stages[shown.changes.before]!.name} → ${shown.name}` : ''),
    );
    follow(
      () => [state.selection.get(), rows.get()] as const,
      ([selection]) => list.mark(new Set(selection)),
    );
    return { element: list.element };
  },
});
