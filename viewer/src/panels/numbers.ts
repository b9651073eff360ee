// What the numbers of a recording say: the stories of NaN and infinite numbers as paths, gradients along the layers, weights.

import type { Numbers, Story, Weight } from '../engine/numbers.ts';
import { Value } from '../state/store.ts';
import { LANGUAGES, type Language, type Words } from '../state/words.ts';
import { shortNumber } from '../text/figures.ts';
import { h, replace, short } from '../widgets/dom.ts';
import { FACTS } from '../wire/facts.ts';
import { histogram } from './histogram.ts';
import { register, type Acts, type Panel, type Site } from './panel.ts';

interface Own {
  title: string;
  help: string;
  views: Record<View, string>;
  finite: string;
  born: (kind: string, what: string) => string;
  came: (kind: string, what: string) => string;
  spread: (n: number) => string;
  gradientOf: string;
  path: string;
  none: Record<'gradients' | 'weights', string>;
  scale: string;
  columns: string[];
}

type View = 'stories' | 'gradients' | 'weights';
const VIEWS: View[] = ['stories', 'gradients', 'weights'];
const MOST_STORIES = 20;

const WORDS: Record<Language, Own> = {
  en: {
    title: 'Health',
    help: 'Where NaN and infinite numbers were born and how they spread; gradients along the layers; weights',
    views: { stories: 'NaN and Inf', gradients: 'Gradients', weights: 'Weights' },
    finite: 'All recorded numbers are finite, or went nowhere.',
    born: (kind, what) => `${kind} from ${what}`,
    came: (kind, what) => `${kind} came with this ${what}`,
    spread: (n) => `${n.toLocaleString()} operator${n === 1 ? '' : 's'} got it`,
    gradientOf: 'the gradient of',
    path: 'Show the path',
    none: { gradients: 'No gradients of parameters were recorded.', weights: 'No statistics of parameters were recorded.' },
    scale: 'norm of each gradient, on a logarithmic scale, in the order of the layers',
    columns: ['name', 'type', 'min', 'max', 'mean', 'rms', 'distribution'],
  },
  zh: {
    title: '数值健康',
    help: 'NaN 与无穷大的来源和传播;各层梯度;权重',
    views: { stories: 'NaN 与 Inf', gradients: '梯度', weights: '权重' },
    finite: '记录到的数值均有限,或未继续传播。',
    born: (kind, what) => `${kind} 产生于 ${what}`,
    came: (kind, what) => `${kind} 随此张量(${what})而来`,
    spread: (n) => `波及 ${n.toLocaleString()} 个算子`,
    gradientOf: '对应的前向算子:',
    path: '显示路径',
    none: { gradients: '没有记录参数的梯度。', weights: '没有记录参数的统计信息。' },
    scale: '各梯度的范数,对数坐标,按层的顺序',
    columns: ['名称', '类型', '最小', '最大', '均值', '均方根', '分布'],
  },
};

const own = (words: Words) => WORDS[words === LANGUAGES.zh ? 'zh' : 'en'];

register({
  name: 'health',
  place: 'low',
  title: (words) => own(words).title,
  help: (words) => own(words).help,
  isThere: (state) => state.info.get()?.facts.includes(FACTS.values.name) === true,
  make,
});

function make({ state, client, act, words, follow }: Site): Panel {
  const found = new Value<Numbers>('health', { stories: [], gradients: [], weights: [] });
  const view = new Value<View>('health view', 'stories');
  const tabs = h('div', { class: 'code-head' });
  const body = h('div', { class: 'health' });
  follow(
    () => state.shown.get(),
    async () => found.set(await client.numbers()),
  );
  follow(
    () => [found.get(), view.get(), words(), state.selection.get()] as const,
    ([numbers, now, all, selection]) => {
      const w = own(all);
      const tab = (name: View) =>
        h(
          'button',
          {
            'data-key': `health-${name}`,
            class: name === now ? 'on' : '',
            role: 'radio',
            'aria-checked': String(name === now),
            onclick: () => view.set(name),
          },
          `${w.views[name]} · ${numbers[name].length}`,
        );
      replace(tabs, h('div', { class: 'segmented', role: 'radiogroup', 'aria-label': w.title }, ...VIEWS.map(tab)));
      replace(body, ...{ stories, gradients, weights }[now](numbers, w, act, selection));
    },
  );
  const set = (text: string) => {
    const wanted = VIEWS.find((name) => name === text);
    if (wanted) view.set(wanted);
  };
  return {
    element: h('div', { class: 'cost' }, tabs, body),
    address: { get: () => (view.get() === 'stories' ? '' : view.get()), set },
    describe: () => ({ health: { view: view.get(), stories: found.get().stories.length } }),
  };
}

const WORD = (kind: string) => (kind === 'nan' ? 'NaN' : 'Inf');

function stories({ stories: all }: Numbers, w: Own, act: Acts): HTMLElement[] {
  if (!all.length) return [h('p', { class: 'hint' }, w.finite)];
  return all.slice(0, MOST_STORIES).map((story, i) => h('section', { class: 'story' }, ...told(story, i, w, act)));
}

/** A headline, then the way as chips from where it was born to where it ended. */
function told({ kind, what, item, forward, spread, way }: Story, place: number, w: Own, act: Acts): HTMLElement[] {
  const isMade = what.includes('.');
  const items = way.map((step) => step.item);
  const link = (label: string, to: number[]) => h('button', { class: 'link', onclick: () => act.select(to) }, short(label, 60));
  const head = h(
    'div',
    { class: 'story-head' },
    h('b', { class: 'bad' }, `${place + 1}. ${(isMade ? w.born : w.came)(WORD(kind), what)}`),
    h('span', { class: 'dim' }, w.spread(spread)),
    h('button', { class: 'chip', onclick: () => act.select(items.length ? items : [item]) }, w.path),
  );
  const chips = way.flatMap((step, i) => [
    ...(i ? [h('span', { class: 'dim', 'aria-hidden': 'true' }, '→')] : []),
    link(step.label, [step.item]),
  ]);
  const of = forward && h('div', { class: 'dim' }, `${w.gradientOf} `, link(forward.label, [forward.item]));
  return [head, ...(of ? [of] : []), h('div', { class: 'story-way' }, ...(chips.length ? chips : [link(what, [item])]))];
}

/** A bar for each gradient, in the order of the layers. */
function gradients({ gradients: all }: Numbers, w: Own, act: Acts, selection: number[]): HTMLElement[] {
  const known = all.filter(({ norm }) => norm > 0 && Number.isFinite(norm));
  if (!all.length) return [h('p', { class: 'hint' }, w.none.gradients)];
  const logs = known.map(({ norm }) => Math.log10(norm));
  const [low, high] = [Math.floor(Math.min(...logs)), Math.max(Math.floor(Math.min(...logs)) + 1, Math.ceil(Math.max(...logs)))];
  const bar = (one: Weight) => {
    const isBad = (one.figures[4] ?? 0) > 0 || (one.figures[5] ?? 0) > 0;
    const share = one.norm > 0 ? (Math.log10(one.norm) - low) / (high - low) : 0;
    const title = `${one.name} ${one.type}: ${isBad ? 'NaN / Inf' : shortNumber(one.norm)}`;
    return h(
      'button',
      {
        class: isBad ? 'bad' : selection.includes(one.item) ? 'selected' : '',
        title,
        'aria-label': title,
        onclick: () => act.select([one.item]),
      },
      h('i', { style: `height:${isBad ? 100 : Math.max(1, 100 * share)}%` }),
    );
  };
  return [
    h('p', { class: 'hint' }, `${w.scale}: 10^${low} … 10^${high}`),
    h('div', { class: 'gradient-bars' }, ...all.map(bar)),
    h('div', { class: 'histogram-ends' }, h('span', {}, short(all[0]!.name, 50)), h('span', {}, short(all.at(-1)!.name, 50))),
  ];
}

function weights({ weights: all }: Numbers, w: Own, act: Acts, selection: number[]): HTMLElement[] {
  if (!all.length) return [h('p', { class: 'hint' }, w.none.weights)];
  const cell = (text: string | HTMLElement | null, i: number, role = 'gridcell') =>
    h('span', { class: `cell ${i < 2 ? 'c1' : 'c6'}`, role, ...(typeof text === 'string' && { title: text }) }, text);
  const row = (one: Weight) =>
    h(
      'div',
      { class: selection.includes(one.item) ? 'table-row selected' : 'table-row', role: 'row', onclick: () => act.select([one.item]) },
      ...[
        short(one.name, 60),
        one.type,
        ...[one.figures[0], one.figures[1], one.figures[2], one.rms].map((figure) => (figure == null ? '?' : figure.toPrecision(3))),
        histogram(one.exponents, true),
      ].map((text, i) => cell(text, i)),
    );
  return [
    h(
      'div',
      { class: 'table-wide', role: 'grid', 'aria-label': w.views.weights },
      h('div', { class: 'table-row head', role: 'row' }, ...w.columns.map((text, i) => cell(text, i, 'columnheader'))),
      ...all.map(row),
    ),
  ];
}
