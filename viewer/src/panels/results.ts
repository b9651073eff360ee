// What the search found.

import type { Label } from '../engine/messages.ts';
import type { Found } from '../engine/searching.ts';
import { PHASES } from '../scene.ts';
import type { Words } from '../state/words.ts';
import { h, replace, short } from '../widgets/dom.ts';
import { VirtualList } from '../widgets/list.ts';
import { register } from './panel.ts';

const FEW = 5; // modules

class ResultList {
  readonly element = h('div', { class: 'list-panel' });
  private list: VirtualList;
  private head = h('p', { class: 'hint' });
  private nodes: number[] = [];
  private names = new Map<number, Label>();
  private modules = h('div', { class: 'found-modules' });
  private all = false;
  private at = -1;
  private asking = false;

  constructor(
    private labels: (items: number[]) => Promise<Label[]>,
    private act: { pick(index: number): void; step(by: number): void; select(item: number): void },
    private words: () => Words,
  ) {
    this.list = new VirtualList(40, (i) => this.row(i), { role: 'listbox', 'aria-label': 'results' });
    this.list.onStep((by) => this.act.step(by));
    replace(this.element, this.head);
  }

  set({ nodes, modules, error, relaxed }: Found, asked: boolean): void {
    this.nodes = nodes;
    this.names.clear();
    this.at = -1;
    this.head.className = error ? 'hint error' : 'hint';
    const words = this.words();
    this.head.textContent =
      error || (nodes.length || modules.length ? words.found(nodes.length, modules.length) : asked ? words.noResults : words.searchFirst);
    if (relaxed) this.head.textContent += `\n${words.relaxed(relaxed.left.join(', '), relaxed.kept.join(' '))}`;
    this.all = false;
    void this.showModules(modules);
    replace(this.element, this.head, this.modules, nodes.length ? this.list.element : null);
    this.list.set(nodes.length);
  }

  /** Modules come first: the few best, the others on request. */
  private async showModules(items: number[]): Promise<void> {
    const shown = await this.labels(this.all ? items : items.slice(0, FEW));
    const more = items.length - shown.length;
    replace(
      this.modules,
      ...shown.map(({ item, label, where, type }) =>
        h(
          'button',
          { class: 'module-row', 'data-key': `module ${item}`, title: where, onclick: () => this.act.select(item) },
          h('b', {}, short(label, 40)),
          ` ${type}`,
          h('div', { class: 'where' }, short(where, 60)),
        ),
      ),
      more > 0 &&
        h(
          'button',
          { class: 'fold', 'data-key': 'more', onclick: () => ((this.all = true), void this.showModules(items)) },
          `▸ ${this.words().moreModules(more)}`,
        ),
    );
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
    const list = new ResultList(
      (items) => client.labels(items),
      { pick, step: (by) => act.stepResult(by), select: (item) => act.select([item]) },
      words,
    );
    follow(
      () => [state.search.get(), words()] as const,
      ([found]) => list.set(found, found.query.trim() !== ''),
    );
    follow(
      () => [state.result.get(), state.search.get()] as const,
      ([at]) => list.mark(at),
    );
    return { element: list.element };
  },
});
