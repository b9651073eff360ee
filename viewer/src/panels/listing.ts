// The framework's own texts beside the graph: its table, the code it generates, its IR. Lines are joined to operators.

import { VirtualList } from '../widgets/list.ts';
import type { Place } from '../wire/capture.ts';
import type { ListingKind } from '../wire/facts.ts';
import { nodesAt, splitLines } from '../engine/listings.ts';
import type { State } from '../state/page.ts';
import type { Words } from '../state/words.ts';
import { h, replace } from '../widgets/dom.ts';
import { register } from './panel.ts';
import { highlight, type CodeLanguage } from '../widgets/highlight.ts';

const ROW = 19; // pixels, as .listing .code-line in css/listings.css
const LONGEST = 4000; // letters of a line that are drawn
const MOST_TICKS = 400;

interface ListingCalls {
  listing(kind: string): Promise<{ text: string; pairs: Int32Array; places: Place[] }>;
  lines(kind: string, items: number[]): Promise<number[]>;
  select(nodes: number[], more: boolean): void;
  hover(nodes: number[]): void;
  place(file: string, line: number): void;
  choose(kind: string): void;
}

class ListingPanel {
  readonly element = h('div', { class: 'listing' });
  private head = h('div', { class: 'code-head' });
  private list: VirtualList;
  private ruler = h('div', { class: 'ruler', 'aria-hidden': 'true' });
  private shown = ''; // stage and kind whose text is here
  private text = '';
  private lines: string[] = [];
  private language: CodeLanguage = 'plain';
  private pairs: Int32Array = new Int32Array(0);
  private places: Place[] = [];
  private linked = new Set<number>();
  private selected = new Set<number>();
  private found = new Set<number>();
  private kind = '';
  private asked = 0;

  constructor(
    private calls: ListingCalls,
    private words: () => Words,
  ) {
    this.list = new VirtualList(ROW, (i) => this.row(i), { role: 'listbox', 'aria-label': 'text', class: 'virtual code' });
    this.list.element.addEventListener('keydown', (event) => this.key(event));
    this.list.element.addEventListener('mouseleave', () => this.calls.hover([]));
    replace(this.element, this.head, h('div', { class: 'listing-body' }, this.list.element, this.ruler));
  }

  /** `stage` tells texts of the same kind apart. */
  async show(stage: string, kinds: string[], kind: string): Promise<void> {
    const key = `${stage}/${kind}`;
    this.kind = kind;
    if (key !== this.shown) {
      const { text, pairs, places } = await this.calls.listing(kind);
      this.shown = key;
      this.text = text;
      this.lines = splitLines(text);
      this.language = languageOf(kind, text);
      this.pairs = pairs;
      this.places = places;
      this.linked = new Set(pairs.filter((_, i) => i % 2 === 0));
      this.selected.clear();
      this.found.clear();
      let longest = 0;
      for (const line of this.lines) longest = Math.max(longest, Math.min(line.length, LONGEST));
      this.list.widen(`calc(${longest + 2}ch + 70px)`);
      this.list.set(this.lines.length);
      this.list.element.scrollTo(0, 0);
    }
    this.redrawHead(kinds);
  }

  /** Mark the lines of what is selected and found; the first selected one comes into view unless one is there already. */
  async mark(selection: number[], found: number[]): Promise<void> {
    const asked = ++this.asked;
    const [selected, hits] = await Promise.all([
      selection.length ? this.calls.lines(this.kind, selection) : [],
      found.length ? this.calls.lines(this.kind, found) : [],
    ]);
    if (asked !== this.asked) return;
    this.selected = new Set(selected);
    this.found = new Set(hits);
    this.list.draw();
    this.redrawRuler(selected, hits);
    const [first, last] = this.list.inView();
    if (selected.length && !selected.some((line) => line - 1 >= first && line - 1 < last)) this.list.scrollTo(selected[0]! - 1);
  }

  private redrawHead(kinds: string[]): void {
    const words = this.words();
    const names = words.listings as Record<string, string>;
    const copy = h('button', { class: 'chip', onclick: () => void this.copy(copy) }, words.copy);
    replace(
      this.head,
      h(
        'div',
        { class: 'segmented', role: 'radiogroup', 'aria-label': words.ir },
        ...kinds.map((kind) =>
          h(
            'button',
            {
              class: kind === this.kind ? 'on' : '',
              role: 'radio',
              'aria-checked': String(kind === this.kind),
              'data-kind': kind,
              onclick: () => this.calls.choose(kind),
            },
            names[kind] ?? kind,
          ),
        ),
      ),
      h('span', { class: 'listing-facts' }, words.lines(this.lines.length)),
      h(
        'span',
        { class: 'listing-facts' },
        this.linked.size ? words.linkedLines : this.places.length ? words.placedLines : words.unlinkedLines,
      ),
      h('span', { class: 'grow' }),
      copy,
    );
  }

  private async copy(button: HTMLElement): Promise<void> {
    await navigator.clipboard.writeText(this.text);
    button.textContent = this.words().copied;
  }

  /** Where in a long text the marked lines are. */
  private redrawRuler(selected: number[], found: number[]): void {
    const ticks = (lines: number[], kind: string) => {
      const step = Math.max(1, Math.ceil(lines.length / MOST_TICKS));
      return lines
        .filter((_, i) => i % step === 0)
        .map((line) => h('i', { class: kind, style: `top:${((line - 0.5) / Math.max(1, this.lines.length)) * 100}%` }));
    };
    replace(this.ruler, ...ticks(found, 'found'), ...ticks(selected, ''));
  }

  private row(index: number): HTMLElement | null {
    const line = index + 1;
    const text = this.lines[index];
    if (text === undefined) return null;
    const linked = this.linked.has(line);
    const place = this.places[index];
    const classes = [
      'code-line',
      linked || place ? 'has-ops' : '',
      this.selected.has(line) ? 'current' : '',
      this.found.has(line) ? 'found' : '',
      index === 0 && this.kind === 'table' ? 'first' : '',
    ].join(' ');
    return h(
      'div',
      {
        class: classes,
        role: 'option',
        'aria-selected': String(this.selected.has(line)),
        'data-line': line,
        onclick: place ? () => this.calls.place(...place) : linked && ((event: MouseEvent) => this.pick(line, event)),
        onmouseenter: () => this.calls.hover(linked ? nodesAt(this.pairs, line) : []),
      },
      h('span', { class: 'line-number' }, String(line)),
      h('code', {}, ...(highlight(text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text, this.language)[0] ?? [])),
    );
  }

  private pick(line: number, event: MouseEvent): void {
    // A drag over the text is there to copy it.
    if (!getSelection()?.isCollapsed) return;
    this.calls.select(nodesAt(this.pairs, line), event.shiftKey || event.ctrlKey || event.metaKey);
  }

  /** To the next line with operators, or the one before. */
  private key(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !this.linked.size || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const from = step > 0 ? Math.max(0, ...this.selected) : Math.min(this.lines.length + 1, ...this.selected);
    for (let line = from + step; line >= 1 && line <= this.lines.length; line += step) {
      if (!this.linked.has(line)) continue;
      this.calls.select(nodesAt(this.pairs, line), false);
      return;
    }
  }
}

function languageOf(kind: string, text: string): CodeLanguage {
  if (kind !== 'code' && kind !== 'native') return 'plain';
  return /^\s*#include\b|\b__global__\b|^\s*(?:extern "C"|using namespace)\b/m.test(text.slice(0, 20_000)) ? 'cpp' : 'python';
}

/** The text that says why a graph ended where it did. */
export const BREAKS: ListingKind = 'breaks';

/** Which texts to begin with: those whose lines are joined to operators. */
const FIRST: readonly string[] = ['code', 'native', 'table'] satisfies ListingKind[];

/** The kind that was chosen, or the one to begin with. */
function kindOf({ shown, listing }: State): string {
  const { listings: kinds = [], linked = [] } = shown.get() ?? {};
  if (kinds.includes(listing.get())) return listing.get();
  return FIRST.find((kind) => linked.includes(kind)) ?? kinds[0] ?? '';
}

register({
  name: 'ir',
  place: 'low',
  title: (words) => words.ir,
  help: (words) => words.irHelp,
  isThere: (state) => (state.shown.get()?.listings.length ?? 0) > 0,
  make({ state, client, act, words, follow }) {
    const panel = new ListingPanel(
      {
        listing: (kind) => client.listing(kind),
        lines: (kind, items) => client.listingLines(kind, items),
        select: (nodes, more) => act.select(more ? [...new Set([...state.selection.get(), ...nodes])] : nodes),
        hover: (nodes) => act.outline(nodes),
        place: (file, line) => act.line(file, line),
        choose: (kind) => state.listing.set(kind),
      },
      words,
    );
    const lit = () => [state.selection.get(), state.related.get(), state.search.get()] as const;
    follow(
      () => [kindOf(state), state.shown.get(), state.capture.get(), words(), ...lit()] as const,
      async ([kind, shown, capture, , selection, related, { query, nodes }]) => {
        if (!shown || !kind) return;
        await panel.show(`${capture}/${shown.name}`, shown.listings, kind);
        await panel.mark(selection.length ? selection : related, query.trim() ? nodes : []);
      },
    );
    return {
      element: panel.element,
      address: { get: () => kindOf(state), set: (kind) => state.listing.set(kind) },
      describe: (isOpen) => ({ listing: isOpen ? kindOf(state) : null }),
    };
  },
});
