// The maths of looking at a plane: no events, no state.

/** What is looked at: the point of the world at the middle of the screen, and pixels per unit. */
export interface View {
  x: number;
  y: number;
  zoom: number;
}

export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Size {
  width: number;
  height: number;
}

export interface Point {
  x: number;
  y: number;
}

export function toScreen(view: View, screen: Size, x: number, y: number): Point {
  return { x: (x - view.x) * view.zoom + screen.width / 2, y: (y - view.y) * view.zoom + screen.height / 2 };
}

export function toWorld(view: View, screen: Size, x: number, y: number): Point {
  return { x: (x - screen.width / 2) / view.zoom + view.x, y: (y - screen.height / 2) / view.zoom + view.y };
}

/** The part of the world on the screen. */
export function visible(view: View, screen: Size): Rect {
  const [width, height] = [screen.width / view.zoom, screen.height / view.zoom];
  return { x: view.x - width / 2, y: view.y - height / 2, width, height };
}

/** Moves what is seen by a distance on the screen. */
export function panned(view: View, dx: number, dy: number): View {
  return { x: view.x - dx / view.zoom, y: view.y - dy / view.zoom, zoom: view.zoom };
}

/** Zooms so that the world point under (sx, sy) stays there. */
export function zoomedAt(view: View, screen: Size, sx: number, sy: number, zoom: number): View {
  return pinned(screen, sx, sy, toWorld(view, screen, sx, sy), zoom);
}

/** The view that has a world point at a place of the screen. */
export function pinned(screen: Size, sx: number, sy: number, world: Point, zoom: number): View {
  return { x: world.x - (sx - screen.width / 2) / zoom, y: world.y - (sy - screen.height / 2) / zoom, zoom };
}

/** The view that shows all of `rect` with a margin in pixels. */
export function fitted(rect: Rect, screen: Size, margin: number, maxZoom: number): View {
  const across = Math.max(1, screen.width - 2 * margin) / Math.max(1e-6, rect.width);
  const down = Math.max(1, screen.height - 2 * margin) / Math.max(1e-6, rect.height);
  return { x: rect.x + rect.width / 2, y: rect.y + rect.height / 2, zoom: Math.min(across, down, maxZoom) };
}

/** Between two views, in a straight line on the screen: zoom grows evenly to the eye. */
export function between(from: View, to: View, t: number): View {
  if (t <= 0) return from;
  if (t >= 1) return to;
  const zoom = from.zoom * (to.zoom / from.zoom) ** t;
  const turn = 1 / from.zoom - 1 / to.zoom;
  // With equal zooms the formula below divides by nothing; it tends to t.
  const part = Math.abs(Math.log(to.zoom / from.zoom)) < 1e-3 ? t : (1 / from.zoom - 1 / zoom) / turn;
  return { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part, zoom };
}

/** Slow, fast, slow. */
export function ease(t: number): number {
  return t < 0.5 ? 4 * t * t * t : 1 - (2 - 2 * t) ** 3 / 2;
}

/** Fast, then slow: for things that answer a click. */
export function easeOut(t: number): number {
  return 1 - (1 - t) ** 3;
}
