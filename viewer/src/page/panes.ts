// How much room the lists, the details and the panel below have: splitters between them and the drawing, which fold and are
// remembered; and the drawing alone.

import type { Side } from '../state/page.ts';
import { h } from '../widgets/dom.ts';
import type { Page } from './page.ts';

const LEAST: Record<Side, number> = { left: 140, right: 180, low: 90 };
/** The least of the drawing that stays. */
const LEAST_DRAWING = 160;
const STEP = 24; // pixels of an arrow key
const KEPT = 'opscope panes';

export function showPanes(page: Page): void {
  const { state, views, places, root } = page;
  state.panes.set({ ...state.panes.get(), ...remembered() });
  places.left.after(splitter(page, 'left'));
  places.right.before(splitter(page, 'right'));
  places.low.before(splitter(page, 'low'));
  const leave = h('button', { class: 'leave-full', hidden: true, onclick: () => setFull(page, false) });
  places.canvas.after(leave);
  views.add(
    'panes',
    () => [state.panes.get(), state.full.get(), state.low.get(), page.words()] as const,
    ([panes, full, low, { habits }]) => {
      for (const side of ['left', 'right', 'low'] as const) {
        const size = panes[side];
        if (size > 0) root.style.setProperty(`--${side}-size`, `${size}px`);
        else root.style.removeProperty(`--${side}-size`);
        root.classList.toggle(`${side}-folded`, panes.folded.includes(side));
        const bar = root.querySelector<HTMLElement>(`.splitter.at-${side}`)!;
        bar.setAttribute('aria-label', habits.splitter[side]);
        bar.title = habits.folded;
        bar.setAttribute('aria-valuenow', String(panes.folded.includes(side) ? 0 : Math.round(sizeOf(page, side))));
      }
      root.classList.toggle('low-open', low !== '');
      root.classList.toggle('full', full);
      leave.hidden = !full;
      leave.textContent = `${habits.leaveFull} (Esc)`;
      page.renderer.resize();
    },
  );
}

/** Away, or back. Below, it is the open panel that closes. */
export function fold(page: Page, side: Side): void {
  const { state } = page;
  if (side === 'low') {
    state.low.set('');
    return;
  }
  const { folded, ...sizes } = state.panes.get();
  save(page, { ...sizes, folded: folded.includes(side) ? folded.filter((other) => other !== side) : [...folded, side] });
}

export function setFull({ state }: Page, full: boolean): void {
  state.full.set(full);
}

function splitter(page: Page, side: Side): HTMLElement {
  const upright = side !== 'low';
  const element: HTMLElement = h('div', {
    class: `splitter at-${side}`,
    role: 'separator',
    tabindex: 0,
    'data-key': `splitter ${side}`,
    'aria-orientation': upright ? 'vertical' : 'horizontal',
    'aria-valuemin': 0,
    'aria-valuemax': 4000,
    ondblclick: () => fold(page, side),
  });
  let grip: { at: number; size: number } | null = null;
  const place = (event: PointerEvent) => (upright ? event.clientX : event.clientY);
  element.addEventListener('pointerdown', (event) => {
    if (page.state.panes.get().folded.includes(side)) fold(page, side);
    element.setPointerCapture(event.pointerId);
    grip = { at: place(event), size: sizeOf(page, side) };
  });
  element.addEventListener('pointermove', (event) => {
    if (grip) resize(page, side, grip.size + (place(event) - grip.at) * (side === 'left' ? 1 : -1));
  });
  for (const end of ['pointerup', 'pointercancel'] as const) element.addEventListener(end, () => (grip = null));
  element.addEventListener('keydown', (event) => {
    const by = { ArrowLeft: -STEP, ArrowUp: -STEP, ArrowRight: STEP, ArrowDown: STEP }[event.key];
    if (by && (event.key === 'ArrowLeft' || event.key === 'ArrowRight') === upright)
      // As it will be: keys may come faster than frames.
      resize(page, side, (page.state.panes.get()[side] || sizeOf(page, side)) + by * (side === 'left' ? 1 : -1));
    else if (event.key === 'Enter' || event.key === ' ') fold(page, side);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return element;
}

function sizeOf({ places }: Page, side: Side): number {
  const box = places[side].getBoundingClientRect();
  return side === 'low' ? box.height : box.width;
}

function resize(page: Page, side: Side, wanted: number): void {
  const { state, root, places } = page;
  const panes = state.panes.get();
  const others = side === 'left' ? sizeOf(page, 'right') : sizeOf(page, 'left');
  const room = side === 'low' ? places.low.parentElement!.clientHeight : root.clientWidth - others;
  save(page, {
    ...panes,
    [side]: Math.max(LEAST[side], Math.min(room - LEAST_DRAWING, wanted)),
    folded: panes.folded.filter((one) => one !== side),
  });
}

type Panes = ReturnType<Page['state']['panes']['get']>;

function save({ state }: Page, panes: Panes): void {
  state.panes.set(panes);
  try {
    localStorage.setItem(KEPT, JSON.stringify(panes));
  } catch {
    // A page inside a notebook may keep nothing.
  }
}

function remembered(): Partial<Panes> {
  try {
    const { left, right, low, folded } = JSON.parse(localStorage.getItem(KEPT) ?? '{}') as Record<string, unknown>;
    const size = (of: unknown) => (typeof of === 'number' && of > 0 && of < 4000 ? of : 0);
    const sides = Array.isArray(folded) ? (['left', 'right'] as const).filter((side) => folded.includes(side)) : [];
    return { left: size(left), right: size(right), low: size(low), folded: sides };
  } catch {
    return {};
  }
}
