// Columns of a table whose widths can be changed: by pulling the edge of a header, by keys on it, by a double-click that
// fits what is in sight. The browser remembers them.

import { h } from './dom.ts';

const LEAST = 36;
const MOST = 1200;
const STEP = 16; // pixels of an arrow key
const ROOM = 14; // beside a text that just fits

interface Grip {
  key: string;
  /** Its place in the row. */
  index: number;
  label: string;
  hint: string;
}

export class Columns {
  private readonly widths = new Map<string, number>();

  /** `kept`: under which name they are remembered; `table`: the element around all rows; `changed`: rows must be drawn again. */
  constructor(
    private readonly kept: string,
    private readonly table: () => HTMLElement,
    private readonly changed: () => void,
  ) {
    try {
      for (const [key, width] of Object.entries(JSON.parse(localStorage.getItem(kept) ?? '{}') as Record<string, unknown>))
        if (typeof width === 'number' && width >= LEAST && width <= MOST) this.widths.set(key, width);
    } catch {
      // A page inside a notebook may keep nothing.
    }
  }

  width(key: string): number | undefined {
    return this.widths.get(key);
  }

  style(key: string): string | undefined {
    const width = this.widths.get(key);
    return width === undefined ? undefined : `flex:0 0 ${width}px`;
  }

  /** The edge of a header that is pulled. */
  grip({ key, index, label, hint }: Grip): HTMLElement {
    let from: { at: number; width: number } | null = null;
    const now = () => this.widths.get(key) ?? element.parentElement!.getBoundingClientRect().width;
    const element: HTMLElement = h('div', {
      class: 'column-grip',
      role: 'separator',
      tabindex: 0,
      'data-key': `width ${key}`,
      'aria-orientation': 'vertical',
      'aria-label': label,
      'aria-valuemin': LEAST,
      'aria-valuemax': MOST,
      'aria-valuenow': Math.round(this.widths.get(key) ?? 0),
      title: hint,
      ondblclick: () => this.set(key, this.fitting(index)),
    });
    element.addEventListener('pointerdown', (event) => {
      event.preventDefault();
      element.focus();
      element.setPointerCapture(event.pointerId);
      from = { at: event.clientX, width: now() };
    });
    element.addEventListener('pointermove', (event) => {
      if (from && event.clientX !== from.at) this.set(key, from.width + event.clientX - from.at);
    });
    for (const end of ['pointerup', 'pointercancel'] as const) element.addEventListener(end, () => (from = null));
    element.addEventListener('keydown', (event) => {
      if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') this.set(key, now() + (event.key === 'ArrowLeft' ? -STEP : STEP));
      else if (event.key === 'Enter' || event.key === ' ') this.set(key, this.fitting(index));
      else if (event.key === 'Delete' || event.key === 'Backspace') this.set(key, null);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    return element;
  }

  /** Null: as wide as it was made. */
  private set(key: string, wanted: number | null): void {
    if (wanted === null) this.widths.delete(key);
    else this.widths.set(key, Math.round(Math.max(LEAST, Math.min(MOST, wanted))));
    try {
      localStorage.setItem(this.kept, JSON.stringify(Object.fromEntries(this.widths)));
    } catch {
      // As above.
    }
    this.changed();
  }

  /** As wide as the widest of what is in sight. */
  private fitting(index: number): number {
    let widest = 0;
    for (const row of this.table().querySelectorAll('[role=row]')) {
      const cell = row.children[index] as HTMLElement | undefined;
      if (!cell) continue;
      const range = document.createRange();
      range.selectNodeContents(cell.querySelector('button') ?? cell);
      widest = Math.max(widest, range.getBoundingClientRect().width);
    }
    return Math.ceil(widest) + ROOM;
  }
}
