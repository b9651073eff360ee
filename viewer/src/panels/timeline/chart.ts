// The timeline as one looks at it: what is in view, and what the pointer and the keys do there. The engine answers with the
// rectangles of a part that is wider than what is in view, so that moving draws what is known until the next answer is there.

import type { Theme } from '../../draw/theme.ts';
import type { Marked, SpanFacts, TimelineInfo } from '../../engine/timeline/timeline.ts';
import { SEVERAL, type Window } from '../../engine/timeline/window.ts';
import type { Client } from '../../state/client.ts';
import { secondsText } from '../../text/figures.ts';
import { Chart } from '../../widgets/chart.ts';
import { short } from '../../widgets/dom.ts';
import { paint, type Overview } from './paint.ts';
import { GUTTER, OVERVIEW, TOP, View } from './places.ts';
import type { TimelineWords } from './words.ts';

type Asks = Pick<Client, 'timelineInfo' | 'timelineWindow' | 'timelineOverview' | 'timelineMark' | 'timelineSpan' | 'timelineAt'>;

export interface ChartCalls {
  client: Asks;
  pick(facts: SpanFacts | null): void;
  changed(): void; // what is in view, or marked
  run(work: Promise<unknown>): void;
}

const MARGIN = 0.6; // of what is in view, at each side
const MORE_LANES = 6;
const MOST_FRAMES = 600;
const STILL = 4; // pixels: less is a click
const STEP = 0.15; // of what is in view, for a key

export class TimelineChart {
  readonly chart = new Chart(() => this.calls.run(this.resized()));
  readonly view = new View();
  info: TimelineInfo | null = null;
  marked: Marked | null = null;
  python = false;
  /** Milliseconds that the last frames took to draw. */
  readonly frames: number[] = [];
  current: SpanFacts | null = null;
  private window: Window | null = null;
  private overview: Overview | null = null;
  private hovered: { lane: number; span: number; x: number; width: number } | null = null;
  private theme!: Theme;
  private asking = false;
  private again = false;
  private drawing = 0;
  private drag: { x: number; y: number; from: 'times' | 'overview' | 'names'; moved: boolean } | null = null;
  private pointed = 0;
  private items: number[] = []; // that are marked
  private picked = false; // what is selected next was picked here

  constructor(
    private calls: ChartCalls,
    private words: () => TimelineWords,
  ) {
    const { canvas } = this.chart;
    canvas.addEventListener('pointerdown', (event) => this.onDown(event));
    canvas.addEventListener('pointermove', (event) => this.onMove(event));
    canvas.addEventListener('pointerup', (event) => this.onUp(event));
    canvas.addEventListener('pointercancel', () => (this.drag = null));
    canvas.addEventListener('pointerleave', () => this.point(-1, -1));
    canvas.addEventListener('dblclick', (event) => this.onDouble(event));
    canvas.addEventListener('wheel', (event) => this.onWheel(event), { passive: false });
    canvas.addEventListener('keydown', (event) => this.onKey(event));
  }

  /** Read what there is; null where nothing is known. */
  async open(theme: Theme): Promise<TimelineInfo | null> {
    this.theme = theme;
    const info = await this.calls.client.timelineInfo(this.python);
    this.info = info;
    this.window = null;
    this.current = this.hovered = null;
    if (!info) return null;
    const isNew = this.view.to === 1 && this.view.from === 0 ? true : this.view.to > info.span;
    this.view.set(info);
    if (isNew) this.view.show(0, info.span);
    this.label();
    await this.resized();
    return info;
  }

  async resized(): Promise<void> {
    if (!this.info || !this.chart.measure()) return;
    const { view, chart } = this;
    view.width = Math.max(10, chart.width - GUTTER);
    view.height = Math.max(10, chart.height - TOP);
    view.scrollBy(0);
    this.overview = await this.calls.client.timelineOverview(Math.max(1, Math.floor(view.width / 2)));
    await this.ask();
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    this.soon();
  }

  private label(): void {
    const { info } = this;
    const words = this.words();
    if (info)
      this.chart.canvas.setAttribute('aria-label', `${words.title}. ${words.count(info.events, secondsText(info.span))}. ${words.keys}`);
  }

  /** What is selected, and what a search found. */
  async mark(items: number[], found: number[]): Promise<void> {
    this.marked = await this.calls.client.timelineMark(items, found);
    const isOther = items.join() !== this.items.join();
    this.items = items;
    if (isOther && !this.picked) this.current = null;
    if (isOther) this.picked = false;
    if (this.marked?.spans && (this.marked.to < this.view.from || this.marked.from > this.view.to)) {
      const middle = (this.marked.from + this.marked.to) / 2;
      this.view.show(middle - this.view.span / 2, middle + this.view.span / 2);
    }
    await this.ask();
    this.calls.changed();
  }

  // -- the rectangles ---------------------------------------------------------------------------------

  /** Ask for what is in view. While an answer is awaited, what is asked for next waits for it. */
  private async ask(): Promise<void> {
    if (this.asking) {
      this.again = true;
      return;
    }
    this.asking = true;
    try {
      do {
        this.again = false;
        const { view } = this;
        const [first, last] = view.shown;
        const room = view.span * MARGIN;
        const pixels = Math.round(view.width * (1 + 2 * MARGIN));
        const lanes: [number, number] = [Math.max(0, first - MORE_LANES), Math.min(view.lanes.length, last + MORE_LANES)];
        this.window = await this.calls.client.timelineWindow(this.python, [view.from - room, view.to + room], pixels, lanes);
      } while (this.again);
    } finally {
      this.asking = false;
    }
    this.soon();
  }

  /** After a movement: drawn at once from what is there, and asked for anew where that is not enough. */
  private moved(): void {
    this.chart.quiet();
    this.hovered = null;
    const { view, window } = this;
    const [first, last] = view.shown;
    const isSharp = window && Math.abs((window.to - window.from) / (view.span * (1 + 2 * MARGIN)) - 1) < 0.02;
    const isInside = window && window.from <= Math.max(0, view.from) && window.to >= Math.min(this.info?.span ?? 0, view.to);
    const hasLanes = window && window.firstLane <= first && window.firstLane + window.starts.length - 1 >= last;
    if (!isSharp || !isInside || !hasLanes) this.calls.run(this.ask());
    this.soon();
    this.calls.changed();
  }

  private soon(): void {
    if (this.drawing) return;
    this.drawing = requestAnimationFrame(() => {
      this.drawing = 0;
      this.draw();
    });
  }

  private draw(): void {
    const { chart, info, theme, window, overview, hovered, current, view } = this;
    if (!chart.width || !info || !theme) return;
    const begin = performance.now();
    const context = chart.begin();
    const isLit = (this.marked?.spans ?? 0) > 0;
    paint(context, chart.width, chart.height, { view, info, window, overview, isLit, hovered, current, theme, words: this.words() });
    this.frames.push(performance.now() - begin);
    if (this.frames.length > MOST_FRAMES) this.frames.shift();
  }

  // -- what the user does -----------------------------------------------------------------------------

  showTimes(from: number, to: number): void {
    this.view.fit(from, to);
    this.moved();
  }

  whole(): void {
    this.view.show(0, this.info?.span ?? 1);
    this.moved();
  }

  fitSelection(): void {
    if (this.marked?.spans) this.showTimes(this.marked.from, this.marked.to);
  }

  async setPython(on: boolean): Promise<void> {
    this.python = on;
    await this.open(this.theme);
    this.calls.changed();
  }

  private onDown(event: PointerEvent): void {
    if (event.button !== 0) return;
    const [x, y] = this.chart.place(event);
    const { canvas } = this.chart;
    canvas.setPointerCapture(event.pointerId);
    this.drag = { x, y, from: y < OVERVIEW ? 'overview' : x < GUTTER ? 'names' : 'times', moved: false };
    if (this.drag.from === 'overview') this.toOverview(x);
  }

  private toOverview(x: number): void {
    const { view } = this;
    const at = ((x - GUTTER) / view.width) * (this.info?.span ?? 0);
    view.show(at - view.span / 2, at + view.span / 2);
    this.moved();
  }

  private onMove(event: PointerEvent): void {
    const [x, y] = this.chart.place(event);
    const { drag } = this;
    if (!drag) {
      this.point(x, y);
      return;
    }
    if (!drag.moved && Math.abs(x - drag.x) + Math.abs(y - drag.y) < STILL) return;
    drag.moved = true;
    if (drag.from === 'overview') this.toOverview(x);
    else {
      if (drag.from === 'times') this.view.pan(drag.x - x);
      this.view.scrollBy(drag.y - y);
      drag.x = x;
      drag.y = y;
      this.chart.canvas.style.cursor = 'grabbing';
      this.moved();
    }
  }

  private onUp(event: PointerEvent): void {
    const { drag } = this;
    this.drag = null;
    this.chart.canvas.style.cursor = '';
    if (!drag || drag.moved || drag.from === 'overview') return;
    const [x, y] = this.chart.place(event);
    const at = this.at(x, y);
    if (at) this.calls.run(this.pick(at.lane, at.span, at.isSeveral));
    else if (x > GUTTER) this.choose(null);
  }

  private onDouble(event: MouseEvent): void {
    const [x, y] = this.chart.place(event);
    if (y < OVERVIEW) {
      this.whole();
      return;
    }
    const at = this.at(x, y);
    if (!at) return;
    const from = this.view.time(at.x);
    this.showTimes(from, this.view.time(at.x + at.width));
  }

  private onWheel(event: WheelEvent): void {
    event.preventDefault();
    const [x] = this.chart.place(event);
    const unit = event.deltaMode === 1 ? 16 : 1;
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.view.pan(event.deltaX * unit);
    else if (x < GUTTER) this.view.scrollBy(event.deltaY * unit);
    else if (event.shiftKey) this.view.pan(event.deltaY * unit);
    else this.view.zoom(x, Math.exp(Math.max(-120, Math.min(120, event.deltaY * unit)) * 0.0035));
    this.moved();
  }

  private onKey(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey || !this.info) return;
    const { view } = this;
    const middle = GUTTER + view.width / 2;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const acts: Record<string, () => void> = {
      w: () => view.zoom(middle, 0.7),
      '+': () => view.zoom(middle, 0.7),
      '=': () => view.zoom(middle, 0.7),
      s: () => view.zoom(middle, 1 / 0.7),
      '-': () => view.zoom(middle, 1 / 0.7),
      a: () => view.pan(-view.width * STEP),
      d: () => view.pan(view.width * STEP),
      '0': () => view.show(0, this.info!.span),
      Home: () => view.show(0, this.info!.span),
      PageUp: () => view.scrollBy(-view.height / 2),
      PageDown: () => view.scrollBy(view.height / 2),
      f: () => this.fitSelection(),
    };
    const steps: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (key in acts) {
      acts[key]!();
      this.moved();
    } else if (key in steps) this.calls.run(this.step(...steps[key]!));
    else if (key === 'Enter' && this.current) this.choose(this.current);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** To the span beside the current one, or the nearest in the lane above or below. */
  private async step(along: number, down: number): Promise<void> {
    const { client } = this.calls;
    const { current, view } = this;
    let next: SpanFacts | null = null;
    if (!current) {
      const lane = this.info!.lanes.findIndex(({ kind }) => kind === 'event');
      next = await client.timelineAt(this.python, lane, (view.from + view.to) / 2);
    } else if (along) next = await client.timelineSpan(this.python, current.lane, current.span + along);
    else next = await client.timelineAt(this.python, current.lane + down, (current.start + current.end) / 2);
    if (!next) return;
    this.current = next;
    view.reveal(next.lane);
    if (next.start < view.from || next.end > view.to) {
      const middle = (next.start + next.end) / 2;
      view.show(middle - view.span / 2, middle + view.span / 2);
    }
    this.moved();
    this.tell(next, (view.x(next.start) + view.x(next.end)) / 2, view.y(next.lane) + 8);
  }

  // -- what is under the pointer ----------------------------------------------------------------------

  /** The rectangle at a place of the canvas. */
  private at(x: number, y: number): { lane: number; span: number; x: number; width: number; isSeveral: boolean; count: number } | null {
    const { view, window } = this;
    const lane = x < GUTTER ? -1 : view.laneAt(y);
    if (lane < 0 || !window) return null;
    const at = lane - window.firstLane;
    if (at < 0 || at + 1 >= window.starts.length) return null;
    const ratio = (view.width * (window.to - window.from)) / view.span / window.pixels;
    const left = view.x(window.from);
    let [low, high] = [window.starts[at]!, window.starts[at + 1]!];
    const last = high;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (left + (window.x[middle]! + window.width[middle]!) * ratio > x - 1) high = middle;
      else low = middle + 1;
    }
    if (low >= last || left + window.x[low]! * ratio > x + 1) return null;
    const isSeveral = (window.flags[low]! & SEVERAL) !== 0 && window.count[low]! > 1;
    return {
      lane,
      span: window.span[low]!,
      x: left + window.x[low]! * ratio,
      width: window.width[low]! * ratio,
      isSeveral,
      count: window.count[low]!,
    };
  }

  private point(x: number, y: number): void {
    const at = x < 0 || this.asking ? null : this.at(x, y);
    const was = this.hovered;
    this.hovered = at;
    this.pointed++;
    if (!at) {
      this.chart.quiet();
      if (was) this.soon();
      this.chart.canvas.style.cursor = '';
      return;
    }
    this.chart.canvas.style.cursor = 'pointer';
    if (was?.lane !== at.lane || was.span !== at.span) this.soon();
    if (at.isSeveral) {
      const words = this.words();
      this.chart.note(x, y, [words.several(at.count), words.zoomIn]);
      return;
    }
    const own = this.pointed;
    this.calls.run(
      this.calls.client.timelineSpan(this.python, at.lane, at.span).then((facts) => {
        if (facts && own === this.pointed) this.tell(facts, x, y);
      }),
    );
  }

  private tell(facts: SpanFacts, x: number, y: number): void {
    const words = this.words();
    const lines = [
      facts.title || facts.name,
      `${secondsText(facts.end - facts.start)} · ${words.kinds[facts.kind] ?? facts.kind}${facts.phase && facts.kind !== 'phase' ? ` · ${facts.phase}` : ''}`,
      facts.module,
      facts.line,
      facts.delay !== null ? words.delay(secondsText(Math.max(0, facts.delay))) : '',
      facts.name !== facts.title && facts.kind !== 'module' ? short(facts.name, 120) : '',
      words.at(secondsText(facts.start)),
      !facts.nodes.length && !facts.path ? words.nothing : '',
    ];
    this.chart.note(x, y, lines.filter(Boolean));
  }

  private async pick(lane: number, span: number, isSeveral: boolean): Promise<void> {
    const facts = await this.calls.client.timelineSpan(this.python, lane, span);
    if (isSeveral && facts) {
      // What is too narrow to be meant is looked at first.
      this.showTimes(facts.start - this.view.span / 40, facts.end + this.view.span / 40);
      return;
    }
    this.choose(facts);
  }

  private choose(facts: SpanFacts | null): void {
    this.current = facts;
    this.picked = facts !== null;
    this.soon();
    this.calls.pick(facts);
  }

  /** For scripts: the rectangles in view. */
  places(): {
    lane: number;
    kind: string;
    title: string;
    x: number;
    y: number;
    width: number;
    height: number;
    flags: number;
    count: number;
  }[] {
    const { window, view, info } = this;
    if (!window || !info) return [];
    const ratio = (view.width * (window.to - window.from)) / view.span / window.pixels;
    const left = view.x(window.from);
    const out = [];
    const [first, last] = view.shown;
    for (let l = Math.max(first, window.firstLane); l < last && l - window.firstLane + 1 < window.starts.length; l++) {
      for (let r = window.starts[l - window.firstLane]!; r < window.starts[l - window.firstLane + 1]! && out.length < 2000; r++) {
        const x = left + window.x[r]! * ratio;
        if (x < GUTTER || x > GUTTER + view.width) continue;
        const title = window.label[r]! >= 0 ? window.labels[window.label[r]!]! : '';
        const [width, height] = [window.width[r]! * ratio, view.lanes[l]!.height];
        out.push({
          lane: l,
          kind: info.lanes[l]!.kind,
          title,
          x,
          y: view.y(l),
          width,
          height,
          flags: window.flags[r]!,
          count: window.count[r]!,
        });
      }
    }
    return out;
  }
}
