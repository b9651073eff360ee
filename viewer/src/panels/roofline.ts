// Operators against what a device can do: FLOPs for each byte, and the FLOP/s that are possible with them.

import type { Theme } from '../draw/theme.ts';
import { percent, plain, secondsText, shortNumber, bytesText } from '../text/figures.ts';
import type { RoofPoint, Roofs } from '../engine/messages.ts';
import { peakOf, type Device } from '../engine/roofs.ts';
import type { Reached } from '../engine/work.ts';
import { PHASES } from '../scene.ts';
import type { Words } from '../state/words.ts';
import { BOLD, Chart, FONT } from '../widgets/chart.ts';
import { h, replace, short } from '../widgets/dom.ts';

const LEFT = 74;
const RIGHT = 18;
const TOP = 14;
const BOTTOM = 36;
const MOST_ROOFS = 3;
const KINDS: [light: string, dark: string][] = [
  ['#4477aa', '#6b9fd6'],
  ['#ee6677', '#f2808f'],
  ['#228833', '#4fb562'],
  ['#b8860b', '#e3b64f'],
  ['#0891a8', '#5cc6da'],
  ['#aa3377', '#d067a2'],
  ['#7a4fc4', '#a98be0'],
  ['#8c5a2b', '#c28f5c'],
];

export interface RooflineCalls {
  roofs(device: Device): Promise<Roofs | null>;
  nodes(items: number[]): Promise<number[]>; // runs of operators
  reached(items: number[], device: Device): Promise<Reached | null>;
  names(): Promise<string[]>; // of the devices that were measured
  select(items: number[]): void;
  hover(items: number[]): void;
  run(work: Promise<unknown>): void;
}

/** FLOP/s that were reached; 0: nothing was measured. */
function achieved(point: RoofPoint): number {
  return point.took > 0 ? (point.flops * point.count) / point.took : 0;
}

export class RooflineChart {
  readonly head = h('div', { class: 'chart-head' });
  private chart = new Chart(() => this.calls.run(this.show()));
  private note = h('div', { class: 'roof-note' });
  readonly element = this.chart.element;
  device = ''; // empty: the one that was measured
  /** Of what is selected. */
  private reached: Reached | null = null;
  private names: string[] = [];
  by: 'phase' | 'kind' = 'phase';
  roofs: Roofs | null = null;
  private hovered = -1;
  private marked = new Set<number>(); // points
  private selection: number[] = [];
  private kinds: string[] = [];
  private range = { x0: -2, x1: 4, y0: 9, y1: 15 }; // powers of ten
  private theme!: Theme;
  changed: () => void = () => undefined;

  constructor(
    private devices: Device[],
    private calls: RooflineCalls,
    private words: () => Words,
  ) {
    const { canvas } = this.chart;
    this.element.append(this.note);
    canvas.addEventListener('mousemove', (event) => this.point(...this.chart.place(event)));
    canvas.addEventListener('mouseleave', () => this.point(-1, -1));
    canvas.addEventListener('click', (event) => this.pick(this.at(...this.chart.place(event))));
    canvas.addEventListener('keydown', (event) => this.onKey(event));
  }

  private get chosen(): Device | undefined {
    return this.devices.find(({ name }) => name === (this.device || this.measuredOn || 'h100')) ?? this.devices[0];
  }

  /** Of the device that is shown. */
  get shownDevice(): string {
    return this.chosen?.name ?? '';
  }

  /** The one device that the profile names, where its peaks are known. */
  private get measuredOn(): string {
    const called = this.names.length === 1 ? this.names[0]!.toLowerCase().trim().replace(/\s+/g, ' ') : '';
    const known = this.devices.find(({ reported }) => reported && new RegExp(`^(?:${reported})$`).test(called));
    return called && known ? known.name : '';
  }

  async show(theme = this.theme): Promise<void> {
    this.theme = theme;
    this.names = await this.calls.names();
    const device = this.chosen;
    if (!this.chart.measure() || !device) return;
    this.roofs = await this.calls.roofs(device);
    this.hovered = -1;
    if (this.roofs) {
      const time = new Map<string, number>();
      for (const point of this.roofs.points) time.set(point.op, (time.get(point.op) ?? 0) + point.seconds);
      this.kinds = [...time]
        .sort((a, b) => b[1] - a[1])
        .map(([op]) => op)
        .slice(0, KINDS.length);
      this.frame(this.roofs, device);
    }
    this.redrawHead();
    await this.mark(this.selection);
  }

  /** The points that hold what is selected. */
  async mark(selection: number[]): Promise<void> {
    this.selection = selection;
    const runs = selection.length ? await this.calls.nodes(selection) : [];
    this.marked.clear();
    const points = this.roofs?.points ?? [];
    const inside = (node: number) => {
      let [low, high] = [0, runs.length / 2 - 1];
      while (low <= high) {
        const middle = (low + high) >> 1;
        if (runs[2 * middle + 1]! < node) low = middle + 1;
        else if (runs[2 * middle]! > node) high = middle - 1;
        else return true;
      }
      return false;
    };
    if (runs.length) points.forEach((point, i) => point.nodes.some(inside) && this.marked.add(i));
    const device = this.chosen;
    this.reached = device && selection.length && this.roofs?.reached ? await this.calls.reached(selection, device) : null;
    this.redrawHead();
    this.draw();
  }

  private frame(roofs: Roofs, device: Device): void {
    // What takes next to no time may be at the edge.
    const took = roofs.reached?.seconds ?? 0;
    const telling = roofs.points.filter(
      (point, i) => i < 20 || (took > 0 ? point.took > 1e-3 * took : point.seconds > 1e-4 * roofs.seconds),
    );
    const xs = telling.map((point) => Math.log10(point.x));
    const ys = telling.flatMap((point) => [point.y, achieved(point)].filter((y) => y > 0).map(Math.log10));
    const top = Math.max(...this.levels(roofs, device).map(([, flops]) => flops));
    const ridge = Math.log10(top / device.bandwidth);
    let [x0, x1, y0] = [Infinity, -Infinity, Infinity];
    for (const x of xs) [x0, x1] = [Math.min(x0, x), Math.max(x1, x)];
    for (const y of ys) y0 = Math.min(y0, y);
    if (!xs.length) [x0, x1, y0] = [-1, 3, Math.log10(top) - 4];
    x0 = Math.floor(Math.min(x0, ridge - 1) - 0.15);
    this.range = { x0, x1: Math.ceil(Math.max(x1, ridge + 1) + 0.15), y0: Math.floor(y0 - 0.15), y1: Math.log10(top) + 0.7 };
  }

  /** The roofs: what the device computes at most in the dtypes of this graph. */
  private levels(roofs: Roofs, device: Device): [string, number][] {
    const found = new Map<number, string[]>();
    for (const dtype of roofs.dtypes.length ? roofs.dtypes.slice(0, MOST_ROOFS) : ['float32']) {
      const peak = peakOf(device, dtype);
      found.set(peak, [...(found.get(peak) ?? []), dtype]);
    }
    const levels = [...found].map(([peak, dtypes]): [string, number] => [dtypes.join(', '), peak]);
    if (!found.has(device.other)) levels.push([this.words().costs.noProduct, device.other]);
    return levels;
  }

  private colour(point: RoofPoint): string {
    if (this.by === 'phase') return this.theme.phases[point.phase]!.accent;
    const kind = KINDS[this.kinds.indexOf(point.op)];
    return kind ? kind[this.theme.name === 'dark' ? 1 : 0] : this.theme.phases[5]!.accent;
  }

  private redrawHead(): void {
    const words = this.words();
    const { roofs } = this;
    const device = this.chosen;
    if (!device) return;
    const left = roofs
      ? [
          roofs.moving ? words.costs.moving(roofs.moving, secondsText(roofs.movingSeconds)) : '',
          roofs.unknown ? words.costs.notPlaced(roofs.unknown) : '',
          roofs.endless ? words.costs.endless(roofs.endless) : '',
        ].filter(Boolean)
      : [];
    replace(
      this.head,
      h(
        'select',
        {
          'aria-label': words.costs.deviceLabel,
          onchange: (event: Event) => {
            this.device = (event.target as HTMLSelectElement).value;
            this.calls.run(this.show());
            this.changed();
          },
        },
        ...this.devices.map((one) => h('option', { value: one.name, selected: one.name === device.name }, short(one.title, 44))),
      ),
      h(
        'select',
        {
          'aria-label': words.colour,
          onchange: (event: Event) => {
            this.by = (event.target as HTMLSelectElement).value as 'phase' | 'kind';
            this.redrawHead();
            this.draw();
            this.changed();
          },
        },
        ...(['phase', 'kind'] as const).map((by) =>
          h('option', { value: by, selected: by === this.by }, `${words.colour}: ${by === 'phase' ? words.byPhase : words.costs.byKind}`),
        ),
      ),
      h('span', { class: 'grow' }),
      left.length ? h('span', { class: 'chart-facts', title: left.join('\n') }, words.costs.notDrawn(left.length, left[0]!)) : null,
      roofs && this.total(roofs),
    );
    this.redrawNote();
    const sum = roofs ? `≥ ${secondsText(roofs.seconds)}` : '';
    this.chart.canvas.setAttribute('aria-label', `${words.costs.views.roofline}. ${device.title}. ${sum}. ${words.costs.roofKeys}`);
  }

  /** What was made of the device, of the selection or of all; where nothing was measured, the least time. */
  private total(roofs: Roofs): HTMLElement {
    const { costs } = this.words();
    const reached = this.reached?.seconds ? this.reached : roofs.reached;
    if (!reached?.seconds)
      return h(
        'b',
        { class: 'chart-total', title: costs.leastHelp },
        `≥ ${secondsText(roofs.seconds)}`,
        h('span', { class: 'chart-facts' }, ` ${costs.boundByMemory(percent(roofs.byMemory, roofs.seconds))}`),
      );
    const share = (part: number) => percent(part, reached.seconds);
    return h(
      'b',
      {
        class: 'chart-total',
        title: `${costs.reachedHelp}${reached.unknown ? `\n${costs.reachedUnknown(secondsText(reached.unknown))}` : ''}`,
      },
      `${reached === this.reached ? `${costs.ofSelection} ` : ''}${secondsText(reached.seconds)}`,
      h('span', { class: 'chart-facts' }, ` ${costs.reached(share(reached.bound), share(reached.products), share(reached.memory))}`),
    );
  }

  /** What the device can do, where that is written, and what the colours mean: in the corner that has no points. */
  private redrawNote(): void {
    const words = this.words();
    const { roofs } = this;
    const device = this.chosen;
    if (!device || !roofs) return;
    const dark = this.theme.name === 'dark' ? 1 : 0;
    const phases = [...new Set(roofs.points.map((point) => point.phase))].sort();
    const keys =
      this.by === 'phase'
        ? phases.map((phase): [string, string] => [words.phases[PHASES[phase]!], this.theme.phases[phase]!.accent])
        : this.kinds.map((kind, i): [string, string] => [short(kind, 34), KINDS[i]![dark]]);
    const speeds = this.levels(roofs, device).map(([name, flops]) => `${name} ${plain(shortNumber(flops))}FLOP/s`);
    replace(
      this.note,
      h('b', {}, device.title),
      h('div', {}, [...speeds, `${bytesText(device.bandwidth)}/s`].join(' · ')),
      h('div', { class: 'dim' }, device.source),
      this.names.length && this.measuredOn !== device.name
        ? h('div', { class: 'chart-warning' }, words.costs.otherDevice(this.names.join(', ')))
        : null,
      ...keys.map(([name, colour]) => h('div', { class: 'key' }, h('i', { style: `background:${colour}` }), name)),
    );
  }

  // -- what the user does -----------------------------------------------------------------------------

  private x(power: number): number {
    const { x0, x1 } = this.range;
    return LEFT + ((Math.max(x0, Math.min(x1, power)) - x0) / (x1 - x0)) * (this.chart.width - LEFT - RIGHT);
  }

  private y(power: number): number {
    const height = this.chart.height - TOP - BOTTOM;
    return TOP + height - ((Math.max(this.range.y0, power) - this.range.y0) / (this.range.y1 - this.range.y0)) * height;
  }

  private radius(point: RoofPoint): number {
    const { seconds, reached } = this.roofs!;
    const isMeasured = reached !== null && reached.seconds > 0;
    return 3 + 22 * Math.sqrt((isMeasured ? point.took || 0 : point.seconds) / Math.max(isMeasured ? reached.seconds : seconds, 1e-30));
  }

  /** Where the points are, for scripts. */
  places(): { op: string; nodes: number[]; x: number; y: number; took: number }[] {
    return (this.roofs?.points ?? []).map((point) => ({
      op: point.op,
      nodes: point.nodes,
      x: this.x(Math.log10(point.x)),
      y: this.y(Math.log10(achieved(point) || point.y)),
      took: point.took,
    }));
  }

  /** The smallest point there; those drawn last lie on top. */
  private at(px: number, py: number): number {
    const points = this.roofs?.points ?? [];
    for (let i = points.length - 1; i >= 0; i--) {
      const [dx, dy] = [px - this.x(Math.log10(points[i]!.x)), py - this.y(Math.log10(achieved(points[i]!) || points[i]!.y))];
      if (dx * dx + dy * dy <= Math.max(5, this.radius(points[i]!)) ** 2) return i;
    }
    return -1;
  }

  private point(px: number, py: number): void {
    const at = px < 0 ? -1 : this.at(px, py);
    if (at === this.hovered && at < 0) return;
    const other = at !== this.hovered;
    this.hovered = at;
    if (at >= 0) this.describe(at, px, py);
    else this.chart.quiet();
    if (!other) return;
    this.chart.canvas.style.cursor = at >= 0 ? 'pointer' : '';
    this.draw();
    this.calls.hover(at >= 0 ? this.roofs!.points[at]!.nodes.slice(0, 1) : []);
  }

  private describe(at: number, px: number, py: number): void {
    const point = this.roofs!.points[at]!;
    const words = this.words();
    this.chart.note(px, py, [
      `${point.op}${point.count > 1 ? ` ×${point.count.toLocaleString()}` : ` #${point.nodes[0]}`} · ${words.phases[PHASES[point.phase]!]}`,
      `${shortNumber(point.flops)}FLOPs · ${bytesText(point.bytes)} · ${shortNumber(point.x)} FLOP/B`,
      `${shortNumber(point.y)}FLOP/s · ≥ ${secondsText(point.seconds)} (${percent(point.seconds, this.roofs!.seconds)})`,
      point.byMemory ? words.costs.memoryBound : words.costs.computeBound,
      ...(point.took > 0
        ? [words.costs.took(secondsText(point.took), percent(point.seconds, point.took), `${shortNumber(achieved(point))}FLOP/s`)]
        : []),
    ]);
  }

  private pick(at: number): void {
    this.calls.select(at < 0 ? [] : this.roofs!.points[at]!.nodes);
  }

  /** From point to point, those that take longest first. */
  private onKey(event: KeyboardEvent): void {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const points = this.roofs?.points ?? [];
    if (!step || !points.length || event.altKey || event.ctrlKey || event.metaKey) return;
    const from = [...this.marked][0] ?? (step > 0 ? -1 : points.length);
    const to = Math.max(0, Math.min(points.length - 1, from + step));
    this.pick(to);
    this.describe(to, this.x(Math.log10(points[to]!.x)), this.y(Math.log10(achieved(points[to]!) || points[to]!.y)));
    event.preventDefault();
    event.stopPropagation();
  }

  // -- drawing ----------------------------------------------------------------------------------------

  draw(): void {
    const { chart, theme, roofs } = this;
    const device = this.chosen;
    if (!chart.width || !theme) return;
    const context = chart.begin();
    if (!roofs || !device) return;
    const { x0, x1, y0, y1 } = this.range;
    const [right, bottom] = [chart.width - RIGHT, chart.height - BOTTOM];
    const power = (p: number) => (p >= -2 && p < 5 ? (10 ** p).toLocaleString('en') : `10${superscript(p)}`);
    context.font = FONT;
    for (let p = Math.ceil(x0); p <= x1; p++) {
      context.fillStyle = theme.grid;
      context.fillRect(Math.round(this.x(p)), TOP, 1, bottom - TOP);
      context.fillStyle = theme.dimText;
      context.textAlign = 'center';
      context.fillText(power(p), this.x(p), bottom + 11);
    }
    const every = Math.max(1, Math.ceil((y1 - y0) / Math.max(2, (bottom - TOP) / 22)));
    for (let p = Math.ceil(y0); p <= y1; p += every) {
      context.fillStyle = theme.grid;
      context.fillRect(LEFT, Math.round(this.y(p)), right - LEFT, 1);
      context.fillStyle = theme.dimText;
      context.textAlign = 'right';
      context.fillText(`${plain(shortNumber(10 ** p))}FLOP/s`, LEFT - 8, this.y(p));
    }
    context.fillStyle = theme.dimText;
    context.textAlign = 'right';
    context.fillText(this.words().costs.intensityAxis, right, bottom + 26);
    this.drawRoofs(context, roofs, device, bottom);
    context.save();
    context.beginPath();
    context.rect(LEFT, 0, right - LEFT + RIGHT, bottom);
    context.clip();
    roofs.points.forEach((point, i) => {
      const [x, y, r] = [this.x(Math.log10(point.x)), this.y(Math.log10(achieved(point) || point.y)), this.radius(point)];
      if (point.took > 0) this.drawBound(context, point, x, y, this.marked.size > 0 && !this.marked.has(i));
      context.globalAlpha = this.marked.size && !this.marked.has(i) ? 0.25 : 0.68;
      context.fillStyle = this.colour(point);
      context.beginPath();
      context.arc(x, y, r, 0, 7);
      context.fill();
      context.globalAlpha = 0.9;
      context.strokeStyle = theme.panels[0]!;
      context.lineWidth = 0.75;
      context.stroke();
    });
    context.globalAlpha = 1;
    const ring = (i: number, colour: string, width: number) => {
      const point = roofs.points[i];
      if (!point) return;
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.beginPath();
      context.arc(this.x(Math.log10(point.x)), this.y(Math.log10(achieved(point) || point.y)), this.radius(point) + 1.5, 0, 7);
      context.stroke();
    };
    for (const i of this.marked) ring(i, theme.selected, 2.5);
    ring(this.hovered, theme.text, 1.5);
    context.restore();
  }

  /** From what was reached up to what is possible. */
  private drawBound(context: CanvasRenderingContext2D, point: RoofPoint, x: number, y: number, isDim: boolean): void {
    const top = this.y(Math.log10(point.y));
    context.globalAlpha = isDim ? 0.12 : 0.55;
    context.strokeStyle = this.colour(point);
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x, top);
    context.moveTo(x - 4, top);
    context.lineTo(x + 4, top);
    context.stroke();
  }

  private drawRoofs(context: CanvasRenderingContext2D, roofs: Roofs, device: Device, bottom: number): void {
    const { theme } = this;
    const { x0, x1, y0 } = this.range;
    const slope = Math.log10(device.bandwidth);
    const levels = this.levels(roofs, device).sort((a, b) => b[1] - a[1]);
    const start = Math.max(x0, y0 - slope);
    context.strokeStyle = theme.text;
    context.fillStyle = theme.text;
    levels.forEach(([name, flops], i) => {
      const level = Math.log10(flops);
      const ridge = level - slope;
      context.lineWidth = i ? 1 : 1.75;
      context.setLineDash(i ? [5, 4] : []);
      context.beginPath();
      if (!i) context.moveTo(this.x(start), this.y(slope + start));
      context[i ? 'moveTo' : 'lineTo'](this.x(ridge), this.y(level));
      context.lineTo(this.x(x1), this.y(level));
      context.stroke();
      context.font = i ? FONT : BOLD;
      context.textAlign = 'left';
      context.fillText(`${name} ${plain(shortNumber(flops))}FLOP/s`, this.x(ridge) + 6, this.y(level) + (i ? 9 : -19));
      if (i) return;
      context.setLineDash([2, 3]);
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(this.x(ridge), this.y(level));
      context.lineTo(this.x(ridge), bottom);
      context.stroke();
      context.setLineDash([]);
      context.font = FONT;
      context.textAlign = 'left';
      context.fillText(this.words().costs.ridge(shortNumber(10 ** ridge)), this.x(ridge) + 6, bottom - 9);
    });
    context.setLineDash([]);
    // The name of the slope, along it.
    const [ax, ay] = [this.x(start), this.y(slope + start)];
    const [bx, by] = [this.x(start + 1), this.y(slope + start + 1)];
    const top = this.x(Math.log10(levels[0]![1]) - slope);
    context.save();
    context.translate(ax + (top - ax) * 0.06, ay + ((by - ay) / (bx - ax)) * (top - ax) * 0.06);
    context.rotate(Math.atan2(by - ay, bx - ax));
    context.font = BOLD;
    context.textAlign = 'left';
    context.fillText(`${bytesText(device.bandwidth)}/s`, 0, -9);
    context.restore();
  }
}

function superscript(power: number): string {
  return [...String(power)].map((c) => (c === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[Number(c)])).join('');
}
