// What the selected box is.

import { bytesText, percent } from '../text/figures.ts';
import type { TensorFacts } from '../engine/tensors.ts';
import type { Details, Measure, Ref } from '../engine/messages.ts';
import { PHASES } from '../scene.ts';
import { ATTRIBUTES } from '../wire/facts.ts';
import type { Words } from '../state/words.ts';
import { h, replace, short } from '../widgets/dom.ts';
import { stackOf } from './frames.ts';
import { histogram } from './histogram.ts';
import { howText, metricName } from '../state/figures.ts';

export interface DetailActions {
  select(items: number[]): void;
  toggle(item: number): void;
  kernel(index: number): void;
  line(file: string, line: number): void;
  trace(way: 'up' | 'down'): void;
  between(): void;
}

const MOST = 30;
const FEW = 4;

export function showDetails(panel: HTMLElement, details: Details | null, two: boolean, words: Words, act: DetailActions): void {
  if (!details) {
    replace(panel, h('p', { class: 'hint' }, words.nothing));
    return;
  }
  const d = details;
  replace(
    panel,
    d.path.length > 0 && crumbs(d.path, act),
    h(
      'div',
      { class: 'title-row' },
      h('span', { class: `dot phase-${d.phase || 'other'}` }),
      h('h2', { title: d.title }, short(d.title, 60)),
      d.kind === 'group' && d.cls ? h('span', { class: 'cls' }, short(d.cls, 40)) : null,
    ),
    h(
      'p',
      { class: 'sub' },
      [d.phase ? words.phases[d.phase as keyof Words['phases']] : '', d.kind === 'group' ? words.ops(d.size) : '', d.name]
        .filter(Boolean)
        .join(' · '),
    ),
    h(
      'div',
      { class: 'actions' },
      d.kind === 'group' ? button(words.openGroup, () => act.toggle(d.item)) : null,
      button(words.ancestors, () => act.trace('up')),
      button(words.descendants, () => act.trace('down')),
      two && button(words.between, () => act.between()),
    ),
    d.drawnWith &&
      section(
        words.notDrawn,
        h('p', { class: 'sentence' }, { saved: words.savedCopy, view: words.viewOf, constant: words.insideReader }[d.drawnWith.kind]),
        refs([d.drawnWith], act),
      ),
    d.maker && section(words.boundary.madeBy, refs([d.maker], act)),
    d.outputs.length > 0 &&
      section(
        d.kind === 'tensor' || d.kind === 'input' ? words.boundary.tensor : words.outputs,
        ...folded(d.outputs, d.more.outputs, (o) => value(o, o.to, o.more, words, act)),
      ),
    d.inputs.length > 0 &&
      section(words.inputs, ...folded(d.inputs, d.more.inputs, (i) => value(i, i.from ? [i.from] : [], 0, words, act, i.arg))),
    attributes(d, words),
    ...(d.kind === 'group'
      ? [d.backward.length + d.forward.length > 0 && section(words.otherPhases, refs([...d.forward, ...d.backward], act))]
      : [
          d.backward.length > 0 && section(words.backward, refs(d.backward, act)),
          d.forward.length > 0 && section(words.forwardOf, refs(d.forward, act)),
        ]),
    unpaired(d, words),
    d.kernels.length > 0 &&
      section(
        words.ranIn,
        ...d.kernels
          .slice(0, MOST)
          .map((k) =>
            h('button', { class: 'link row', onclick: () => act.kernel(k.index) }, h('b', {}, `#${k.index}`), ` ${short(k.name, 70)}`),
          ),
      ),
    d.frames.length > 0 && section(words.calledAt, frames(d.frames, words, act)),
    d.builtAt.length > 0 && section(words.boundary.builtAt, frames(d.builtAt, words, act)),
    d.measured.length > 0 && section(words.measured, figures(d.measured, words)),
    d.kind === 'group' &&
      d.phase === 'forward' &&
      d.kept !== 0 &&
      section(words.boundary.kept, h('p', { class: 'sentence' }, d.kept === null ? words.unknown : bytesText(d.kept))),
    d.held.length > 0 && section(words.boundary.held, ...folded(d.held, d.more.held, (one) => value(one, [], 0, words, act))),
    d.kind === 'group' && section(words.inside, ...phaseBars(d, words), list(d.ops.map(([op, n]) => [op, n.toLocaleString()]))),
  );
}

/** Figures by their names in the page's language, with their shares of the whole. */
export function figures(rows: readonly Measure[], words: Words): HTMLElement {
  return h(
    'dl',
    { class: 'figures' },
    ...rows.flatMap(([name, text, share]) => {
      const isHow = name === 'cost is';
      const part = share === undefined ? null : h('span', { class: 'share', title: words.costs.ofAll }, percent(share, 1));
      const bar = share !== undefined && share > 0 ? h('i', { class: 'share-bar', style: `width:${Math.min(100, 100 * share)}%` }) : null;
      return [
        h('dt', {}, isHow ? words.costIs : metricName(name, words)),
        h('dd', {}, h('span', {}, isHow ? howText(text, words) : text === '?' ? words.unknown : text), part, bar),
      ];
    }),
  );
}

/** Of several that are selected: what they are together. */
export function together(count: number, nodes: number, measured: readonly Measure[], words: Words, name?: string): HTMLElement | null {
  if (!nodes) return null;
  const title = `${name ?? words.habits.several(count)} · ${words.ops(nodes)}`;
  return h('section', { class: 'together' }, h('h2', { class: 'origin' }, title), figures(measured, words));
}

/** How long a tensor lives, and what was measured of it. */
export function tensorSections(
  { life, figures: rows, exponents }: TensorFacts,
  words: Words,
  act: Pick<DetailActions, 'select'>,
): HTMLElement[] {
  const { lives, steps } = words.boundary;
  const ends = life && [life.born, life.dies].filter((end) => end !== null);
  return [
    ...(life && ends
      ? [section(lives, h('p', { class: 'sentence' }, `${words.costs.classes[life.cls]} · ${steps(life.steps)}`), refs(ends, act))]
      : []),
    ...(rows.length ? [section(words.boundary.statistics, list(rows), histogram(exponents))] : []),
  ];
}

/** What a kernel is: shown while one is picked. */
export function showKernel(panel: HTMLElement, kernel: KernelDetails, words: Words, act: Pick<DetailActions, 'select'>): void {
  replace(
    panel,
    h('div', { class: 'title-row' }, h('h2', { title: kernel.name }, `${words.kernel} #${kernel.index}`)),
    h('p', { class: 'sub' }, [words.ops(kernel.refs.length), kernel.runs > 1 ? words.ran(kernel.runs) : ''].filter(Boolean).join(' · ')),
    h('p', { class: 'sentence' }, short(kernel.name, 200)),
    section(words.inside, refs(kernel.refs, act)),
    kernel.attrs.length > 0 && section(words.attributes, list(kernel.attrs)),
  );
}

export interface KernelDetails {
  index: number;
  name: string;
  runs: number;
  refs: Ref[];
  attrs: [string, string][];
}

function crumbs(path: Ref[], act: DetailActions): HTMLElement {
  return h(
    'nav',
    { class: 'crumbs', 'aria-label': 'path' },
    ...path.flatMap((ref, i) => [
      i ? h('span', {}, '›') : null,
      h('button', { class: 'link', onclick: () => act.select([ref.item]) }, short(ref.label, 24)),
    ]),
  );
}

function button(text: string, run: () => void): HTMLElement {
  return h('button', { class: 'chip', onclick: run }, text);
}

function section(title: string, ...children: (HTMLElement | null)[]): HTMLElement {
  return h('section', {}, h('h3', {}, title), ...children);
}

function list(rows: [string, string][]): HTMLElement {
  return h(
    'dl',
    {},
    ...rows.flatMap(([key, text]) => [
      h('dt', { title: key }, short(key, 40)),
      h('dd', {}, text.includes('\n') || text.length > 120 ? h('pre', {}, text.slice(0, 20_000)) : text),
    ]),
  );
}

function refs(items: Ref[], act: Pick<DetailActions, 'select'>): HTMLElement {
  return h(
    'div',
    { class: 'refs' },
    ...items
      .slice(0, MOST)
      .map((ref) => h('button', { class: 'ref', title: ref.full, onclick: () => act.select([ref.item]) }, short(ref.label, 40))),
    items.length > MOST ? h('span', { class: 'more' }, `+${items.length - MOST}`) : null,
    items.length > 1
      ? h('button', { class: 'ref all', onclick: () => act.select(items.map((ref) => ref.item)) }, `↗ ${items.length}`)
      : null,
  );
}

function value(
  { item, value: name, type, bytes, role, seen }: Details['inputs' | 'outputs'][number],
  ends: Ref[],
  more: number,
  words: Words,
  act: DetailActions,
  arg = '',
): HTMLElement {
  return h(
    'div',
    { class: 'value' },
    h(
      'div',
      { class: 'value-head' },
      arg && !/^\d+$/.test(arg) ? h('span', { class: 'arg' }, arg) : null,
      item < 0
        ? h('code', {}, type || words.none)
        : h(
            'button',
            { class: 'link', title: words.boundary.tensor, onclick: () => act.select([item]) },
            h('code', {}, type || words.unknown),
          ),
      h('span', { class: 'size' }, bytes < 0 ? '' : bytesText(bytes)),
    ),
    item >= 0 && (name || role !== 'activation')
      ? h(
          'div',
          { class: 'value-name' },
          [
            short(name, 60).replace(/^from (.+)/, (_, place: string) => words.from(place)),
            role !== 'activation' ? (words.roles[role] ?? role) : '',
          ]
            .filter(Boolean)
            .join(' · '),
        )
      : null,
    seen ? h('div', { class: 'value-name' }, seen) : null,
    ends.length ? refs(ends, act) : null,
    more ? h('span', { class: 'more' }, `+${more}`) : null,
  );
}

/** The first few, and the others on request; of very many, how many there are beside those. */
function folded<T>(all: T[], unlisted: number, row: (one: T) => HTMLElement): HTMLElement[] {
  const rows = [...all.map(row), ...(unlisted ? [h('p', { class: 'more' }, `+${unlisted.toLocaleString()}`)] : [])];
  if (rows.length <= FEW + 2) return rows;
  const others = rows.slice(FEW);
  const more = h(
    'button',
    { class: 'fold', onclick: () => (more.replaceWith(...others), others[0]!.querySelector('button')?.focus()) },
    `▸ +${(all.length - FEW + unlisted).toLocaleString()}`,
  );
  return [...rows.slice(0, FEW), more];
}

/** What some attributes are called where their own name says little. */
function attributes(d: Details, words: Words): HTMLElement | null {
  const rows = d.attrs
    .filter(([key]) => key !== ATTRIBUTES.UNPAIRED)
    .map(([key, text]): [string, string] => [
      key === 'autograd' ? words.gradientFunction : /^\d+$/.test(key) ? words.argument(Number(key)) : key,
      text,
    ]);
  return rows.length ? section(words.attributes, list(rows)) : null;
}

/** Why a gradient operator belongs to no forward operator. */
function unpaired(d: Details, words: Words): HTMLElement | null {
  const why = d.attrs.find(([key]) => key === ATTRIBUTES.UNPAIRED)?.[1];
  return why ? section(words.forwardOf, h('p', { class: 'sentence' }, words.unpaired(why))) : null;
}

let wholeStack = false; // stays as it was from one operator to the next

/** The user's frames, innermost first; the framework's own appear between them on request. */
function frames(of: Details['frames'], words: Words, act: DetailActions): HTMLElement {
  const { user, all, folded } = stackOf(of);
  const place = user[0] ?? all[0]?.frame;
  const fold = user.length > 0 && folded > 0;
  const element = h('div', { class: 'frames' });
  const draw = (): void => {
    const shown = all.filter((entry) => !entry.framework || !fold || wholeStack);
    replace(
      element,
      ...shown.slice(0, wholeStack ? 10 * MOST : MOST).map(({ frame, framework }) =>
        h(
          'button',
          {
            class: ['link row frame', framework ? 'framework' : '', frame === place ? 'innermost' : ''].join(' '),
            title: `${frame.file}:${frame.line}`,
            onclick: () => act.line(frame.file, frame.line),
          },
          h('b', {}, `${frame.file.split(/[\\/]/).at(-1)}:${frame.line}`),
          frame.fn ? ` ${frame.fn}` : '',
        ),
      ),
      fold &&
        h(
          'button',
          { class: 'fold', 'aria-expanded': String(wholeStack), onclick: () => ((wholeStack = !wholeStack), draw()) },
          `${wholeStack ? '▾' : '▸'} ${words.frameworkFrames(folded)}`,
        ),
    );
  };
  draw();
  return element;
}

function phaseBars(d: Details, words: Words): HTMLElement[] {
  const total = d.phases.reduce((a, b) => a + b, 0) || 1;
  return [
    h(
      'div',
      {
        class: 'phase-bar',
        role: 'img',
        'aria-label': d.phases
          .map((n, i) => (n ? `${n} ${words.phases[PHASES[i]!]}` : ''))
          .filter(Boolean)
          .join(', '),
      },
      ...d.phases.map((n, i) => (n ? h('span', { class: `fill phase-${PHASES[i]}`, style: `flex:${n / total}` }) : null)),
    ),
  ];
}
