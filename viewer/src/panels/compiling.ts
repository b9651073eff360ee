// What a compiler did: the launches of its kernels in lanes of modules, why a kernel is not one with its neighbours, breaks,
// what was compiled again, and how long each part took.

import type { Compiling, Launch, Took } from '../engine/compiling.ts';
import type { Theme } from '../draw/theme.ts';
import { Value } from '../state/store.ts';
import { LANGUAGES, type Language, type Words } from '../state/words.ts';
import { secondsText } from '../text/figures.ts';
import { BOLD, Chart, fitted, FONT } from '../widgets/chart.ts';
import { h, replace, short } from '../widgets/dom.ts';
import { FACTS, PHASES } from '../wire/facts.ts';
import { register, type Panel, type Site } from './panel.ts';

interface Own {
  title: string;
  help: string;
  launches: (n: number, lanes: number) => string;
  model: string;
  apart: (name: string) => string;
  pick: string;
  elsewhere: string;
  silent: string;
  nothing: string;
  breaks: string;
  again: string;
  time: string;
}

const WORDS: Record<Language, Own> = {
  en: {
    title: 'Compiler',
    help: 'Kernels in the order of their launches, by module; why they were not fused; breaks and compile time',
    launches: (n, lanes) => `${n.toLocaleString()} launches in ${lanes} module${lanes === 1 ? '' : 's'}`,
    model: '(no module)',
    apart: (name) => `Why ${name} stands alone`,
    pick: 'Pick a launch to see why it was not fused with its neighbours.',
    elsewhere: 'The stages "post-grad" and "kernels" show their kernels here, launch by launch.',
    silent: 'This capture does not say why. TORCH_LOGS=+fusion beside TORCH_COMPILE_DEBUG=1 does, and so does opscope trace --how compile.',
    nothing: 'The compiler named no neighbour of it.',
    breaks: 'Graph breaks',
    again: 'Compiled again',
    time: 'Compile time',
  },
  zh: {
    title: '编译器',
    help: '按启动顺序和模块列出的内核;为何未融合;断图与编译时间',
    launches: (n, lanes) => `${n.toLocaleString()} 次启动,${lanes} 个模块`,
    model: '(无模块)',
    apart: (name) => `${name} 为何没有融合`,
    pick: '选择一次启动,查看它为何没有与相邻内核融合。',
    elsewhere: '"post-grad" 与 "kernels" 阶段会在此逐次列出内核启动。',
    silent: '此文件没有记录原因。TORCH_COMPILE_DEBUG=1 加 TORCH_LOGS=+fusion,或 opscope trace --how compile 会记录。',
    nothing: '编译器没有提到它的相邻内核。',
    breaks: '断图',
    again: '重新编译',
    time: '编译时间',
  },
};

const own = (words: Words) => WORDS[words === LANGUAGES.zh ? 'zh' : 'en'];
const NONE: Compiling = { launches: [], lanes: [], apart: [], took: [], again: [], breaks: [] };
const LABEL = 190;
const TOP = 20;
const MOST_LISTED = 200;
const PARTS = ['Dynamo', 'AOTAutograd', 'Inductor: graphs', 'Inductor: code']; // a colour for each

register({
  name: 'compiler',
  place: 'low',
  title: (words) => own(words).title,
  help: (words) => own(words).help,
  isThere: (state) => {
    const facts = state.info.get()?.facts ?? [];
    if (state.info.get()?.stages.some(({ name }) => name.startsWith('kernels '))) return true;
    return [FACTS.compile_times, FACTS.not_fused, FACTS.recompiles].some(({ name }) => facts.includes(name));
  },
  make,
});

function make({ state, client, act, words, run, follow }: Site): Panel {
  const found = new Value<Compiling>('compiling', NONE);
  const lanes = new Lanes((index) => act.kernel(index));
  const why = h('section', {});
  const history = h('section', {});
  const element = h(
    'div',
    { class: 'compiler' },
    h('div', { class: 'compiler-lanes' }, lanes.head, lanes.chart.element),
    h('div', { class: 'compiler-side' }, why, history),
  );
  follow(
    () => state.shown.get(),
    () => run(client.compiling().then((now) => found.set(now))),
  );
  follow(
    () => [found.get(), state.kernel.get(), state.details.get(), state.theme.get(), words()] as const,
    ([now, kernel, details, theme, w]) => {
      const lit = kernel >= 0 ? [kernel] : (details?.kernels.map(({ index }) => index) ?? []);
      lanes.show(now, lit, theme, own(w));
      element.classList.toggle('idle', !now.launches.length);
      const nothing = h('p', { class: 'hint' }, own(w).elsewhere);
      replace(why, ...(now.launches.length ? reasons(now, lit[0] ?? -1, own(w), act.kernel) : [nothing]));
    },
  );
  follow(
    () => [found.get(), words()] as const,
    ([now, w]) => replace(history, ...historyOf(now, w, act.line)),
  );
  return { element };
}

/** One column for each launch, one row for each module. */
class Lanes {
  readonly head = h('p', { class: 'hint list-head' });
  readonly chart = new Chart(() => this.draw());
  private now = NONE;
  private lit = new Set<number>();
  private theme!: Theme;
  private words = WORDS.en;
  private first = 0; // launch at the left
  private over = -1;
  private shared = 0;

  constructor(private pick: (index: number) => void) {
    const { canvas } = this.chart;
    canvas.addEventListener('mousemove', (event) => this.point(this.at(event)));
    canvas.addEventListener('mouseleave', () => this.point(-1));
    canvas.addEventListener('click', (event) => {
      const index = this.at(event);
      if (index >= 0) this.pick(index);
    });
    canvas.addEventListener('wheel', (event) => this.scroll(event), { passive: false });
    canvas.addEventListener('keydown', (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      const at = [...this.lit][0] ?? -1;
      this.pick(Math.max(0, Math.min(this.now.launches.length - 1, at + by)));
    });
  }

  show(now: Compiling, lit: number[], theme: Theme, words: Own): void {
    [this.now, this.lit, this.theme, this.words] = [now, new Set(lit), theme, words];
    this.shared = sharedBy(now.lanes);
    this.head.textContent = words.launches(now.launches.length, now.lanes.length);
    this.chart.canvas.setAttribute('aria-label', words.help);
    const goal = lit[0] ?? -1;
    if (goal >= 0 && (goal < this.first || goal >= this.first + this.shown)) this.first = goal - this.shown / 2;
    this.draw();
  }

  private get column(): number {
    return Math.max(5, Math.min(18, (this.chart.width - LABEL) / Math.max(1, this.now.launches.length)));
  }

  private get shown(): number {
    return Math.max(1, Math.floor((this.chart.width - LABEL) / this.column));
  }

  private get row(): number {
    return Math.max(3, Math.min(18, (this.chart.height - TOP) / Math.max(1, this.now.lanes.length)));
  }

  private at(event: MouseEvent): number {
    const [x] = this.chart.place(event);
    const index = Math.floor(this.first + (x - LABEL) / this.column);
    return x >= LABEL && index < this.now.launches.length ? index : -1;
  }

  private scroll(event: WheelEvent): void {
    const most = Math.max(0, this.now.launches.length - this.shown);
    const by = (event.deltaX || event.deltaY) / this.column;
    const next = Math.max(0, Math.min(most, this.first + by));
    if (next === this.first) return;
    event.preventDefault();
    this.first = next;
    this.draw();
  }

  private point(index: number): void {
    if (index === this.over) return;
    this.over = index;
    const launch = this.now.launches[index];
    if (!launch) this.chart.quiet();
    else {
      const [x, y] = [LABEL + (index - this.first) * this.column, TOP + launch.lane * this.row];
      this.chart.note(x, y, [`${index}  ${short(launch.name, 90)}`, launch.where || this.words.model, launch.language]);
    }
    this.draw();
  }

  private draw(): void {
    if (!this.theme || !this.chart.measure()) return;
    const { now, theme, row, column, chart } = this;
    const context = chart.begin();
    this.first = Math.max(0, Math.min(this.first, now.launches.length - this.shown));
    now.lanes.forEach((lane, i) => {
      const y = TOP + i * row;
      context.fillStyle = theme.grid;
      context.globalAlpha = 0.4;
      if (i % 2) context.fillRect(LABEL, y, chart.width - LABEL, row);
      context.globalAlpha = 1;
      if (row < 9) return;
      context.fillStyle = theme.dimText;
      context.fillText(fitted(context, shortLane(lane, this.shared) || this.words.model, LABEL - 12), 6, y + row / 2);
    });
    const from = Math.floor(this.first);
    for (let i = from; i < Math.min(now.launches.length, from + this.shown + 2); i++) this.launch(context, now.launches[i]!);
    context.fillStyle = theme.dimText;
    context.font = FONT;
    const step = column < 10 ? 20 : 10;
    for (let i = Math.ceil(this.first / step) * step; i < Math.min(now.launches.length, from + this.shown); i += step)
      context.fillText(`${i}`, LABEL + (i - this.first) * column, TOP / 2);
  }

  private launch(context: CanvasRenderingContext2D, { index, lane, phase, language }: Launch): void {
    const { theme, row, column } = this;
    const [x, y] = [LABEL + (index - this.first) * column, TOP + lane * row];
    if (x + column < LABEL) return;
    const colours = theme.phases[phase] ?? theme.phases[0]!;
    context.fillStyle = this.lit.has(index) ? theme.selected : colours.accent;
    context.globalAlpha = index === this.over || this.lit.has(index) || language !== 'library' ? 1 : 0.45; // libraries are paler
    context.fillRect(Math.max(LABEL, x) + 0.5, y + 1, Math.max(2, column - 1), Math.max(2, row - 2));
    context.globalAlpha = 1;
    if (this.lit.has(index)) {
      context.font = BOLD;
      context.strokeStyle = theme.selected;
      context.strokeRect(x - 0.5, TOP - 1, column, this.now.lanes.length * row + 2);
    }
  }
}

/** A module without what it shares with all others; the end of a path says most. */
function shortLane(path: string, shared: number): string {
  const own = path.slice(shared) || path;
  return own.length > 30 ? `…${own.slice(-29)}` : own;
}

/** How much of all paths is the same, up to a slash. */
function sharedBy(paths: string[]): number {
  const inside = paths.filter((path) => path);
  let same = inside[0]?.length ?? 0;
  for (const path of inside) while (!path.startsWith(inside[0]!.slice(0, same))) same--;
  return inside.length > 1 ? inside[0]!.lastIndexOf('/', same - 1) + 1 : 0;
}

function reasons(now: Compiling, kernel: number, words: Own, pick: (index: number) => void): HTMLElement[] {
  const launch = now.launches[kernel];
  if (!now.apart.length || !launch) return [h('p', { class: 'hint' }, now.apart.length ? words.pick : words.silent)];
  const about = now.apart.filter((row) => row.kernel === kernel || row.other === kernel);
  const items = about.slice(0, MOST_LISTED).map(({ kernel: a, other, reason }) => {
    const neighbour = a === kernel ? other : a;
    const name = `${neighbour} ${short(now.launches[neighbour]?.name ?? '', 60)}`;
    const button = h('button', { class: 'link', 'data-key': `apart-${neighbour}`, onclick: () => pick(neighbour) }, name);
    return h('li', {}, button, h('div', { class: 'hint' }, reason));
  });
  const list = items.length ? h('ul', { class: 'plain' }, ...items) : h('p', { class: 'hint' }, words.nothing);
  return [h('h2', {}, words.apart(`${kernel} ${short(launch.name, 40)}`)), list];
}

function historyOf(now: Compiling, words: Words, line: (file: string, line: number) => void): (HTMLElement | false)[] {
  const w = own(words);
  const most = Math.max(...now.took.map(total), 1e-9);
  return [
    now.breaks.length > 0 && h('h2', {}, `${w.breaks} (${now.breaks.length})`),
    h(
      'ul',
      { class: 'plain' },
      ...now.breaks.slice(0, MOST_LISTED).map((one, i) => {
        const place = `${one.file.split('/').pop()}:${one.line}`;
        const open = () => line(one.file, one.line);
        const button = h('button', { class: 'link', 'data-key': `break-${i}`, title: one.file, onclick: open }, place);
        return h('li', {}, button, h('div', { class: 'hint' }, one.reason));
      }),
    ),
    now.again.length > 0 && h('h2', {}, `${w.again} (${now.again.length})`),
    h(
      'ul',
      { class: 'plain' },
      ...now.again.slice(0, MOST_LISTED).map((one) => h('li', {}, one.frame, h('div', { class: 'hint' }, one.reason || '?'))),
    ),
    now.took.length > 0 && h('h2', {}, `${w.time} · ${secondsText(now.took.reduce((sum, took) => sum + total(took), 0))}`),
    ...now.took.map((took) => bar(took, most, words)),
  ];
}

const total = ({ parts }: Took) => parts.reduce((sum, { seconds }) => sum + seconds, 0);

/** One frame: its phases beside each other, as long as they took. */
function bar(took: Took, most: number, words: Words): HTMLElement {
  const parts = took.parts.map(({ name, seconds }) => {
    const title = `${name}: ${secondsText(seconds)}`;
    return h('i', { class: `part p${Math.max(0, PARTS.indexOf(name))}`, style: `width:${(100 * seconds) / most}%`, title });
  });
  const label = `${took.frame} ${short(took.what, 34)} · ${words.phases[PHASES[took.phase]!]} · ${secondsText(total(took))}`;
  const detail = took.parts.map(({ name, seconds }) => `${name} ${secondsText(seconds)}`).join(' · ');
  return h('div', { class: 'took' }, h('div', {}, label), h('div', { class: 'took-bar' }, ...parts), h('div', { class: 'hint' }, detail));
}
