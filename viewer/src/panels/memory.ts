// Memory along the execution, stacked by class. What is alive at one operator is listed next to it.

import type { Theme } from '../draw/theme.ts';
import { percent, plain, bytesText } from '../text/figures.ts';
import type { AliveRow, MemoryLine } from '../engine/messages.ts';
import type { Words } from '../state/words.ts';
import type { MemoryClass } from '../wire/facts.ts';
import { BOLD, Chart, fitted, FONT, ticks } from '../widgets/chart.ts';
import { h, replace, short } from '../widgets/dom.ts';

const LEFT = 62;
const RIGHT = 14;
const TOP = 26;
const BOTTOM = 30;
const STRIP = 5; // the phases below
const MOST_LISTED = 300;
const LEAST_SPAN = 8;

// Paul Tol's muted scheme, in an order in which neighbours differ also to colour-blind eyes.
const COLOURS: Record<MemoryClass, [light: string, dark: string]> = {
  parameter: ['#4477aa', '#5b8fc7'],
  buffer: ['#88ccee', '#6fb4d6'],
  state: ['#117733', '#2f9d58'],
  input: ['#999933', '#b3b347'],
  constant: ['#bbbbbb', '#8b8f98'],
  gradient: ['#cc6677', '#dd7f8e'],
  activation: ['#ddaa33', '#e3b64f'],
  temporary: ['#aa4499', '#c265b3'],
};

export interface MemoryCalls {
  line(first: number, last: number, columns: number): Promise<MemoryLine | null>;
  alive(step: number, most: number): Promise<{ rows: AliveRow[]; count: number; bytes: number; op: string; where: string }>;
  steps(items: number[]): Promise<number[]>;
  select(items: number[]): void;
  hover(items: number[]): void;
  run(work: Promise<unknown>): void;
}

export class MemoryChart {
  readonly head = h('div', { class: 'chart-head' });
  private chart = new Chart(() => this.calls.run(this.show()));
  private list = h('div', { class: 'alive' });
  readonly element = h('div', { class: 'memory-chart' }, this.chart.element, this.list);
  line: MemoryLine | null = null;
  listed = -1; // the operator whose memory is listed; -1: the peak
  private first = 0;
  private last = Infinity;
  private key = '';
  private step = -1; // under the pointer
  private asked = 0;
  private runs: number[] = [];
  private selection: number[] = [];
  private theme!: Theme;

  constructor(
    private calls: MemoryCalls,
    private words: () => Words,
  ) {
    const { canvas } = this.chart;
    canvas.addEventListener('mousemove', (event) => this.calls.run(this.point(this.chart.place(event))));
    canvas.addEventListener('mouseleave', () => this.calls.run(this.point(null)));
    canvas.addEventListener('click', (event) => this.pick(this.stepAt(this.chart.place(event)[0])));
    canvas.addEventListener('dblclick', () => this.calls.run(this.listAt(-1)));
    canvas.addEventListener('wheel', (event) => this.onWheel(event), { passive: false });
    canvas.addEventListener('keydown', (event) => this.onKey(event));
  }

  reset(key: string): void {
    if (key === this.key) return;
    this.key = key;
    this.first = 0;
    this.last = Infinity;
    this.listed = -1;
  }

  async show(theme = this.theme): Promise<void> {
    this.theme = theme;
    if (!this.chart.measure()) return;
    const columns = Math.max(1, Math.floor(this.chart.width - LEFT - RIGHT));
    this.line = await this.calls.line(this.first, this.last, columns);
    if (this.line) this.last = this.line.last;
    this.redrawHead();
    await this.mark(this.selection);
    await this.listAt(this.listed);
  }

  async mark(selection: number[]): Promise<void> {
    this.selection = selection;
    this.runs = selection.length ? await this.calls.steps(selection) : [];
    this.draw();
  }

  private colour(cls: MemoryClass): string {
    return COLOURS[cls][this.theme.name === 'dark' ? 1 : 0];
  }

  private className(cls: MemoryClass): string {
    return this.words().costs.classes[cls];
  }

  private redrawHead(): void {
    const words = this.words();
    const { line } = this;
    if (!line) return;
    const isZoomed = line.first > 0 || line.last < line.steps;
    replace(
      this.head,
      h(
        'span',
        { class: 'keys' },
        ...line.classes.map((cls, i) =>
          h(
            'span',
            { class: 'key', title: `${this.className(cls)}: ${bytesText(line.atPeak[i]!)}, ${words.costs.peak}` },
            h('i', { style: `background:${this.colour(cls)}` }),
            this.className(cls),
          ),
        ),
      ),
      h('span', { class: 'grow' }),
      isZoomed ? h('button', { class: 'chip', onclick: () => this.zoom(0, Infinity) }, words.costs.wholeRun) : null,
      h('button', { class: 'chip', onclick: () => this.goToPeak() }, words.costs.atPeak),
      h('b', { class: 'chart-total', title: line.peakBytes.toLocaleString() }, `${words.costs.peak} ≥ ${bytesText(line.peakBytes)}`),
    );
    this.chart.canvas.setAttribute(
      'aria-label',
      `${words.costs.views.memory}. ${words.costs.peak} ≥ ${bytesText(line.peakBytes)}, #${line.peak} ${line.peakOp}. ${words.costs.lineKeys}`,
    );
  }

  private goToPeak(): void {
    const { line } = this;
    if (!line) return;
    if (line.peak < line.first || line.peak >= line.last) this.zoom(0, Infinity);
    this.calls.run(this.listAt(-1));
  }

  // -- what is alive ----------------------------------------------------------------------------------

  async listAt(step: number): Promise<void> {
    const { line } = this;
    if (!line) return;
    this.listed = step;
    const at = step < 0 ? line.peak : step;
    const { rows, count, bytes, op, where } = await this.calls.alive(at, MOST_LISTED);
    if (this.listed !== step) return;
    const words = this.words();
    const isPeak = at === line.peak;
    replace(
      this.list,
      h(
        'div',
        { class: 'alive-head' },
        h(
          'button',
          { class: 'link', title: where, onclick: () => this.calls.select([at]) },
          `${isPeak ? `${words.costs.peak}, ` : ''}#${at.toLocaleString()} ${op}`,
        ),
        h('span', { class: 'size' }, bytesText(bytes)),
      ),
      h('div', { class: 'alive-sub' }, words.costs.aliveCount(count)),
      h(
        'div',
        { class: 'alive-rows', role: 'group', 'aria-label': words.costs.alive, tabindex: 0 },
        ...rows.map((row) => this.row(row, bytes)),
      ),
    );
    this.draw();
  }

  private row(row: AliveRow, all: number): HTMLElement {
    const life = `#${row.born.toLocaleString()} – #${row.dies.toLocaleString()}`;
    return h(
      'button',
      {
        class: 'alive-row',
        title: [row.name, row.where, this.className(row.cls), life].filter(Boolean).join('\n'),
        onclick: row.item >= 0 && (() => this.calls.select([row.item])),
        onmouseenter: () => this.calls.hover(row.item >= 0 ? [row.item] : []),
        onmouseleave: () => this.calls.hover([]),
      },
      h('i', { style: `background:${this.colour(row.cls)}` }),
      h('span', { class: 'name' }, short(row.name, 28)),
      h('span', { class: 'cls' }, row.type),
      h('span', { class: 'size' }, bytesText(row.bytes)),
      h('span', { class: 'share' }, percent(row.bytes, all)),
    );
  }

  // -- what the user does -----------------------------------------------------------------------------

  private stepAt(x: number): number {
    const { line } = this;
    if (!line?.at.length) return -1;
    const place = Math.floor(((x - LEFT) / (this.chart.width - LEFT - RIGHT)) * line.at.length);
    return line.at[Math.max(0, Math.min(line.at.length - 1, place))]!;
  }

  private async point(place: [number, number] | null): Promise<void> {
    const step = place ? this.stepAt(place[0]) : -1;
    const asked = ++this.asked;
    this.pointed = place;
    const other = step !== this.step;
    this.step = step;
    if (!place || step < 0) {
      this.chart.quiet();
      this.calls.hover([]);
      this.draw();
      return;
    }
    if (other) {
      this.draw();
      this.calls.hover([step]);
    }
    // One question at a time: in between, the pointer only moves on.
    if (this.asking) return;
    this.asking = true;
    try {
      const found = await this.calls.alive(step, 6);
      if (asked === this.asked) this.describe(place, step, found);
    } finally {
      this.asking = false;
    }
    if (asked !== this.asked && this.pointed) await this.point(this.pointed);
  }

  private asking = false;
  private pointed: [number, number] | null = null;

  private describe(
    place: [number, number],
    step: number,
    { rows, count, bytes, op, where }: Awaited<ReturnType<MemoryCalls['alive']>>,
  ): void {
    const words = this.words();
    this.chart.note(place[0], place[1], [
      `#${step.toLocaleString()} ${op} · ${bytesText(bytes)}`,
      ...(where ? [h('div', { class: 'dim' }, short(where, 64))] : []),
      ...rows.map((row) =>
        h(
          'div',
          { class: 'tip-row' },
          h('i', { style: `background:${this.colour(row.cls)}` }),
          h('span', { class: 'name' }, short(row.name, 36)),
          h('span', {}, bytesText(row.bytes)),
        ),
      ),
      ...(count > rows.length ? [h('div', { class: 'dim' }, words.costs.more(count - rows.length))] : []),
    ]);
  }

  private pick(step: number): void {
    if (step < 0) return;
    this.calls.select([step]);
    this.calls.run(this.listAt(step));
  }

  private zoom(first: number, last: number): void {
    this.first = Math.max(0, Math.round(first));
    this.last = Math.min(this.line?.steps ?? Infinity, Math.round(last));
    this.calls.run(this.show());
  }

  private onWheel(event: WheelEvent): void {
    const { line } = this;
    if (!line) return;
    event.preventDefault();
    const span = line.last - line.first;
    const wide = this.chart.width - LEFT - RIGHT;
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
      const by = Math.round(((event.deltaX || event.deltaY) / wide) * span);
      const first = Math.max(0, Math.min(line.steps - span, line.first + by));
      this.zoom(first, first + span);
      return;
    }
    const share = Math.max(0, Math.min(1, (this.chart.place(event)[0] - LEFT) / wide));
    this.scaleAt(line.first + share * span, share, Math.exp(event.deltaY * 0.002));
  }

  private scaleAt(step: number, share: number, factor: number): void {
    const line = this.line!;
    const span = Math.max(Math.min(LEAST_SPAN, line.steps), Math.min(line.steps, (line.last - line.first) * factor));
    const first = Math.max(0, Math.min(line.steps - span, step - share * span));
    this.zoom(first, first + span);
  }

  private onKey(event: KeyboardEvent): void {
    const { line } = this;
    if (!line || event.altKey || event.ctrlKey || event.metaKey) return;
    const at = this.listed < 0 ? line.peak : this.listed;
    const column = Math.max(1, Math.round((line.last - line.first) / Math.max(1, line.at.length)));
    const to: Record<string, number> = {
      ArrowRight: at + (event.shiftKey ? 10 * column : column),
      ArrowLeft: at - (event.shiftKey ? 10 * column : column),
      Home: 0,
      End: line.steps - 1,
    };
    if (event.key in to) this.pick(Math.max(0, Math.min(line.steps - 1, to[event.key]!)));
    else if (event.key === 'p' || event.key === 'P') this.goToPeak();
    else if (event.key === '+' || event.key === '=') this.scaleAt(at, 0.5, 0.6);
    else if (event.key === '-') this.scaleAt(at, 0.5, 1.6);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // -- drawing ----------------------------------------------------------------------------------------

  draw(): void {
    const { line, chart, theme } = this;
    if (!chart.width || !theme) return;
    const context = chart.begin();
    if (!line?.at.length) return;
    const [width, height] = [chart.width - LEFT - RIGHT, chart.height - TOP - BOTTOM];
    const most = line.peakBytes * 1.04 || 1;
    const y = (bytes: number) => TOP + height - (bytes / most) * height;
    const column = width / line.at.length;
    const x = (step: number) => LEFT + ((step - line.first) / (line.last - line.first)) * width;

    context.font = FONT;
    context.textAlign = 'right';
    for (const tick of ticks(most, Math.max(2, height / 40))) {
      context.fillStyle = theme.dimText;
      context.fillText(plain(bytesText(tick)), LEFT - 8, y(tick));
      context.fillStyle = theme.grid;
      context.fillRect(LEFT, Math.round(y(tick)), width, 1);
    }
    // The selection, behind.
    context.fillStyle = theme.selected;
    context.globalAlpha = 0.16;
    const runs = this.runs;
    for (let i = 0; i < runs.length; i += 2) {
      if (runs[i + 1]! < line.first || runs[i]! >= line.last) continue;
      const from = Math.max(LEFT, x(runs[i]!));
      context.fillRect(from, TOP, Math.max(1.5, Math.min(LEFT + width, x(runs[i + 1]! + 1)) - from), height);
    }
    context.globalAlpha = 1;
    // Stairs, one above the other.
    const base = new Float64Array(line.at.length);
    line.classes.forEach((cls, k) => {
      const live = line.live[k]!;
      context.beginPath();
      for (let c = 0; c < live.length; c++) {
        const top = y(base[c]! + live[c]!);
        context.lineTo(LEFT + c * column, top);
        context.lineTo(LEFT + (c + 1) * column, top);
      }
      for (let c = live.length - 1; c >= 0; c--) {
        context.lineTo(LEFT + (c + 1) * column, y(base[c]!));
        context.lineTo(LEFT + c * column, y(base[c]!));
        base[c]! += live[c]!;
      }
      context.closePath();
      context.globalAlpha = 0.86;
      context.fillStyle = this.colour(cls);
      context.fill();
      context.globalAlpha = 1;
    });
    // Phases below, and the numbers of operators.
    line.phases.forEach((phase, c) => {
      context.fillStyle = theme.phases[phase]!.accent;
      context.fillRect(LEFT + c * column, TOP + height + 3, column + 0.5, STRIP);
    });
    for (let i = 0; i < runs.length; i += 2) {
      if (runs[i + 1]! < line.first || runs[i]! >= line.last) continue;
      const from = Math.max(LEFT, x(runs[i]!));
      const to = Math.min(LEFT + width, x(runs[i + 1]! + 1));
      context.fillStyle = theme.selected;
      context.fillRect(from, TOP + height, Math.max(2, to - from), 3);
    }
    context.fillStyle = theme.dimText;
    for (const tick of ticks(line.last - line.first - 1, Math.max(2, width / 120))) {
      const step = Math.round(line.first + tick);
      context.textAlign = tick === 0 ? 'left' : 'center';
      context.fillText(`#${step.toLocaleString()}`, x(step) + (tick ? column / 2 : 0), TOP + height + 19);
    }
    this.drawPeak(context, line, x, y, width);
    const cursor = (step: number, colour: string, dash: number[]) => {
      if (step < line.first || step >= line.last) return;
      context.strokeStyle = colour;
      context.setLineDash(dash);
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(x(step) + 0.5, TOP);
      context.lineTo(x(step) + 0.5, TOP + height);
      context.stroke();
      context.setLineDash([]);
    };
    if (this.listed >= 0) cursor(this.listed, theme.selected, []);
    if (this.step >= 0) cursor(this.step, theme.text, []);
  }

  private drawPeak(
    context: CanvasRenderingContext2D,
    line: MemoryLine,
    x: (step: number) => number,
    y: (bytes: number) => number,
    width: number,
  ): void {
    if (line.peak < line.first || line.peak >= line.last) return;
    const { theme } = this;
    const at = x(line.peak);
    const top = y(line.peakBytes);
    context.strokeStyle = theme.text;
    context.setLineDash([3, 3]);
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(LEFT, Math.round(top) + 0.5);
    context.lineTo(LEFT + width, Math.round(top) + 0.5);
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = theme.text;
    context.beginPath();
    context.moveTo(at, top + 1);
    context.lineTo(at - 5, top - 7);
    context.lineTo(at + 5, top - 7);
    context.fill();
    context.font = BOLD;
    const text = fitted(
      context,
      `${this.words().costs.peak} ≥ ${bytesText(line.peakBytes)} · #${line.peak.toLocaleString()} ${line.peakOp}`,
      width,
    );
    const wide = context.measureText(text).width;
    context.textAlign = 'left';
    context.fillText(text, Math.max(LEFT, Math.min(at - wide / 2, LEFT + width - wide)), Math.max(8, top - 16));
    context.font = FONT;
  }
}
