// The drawing: another picture in it, and where one looks. A picture is drawn at once and not by a view, because how it comes
// in (what moves, what stays in its place) depends on the command that made it.

import type { Camera } from '../draw/camera.ts';
import type { Kinship } from '../draw/motion.ts';
import type { Rect } from '../draw/viewport.ts';
import type { Picture } from '../engine/messages.ts';
import type { Kin } from '../engine/diffview.ts';
import { BoxKind, type OfScene, type Scene } from '../scene.ts';
import type { Page } from './page.ts';

const MARGIN = 36;
const EDGE = 24; // pixels around what is wholly in view
/** Boxes glide to their new places where there are few enough to follow. */
const MOST_GLIDING = 4000;
const READABLE = 0.85; // the zoom below which titles are hard to read: they are 11 pixels high there

/** What the engine answers about the boxes of this picture; null where it has drawn another by then, which is on its way. */
export function about<T>(picture: Picture | null, { scene, of }: OfScene<T>): T | null {
  return picture?.scene.number === scene ? of : null;
}

interface Place {
  x: number;
  y: number;
}

/** Draw a picture; the box of `anchor` stays where it is on the screen. */
export function draw(page: Page, picture: Picture, anchor = -1): void {
  const before = page.state.picture.get();
  const old = anchor >= 0 && before ? placeOf(before.scene, anchor) : null;
  put(page, picture);
  const now = old ? placeOf(picture.scene, anchor) : null;
  if (old && now) page.renderer.camera.keep(old, now);
}

/** Draw a picture, and leave the camera to who asks. */
export function put({ renderer, state }: Page, picture: Picture, kin?: Kinship): void {
  const before = state.picture.get();
  const gentle = before !== null && before.scene.boxes.count + picture.scene.boxes.count < MOST_GLIDING;
  renderer.setScene(picture.scene, picture.index, gentle ? before.scene : undefined, kin);
  renderer.setMarks(picture.scene, { change: picture.change, changed: picture.changed, numbers: picture.numbers ?? null });
  state.pointer.set(null);
  state.picture.set(picture);
}

/** Draw the picture of another stage: what is in both glides, and what one looks at stays where it is. */
export function drawStage(page: Page, picture: Picture, found: Kin): void {
  const before = page.state.picture.get()!;
  const kin = kinship(found);
  put(page, picture, kin);
  const { camera } = page.renderer;
  const held = anchor(before.scene, picture.scene, kin.same, camera.view);
  if (!held) {
    begin(page);
    return;
  }
  const whole = holds(camera.visible(), before.scene);
  camera.keep(held.before, held.now);
  // Who saw all of the one before sees all of this one, if it fits: moved as little as needed.
  if (whole) camera.set({ ...camera.view, ...nudged(camera.visible(), extent(picture.scene), EDGE / camera.view.zoom) });
}

function placeOf({ boxes }: Scene, item: number): Place | null {
  const box = boxes.item.indexOf(item);
  return box < 0 ? null : { x: boxes.x[box]!, y: boxes.y[box]! };
}

function extent(scene: Scene): Rect {
  return { x: 0, y: 0, width: scene.width, height: scene.height };
}

// -- where one looks --------------------------------------------------------------------------------------

/** At first: all of it if that can be read, else its beginning at a size that can. */
export function begin({ state, renderer, places }: Page): void {
  const scene = state.picture.get()?.scene;
  if (!scene) return;
  const { camera } = renderer;
  camera.resize(places.canvas.clientWidth, places.canvas.clientHeight);
  const whole = camera.fitOf(extent(scene), MARGIN);
  if (whole.zoom >= READABLE) {
    camera.set(whole);
    return;
  }
  const zoom = Math.max(Math.min(1, (camera.screen.width - 2 * MARGIN) / scene.width), READABLE);
  const across = scene.direction === 'down';
  const fits = across && scene.width * zoom <= camera.screen.width;
  const x = fits ? scene.width / 2 : beginning(scene, camera.screen.width / 2 / zoom, zoom);
  const y = across ? camera.screen.height / 2 / zoom - MARGIN / zoom : scene.height / 2;
  camera.set({ x, y, zoom });
}

/** At what has changed first: where all of it cannot be read at once. */
export function beginAtChange(page: Page): void {
  begin(page);
  const { renderer, state } = page;
  const { camera } = renderer;
  const now = state.picture.get();
  if (!now || holds(camera.visible(), now.scene)) return;
  const shift = shiftOf(now, camera);
  const first = firstChange(now) ?? moved(now.beside ? firstChange(now.beside.picture) : null, shift);
  if (!first) return;
  const seen = camera.visible();
  const inside =
    first.y >= seen.y &&
    first.y + first.height < seen.y + seen.height * 0.75 &&
    first.x >= seen.x &&
    first.x + first.width <= seen.x + seen.width;
  if (inside) return;
  // A little of what comes before it is seen too.
  const zoom = Math.max(READABLE, camera.view.zoom);
  camera.set({ x: first.x + first.width / 2, y: first.y + camera.screen.height / 4 / zoom, zoom });
  const there = moved(camera.visible(), -shift)!;
  if (!shows(now.scene, camera.visible()) && !(now.beside && shows(now.beside.picture.scene, there))) begin(page);
}

/** The first box that has changed, other than those around others: of a step, in the forward pass if there is one. */
function firstChange({ scene, change }: Pick<Picture, 'scene' | 'change'>): Rect | null {
  const { phase, kind, x, y, count } = scene.boxes;
  const [along, over] = scene.direction === 'down' ? [y, x] : [x, y];
  let first = -1;
  for (let box = 0; change && box < count; box++) {
    if (!change[box] || kind[box] === BoxKind.Open) continue;
    const later = first < 0 ? -1 : phase[box]! - phase[first]! || along[box]! - along[first]! || over[box]! - over[first]!;
    if (later < 0) first = box;
  }
  return first < 0 ? null : around(scene, [first]);
}

/**
 * How far the picture before is from this one, across: where both can be read in their panes, each is in the middle of its own; else
 * what has changed first, or the first of all, stands at the same place in both.
 */
export function shiftOf({ scene, change, beside }: Picture, { screen }: Camera): number {
  if (!beside) return 0;
  const then = beside.picture;
  if (Math.max(scene.width, then.scene.width) < screen.width / READABLE) return (scene.width - then.scene.width) / 2;
  const { pairs } = beside;
  const eye = firstChange({ scene, change }) ?? { x: 0, y: 0 };
  const far = (i: number) => Math.hypot(scene.boxes.x[pairs[i + 1]!]! - eye.x, scene.boxes.y[pairs[i + 1]!]! - eye.y);
  let best = -1;
  for (let i = 0; i < pairs.length; i += 2) {
    const isFrame = scene.boxes.kind[pairs[i + 1]!] === BoxKind.Open;
    if (isFrame || scene.boxes.phase[pairs[i + 1]!] !== then.scene.boxes.phase[pairs[i]!]) continue;
    if (best < 0 || far(i) < far(best)) best = i;
  }
  const middle = ({ boxes }: Scene, box: number) => boxes.x[box]! + boxes.width[box]! / 2;
  return best < 0 ? 0 : middle(scene, pairs[best + 1]!) - middle(then.scene, pairs[best]!);
}

function moved(rect: Rect | null, by: number): Rect | null {
  return rect && { ...rect, x: rect.x + by };
}

/** Whether anything but frames is in sight. */
function shows({ boxes }: Scene, seen: Rect): boolean {
  for (let box = 0; box < boxes.count; box++) {
    if (boxes.kind[box] === BoxKind.Open || boxes.x[box]! > seen.x + seen.width || boxes.x[box]! + boxes.width[box]! < seen.x) continue;
    if (boxes.y[box]! <= seen.y + seen.height && boxes.y[box]! + boxes.height[box]! >= seen.y) return true;
  }
  return false;
}

/** Where to look along the wide side of a graph that is wider than the window: at its left end, or its first box. */
function beginning({ boxes, width, direction }: Scene, half: number, zoom: number): number {
  const least = half - 48 / zoom;
  if (direction !== 'down' || !boxes.count) return least;
  let first = 0;
  for (let box = 1; box < boxes.count; box++) {
    const lower = boxes.y[box]! - boxes.y[first]!;
    if (lower < 0 || (lower === 0 && boxes.x[box]! < boxes.x[first]!)) first = box;
  }
  return Math.max(least, Math.min(boxes.x[first]! + boxes.width[first]! / 2, width - least));
}

/** All of it. */
export function fit({ state, renderer, places }: Page, ms = 300): void {
  const scene = state.picture.get()?.scene;
  if (!scene) return;
  renderer.camera.resize(places.canvas.clientWidth, places.canvas.clientHeight);
  void renderer.camera.fit(extent(scene), MARGIN, scene.boxes.count > 2 * MOST_GLIDING ? 0 : ms);
}

export function zoom({ renderer, places }: Page, factor: number): void {
  renderer.camera.zoomAt(places.canvas.clientWidth / 2, places.canvas.clientHeight / 2, factor);
}

/** To the boxes of these items, as far as is needed. */
export async function goTo({ state, client, renderer, views }: Page, items: number[]): Promise<void> {
  const answer = await client.boxes(items);
  const picture = state.picture.get();
  const boxes = about(picture, answer);
  if (!boxes?.length || !picture) return;
  // A panel may have opened beside it just now: into the room that is left.
  views.run();
  renderer.resize();
  void renderer.camera.arrive(around(picture.scene, boxes));
}

/** What holds these boxes. */
export function around({ boxes: all }: Scene, boxes: number[]): Rect {
  let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const box of boxes) {
    x0 = Math.min(x0, all.x[box]!);
    y0 = Math.min(y0, all.y[box]!);
    x1 = Math.max(x1, all.x[box]! + all.width[box]!);
    y1 = Math.max(y1, all.y[box]! + all.height[box]!);
  }
  return { x: x0, y: y0, width: x1 - x0, height: y1 - y0 };
}

function holds(seen: Rect, { width, height }: Scene): boolean {
  return seen.x <= 0 && seen.y <= 0 && seen.x + seen.width >= width && seen.y + seen.height >= height;
}

/** The middle of what is seen, moved as little as needed so that `wanted` is in it; along a side that is too long, to its start. */
export function nudged(seen: Rect, wanted: Rect, edge: number): Place {
  const along = (from: number, size: number, low: number, length: number): number => {
    const [least, most] = [low + length + edge - size, low - edge];
    return (least > most ? most : Math.max(least, Math.min(most, from))) + size / 2;
  };
  return { x: along(seen.x, seen.width, wanted.x, wanted.width), y: along(seen.y, seen.height, wanted.y, wanted.height) };
}

export function kinship({ same, from, into }: Kin): Kinship {
  const map = (pairs: Int32Array, swap = false): Map<number, number> => {
    const out = new Map<number, number>();
    for (let i = 0; i < pairs.length; i += 2) out.set(pairs[swap ? i + 1 : i]!, pairs[swap ? i : i + 1]!);
    return out;
  };
  return { same: map(same), back: map(same, true), from: map(from), into: map(into) };
}

/** The middle of the box nearest to the eye that is in both scenes, in each of them. */
export function anchor(old: Scene, now: Scene, same: ReadonlyMap<number, number>, eye: Place): { before: Place; now: Place } | null {
  const places = new Map<number, number>();
  for (let box = 0; box < old.boxes.count; box++) places.set(old.boxes.item[box]!, box);
  const middle = ({ boxes }: Scene, box: number): Place => ({
    x: boxes.x[box]! + boxes.width[box]! / 2,
    y: boxes.y[box]! + boxes.height[box]! / 2,
  });
  let best: { before: Place; now: Place } | null = null;
  let least = Infinity;
  for (let box = 0; box < now.boxes.count; box++) {
    const was = places.get(same.get(now.boxes.item[box]!) ?? -1);
    if (was === undefined) continue;
    const at = middle(old, was);
    const far = Math.hypot(at.x - eye.x, at.y - eye.y);
    if (far >= least) continue;
    least = far;
    best = { before: at, now: middle(now, box) };
  }
  return best;
}
