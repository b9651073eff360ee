// What a stage changed: one row for each change, equal ones together.

import { CHANGES, type ChangeKind } from '../picture/changes.ts';
import { VirtualList } from '../widgets/list.ts';
import type { ChangeRow } from '../engine/messages.ts';
import type { Words } from '../state/words.ts';
import { Value } from '../state/store.ts';
import { h, replace, short } from '../widgets/dom.ts';
import { badge } from './fates.ts';
import { register } from './panel.ts';

/** A change, or equal ones as one; those stand below it when it is open. */
interface Row extends ChangeRow {
  members: ChangeRow[];
  isInner: boolean;
}

/** Changes that differ only in where they are, in the order of the first of each. */
export function grouped(rows: readonly ChangeRow[]): Row[] {
  const found = new Map<string, ChangeRow[]>();
  for (const row of rows) {
    const key = `${row.kind}\n${row.detail}\n${row.evidence}`;
    found.set(key, [...(found.get(key) ?? []), row]);
  }
  return [...found.values()].map((members) => {
    const all = (of: 'items' | 'ghosts' | 'before' | 'after') => members.flatMap((row) => row[of]);
    const first = members[0]!;
    if (members.length === 1) return { ...first, members, isInner: false };
    return { ...first, items: all('items'), ghosts: all('ghosts'), before: all('before'), after: all('after'), members, isInner: false };
  });
}

class ChangeList {
  readonly element = h('div', { class: 'list-panel' });
  private list: VirtualList;
  private head = h('div', { class: 'change-head' });
  private rows: Row[] = [];
  private all: ChangeRow[] = [];
  private without = new Set<ChangeKind>();
  private opened = new Set<number>(); // by the index of the first
  private selected: Row | null = null;
  private lit = new Set<number>();
  private title = '';

  constructor(
    private act: (row: ChangeRow) => void,
    private words: () => Words,
  ) {
    this.list = new VirtualList(58, (i) => this.row(i), { role: 'listbox' });
    this.list.element.addEventListener('keydown', (event) => this.key(event));
  }

  set(rows: ChangeRow[], title: string): void {
    this.all = rows;
    this.selected = null;
    this.title = title;
    this.lit.clear();
    this.opened.clear();
    this.list.element.setAttribute('aria-label', this.words().changesTab);
    this.draw();
  }

  /** The changes that operators of the picture are in. */
  mark(items: ReadonlySet<number>): void {
    this.lit = new Set(this.all.filter((row) => [...row.items, ...row.ghosts].some((item) => items.has(item))).map((row) => row.index));
    if (this.selected && !this.isLit(this.selected)) this.selected = null;
    this.list.draw();
    const first = this.rows.findIndex((row) => this.isLit(row));
    if (first >= 0) this.list.scrollTo(first);
  }

  private isLit(row: Row): boolean {
    return row.members.some(({ index }) => this.lit.has(index));
  }

  private isSelected(row: Row): boolean {
    return this.selected !== null && row.index === this.selected.index && row.isInner === this.selected.isInner;
  }

  private key(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const at = this.rows.findIndex((row) => this.isSelected(row));
    const row = this.rows[at];
    if (step && this.rows.length) this.pick(this.rows[Math.max(0, Math.min(this.rows.length - 1, at + step))]!);
    else if (
      row &&
      ((event.key === 'ArrowRight' && !this.opened.has(row.index)) || (event.key === 'ArrowLeft' && this.opened.has(row.index)))
    )
      this.flip(row);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  private draw(): void {
    const words = this.words();
    const present = CHANGES.filter((kind) => this.all.some((row) => row.kind === kind));
    this.rows = grouped(this.all.filter((row) => !this.without.has(row.kind))).flatMap((row) =>
      row.members.length > 1 && this.opened.has(row.index)
        ? [row, ...row.members.map((one): Row => ({ ...one, members: [one], isInner: true }))]
        : [row],
    );
    replace(
      this.head,
      h('p', { class: 'change-title' }, this.title),
      h('div', { class: 'change-filter' }, ...present.map((kind) => this.filter(kind, words))),
    );
    replace(this.element, this.head, this.all.length ? this.list.element : h('p', { class: 'hint' }, words.unchanged));
    this.list.set(this.rows.length);
  }

  private filter(kind: ChangeKind, words: Words): HTMLElement {
    const on = !this.without.has(kind);
    const flip = () => {
      if (on) this.without.add(kind);
      else this.without.delete(kind);
      this.draw();
    };
    return h(
      'button',
      { class: on ? 'chip on' : 'chip', 'aria-pressed': String(on), 'data-kind': kind, 'data-key': `kind-${kind}`, onclick: flip },
      badge(kind, words),
      `${words.changes[kind]} ${this.all.filter((row) => row.kind === kind).length.toLocaleString()}`,
    );
  }

  private flip(row: Row): void {
    if (row.members.length < 2) return;
    if (!this.opened.delete(row.index)) this.opened.add(row.index);
    this.draw();
  }

  private pick(row: Row): void {
    this.selected = row;
    this.list.draw();
    this.act(row);
  }

  private row(index: number): HTMLElement | null {
    const row = this.rows[index];
    if (!row) return null;
    const words = this.words();
    const on = this.isSelected(row);
    const many = row.members.length;
    const places = [...new Set(row.members.map(({ where }) => where).filter(Boolean))];
    const flip = (event: Event) => {
      event.stopPropagation();
      this.flip(row);
    };
    const opener = { class: 'change-opener', tabindex: -1, 'aria-hidden': 'true', onclick: flip };
    return h(
      'div',
      {
        class: ['change-row', on ? 'selected' : '', this.isLit(row) ? 'lit' : '', row.isInner ? 'inner' : ''].filter(Boolean).join(' '),
        role: 'option',
        'aria-selected': String(on),
        'data-kind': row.kind,
        title: [row.detail, ...places.slice(0, 20)].filter(Boolean).join('\n'),
        onclick: () => this.pick(row),
      },
      many > 1 ? h('span', opener, this.opened.has(row.index) ? '▾' : '▸') : null,
      badge(row.kind, words),
      h(
        'div',
        { class: 'change-text' },
        places.length ? h('div', { class: 'change-place' }, short(places.slice(0, 3).join(', '), 60)) : null,
        h('div', { class: places.length ? 'change-what one' : 'change-what' }, short(row.detail, 120)),
        h(
          'div',
          { class: 'where' },
          [words.changes[row.kind], sizes(row), row.evidence && words.evidence[row.evidence]].filter(Boolean).join(' · '),
        ),
      ),
      many > 1 ? h('span', { class: 'change-many' }, `×${many}`) : null,
    );
  }
}

/** `6 → 1` of one change; of equal ones each is so. */
function sizes({ members: [first] }: Row): string {
  return `${first!.before.length} → ${first!.after.length}`;
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
