// Mouse, trackpad and fingers: what they mean for the camera, and clicks that are not drags.
import type { Camera } from './camera.ts';

/** The fields of a WheelEvent that tell a mouse from a trackpad. */
export interface WheelLike {
  deltaX: number;
  deltaY: number;
  deltaMode: number;
  ctrlKey: boolean;
  timeStamp: number;
}

export type WheelMeaning = { pan: [number, number] } | { zoom: number };

/** Tells trackpads (small, fractional or sideways steps) from wheels; a gesture keeps its meaning until it pauses. */
export class WheelReader {
  #last = -Infinity;
  #trackpad = false;

  read(event: WheelLike): WheelMeaning {
    const unit = event.deltaMode === 1 ? 18 : event.deltaMode === 2 ? 400 : 1;
    const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
    // A pinch on a trackpad arrives as a wheel with ctrl held, in small steps.
    if (event.ctrlKey) return { zoom: Math.exp(-clamp(dy, 60) * 0.01) };
    if (event.timeStamp - this.#last > 200) this.#trackpad = isTrackpad(event);
    else if (event.deltaMode === 0 && event.deltaX !== 0) this.#trackpad = true;
    this.#last = event.timeStamp;
    return this.#trackpad ? { pan: [-dx, -dy] } : { zoom: Math.exp(-clamp(dy, 240) * 0.0018) };
  }
}

function isTrackpad(event: WheelLike): boolean {
  if (event.deltaMode !== 0) return false;
  return event.deltaX !== 0 || !Number.isInteger(event.deltaY) || Math.abs(event.deltaY) < 40;
}

function clamp(v: number, most: number): number {
  return Math.max(-most, Math.min(most, v));
}

/** Where things happened, in pixels from the element's corner. */
export interface Gestures {
  /** A press and release without a drag. */
  tap?: (x: number, y: number, event: PointerEvent) => void;
  doubleTap?: (x: number, y: number, event: MouseEvent) => void;
  /** The pointer is over (x, y) with no button down; (-1, -1) when it left. */
  hover?: (x: number, y: number) => void;
  menu?: (x: number, y: number, event: MouseEvent) => void;
  /** The user took hold of the view. */
  grab?: () => void;
}

const SLOP = 4;

/** Lets an element move the camera; returns the way to stop. */
export function bindGestures(element: HTMLElement, camera: Camera, on: Gestures = {}): () => void {
  const wheels = new WheelReader();
  const down = new Map<number, { x: number; y: number }>();
  let dragged = false;
  let pinched = false;
  let start = { x: 0, y: 0 };
  const stop = new AbortController();
  const { signal } = stop;

  const at = (event: MouseEvent): { x: number; y: number } => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  element.addEventListener(
    'wheel',
    (event) => {
      event.preventDefault();
      const meaning = wheels.read(event);
      const { x, y } = at(event);
      on.grab?.();
      if ('pan' in meaning) camera.pan(...meaning.pan);
      else camera.zoomAt(x, y, meaning.zoom);
    },
    { passive: false, signal },
  );

  element.addEventListener(
    'pointerdown',
    (event) => {
      if (event.button > 1) return;
      element.setPointerCapture(event.pointerId);
      const here = at(event);
      if (down.size === 0) {
        start = here;
        dragged = false;
        pinched = false;
      } else {
        pinched = true;
      }
      down.set(event.pointerId, here);
    },
    { signal },
  );

  element.addEventListener(
    'pointermove',
    (event) => {
      const before = down.get(event.pointerId);
      const here = at(event);
      if (before === undefined) {
        if (down.size === 0) on.hover?.(here.x, here.y);
        return;
      }
      if (!dragged && !pinched && Math.hypot(here.x - start.x, here.y - start.y) < SLOP) return;
      if (!dragged) {
        dragged = true;
        element.style.cursor = 'grabbing';
        on.grab?.();
      }
      const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
      if (other === undefined) {
        camera.pan(here.x - before.x, here.y - before.y);
      } else {
        const [was, is] = [Math.hypot(before.x - other.x, before.y - other.y), Math.hypot(here.x - other.x, here.y - other.y)];
        camera.pan((here.x - before.x) / 2, (here.y - before.y) / 2);
        if (was > 0 && is > 0) camera.zoomAt((here.x + other.x) / 2, (here.y + other.y) / 2, is / was);
      }
      down.set(event.pointerId, here);
    },
    { signal },
  );

  const up = (event: PointerEvent): void => {
    if (!down.delete(event.pointerId) || down.size > 0) return;
    element.style.cursor = '';
    if (event.type === 'pointerup' && !dragged && !pinched && event.button === 0) on.tap?.(start.x, start.y, event);
  };
  element.addEventListener('pointerup', up, { signal });
  element.addEventListener('pointercancel', up, { signal });
  element.addEventListener(
    'pointerleave',
    () => {
      if (down.size === 0) on.hover?.(-1, -1);
    },
    { signal },
  );
  element.addEventListener(
    'dblclick',
    (event) => {
      const { x, y } = at(event);
      if (!dragged) on.doubleTap?.(x, y, event);
    },
    { signal },
  );
  element.addEventListener(
    'contextmenu',
    (event) => {
      if (on.menu === undefined) return;
      event.preventDefault();
      const { x, y } = at(event);
      on.menu(x, y, event);
    },
    { signal },
  );
  element.style.touchAction = 'none';
  return () => stop.abort();
}
