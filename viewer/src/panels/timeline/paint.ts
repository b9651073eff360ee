// The timeline on its canvas.

import { mixCss } from '../../draw/colour.ts';
import { textOn, type Theme } from '../../draw/theme.ts';
import type { SpanFacts, TimelineInfo } from '../../engine/timeline/timeline.ts';
import { FOUND, SELECTED, SEVERAL, type Window } from '../../engine/timeline/window.ts';
import { PHASES } from '../../scene.ts';
import { percent, plain, secondsText } from '../../text/figures.ts';
import { BOLD, fitted, FONT } from '../../widgets/chart.ts';
import { GUTTER, OVERVIEW, RULER, TOP, type View } from './places.ts';
import type { TimelineWords } from './words.ts';

export interface Overview {
  streams: Float32Array;
  threads: Float32Array;
}

export interface Shown {
  view: View;
  info: TimelineInfo;
  window: Window | null;
  overview: Overview | null;
  /** Something is selected, and it ran here. */
  isLit: boolean;
  hovered: { lane: number; x: number; width: number } | null;
  current: SpanFacts | null;
  theme: Theme;
  words: TimelineWords;
}

const LEAST_GAP = 64; // pixels, for the words in it
// What is of no phase: Paul Tol's light scheme, as it is readable behind text in both themes.
const OTHERS: Record<'light' | 'dark', string[]> = {
  light: ['#c6ccd6', '#b9d3c2', '#d2d6de', '#d8cbe8', '#d9c98f'],
  dark: ['#4a5362', '#3d5a4a', '#454c59', '#56467a', '#6b5d2c'],
};

/** The fill of a tone, and the text on it. */
interface Paint {
  fill: string;
  text: string;
}

const made = new Map<string, Paint>();

function paintOf(theme: Theme, tone: number, isModule: boolean, share: number): Paint {
  const key = `${theme.name} ${tone} ${isModule} ${share}`;
  let paint = made.get(key);
  if (!paint) {
    const phase = theme.phases[tone];
    const solid = phase ? (isModule ? mixCss(phase.tint, phase.flat, 0.25) : phase.flat) : OTHERS[theme.name][tone - PHASES.length]!;
    const fill = share < 255 ? mixCss(theme.panels[0]!, solid, 0.25 + (0.75 * share) / 255) : solid;
    made.set(key, (paint = { fill, text: textOn(theme, fill) }));
  }
  return paint;
}

export function paint(context: CanvasRenderingContext2D, width: number, height: number, shown: Shown): void {
  const { theme, view } = shown;
  context.save();
  context.beginPath();
  context.rect(GUTTER, TOP, width - GUTTER, height - TOP);
  context.clip();
  drawLanes(context, width, shown);
  drawSteps(context, height, shown);
  drawSpans(context, shown);
  drawLaunch(context, shown);
  drawHovered(context, shown);
  context.restore();
  drawRuler(context, width, shown);
  drawOverview(context, width, shown);
  drawNames(context, height, shown);
  if (view.mostScroll > 0) {
    const share = view.height / (view.height + view.mostScroll);
    context.fillStyle = theme.dimText;
    context.globalAlpha = 0.4;
    context.fillRect(width - 5, TOP + (view.scroll / (view.height + view.mostScroll)) * view.height, 4, Math.max(16, share * view.height));
    context.globalAlpha = 1;
  }
}

function drawLanes(context: CanvasRenderingContext2D, width: number, { view, theme, info }: Shown): void {
  const [first, last] = view.shown;
  for (let l = first; l < last; l++) {
    if (info.lanes[l]!.kind === 'phase') continue;
    context.fillStyle = theme.panels[info.lanes[l]!.kind === 'event' ? 1 : 0]!;
    context.fillRect(GUTTER, view.y(l), width - GUTTER, view.lanes[l]!.height);
  }
}

/** A step of the program: a line where it begins. */
function drawSteps(context: CanvasRenderingContext2D, height: number, { view, info, theme }: Shown): void {
  context.fillStyle = theme.dimText;
  context.globalAlpha = 0.45;
  for (const { start, end } of info.steps)
    for (const time of [start, end])
      if (time >= view.from && time <= view.to) context.fillRect(Math.round(view.x(time)), TOP, 1, height - TOP);
  context.globalAlpha = 1;
}

const widths = new Map<string, number>();
const MOST_WIDTHS = 20_000;

/** Text cut to a width; measuring each anew takes longer than drawing it. */
function cut(context: CanvasRenderingContext2D, text: string, room: number): string {
  let width = widths.get(text);
  if (width === undefined) {
    if (widths.size > MOST_WIDTHS) widths.clear();
    widths.set(text, (width = context.measureText(text).width));
  }
  if (width <= room) return text;
  const letters = Math.floor((text.length * room) / width) - 1;
  return letters >= 2 ? `${text.slice(0, letters)}…` : '';
}

function drawSpans(context: CanvasRenderingContext2D, shown: Shown): void {
  const { view, window, theme, info } = shown;
  if (!window) return;
  const ratio = (view.width * (window.to - window.from)) / view.span / window.pixels;
  const left = view.x(window.from);
  const right = GUTTER + view.width;
  context.font = FONT;
  context.textAlign = 'left';
  const [first, last] = view.shown;
  for (let l = Math.max(first, window.firstLane); l < last; l++) {
    const at = l - window.firstLane;
    if (at + 1 >= window.starts.length) break;
    const [y, lane] = [view.y(l), info.lanes[l]!];
    const height = view.lanes[l]!.height;
    let fill = '';
    for (let r = window.starts[at]!; r < window.starts[at + 1]!; r++) {
      const x = left + window.x[r]! * ratio;
      const width = window.width[r]! * ratio;
      if (x + width < GUTTER || x > right) continue;
      const colours = paintOf(theme, window.tone[r]!, lane.kind === 'module', window.share[r]!);
      const flags = window.flags[r]!;
      if (fill !== colours.fill) context.fillStyle = fill = colours.fill;
      const isDim = shown.isLit && lane.kind !== 'phase' && !(flags & SELECTED);
      if (isDim) context.globalAlpha = 0.38;
      context.fillRect(x, y, width > 3 ? width - 1 : Math.max(1, width), height);
      if (isDim) context.globalAlpha = 1;
      if (window.label[r]! >= 0) {
        const [begin, end] = [Math.max(x, GUTTER), Math.min(x + width, right)];
        const text = cut(context, window.labels[window.label[r]!]!, end - begin - 8);
        if (text) {
          context.fillStyle = isDim ? theme.dimText : colours.text;
          context.fillText(text, begin + 4, y + height / 2 + 0.5);
          fill = '';
        }
      }
      if (flags & (SELECTED | FOUND)) {
        mark(context, x, y, width, height, flags, theme);
        fill = '';
      }
    }
    if (lane.kind === 'event' && lane.depth === 0 && info.tracks[lane.track]!.isStream) drawGaps(context, shown, l, left, ratio);
  }
}

function mark(context: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, flags: number, theme: Theme): void {
  if (flags & FOUND) {
    context.fillStyle = theme.found;
    context.fillRect(x, y, Math.max(2, width - 1), 3);
  }
  if (!(flags & SELECTED)) return;
  if (flags & SEVERAL || width < 6) {
    context.fillStyle = theme.selected;
    context.fillRect(x, y + height - 4, Math.max(2, width), 4);
  } else {
    context.strokeStyle = theme.selected;
    context.lineWidth = 1.5;
    context.strokeRect(x + 0.75, y + 0.75, width - 2.5, height - 1.5);
  }
}

/** How long a device waited, where there is room to say so. */
function drawGaps(
  context: CanvasRenderingContext2D,
  { view, window, theme, words }: Shown,
  lane: number,
  left: number,
  ratio: number,
): void {
  const at = lane - window!.firstLane;
  let end = NaN;
  context.fillStyle = theme.dimText;
  context.textAlign = 'center';
  for (let r = window!.starts[at]!; r < window!.starts[at + 1]!; r++) {
    const x = left + window!.x[r]! * ratio;
    const [from, to] = [Math.max(end, GUTTER), Math.min(x, GUTTER + view.width)];
    if (to - from > LEAST_GAP && x - end > LEAST_GAP) {
      const text = words.idle(secondsText(((x - end) / view.width) * view.span));
      if (to - from > context.measureText(text).width + 10)
        context.fillText(text, (from + to) / 2, view.y(lane) + view.lanes[lane]!.height / 2);
    }
    end = x + window!.width[r]! * ratio;
  }
  context.textAlign = 'left';
}

/** From the call that started a piece of work to it. */
function drawLaunch(context: CanvasRenderingContext2D, { view, current, theme }: Shown): void {
  if (!current?.launch) return;
  const { launch } = current;
  const [x1, x2] = [view.x(launch.start), view.x(current.start)];
  const [l1, l2] = [view.lanes[launch.lane], view.lanes[current.lane]];
  if (!l1 || !l2) return;
  const [y1, y2] = [view.y(launch.lane) + l1.height / 2, view.y(current.lane) + l2.height / 2];
  const bend = Math.max(20, Math.abs(x2 - x1) / 2);
  context.strokeStyle = theme.selected;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x1, y1);
  context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
  context.stroke();
  context.fillStyle = theme.selected;
  context.beginPath();
  context.moveTo(x2 + 1, y2);
  context.lineTo(x2 - 6, y2 - 4);
  context.lineTo(x2 - 6, y2 + 4);
  context.fill();
}

function drawHovered(context: CanvasRenderingContext2D, { view, hovered, current, theme }: Shown): void {
  if (current) {
    const [x, width] = [view.x(current.start), ((current.end - current.start) / view.span) * view.width];
    context.strokeStyle = theme.selected;
    context.lineWidth = 2;
    context.strokeRect(x - 0.5, view.y(current.lane) - 0.5, Math.max(2, width), view.lanes[current.lane]!.height + 1);
  }
  if (!hovered) return;
  context.strokeStyle = theme.text;
  context.lineWidth = 1;
  context.strokeRect(hovered.x - 0.5, view.y(hovered.lane) - 0.5, Math.max(2, hovered.width), view.lanes[hovered.lane]!.height + 1);
}

/** A round number of seconds between two marks of the ruler. */
export function tickStep(span: number, count: number): number {
  const rough = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= rough) ?? rough;
}

function drawRuler(context: CanvasRenderingContext2D, width: number, { view, theme, info }: Shown): void {
  context.fillStyle = theme.panels[0]!;
  context.fillRect(GUTTER, OVERVIEW, width - GUTTER, RULER);
  context.font = FONT;
  context.textAlign = 'left';
  const step = tickStep(view.span, view.width / 110);
  for (let i = Math.ceil(view.from / step); i * step <= view.to; i++) {
    const x = Math.round(view.x(i * step));
    context.fillStyle = theme.grid;
    context.fillRect(x, OVERVIEW + 2, 1, RULER);
    context.fillStyle = theme.dimText;
    context.fillText(timeText(i * step, step), x + 4, OVERVIEW + RULER / 2 + 1);
  }
  context.font = BOLD;
  for (const { name, start, end } of info.steps) {
    const [x1, x2] = [Math.max(GUTTER, view.x(start)), Math.min(GUTTER + view.width, view.x(end))];
    const text = x2 - x1 > 40 ? fitted(context, name, x2 - x1 - 8) : '';
    if (!text) continue;
    context.fillStyle = theme.panels[1]!;
    context.fillRect(x1, OVERVIEW + 3, context.measureText(text).width + 8, RULER - 5);
    context.fillStyle = theme.text;
    context.fillText(text, x1 + 4, OVERVIEW + RULER / 2 + 1);
  }
  context.font = FONT;
  context.fillStyle = theme.panelBorder;
  context.fillRect(GUTTER, TOP - 1, width - GUTTER, 1);
}

/** A time on the ruler, as exact as its marks. */
function timeText(time: number, step: number): string {
  if (time === 0) return '0';
  const [unit, size] = (
    [
      ['s', 1],
      ['ms', 1e-3],
      ['µs', 1e-6],
      ['ns', 1e-9],
    ] as const
  ).find(([, size]) => time >= size && step >= size / 1000) ?? ['ns', 1e-9];
  const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10(step / size) - 1e-9)));
  return `${(time / size).toFixed(digits)} ${unit}`;
}

function drawOverview(context: CanvasRenderingContext2D, width: number, { view, theme, overview, info, words }: Shown): void {
  const room = width - GUTTER;
  context.fillStyle = theme.panels[0]!;
  context.fillRect(0, 0, width, OVERVIEW);
  if (overview) {
    const rows = [overview.streams, overview.threads].filter((row, i) => (i === 0 ? info.tracks.some((t) => t.isStream) : row.length));
    const height = (OVERVIEW - 4) / rows.length;
    rows.forEach((row, i) => {
      const bottom = 2 + (i + 1) * height - 1;
      context.fillStyle = row === overview.streams ? theme.selected : theme.dimText;
      context.globalAlpha = 0.75;
      row.forEach(
        (share, p) =>
          share > 0 &&
          context.fillRect(GUTTER + (p / row.length) * room, bottom - share * (height - 2), room / row.length + 0.3, share * (height - 2)),
      );
      context.globalAlpha = 1;
      context.fillStyle = theme.dimText;
      context.textAlign = 'right';
      context.fillText(row === overview.streams ? words.streams : words.threads, GUTTER - 8, bottom - height / 2 + 1);
    });
  }
  const whole = Math.max(info.span, 1e-12);
  const [from, to] = [GUTTER + (view.from / whole) * room, GUTTER + (view.to / whole) * room];
  context.fillStyle = theme.background;
  context.globalAlpha = 0.62;
  context.fillRect(GUTTER, 0, from - GUTTER, OVERVIEW);
  context.fillRect(to, 0, width - to, OVERVIEW);
  context.globalAlpha = 1;
  context.strokeStyle = theme.viewport;
  context.lineWidth = 1.5;
  context.strokeRect(from + 0.75, 0.75, Math.max(3, to - from - 1.5), OVERVIEW - 1.5);
}

/** The names of the tracks, at the left. */
function drawNames(context: CanvasRenderingContext2D, height: number, { view, info, theme, words }: Shown): void {
  context.save();
  context.beginPath();
  context.rect(0, TOP, GUTTER, height - TOP);
  context.clip();
  context.fillStyle = theme.panels[0]!;
  context.fillRect(0, TOP, GUTTER, height - TOP);
  context.textAlign = 'left';
  view.tracks.forEach(({ track, y, height: tall }) => {
    const top = TOP + y - view.scroll;
    if (top > height || top + tall < TOP) return;
    const { name, isStream, device, busy } = info.tracks[track]!;
    const share = words.busy(percent(busy, info.span));
    context.fillStyle = theme.panelBorder;
    context.fillRect(0, top - 5, GUTTER, 1);
    // The name stays in view as long as its track is.
    const at = Math.min(Math.max(top, TOP + 4), top + Math.max(0, tall - 34));
    const isTall = tall >= 34;
    const title = isStream && device >= 0 ? `${words.device(device)} · ${name.trim()}` : name;
    context.font = BOLD;
    context.fillStyle = theme.text;
    context.fillText(fitted(context, title, GUTTER - 20), 12, at + 9);
    context.font = FONT;
    context.fillStyle = theme.dimText;
    if (isTall) context.fillText(plain(share), 12, at + 24);
  });
  context.fillStyle = theme.panelBorder;
  context.fillRect(GUTTER - 1, TOP, 1, height - TOP);
  context.restore();
}
