// What a stage changed: one row for each change; and what became of one operator through all stages.

import { CHANGES, SYMBOLS, type ChangeKind } from '../picture/changes.ts';
import { VirtualList } from '../widgets/list.ts';
import type { ChangeRow, FateRow, StageInfo } from '../engine/messages.ts';
import type { Words } from '../state/words.ts';
import { h, replace, short } from '../widgets/dom.ts';

export function badge(kind: ChangeKind, words: Words, count = 0): HTMLElement {
  return h(
    'span',
    { class: `change-badge ${kind}`, title: count ? `${count.toLocaleString()} ${words.changes[kind]}` : words.changes[kind] },
    count ? `${SYMBOLS[kind]}${count.toLocaleString()}` : SYMBOLS[kind],
  );
}

export class ChangeList {
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
          [
            words.changes[row.kind],
            `${row.before.length} → ${row.after.length}`,
            words.evidence[row.evidence as 'name'] ?? row.evidence,
          ].join(' · '),
        ),
      ),
    );
  }
}

/** Where an operator is in every stage, and what was done to it there. */
export function throughStages(
  fates: FateRow[],
  stages: StageInfo[],
  shown: number,
  words: Words,
  go: (stage: number, nodes: number[]) => void,
): HTMLElement | null {
  if (fates.length < 2) return null;
  return h(
    'section',
    { class: 'through' },
    h('h3', {}, words.throughStages),
    ...fates.map((fate) => {
      const kind = fate.kind === 'same' || fate.kind === 'gone' ? null : fate.kind;
      const first = fate === fates[0] && !kind;
      const what = fate.nodes.length ? named(fate.labels, fate.nodes.length) : words.gone;
      return h(
        'button',
        {
          class: ['link row fate', fate.stage === shown ? 'here' : '', kind ? '' : 'same'].join(' '),
          'data-stage': fate.stage,
          title: [stages[fate.stage]?.name, kind ? words.changes[kind] : first ? '' : words.same, what].filter(Boolean).join(' · '),
          onclick: () => go(fate.stage, fate.nodes),
        },
        kind ? badge(kind, words) : h('span', { class: 'change-badge none' }, first ? '•' : '='),
        h('span', { class: 'fate-stage' }, short(stages[fate.stage]?.name ?? '', 28)),
        h('span', { class: 'fate-what' }, short(what, 60)),
      );
    }),
  );
}

/** `2 Reshape, Matmul and 3 more`. */
function named(labels: string[], all: number): string {
  const counts = new Map<string, number>();
  for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1);
  const parts = [...counts].map(([label, n]) => (n > 1 ? `${n} ${label}` : label));
  return `${parts.join(', ')}${all > labels.length ? ` +${all - labels.length}` : ''}`;
}
