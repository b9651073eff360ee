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

interface Place {
  x: number;
  y: number;
}

/** Lets an element move the camera; returns the way to stop. */
export function bindGestures(element: HTMLElement, camera: Camera, on: Gestures = {}): () => void {
  const pointers = new Pointers(element, camera, on);
  const wheels = new WheelReader();
  const stop = new AbortController();
  const { signal } = stop;
  const wheel = (event: WheelEvent): void => {
    event.preventDefault();
    const meaning = wheels.read(event);
    const { x, y } = placeIn(element, event);
    on.grab?.();
    if ('pan' in meaning) camera.pan(...meaning.pan);
    else camera.zoomAt(x, y, meaning.zoom);
  };
  const menu = (event: MouseEvent): void => {
    if (on.menu === undefined) return;
    event.preventDefault();
    const { x, y } = placeIn(element, event);
    on.menu(x, y, event);
  };
  element.addEventListener('wheel', wheel, { passive: false, signal });
  element.addEventListener('pointerdown', (event) => pointers.down(event), { signal });
  element.addEventListener('pointermove', (event) => pointers.move(event), { signal });
  element.addEventListener('pointerup', (event) => pointers.up(event), { signal });
  element.addEventListener('pointercancel', (event) => pointers.up(event), { signal });
  element.addEventListener('pointerleave', () => pointers.leave(), { signal });
  element.addEventListener('dblclick', (event) => pointers.double(event), { signal });
  element.addEventListener('contextmenu', menu, { signal });
  element.style.touchAction = 'none';
  return () => stop.abort();
}

function placeIn(element: HTMLElement, event: MouseEvent): Place {
  const box = element.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

/** The mouse or the fingers that are down, and whether they drag or pinch. */
class Pointers {
  #down = new Map<number, Place>();
  #start: Place = { x: 0, y: 0 };
  #dragged = false;
  #pinched = false;
  #element: HTMLElement;
  #camera: Camera;
  #on: Gestures;

  constructor(element: HTMLElement, camera: Camera, on: Gestures) {
    this.#element = element;
    this.#camera = camera;
    this.#on = on;
  }

  down(event: PointerEvent): void {
    if (event.button > 1) return;
    this.#element.setPointerCapture(event.pointerId);
    const here = placeIn(this.#element, event);
    this.#pinched = this.#down.size > 0;
    if (!this.#pinched) {
      this.#start = here;
      this.#dragged = false;
    }
    this.#down.set(event.pointerId, here);
  }

  move(event: PointerEvent): void {
    const before = this.#down.get(event.pointerId);
    const here = placeIn(this.#element, event);
    if (before === undefined) {
      if (this.#down.size === 0) this.#on.hover?.(here.x, here.y);
      return;
    }
    if (!this.#dragged && !this.#pinched && Math.hypot(here.x - this.#start.x, here.y - this.#start.y) < SLOP) return;
    if (!this.#dragged) {
      this.#dragged = true;
      this.#element.style.cursor = 'grabbing';
      this.#on.grab?.();
    }
    this.#drag(before, here, [...this.#down].find(([id]) => id !== event.pointerId)?.[1]);
    this.#down.set(event.pointerId, here);
  }

  /** With one pointer the view moves; with another one down it grows and shrinks too. */
  #drag(before: Place, here: Place, other: Place | undefined): void {
    const [dx, dy] = [here.x - before.x, here.y - before.y];
    if (other === undefined) {
      this.#camera.pan(dx, dy);
      return;
    }
    const [was, is] = [Math.hypot(before.x - other.x, before.y - other.y), Math.hypot(here.x - other.x, here.y - other.y)];
    this.#camera.pan(dx / 2, dy / 2);
    if (was > 0 && is > 0) this.#camera.zoomAt((here.x + other.x) / 2, (here.y + other.y) / 2, is / was);
  }

  up(event: PointerEvent): void {
    if (!this.#down.delete(event.pointerId) || this.#down.size > 0) return;
    this.#element.style.cursor = '';
    const isTap = event.type === 'pointerup' && !this.#dragged && !this.#pinched && event.button === 0;
    if (isTap) this.#on.tap?.(this.#start.x, this.#start.y, event);
  }

  leave(): void {
    if (this.#down.size === 0) this.#on.hover?.(-1, -1);
  }

  double(event: MouseEvent): void {
    const { x, y } = placeIn(this.#element, event);
    if (!this.#dragged) this.#on.doubleTap?.(x, y, event);
  }
}
