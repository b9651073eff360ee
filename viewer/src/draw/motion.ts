// From one layout to the next: what is in both moves, what is new comes out of its group, what is gone
// sinks into it. Only what is on the screen takes part, copied into a small scene of its own.
import type { Scene } from '../scene.ts';
import { BoxKind } from '../scene.ts';
import { buildDensity } from '../picture/density.ts';
import type { Frame } from './frame.ts';
import { Fitter } from './label.ts';
import { marksIn } from './marks.ts';
import { panelsIn, touches } from './overview.ts';
import { fromAfar } from './paint.ts';
import type { SceneIndex } from '../picture/spatial.ts';
import { Bag, buildRTree, search } from '../picture/rtree.ts';
import type { RTree } from '../picture/rtree.ts';
import type { View } from './viewport.ts';
import { easeOut } from './viewport.ts';

const MS = 220;
/** From one stage to the next there is more to follow. */
const MS_STAGES = 480;
const MOST = 3000;
/** Up to this many boxes all are looked up by item; beyond, only those on the screen. */
const MOST_KNOWN = 50_000;

interface Place {
  x: number;
  y: number;
  w: number;
  h: number;
}

/** What belongs together in two scenes whose items are numbered differently. */
export interface Kinship {
  same: Map<number, number>; // item now -> item before
  back: Map<number, number>; // item before -> item now
  from: Map<number, number>; // item now -> what it came out of
  into: Map<number, number>; // item before -> what it went into
}

export class Motion {
  #start = -1;
  #ms = MS;
  #scene: Scene;
  #index: SceneIndex;
  #fitter: Fitter;
  #from: Place[] = [];
  #to: Place[] = [];
  /** -1 going, 0 staying, 1 coming. */
  #way: Int8Array;
  #boxAlpha: Float32Array;
  #edgeAlpha: Float32Array;
  #edgeComing: Uint8Array;
  #rest: Float32Array;
  #shift: Float32Array;
  #marks: Uint8Array;
  #newId: Int32Array; // by box: its number in the new scene, or -1
  #edges: Int32Array; // by edge: its number there

  /** A movement between two scenes, or null where there is too much to move. */
  static between(old: Scene, oldIndex: SceneIndex, oldView: View, frame: Frame, view: View, kin?: Kinship): Motion | null {
    const before: Frame = { ...frame, scene: old, index: oldIndex, ...windowOf(oldView, frame) };
    if (fromAfar(frame) || fromAfar(before)) return null;
    const [gone, come] = [seen(before), seen(frame)];
    if (gone.length > MOST || come.length > MOST) return null;
    return new Motion(old, gone, oldView, frame, come, view, kin);
  }

  private constructor(old: Scene, gone: Int32Array, oldView: View, frame: Frame, come: Int32Array, view: View, kin?: Kinship) {
    const scene = frame.scene;
    if (kin) this.#ms = MS_STAGES;
    const grow = oldView.zoom / view.zoom;
    const oldPlace = (b: number): Place => ({
      x: (old.boxes.x[b]! - oldView.x) * grow + view.x,
      y: (old.boxes.y[b]! - oldView.y) * grow + view.y,
      w: old.boxes.width[b]! * grow,
      h: old.boxes.height[b]! * grow,
    });
    const oldOf = byItem(old, gone);
    const newOf = byItem(scene, come);
    const found = (by: Map<number, number>, item: number | undefined): number => (item === undefined ? -1 : (by.get(item) ?? -1));
    const oldBox = (b: number): number => found(oldOf, kin ? kin.same.get(scene.boxes.item[b]!) : scene.boxes.item[b]!);
    const newBox = (b: number): number => found(newOf, kin ? kin.back.get(old.boxes.item[b]!) : old.boxes.item[b]!);
    // What came out of another box starts there, what went into another ends there.
    const source = (b: number): number => found(oldOf, kin?.from.get(scene.boxes.item[b]!));
    const end = (b: number): number => found(newOf, kin?.into.get(old.boxes.item[b]!));
    const leaving = gone.filter((b) => newBox(b) < 0);
    const n = come.length + leaving.length;
    this.#way = new Int8Array(n);
    this.#boxAlpha = new Float32Array(n).fill(1);
    this.#newId = new Int32Array(n).fill(-1);
    come.forEach((b, i) => {
      const to = placeOf(scene, b);
      const was = oldBox(b);
      this.#newId[i] = b;
      this.#way[i] = was < 0 ? 1 : 0;
      this.#to.push(to);
      this.#from.push(
        was >= 0
          ? oldPlace(was)
          : source(b) >= 0
            ? centred(to, oldPlace(source(b)))
            : carried(to, scene, b, (a) => (oldBox(a) < 0 ? null : [placeOf(scene, a), oldPlace(oldBox(a))])),
      );
    });
    leaving.forEach((b, i) => {
      const from = oldPlace(b);
      this.#way[come.length + i] = -1;
      this.#from.push(from);
      this.#to.push(
        end(b) >= 0
          ? centred(from, placeOf(scene, end(b)))
          : carried(from, old, b, (a) => (newBox(a) < 0 ? null : [oldPlace(a), placeOf(scene, newBox(a))])),
      );
    });
    const texts = [''];
    const pick = (of: (s: Scene) => ArrayLike<number>, out: Int32Array | Uint8Array): typeof out => {
      come.forEach((b, i) => (out[i] = of(scene)[b]!));
      leaving.forEach((b, i) => (out[come.length + i] = of(old)[b]!));
      return out;
    };
    const write = (of: (s: Scene) => Int32Array): Int32Array => {
      const out = new Int32Array(n);
      come.forEach((b, i) => (out[i] = texts.push(scene.texts[of(scene)[b]!]!) - 1));
      leaving.forEach((b, i) => (out[come.length + i] = texts.push(old.texts[of(old)[b]!]!) - 1));
      return out;
    };
    const edges = edgesOf(frame);
    this.#edges = edges;
    const mini: Scene = {
      ...scene,
      texts,
      boxes: {
        count: n,
        item: new Int32Array(n),
        parent: new Int32Array(n).fill(-1),
        x: Float32Array.from(this.#to, (p) => p.x),
        y: Float32Array.from(this.#to, (p) => p.y),
        width: Float32Array.from(this.#to, (p) => p.w),
        height: Float32Array.from(this.#to, (p) => p.h),
        kind: pick((s) => s.boxes.kind, new Uint8Array(n)) as Uint8Array,
        phase: pick((s) => s.boxes.phase, new Uint8Array(n)) as Uint8Array,
        depth: pick((s) => s.boxes.depth, new Uint8Array(n)) as Uint8Array,
        title: write((s) => s.boxes.title),
        detail: write((s) => s.boxes.detail),
        size: pick((s) => s.boxes.size, new Int32Array(n)) as Int32Array,
        repeat: pick((s) => s.boxes.repeat, new Int32Array(n)) as Int32Array,
      },
      edges: copyEdges(scene, edges),
    };
    this.#scene = mini;
    this.#index = indexAll(mini);
    this.#fitter = new Fitter(mini);
    // Text is fitted once, to the sizes at the end.
    for (let i = 0; i < n; i++) this.#fitter.of(i);
    this.#rest = mini.edges.points.slice();
    this.#edgeAlpha = new Float32Array(edges.length).fill(1);
    this.#edgeComing = Uint8Array.from(edges, (e) => (oldBox(scene.edges.source[e]!) < 0 || oldBox(scene.edges.target[e]!) < 0 ? 1 : 0));
    this.#shift = shifts(scene, edges, mini.edges.start, this.#displacements(come));
    this.#marks = new Uint8Array(n);
  }

  /** What to draw at a time: a frame over the small scene. */
  at(now: number, frame: Frame): Frame {
    if (this.#start < 0) this.#start = now;
    const t = Math.max(0, Math.min(1, (now - this.#start) / this.#ms));
    const moved = easeOut(t);
    const { boxes, edges } = this.#scene;
    for (let i = 0; i < boxes.count; i++) {
      const [from, to] = [this.#from[i]!, this.#to[i]!];
      boxes.x[i] = from.x + (to.x - from.x) * moved;
      boxes.y[i] = from.y + (to.y - from.y) * moved;
      boxes.width[i] = from.w + (to.w - from.w) * moved;
      boxes.height[i] = from.h + (to.h - from.h) * moved;
      const way = this.#way[i]!;
      // From stage to stage one sees what runs together and what comes apart.
      const [coming, going] = this.#ms === MS ? [moved * moved, Math.max(0, 1 - 2 * moved)] : [t, (1 - t) ** 2];
      this.#boxAlpha[i] = way === 0 ? 1 : way > 0 ? coming : going;
      this.#marks[i] = this.#newId[i]! >= 0 ? (frame.marks[this.#newId[i]!] ?? 0) : 0;
    }
    for (let p = 0; p < edges.points.length; p++) edges.points[p] = this.#rest[p]! + this.#shift[p]! * (1 - moved);
    for (let e = 0; e < edges.count; e++) this.#edgeAlpha[e] = this.#edgeComing[e] === 1 ? moved * moved : 1;
    return {
      ...frame,
      scene: this.#scene,
      index: this.#index,
      fitter: this.#fitter,
      marks: this.#marks,
      still: false,
      boxAlpha: this.#boxAlpha,
      edgeAlpha: this.#edgeAlpha,
      paint: { ...frame.paint, ...marksIn(frame.paint, this.#newId, this.#edges) },
    };
  }

  over(now: number): boolean {
    return this.#start >= 0 && now - this.#start >= this.#ms;
  }

  /** How far each box of the new scene is from its place at the start. */
  #displacements(come: Int32Array): Map<number, [number, number]> {
    const by = new Map<number, [number, number]>();
    come.forEach((b, i) => {
      const [from, to] = [this.#from[i]!, this.#to[i]!];
      by.set(b, [from.x + from.w / 2 - to.x - to.w / 2, from.y + from.h / 2 - to.y - to.h / 2]);
    });
    return by;
  }
}

function windowOf(view: View, frame: Frame): Pick<Frame, 'zoom' | 'ox' | 'oy' | 'x0' | 'y0' | 'x1' | 'y1'> {
  const { width, height } = frame.screen;
  const [w, h] = [width / view.zoom / 2, height / view.zoom / 2];
  return {
    zoom: view.zoom,
    ox: width / 2 - view.x * view.zoom,
    oy: height / 2 - view.y * view.zoom,
    x0: view.x - w,
    y0: view.y - h,
    x1: view.x + w,
    y1: view.y + h,
  };
}

/** Boxes on the screen: panels and leaves. */
function seen(frame: Frame): Int32Array {
  const [out, bag] = [new Bag(), new Bag()];
  panelsIn(frame, 3, bag);
  for (let i = 0; i < bag.size; i++) out.push(bag.items[i]!);
  bag.size = 0;
  search(frame.index.leaves, frame.x0, frame.y0, frame.x1, frame.y1, bag);
  for (let i = 0; i < bag.size; i++) if (touches(frame, frame.scene.boxes, bag.items[i]!)) out.push(bag.items[i]!);
  return out.taken();
}

function byItem(scene: Scene, some: Int32Array): Map<number, number> {
  const { item, count } = scene.boxes;
  const by = new Map<number, number>();
  if (count <= MOST_KNOWN) for (let b = 0; b < count; b++) by.set(item[b]!, b);
  else for (const b of some) by.set(item[b]!, b);
  return by;
}

function placeOf(scene: Scene, b: number): Place {
  const { x, y, width, height } = scene.boxes;
  return { x: x[b]!, y: y[b]!, w: width[b]!, h: height[b]! };
}

/** A place of the same size in the middle of another. */
function centred(size: Place, at: Place): Place {
  return { x: at.x + (at.w - size.w) / 2, y: at.y + (at.h - size.h) / 2, w: size.w, h: size.h };
}

/** Where a box is when the nearest group around it that is in both scenes is in its other place. */
function carried(place: Place, scene: Scene, b: number, both: (group: number) => [Place, Place] | null): Place {
  for (let a = scene.boxes.parent[b]!; a >= 0; a = scene.boxes.parent[a]!) {
    const pair = both(a);
    if (pair === null) continue;
    const [here, there] = pair;
    const [u, v] = [(place.x + place.w / 2 - here.x) / here.w, (place.y + place.h / 2 - here.y) / here.h];
    // Groups shrink with the group around them, cards keep their size: text does not shrink.
    const open = scene.boxes.kind[b] === BoxKind.Open;
    const [w, h] = open ? [(place.w * there.w) / here.w, (place.h * there.h) / here.h] : [place.w, place.h];
    return { x: there.x + u * there.w - w / 2, y: there.y + v * there.h - h / 2, w, h };
  }
  return place;
}

/** Edges with a piece on the screen. */
function edgesOf(frame: Frame): Int32Array {
  const bag = new Bag();
  for (const tree of frame.index.pieces) search(tree, frame.x0, frame.y0, frame.x1, frame.y1, bag);
  const edges = new Set<number>();
  for (let i = 0; i < bag.size && edges.size < MOST; i++) edges.add(frame.index.pieceEdge[bag.items[i]!]!);
  return Int32Array.from(edges);
}

function copyEdges(scene: Scene, edges: Int32Array): Scene['edges'] {
  const all = scene.edges;
  const start = new Int32Array(edges.length + 1);
  edges.forEach((e, i) => (start[i + 1] = start[i]! + all.start[e + 1]! - all.start[e]!));
  const points = new Float32Array(2 * start[edges.length]!);
  edges.forEach((e, i) => points.set(all.points.subarray(2 * all.start[e]!, 2 * all.start[e + 1]!), 2 * start[i]!));
  return {
    count: edges.length,
    source: new Int32Array(edges.length),
    target: new Int32Array(edges.length),
    start,
    points,
    kind: Uint8Array.from(edges, (e) => all.kind[e]!),
    uses: Int32Array.from(edges, (e) => all.uses[e]!),
    bytes: Float64Array.from(edges, (e) => all.bytes[e]!),
    label: new Int32Array(edges.length),
  };
}

/** By coordinate: how far a line's points are from their places at the start, following both its ends. */
function shifts(scene: Scene, edges: Int32Array, start: Int32Array, moved: Map<number, [number, number]>): Float32Array {
  const out = new Float32Array(2 * start[edges.length]!);
  edges.forEach((e, i) => {
    const a = moved.get(scene.edges.source[e]!) ?? moved.get(scene.edges.target[e]!) ?? [0, 0];
    const b = moved.get(scene.edges.target[e]!) ?? a;
    const steps = Math.max(1, start[i + 1]! - start[i]! - 1);
    for (let p = start[i]!; p < start[i + 1]!; p++) {
      const s = (p - start[i]!) / steps;
      out[2 * p] = a[0] + (b[0] - a[0]) * s;
      out[2 * p + 1] = a[1] + (b[1] - a[1]) * s;
    }
  });
  return out;
}

/** An index that finds everything everywhere: places change each frame and there are few of them. */
function indexAll(scene: Scene): SceneIndex {
  const { boxes, edges } = scene;
  const all = Array.from({ length: boxes.count }, (_, i) => i);
  const tree = (ids: number[]): RTree => {
    const zero = new Float32Array(Math.max(boxes.count, edges.count));
    const t = buildRTree({ x0: zero, y0: zero, x1: zero, y1: zero }, Int32Array.from(ids));
    for (let k = 0; k < t.bounds.length; k++) t.bounds[k] = k % 4 < 2 ? -Infinity : Infinity;
    return t;
  };
  const none = tree([]);
  const lines = tree(Array.from({ length: edges.count }, (_, i) => i));
  return {
    leaves: tree(all.filter((b) => boxes.kind[b] !== BoxKind.Open)),
    density: buildDensity(boxes, new Int32Array(0), 1, 1),
    panels: [none, none, tree(all.filter((b) => boxes.kind[b] === BoxKind.Open))],
    pieces: [none, none, none, lines],
    pieceEdge: Int32Array.from(lines.ids.keys()),
    pieceFrom: edges.start.slice(0, edges.count),
    pieceTo: edges.start.slice(1).map((end) => end - 1),
    touchStart: new Int32Array(boxes.count + 1),
    touching: new Int32Array(0),
  };
}
