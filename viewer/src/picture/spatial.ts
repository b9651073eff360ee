// What lies where in a scene. A pure function of the scene into typed arrays, so that the worker
// that made the scene can build it and hand it over.
import { BoxKind } from '../scene.ts';
import type { Boxes, Edges, Scene } from '../scene.ts';
import { buildDensity } from './density.ts';
import type { Density } from './density.ts';
import { Bag, buildRTree, search } from './rtree.ts';
import type { Corners, RTree } from './rtree.ts';

/** Pieces of edges up to these lengths (on their longer side) have a tree each; a last one has the rest. */
export const PIECE_LENGTHS = [240, 1920, 15360] as const;
/** The same for open groups. */
export const PANEL_SIZES = [900, 9000] as const;
/** A piece ends where its rectangle would become this fat: a long diagonal would be "near" everything. */
const FAT = 320;

export interface SceneIndex {
  /** Boxes that are not open groups. */
  leaves: RTree;
  /** How they cover the plane, for when they are too many to draw. */
  density: Density;
  /** Open groups, by size. */
  panels: RTree[];
  /** Pieces of edges, by length. */
  pieces: RTree[];
  pieceEdge: Int32Array;
  /** First and last point of each piece. */
  pieceFrom: Int32Array;
  pieceTo: Int32Array;
  /** The edges at box b: touching[touchStart[b] … touchStart[b + 1]). */
  touchStart: Int32Array;
  touching: Int32Array;
}

export function buildIndex(scene: Scene): SceneIndex {
  const { boxes, edges } = scene;
  const corners = cornersOf(boxes);
  const leafIds = new Bag();
  const panelIds: Bag[] = [...PANEL_SIZES, Infinity].map(() => new Bag());
  for (let i = 0; i < boxes.count; i++) {
    if (boxes.kind[i] === BoxKind.Open) panelIds[classOf(Math.max(boxes.width[i]!, boxes.height[i]!), PANEL_SIZES)]!.push(i);
    else leafIds.push(i);
  }
  const leaves = buildRTree(corners, leafIds.taken());
  const panels = panelIds.map((ids) => buildRTree(corners, ids.taken()));
  const density = buildDensity(boxes, leaves.ids, scene.width, scene.height);
  return { leaves, density, panels, ...pieces(edges), ...touching(boxes, edges) };
}

function classOf(length: number, limits: readonly number[]): number {
  let c = 0;
  while (c < limits.length && length > limits[c]!) c++;
  return c;
}

/** The buffers of an index, for postMessage's transfer list. */
export function buffersOf(index: SceneIndex): ArrayBuffer[] {
  const columns: ArrayBufferView[] = [
    index.density.columns,
    index.density.rows,
    index.density.start,
    index.density.cover,
    index.density.phase,
    index.density.box,
    index.pieceEdge,
    index.pieceFrom,
    index.pieceTo,
    index.touchStart,
    index.touching,
  ];
  for (const tree of [index.leaves, ...index.panels, ...index.pieces]) columns.push(tree.ids, tree.bounds, tree.levels);
  return columns.map((column) => column.buffer as ArrayBuffer);
}

function cornersOf(boxes: Boxes): Corners {
  const n = boxes.count;
  const x1 = new Float32Array(n);
  const y1 = new Float32Array(n);
  for (let i = 0; i < n; i++) {
    x1[i] = boxes.x[i]! + boxes.width[i]!;
    y1[i] = boxes.y[i]! + boxes.height[i]!;
  }
  return { x0: boxes.x, y0: boxes.y, x1, y1 };
}

function pieces(edges: Edges): Pick<SceneIndex, 'pieces' | 'pieceEdge' | 'pieceFrom' | 'pieceTo'> {
  const { start, points } = edges;
  const [edge, from, to] = [new Bag(), new Bag(), new Bag()];
  const hidden = covered(edges);
  for (let e = 0; e < edges.count; e++) {
    const end = start[e + 1]! - 1;
    let first = start[e]!;
    if (end <= first) continue;
    const cut = (at: number): void => {
      if (at > first) {
        edge.push(e);
        from.push(first);
        to.push(at);
      }
      first = at;
    };
    // No pairs in brackets here: until the code is compiled, taking them apart costs more than all the rest.
    let x0 = points[2 * first]!;
    let y0 = points[2 * first + 1]!;
    let x1 = x0;
    let y1 = y0;
    for (let p = first + 1; p <= end; p++) {
      const x = points[2 * p]!;
      const y = points[2 * p + 1]!;
      const w = Math.max(x1, x) - Math.min(x0, x);
      const h = Math.max(y1, y) - Math.min(y0, y);
      const isLong = longSide(points, p) > LONG;
      if (isLong || (Math.min(w, h) > FAT && p - 1 > first)) {
        cut(p - 1);
        x0 = x1 = points[2 * first]!;
        y0 = y1 = points[2 * first + 1]!;
      }
      if (isLong) {
        // A long step is a piece of its own, or none where a longer one lies under it.
        if (hidden[p]) first = p;
        else cut(p);
        x0 = x1 = x;
        y0 = y1 = y;
        continue;
      }
      x0 = Math.min(x0, x);
      x1 = Math.max(x1, x);
      y0 = Math.min(y0, y);
      y1 = Math.max(y1, y);
    }
    cut(end);
  }
  const pieceEdge = edge.taken();
  const pieceFrom = from.taken();
  const pieceTo = to.taken();
  const corners = pieceCorners(points, pieceFrom, pieceTo);
  const classes: Bag[] = [...PIECE_LENGTHS, Infinity].map(() => new Bag());
  for (let i = 0; i < edge.size; i++) {
    const length = Math.max(corners.x1[i]! - corners.x0[i]!, corners.y1[i]! - corners.y0[i]!);
    classes[classOf(length, PIECE_LENGTHS)]!.push(i);
  }
  return { pieces: classes.map((bag) => buildRTree(corners, bag.taken())), pieceEdge, pieceFrom, pieceTo };
}

/** Steps longer than this are looked at one by one. */
const LONG = 600;

/** The longer side of the step that ends at point p. */
function longSide(points: Float32Array, p: number): number {
  return Math.max(Math.abs(points[2 * p]! - points[2 * p - 2]!), Math.abs(points[2 * p + 1]! - points[2 * p - 1]!));
}

/**
 * Long straight steps that lie on a longer one: a thousand edges of one bundle share their trunk, and drawing it a
 * thousand times is what a frame would spend its time on. Marked by the point at which the step ends.
 */
function covered(edges: Edges): Uint8Array {
  const { start, points } = edges;
  const hidden = new Uint8Array(points.length / 2);
  for (const axis of [0, 1]) {
    // By the line they lie on: most lines have one step, and nothing to compare.
    const lines = new Map<number, number[]>();
    for (let e = 0; e < edges.count; e++) {
      for (let p = start[e]! + 1; p < start[e + 1]!; p++) {
        const at = points[2 * p + axis]!;
        if (at !== points[2 * p - 2 + axis] || longSide(points, p) <= LONG) continue;
        const steps = lines.get(at);
        if (steps) steps.push(p);
        else lines.set(at, [p]);
      }
    }
    const other = 1 - axis;
    const low = (p: number) => Math.min(points[2 * p + other]!, points[2 * p - 2 + other]!);
    const high = (p: number) => Math.max(points[2 * p + other]!, points[2 * p - 2 + other]!);
    for (const steps of lines.values()) {
      if (steps.length === 1) continue;
      steps.sort((a, b) => low(a) - low(b) || high(b) - high(a) || a - b);
      let end = -Infinity;
      for (const p of steps) {
        if (high(p) <= end) hidden[p] = 1;
        else end = high(p);
      }
    }
  }
  return hidden;
}

function pieceCorners(points: Float32Array, from: Int32Array, to: Int32Array): Corners {
  const n = from.length;
  const [x0, y0] = [new Float32Array(n), new Float32Array(n)];
  const [x1, y1] = [new Float32Array(n), new Float32Array(n)];
  for (let i = 0; i < n; i++) {
    let l = Infinity;
    let t = Infinity;
    let r = -Infinity;
    let b = -Infinity;
    for (let p = from[i]!; p <= to[i]!; p++) {
      const x = points[2 * p]!;
      const y = points[2 * p + 1]!;
      if (x < l) l = x;
      if (x > r) r = x;
      if (y < t) t = y;
      if (y > b) b = y;
    }
    x0[i] = l;
    y0[i] = t;
    x1[i] = r;
    y1[i] = b;
  }
  return { x0, y0, x1, y1 };
}

function touching(boxes: Boxes, edges: Edges): Pick<SceneIndex, 'touchStart' | 'touching'> {
  const touchStart = new Int32Array(boxes.count + 1);
  const { source, target } = edges;
  for (let e = 0; e < edges.count; e++) {
    touchStart[source[e]! + 1]!++;
    if (target[e] !== source[e]) touchStart[target[e]! + 1]!++;
  }
  for (let b = 0; b < boxes.count; b++) touchStart[b + 1]! += touchStart[b]!;
  const at = touchStart.slice();
  const touching = new Int32Array(touchStart[boxes.count]!);
  for (let e = 0; e < edges.count; e++) {
    touching[at[source[e]!]!++] = e;
    if (target[e] !== source[e]) touching[at[target[e]!]!++] = e;
  }
  return { touchStart, touching };
}

const near = new Bag();

/** The innermost box at a point of the world, or -1. */
export function boxAt(scene: Scene, index: SceneIndex, x: number, y: number): number {
  const { boxes } = scene;
  for (const trees of [[index.leaves], index.panels]) {
    near.size = 0;
    for (const tree of trees) search(tree, x, y, x, y, near);
    let best = -1;
    for (let i = 0; i < near.size; i++) {
      const b = near.items[i]!;
      const inside = x >= boxes.x[b]! && y >= boxes.y[b]! && x <= boxes.x[b]! + boxes.width[b]! && y <= boxes.y[b]! + boxes.height[b]!;
      if (inside && (best < 0 || boxes.depth[b]! > boxes.depth[best]! || (boxes.depth[b] === boxes.depth[best] && b > best))) best = b;
    }
    if (best >= 0) return best;
  }
  return -1;
}

/** The nearest edge within `reach` of a point of the world, or -1. */
export function edgeAt(scene: Scene, index: SceneIndex, x: number, y: number, reach: number): number {
  const { points } = scene.edges;
  let [best, least] = [-1, reach * reach];
  for (const tree of index.pieces) {
    near.size = 0;
    search(tree, x - reach, y - reach, x + reach, y + reach, near);
    for (let i = 0; i < near.size; i++) {
      const piece = near.items[i]!;
      for (let p = index.pieceFrom[piece]!; p < index.pieceTo[piece]!; p++) {
        const d = distance2(x, y, points[2 * p]!, points[2 * p + 1]!, points[2 * p + 2]!, points[2 * p + 3]!);
        const edge = index.pieceEdge[piece]!;
        if (d < least || (d === least && edge < best)) [best, least] = [edge, d];
      }
    }
  }
  return best;
}

/** The square of the distance from a point to a segment. */
export function distance2(x: number, y: number, ax: number, ay: number, bx: number, by: number): number {
  const [dx, dy] = [bx - ax, by - ay];
  const length2 = dx * dx + dy * dy;
  const t = length2 > 0 ? Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / length2)) : 0;
  return (ax + t * dx - x) ** 2 + (ay + t * dy - y) ** 2;
}
