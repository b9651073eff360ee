// What became of an operator through all stages, and the badge of a change.

import type { FateRow, StageInfo } from '../engine/messages.ts';
import { SYMBOLS, type ChangeKind } from '../picture/changes.ts';
import type { Words } from '../state/words.ts';
import { h, short } from '../widgets/dom.ts';

export function badge(kind: ChangeKind, words: Words, count = 0): HTMLElement {
  return h(
    'span',
    { class: `change-badge ${kind}`, title: count ? `${count.toLocaleString()} ${words.changes[kind]}` : words.changes[kind] },
    count ? `${SYMBOLS[kind]}${count.toLocaleString()}` : SYMBOLS[kind],
  );
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
