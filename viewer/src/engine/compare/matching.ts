// Which operator of one graph is which of the other, as analysis/diff/matching.py: first what is certain (fingerprints of whole
// neighbourhoods that occur once on both sides), then growth from there along the edges, then the order of execution for what
// repeats, and at last operators in the same place that changed.

import { scopePath } from '../../wire/scopes.ts';
import type { Hashes } from './hashes.ts';
import { align } from './sequence.ts';
import { closed, colours, RADIUS, type Side } from './side.ts';

type Pairs = [number, number][];
type Level = [Hashes, Hashes];

/** Pairs of items, one to one. */
export class Matcher {
  readonly toB: Int32Array;
  readonly toA: Int32Array;
  private fresh: Pairs = [];
  private log: Pairs | null = null;

  constructor(
    readonly a: Side,
    readonly b: Side,
  ) {
    this.toB = new Int32Array(a.size).fill(-1);
    this.toA = new Int32Array(b.size).fill(-1);
  }

  run(): void {
    if (this.sameRows()) return;
    const certain: Level = [closed(this.a), closed(this.b)];
    this.unique(certain);
    this.grow([certain]);
    this.ties(certain, [certain]);
    this.exact();
    this.inPlace();
  }

  /** Graphs that are equal row by row are found without any search. */
  private sameRows(): boolean {
    const { a, b } = this;
    const alike = (one: ArrayLike<number>, other: ArrayLike<number>) => {
      for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return false;
      return one.length === other.length;
    };
    const columns = ['exact', 'source', 'slot', 'target', 'port', 'outputs'] as const;
    if (a.size !== b.size || !columns.every((name) => alike(a[name], b[name]))) return false;
    for (let i = 0; i < a.size; i++) this.toB[i] = this.toA[i] = i;
    return true;
  }

  private levels(start: 'exact' | 'loose'): Level[] {
    const [a, b] = [colours(this.a, this.a[start]), colours(this.b, this.b[start])];
    return a.map((level, i) => [level, b[i]!]);
  }

  private exact(): void {
    const levels = this.levels('exact');
    const growing = [levels[2]!, levels[1]!, levels[0]!];
    for (let radius = RADIUS; radius > 0; radius--) {
      this.unique(levels[radius]!);
      this.grow(growing);
    }
    this.regrow(growing); // who had several candidates at first may have one now
    this.inOrder(levels[0]!, growing);
    for (let radius = RADIUS; radius > 0; radius--) this.ties(levels[radius]!, growing);
    this.unique(levels[0]!, true);
    this.grow(growing);
  }

  /** The same operator in the same place, with other attributes or types. */
  private inPlace(): void {
    const levels = this.levels('loose');
    const growing = [levels[1]!, levels[0]!];
    this.log = [];
    for (let radius = RADIUS; radius > 0; radius--) {
      this.unique(levels[radius]!);
      this.grow(growing);
    }
    this.inOrder(levels[0]!, growing);
    this.regrow(growing);
    for (let radius = RADIUS; radius > 0; radius--) this.ties(levels[radius]!, growing);
    const tried = this.log;
    this.log = null;
    this.keep(
      tried.filter(([x]) => x < this.a.graph.nodes),
      (x, y) => this.isInPlace(x, y),
    );
    this.leaves();
  }

  // -- single pairs -------------------------------------------------------------------------------

  private pair(x: number, y: number): void {
    this.toB[x] = y;
    this.toA[y] = x;
    this.fresh.push([x, y]);
    this.log?.push([x, y]);
  }

  private isFree(x: number, y: number): boolean {
    return this.toB[x]! < 0 && this.toA[y]! < 0 && x < this.a.graph.nodes === y < this.b.graph.nodes;
  }

  private free(nodesOnly = false): [number[], number[]] {
    const left = (matched: Int32Array, most: number) => Array.from({ length: most }, (_, i) => i).filter((i) => matched[i]! < 0);
    return [left(this.toB, nodesOnly ? this.a.graph.nodes : this.a.size), left(this.toA, nodesOnly ? this.b.graph.nodes : this.b.size)];
  }

  /** Drops pairs that do not hold; dropping one may take its neighbours with it. */
  private keep(tried: Pairs, holds: (x: number, y: number) => boolean): Pairs {
    for (let left = tried; ;) {
      const bad = new Set(left.filter(([x, y]) => !holds(x, y)));
      if (!bad.size) return left;
      for (const [x, y] of bad) this.toB[x] = this.toA[y] = -1;
      left = left.filter((pair) => !bad.has(pair));
    }
  }

  // -- by fingerprint -----------------------------------------------------------------------------

  /** Pair what occurs once on each side among those that are left. */
  private unique([a, b]: Level, nodesOnly = false): void {
    const [leftA, leftB] = this.free(nodesOnly);
    const [onceA, onceB] = [once(a, leftA), once(b, leftB)];
    for (const [colour, x] of onceA) {
      const y = x < 0 ? undefined : onceB.get(colour);
      if (y !== undefined && y >= 0) this.pair(x, y);
    }
  }

  /** Alike and as many on both sides: in the same module, then in order; growth keeps neighbours together. */
  private ties([a, b]: Level, growing: Level[]): void {
    const [leftA, leftB] = this.free();
    const [classesA, classesB] = [classes(a, leftA), classes(b, leftB)];
    for (const [colour, members] of classesA) {
      const xs = members.filter((x) => this.toB[x]! < 0);
      const ys = (classesB.get(colour) ?? []).filter((y) => this.toA[y]! < 0);
      if (!xs.length || xs.length !== ys.length) continue;
      for (const [x, y] of this.byModule(xs, ys)) {
        if (!this.isFree(x, y)) continue;
        this.pair(x, y);
        this.grow(growing);
      }
    }
  }

  private byModule(xs: number[], ys: number[]): Pairs {
    const waiting = new Map<string, number[]>();
    for (const y of ys) {
      const path = pathOf(this.b, y);
      const known = waiting.get(path);
      if (known) known.push(y);
      else waiting.set(path, [y]);
    }
    const pairs: Pairs = [];
    const rest: number[] = [];
    for (const x of xs) {
      const y = waiting.get(pathOf(this.a, x))?.shift();
      if (y === undefined) rest.push(x);
      else pairs.push([x, y]);
    }
    const others = [...waiting.values()].flat().sort((a, b) => a - b);
    return [...pairs, ...rest.map((x, i): [number, number] => [x, others[i]!])];
  }

  // -- along the edges ----------------------------------------------------------------------------

  /** From the newest pairs to what they read and what reads them: the likeliest first. */
  private grow(levels: Level[]): void {
    let start = this.fresh;
    this.fresh = [];
    for (const level of levels) {
      const todo = start.slice();
      for (let pair = todo.pop(); pair; pair = todo.pop()) {
        const before = this.fresh.length;
        this.growUp(...pair, level);
        this.growDown(...pair, level);
        for (let i = before; i < this.fresh.length; i++) todo.push(this.fresh[i]!);
      }
      start = [...start, ...this.fresh];
      this.fresh = [];
    }
  }

  /** Growth from every pair, also the old ones. */
  private regrow(levels: Level[]): void {
    this.fresh = Array.from(this.toB, (y, x): [number, number] => [x, y]).filter(([, y]) => y >= 0);
    this.grow(levels);
  }

  private growUp(x: number, y: number, [a, b]: Level): void {
    const [one, other] = [this.a.reads, this.b.reads];
    const [from, there] = [one.start[x]!, other.start[y]!];
    const count = one.start[x + 1]! - from;
    if (count !== other.start[y + 1]! - there) return;
    for (let i = 0; i < count; i++) {
      const [use, use2] = [one.item[from + i]!, other.item[there + i]!];
      if (this.a.port[use] !== this.b.port[use2] || this.a.slot[use] !== this.b.slot[use2]) continue;
      const [source, source2] = [this.a.source[use]!, this.b.source[use2]!];
      if (this.isFree(source, source2) && a[source] === b[source2]) this.pair(source, source2);
    }
  }

  private growDown(x: number, y: number, [a, b]: Level): void {
    const mine = freeReaders(this.a, x, this.toB, a);
    if (!mine.size) return;
    const theirs = freeReaders(this.b, y, this.toA, b);
    for (const [place, reader] of mine) {
      const other = theirs.get(place) ?? -1;
      if (reader >= 0 && other >= 0 && this.isFree(reader, other)) this.pair(reader, other);
    }
  }

  // -- by the order of execution ------------------------------------------------------------------

  /** What repeats (equal layers) has no fingerprint of its own: there the order of execution decides. */
  private inOrder([a, b]: Level, growing: Level[]): void {
    const [leftA, leftB] = this.free(true);
    const tokens = (of: Hashes, left: number[]) => left.map((item) => of[item]!);
    let tried = align(tokens(a, leftA), tokens(b, leftB)).map(([i, j]): [number, number] => [leftA[i]!, leftB[j]!]);
    for (const [x, y] of tried) [this.toB[x], this.toA[y]] = [y, x];
    // Only where a neighbour agrees and none contradicts.
    tried = this.keep(tried, (x, y) => this.agrees(x, y));
    for (const pair of tried) {
      this.fresh.push(pair); // one by one: a hundred thousand are too many arguments
      this.log?.push(pair);
    }
    this.grow(growing);
  }

  private agrees(x: number, y: number): boolean {
    const { a, b } = this;
    let agreed = 0;
    let any = 0;
    for (const use of uses(a.reads, x)) {
      any++;
      const other = uses(b.reads, y).find((one) => b.port[one] === a.port[use]);
      if (other === undefined) continue;
      const [source, source2] = [a.source[use]!, b.source[other]!];
      if (this.toB[source]! < 0 && this.toA[source2]! < 0) continue;
      if (this.toB[source] === source2 && a.slot[use] === b.slot[other]) agreed++;
      else if (this.toB[source]! >= 0 && this.toA[source2]! >= 0) return false;
    }
    for (const use of uses(a.readBy, x)) {
      any++;
      const partner = this.toB[a.target[use]!]!;
      if (partner < 0) continue;
      if (uses(b.reads, partner).some((one) => b.port[one] === a.port[use] && b.source[one] === y && b.slot[one] === a.slot[use])) agreed++;
    }
    return agreed > 0 || !(any || uses(b.reads, y).length || uses(b.readBy, y).length);
  }

  // -- what changed in its place ------------------------------------------------------------------

  /** It reads what its counterpart reads, and is read by the same. */
  private isInPlace(x: number, y: number): boolean {
    const { a, b } = this;
    const [readsX, readsY] = [uses(a.reads, x), uses(b.reads, y)];
    if (readsX.length !== readsY.length || readsX.some((use, i) => a.port[use] !== b.port[readsY[i]!])) return false;
    let open = false;
    for (const [i, use] of readsX.entries()) {
      const [sourceX, sourceY] = [a.source[use]!, b.source[readsY[i]!]!];
      const [weightX, weightY] = [sourceX >= a.graph.nodes, sourceY >= b.graph.nodes];
      if (weightX && weightY) continue;
      // What is above was rewritten; then what is below must agree.
      if (!weightX && !weightY && this.toB[sourceX]! < 0 && this.toA[sourceY]! < 0) open = true;
      else if (weightX !== weightY || this.toB[sourceX] !== sourceY || a.slot[use] !== b.slot[readsY[i]!]) return false;
    }
    if (a.isOutput[x] !== b.isOutput[y]) return false;
    const [readersX, readersY] = [uses(a.readBy, x), uses(b.readBy, y)];
    if (readersX.length > 0 !== readersY.length > 0) return false;
    const key = (side: Side, use: number, reader: number) => `${reader} ${side.port[use]} ${side.slot[use]}`;
    const theirs = new Set(Array.from(readersY, (use) => key(b, use, b.target[use]!)));
    return readersX.some((use) => theirs.has(key(a, use, this.toB[a.target[use]!]!))) || (!readersX.length && !open);
  }

  /** Inputs and weights at the same place of operators that belong together, whatever their type. */
  private leaves(): void {
    const { a, b } = this;
    for (let x = 0; x < a.graph.nodes; x++) {
      const y = this.toB[x]!;
      if (y < 0) continue;
      const theirs = uses(b.reads, y);
      uses(a.reads, x).forEach((use, i) => {
        const other = theirs[i];
        if (other === undefined || a.port[use] !== b.port[other] || a.source[use]! < a.graph.nodes) return;
        if (this.isFree(a.source[use]!, b.source[other]!)) this.pair(a.source[use]!, b.source[other]!);
      });
    }
    this.fresh = [];
  }
}

/** The uses of an item. */
export function uses({ start, item }: Side['reads'], at: number): Int32Array {
  return item.subarray(start[at]!, start[at + 1]!);
}

export function pathOf({ graph, pools }: Side, item: number): string {
  return item < graph.nodes ? scopePath(pools, graph.scope[item]!) : '';
}

/** By colour: the item, or -1 where there are several. */
function once(colours: Hashes, items: number[]): Map<number, number> {
  const found = new Map<number, number>();
  for (const item of items) found.set(colours[item]!, found.has(colours[item]!) ? -1 : item);
  return found;
}

function classes(colours: Hashes, items: number[]): Map<number, number[]> {
  const found = new Map<number, number[]>();
  for (const item of items) {
    const known = found.get(colours[item]!);
    if (known) known.push(item);
    else found.set(colours[item]!, [item]);
  }
  return found;
}

/** By output, argument and colour: who reads it and has no counterpart; -1 where there are several. */
function freeReaders(side: Side, item: number, matched: Int32Array, colours: Hashes): Map<string, number> {
  const found = new Map<string, number>();
  for (const use of uses(side.readBy, item)) {
    const reader = side.target[use]!;
    if (matched[reader]! >= 0) continue;
    const key = `${side.slot[use]} ${side.port[use]} ${colours[reader]}`;
    found.set(key, found.has(key) ? -1 : reader);
  }
  return found;
}
