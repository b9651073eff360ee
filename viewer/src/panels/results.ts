// What the search found.

import type { Label } from '../engine/messages.ts';
import { PHASES } from '../scene.ts';
import type { Words } from '../state/words.ts';
import { h, replace, short } from '../widgets/dom.ts';
import { VirtualList } from '../widgets/list.ts';
import { register } from './panel.ts';

class ResultList {
  readonly element = h('div', { class: 'list-panel' });
  private list: VirtualList;
  private head = h('p', { class: 'hint' });
  private nodes: number[] = [];
  private names = new Map<number, Label>();
  private at = -1;
  private asking = false;

  constructor(
    private labels: (items: number[]) => Promise<Label[]>,
    private act: { pick(index: number): void; step(by: number): void },
    private words: () => Words,
  ) {
    this.list = new VirtualList(40, (i) => this.row(i), { role: 'listbox', 'aria-label': 'results' });
    this.list.onStep((by) => this.act.step(by));
    replace(this.element, this.head);
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

  /** The result that was stepped to. */
  mark(index: number): void {
    this.at = index;
    this.list.draw();
    if (index >= 0) this.list.scrollTo(index);
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
        onclick: () => this.act.pick(index),
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

register({
  name: 'results',
  place: 'left',
  title: (words) => words.results,
  make({ state, client, act, words, follow }) {
    const pick = (index: number) => act.stepResult(index - state.result.get());
    const list = new ResultList((items) => client.labels(items), { pick, step: (by) => act.stepResult(by) }, words);
    follow(
      () => [state.search.get(), words()] as const,
      ([{ nodes, error, query }]) => list.set(nodes, error, query.trim() !== ''),
    );
    follow(
      () => [state.result.get(), state.search.get()] as const,
      ([at]) => list.mark(at),
    );
    return { element: list.element };
  },
});
