// A canvas that fills its place, sharp on every screen, with a note beside the pointer.

import { h, replace } from './dom.ts';

export const FONT =
  "11px Inter, 'Segoe UI', Roboto, 'Noto Sans', Helvetica, Arial, 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', sans-serif";
export const BOLD = `600 ${FONT}`;

export class Chart {
  readonly canvas = h('canvas', { tabindex: 0, role: 'application' });
  readonly tip = h('div', { class: 'tip chart-tip', role: 'status' });
  readonly element = h('div', { class: 'chart' }, this.canvas, this.tip);
  width = 0;
  height = 0;

  /** `resized` is called when its place has changed; the first time too. */
  constructor(resized: () => void) {
    new ResizeObserver(() => {
      const { clientWidth, clientHeight } = this.element;
      if (clientWidth === this.width && clientHeight === this.height) return;
      this.measure();
      if (this.width && this.height) resized();
    }).observe(this.element);
  }

  measure(): boolean {
    this.width = this.element.clientWidth;
    this.height = this.element.clientHeight;
    return this.width > 0 && this.height > 0;
  }

  /** An empty canvas in pixels of the page. */
  begin(): CanvasRenderingContext2D {
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    const context = this.canvas.getContext('2d')!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.font = FONT;
    context.textBaseline = 'middle';
    return context;
  }

  place(event: MouseEvent): [number, number] {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  /** Lines of text (the first is emphasised), or elements, next to a point. */
  note(x: number, y: number, lines: (string | HTMLElement)[]): void {
    replace(this.tip, ...lines.map((line, i) => (typeof line === 'string' ? h('div', { class: i ? '' : 'first' }, line) : line)));
    this.tip.classList.add('on');
    const { offsetWidth, offsetHeight } = this.tip;
    const left = x + 14 + offsetWidth > this.width ? Math.max(0, x - 14 - offsetWidth) : x + 14;
    const top = y + 14 + offsetHeight > this.height ? Math.max(0, Math.min(y - 12 - offsetHeight, this.height - offsetHeight - 2)) : y + 14;
    this.tip.style.transform = `translate(${left}px, ${top}px)`;
  }

  quiet(): void {
    this.tip.classList.remove('on');
  }
}

/** Text that fits a width, cut where it does not; empty where nothing would be left. */
export function fitted(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low >= 2 ? `${text.slice(0, low)}…` : '';
}

/** Round figures from 0 up to `most`, about `count` of them. */
export function ticks(most: number, count: number): number[] {
  if (!(most > 0)) return [0];
  const rough = most / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((size) => size >= rough)!;
  const out: number[] = [];
  for (let i = 0; i * step <= most; i++) out.push(i * step);
  return out;
}
