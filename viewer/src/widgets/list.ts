// A list of any length, of which only the rows in view exist.

import { later } from '../state/later.ts';
import { h } from './dom.ts';

/** A list of any length: only the rows in view exist. */
export class VirtualList {
  readonly element: HTMLElement;
  private inner = h('div', { class: 'virtual-inner' });
  private count = 0;
  private drawn = '';
  private goal = -1; // a row to scroll to
  private top = 0;

  constructor(
    private rowHeight: number,
    private row: (index: number) => HTMLElement | null,
    props: Record<string, unknown> = {},
  ) {
    this.element = h('div', { class: 'virtual', tabindex: 0, ...props }, this.inner);
    this.element.addEventListener('scroll', () => ((this.top = this.element.scrollTop), this.drawNow(false)));
    new ResizeObserver(() => {
      // Put back into the page, an element has lost its place.
      if (this.element.clientHeight && this.element.scrollTop === 0 && this.top > 0) this.element.scrollTop = this.top;
      this.drawNow(true);
    }).observe(this.element);
  }

  set(count: number): void {
    this.count = count;
    // Browsers cannot make an element taller than about 30 million pixels.
    this.inner.style.height = `${Math.min(count * this.rowHeight, 16_000_000)}px`;
    this.draw();
  }

  range(): [number, number] {
    const factor = Math.max(1, (this.count * this.rowHeight) / 16_000_000);
    const first = Math.max(0, Math.floor((this.element.scrollTop * factor) / this.rowHeight) - 4);
    return [first, Math.min(this.count, first + Math.ceil(this.element.clientHeight / this.rowHeight) + 10)];
  }

  /** All rows anew, in the next frame. */
  draw(): void {
    later(this, () => this.drawNow(true));
  }

  private drawNow(force: boolean): void {
    // Not yet in the page: it is drawn again when it is.
    if (this.goal >= 0 && this.element.clientHeight) {
      this.scroll(this.goal);
      this.goal = -1;
    }
    const [first, last] = this.range();
    const key = `${first}-${last}`;
    if (key === this.drawn && !force) return;
    this.drawn = key;
    const factor = Math.max(1, (this.count * this.rowHeight) / 16_000_000);
    const offset =
      factor > 1 ? this.element.scrollTop - (this.element.scrollTop * factor - first * this.rowHeight) : first * this.rowHeight;
    const rows: HTMLElement[] = [];
    for (let i = first; i < last; i++) {
      const element = this.row(i);
      if (!element) continue;
      element.style.cssText += `;position:absolute;top:${offset + (i - first) * this.rowHeight}px;height:${this.rowHeight}px;left:0;right:0`;
      rows.push(element);
    }
    this.inner.replaceChildren(...rows);
  }

  /** Called with 1 or −1 when an arrow key asks for the next row or the one before. */
  onStep(step: (by: number) => void): void {
    this.element.addEventListener('keydown', (event) => {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      step(by);
    });
  }

  /** The least width of the rows, for a list that scrolls both ways. */
  widen(width: string): void {
    this.inner.style.minWidth = width;
  }

  /** The rows that can be seen as a whole: first, and the one after the last. */
  inView(): [number, number] {
    const factor = Math.max(1, (this.count * this.rowHeight) / 16_000_000);
    const top = (this.element.scrollTop * factor) / this.rowHeight;
    return [Math.ceil(top), Math.floor(top + this.element.clientHeight / this.rowHeight)];
  }

  scrollTo(index: number): void {
    this.goal = index;
    this.draw();
  }

  private scroll(index: number): void {
    const factor = Math.max(1, (this.count * this.rowHeight) / 16_000_000);
    const top = (index * this.rowHeight) / factor;
    if (top < this.element.scrollTop || top > this.element.scrollTop + this.element.clientHeight - this.rowHeight * 2) {
      this.element.scrollTop = top - this.element.clientHeight / 2;
    }
  }
}
