// Where the page looks. Listeners are notified of changes; movements that take time are driven by tick().
import { between, ease, fitted, panned, pinned, toScreen, toWorld, visible, zoomedAt } from './viewport.ts';
import type { Point, Rect, Size, View } from './viewport.ts';

export type { Point, Rect, Size, View } from './viewport.ts';

interface Flight {
  from: View;
  to: View;
  start: number;
  ms: number;
  done: () => void;
}

/** True when the user asked the system for less movement. */
export function reducedMotion(): boolean {
  return typeof matchMedia === 'function' && matchMedia('(prefers-reduced-motion: reduce)').matches;
}

export class Camera {
  view: View = { x: 0, y: 0, zoom: 1 };
  screen: Size = { width: 1, height: 1 };
  minZoom = 0.01;
  maxZoom = 4;
  #flight: Flight | null = null;
  #listeners = new Set<() => void>();

  /** Called after every change; returns the way to stop. */
  listen(changed: () => void): () => void {
    this.#listeners.add(changed);
    return () => this.#listeners.delete(changed);
  }

  /** Where it goes, or is. */
  get goal(): View {
    return this.#flight?.to ?? this.view;
  }

  get moving(): boolean {
    return this.#flight !== null;
  }

  resize(width: number, height: number): void {
    const screen = { width: Math.max(1, width), height: Math.max(1, height) };
    if (screen.width === this.screen.width && screen.height === this.screen.height) return;
    // The top stays where it is: a panel that opens below covers the end of the drawing and moves nothing. Sideways the
    // middle stays in the middle.
    const dy = (screen.height - this.screen.height) / 2 / this.view.zoom;
    this.screen = screen;
    this.#shift(0, dy);
    this.view = { ...this.view, y: this.view.y + dy };
    this.#tell();
  }

  /** Jumps. Ends a movement under way. */
  set(view: View): void {
    this.stop();
    this.#put(view);
  }

  pan(dx: number, dy: number): void {
    this.set(panned(this.view, dx, dy));
  }

  zoomAt(sx: number, sy: number, factor: number): void {
    this.set(zoomedAt(this.view, this.screen, sx, sy, this.clamp(this.view.zoom * factor)));
  }

  /** Moves at once so that the world point `now` is where `before` was on the screen. */
  keep(before: Point, now: Point): void {
    const at = this.toScreen(before.x, before.y);
    this.#put(pinned(this.screen, at.x, at.y, now, this.view.zoom));
    this.#shift(now.x - before.x, now.y - before.y);
  }

  /** A movement under way goes on beside its old path. */
  #shift(dx: number, dy: number): void {
    const flight = this.#flight;
    if (flight === null) return;
    flight.from = { ...flight.from, x: flight.from.x + dx, y: flight.from.y + dy };
    flight.to = { ...flight.to, x: flight.to.x + dx, y: flight.to.y + dy };
  }

  /** The view that shows `rect`. */
  fitOf(rect: Rect, margin = 40, maxZoom = 1.25): View {
    return fitted(rect, this.screen, margin, Math.min(maxZoom, this.maxZoom));
  }

  fit(rect: Rect, margin = 40, ms = 0): Promise<void> {
    return this.animateTo(this.fitOf(rect, margin), ms);
  }

  /** Brings `rect` into view, moving as little as needed; does nothing when it is seen well. */
  reveal(rect: Rect, margin = 60, ms = 260): Promise<void> {
    const seen = this.visible();
    const edge = margin / this.view.zoom;
    const small = Math.max(rect.width, rect.height) * this.view.zoom < 24;
    const inside =
      rect.x >= seen.x + edge &&
      rect.x + rect.width <= seen.x + seen.width - edge &&
      rect.y >= seen.y + edge &&
      rect.y + rect.height <= seen.y + seen.height - edge;
    if (inside && !small) return Promise.resolve();
    const fits = this.fitOf(rect, margin, Math.max(this.view.zoom, 0.85));
    if (small || fits.zoom < this.view.zoom) return this.animateTo(fits, ms);
    const near =
      rect.x < seen.x + seen.width && rect.x + rect.width > seen.x && rect.y < seen.y + seen.height && rect.y + rect.height > seen.y;
    // What is half in view is only drawn in; what is out of it comes to the middle.
    if (!near) return this.animateTo({ ...fits, zoom: this.view.zoom }, ms);
    const into = (at: number, size: number, from: number, length: number) =>
      Math.max(0, at + size - (from + length - edge)) || Math.min(0, at - (from + edge));
    return this.animateTo(
      {
        ...this.view,
        x: this.view.x + into(rect.x, rect.width, seen.x, seen.width),
        y: this.view.y + into(rect.y, rect.height, seen.y, seen.height),
      },
      ms,
    );
  }

  /** Goes to `rect`, at a zoom at which it can be read: what is larger than the screen is seen from its beginning. */
  arrive(rect: Rect, least = 0.9, most = 1.25, margin = 60, ms = 260): Promise<void> {
    const zoom = Math.min(most, Math.max(least, this.view.zoom));
    const [wide, high] = [(this.screen.width - 2 * margin) / zoom, (this.screen.height - 2 * margin) / zoom];
    const fits = rect.width <= wide && rect.height <= high;
    if (zoom === this.view.zoom && fits) return this.reveal(rect, margin, ms);
    const seen = this.visible();
    const begins = rect.x >= seen.x && rect.x < seen.x + seen.width && rect.y >= seen.y && rect.y < seen.y + seen.height;
    if (zoom === this.view.zoom && begins) return Promise.resolve(); // its beginning is in view
    const x = rect.width <= wide ? rect.x + rect.width / 2 : rect.x + wide / 2;
    const y = rect.height <= high ? rect.y + rect.height / 2 : rect.y + high / 2;
    return this.animateTo({ x, y, zoom }, ms);
  }

  animateTo(view: View, ms = 320): Promise<void> {
    this.stop();
    const to = { ...view, zoom: this.clamp(view.zoom) };
    if (ms <= 0 || reducedMotion()) {
      this.#put(to);
      return Promise.resolve();
    }
    return new Promise((done) => {
      this.#flight = { from: this.view, to, start: -1, ms, done };
      this.#tell();
    });
  }

  /** Ends a movement where it is. */
  stop(): void {
    const flight = this.#flight;
    this.#flight = null;
    flight?.done();
  }

  /** Moves on to a time; true while there is more to come. The renderer calls it each frame. */
  tick(now: number): boolean {
    const flight = this.#flight;
    if (flight === null) return false;
    if (flight.start < 0) flight.start = now;
    const t = Math.min(1, (now - flight.start) / flight.ms);
    if (t >= 1) this.#flight = null;
    this.#put(between(flight.from, flight.to, ease(t)));
    if (t >= 1) flight.done();
    return t < 1;
  }

  clamp(zoom: number): number {
    return Math.min(this.maxZoom, Math.max(this.minZoom, zoom));
  }

  toScreen(x: number, y: number): Point {
    return toScreen(this.view, this.screen, x, y);
  }

  toWorld(x: number, y: number): Point {
    return toWorld(this.view, this.screen, x, y);
  }

  visible(): Rect {
    return visible(this.view, this.screen);
  }

  #put(view: View): void {
    const zoom = this.clamp(Number.isFinite(view.zoom) ? view.zoom : 1);
    this.view = { x: Number.isFinite(view.x) ? view.x : 0, y: Number.isFinite(view.y) ? view.y : 0, zoom };
    this.#tell();
  }

  #tell(): void {
    for (const changed of this.#listeners) changed();
  }
}
