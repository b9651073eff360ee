// Which operators may share a box. A box over operators that something else stands between would need an arrow out of it
// and back: the drawing would show a loop that the program does not have. So clusters are cut into parts, as few as an
// order of execution allows, that have no such loop however many of them are closed.

/**
 * A part for each node. Nodes of one part are of one cluster, a node without a cluster (-1) is a part of its own, and the
 * graph of parts has no cycle unless the nodes themselves have one. Nodes are numbered in order of execution; edges need
 * not follow it.
 */
export function convexParts(source: Int32Array, target: Int32Array, cluster: Int32Array): Int32Array {
  const run = new Run(source, target, cluster);
  run.schedule();
  run.merge();
  return run.part;
}

class Run {
  readonly part: Int32Array;
  private readonly n: number;
  private readonly outStart: Int32Array;
  private readonly out: Int32Array;
  private readonly members = new Map<number, number[]>(); // of each cluster, in order
  private readonly waiting: Int32Array; // by node: edges from nodes that have not run
  private readonly outside: Int32Array; // by item: those of them that come from another item
  private readonly ready = new Least(); // items that can run as a whole, by their first node
  private readonly startable = new Least(); // nodes that can run
  private readonly cut = new Map<number, number[]>(); // parts of clusters that had to be cut, in the order they ran
  private readonly nodesOf: number[][] = []; // by part
  private parts = 0;
  private done = 0;

  constructor(
    private readonly source: Int32Array,
    private readonly target: Int32Array,
    private readonly cluster: Int32Array,
  ) {
    const n = (this.n = cluster.length);
    this.part = new Int32Array(n).fill(-1);
    this.outStart = new Int32Array(n + 1);
    this.waiting = new Int32Array(n);
    let clusters = 0;
    for (let v = 0; v < n; v++) {
      const c = cluster[v]!;
      if (c < 0) continue;
      clusters = Math.max(clusters, c + 1);
      const list = this.members.get(c);
      if (list) list.push(v);
      else this.members.set(c, [v]);
    }
    this.outside = new Int32Array(n + clusters);
    for (let e = 0; e < source.length; e++) {
      if (source[e] === target[e]) continue;
      this.outStart[source[e]! + 1]!++;
      this.waiting[target[e]!]!++;
      if (this.item(source[e]!) !== this.item(target[e]!)) this.outside[this.item(target[e]!)]!++;
    }
    for (let v = 0; v < n; v++) this.outStart[v + 1]! += this.outStart[v]!;
    const next = this.outStart.slice(0, n);
    this.out = new Int32Array(this.outStart[n]!);
    for (let e = 0; e < source.length; e++) if (source[e] !== target[e]) this.out[next[source[e]!]!++] = target[e]!;
  }

  private item(v: number): number {
    const c = this.cluster[v]!;
    return c < 0 ? v : this.n + c;
  }

  private firstOf(item: number): number {
    return item < this.n ? item : this.members.get(item - this.n)![0]!;
  }

  schedule(): void {
    const { n, outside, waiting, ready, startable } = this;
    for (let v = 0; v < n; v++) {
      if (waiting[v] === 0) startable.push(v, v);
      if (this.cluster[v]! < 0 && outside[v] === 0) ready.push(v, v);
    }
    for (const [c, list] of this.members) if (outside[n + c] === 0) ready.push(list[0]!, n + c);
    let earliest = 0;
    while (this.done < n) {
      if (ready.size) this.runWhole(ready.pop());
      else {
        let v = -1;
        while (startable.size && v < 0)
          if (this.part[startable.top()]! >= 0) startable.pop();
          else v = startable.pop();
        // Everything waits for a part of something that has begun: cut the cluster that could begin first.
        if (v >= 0) this.runSome(this.cluster[v]!, v);
        else {
          // The operators themselves go round in a loop.
          while (this.part[earliest]! >= 0) earliest++;
          this.runWhole(this.item(earliest));
        }
      }
    }
  }

  private runWhole(item: number): void {
    const nodes = (item < this.n ? [item] : this.members.get(item - this.n)!).filter((v) => this.part[v]! < 0);
    if (!nodes.length) return;
    const part = this.open(item);
    for (const v of nodes) this.run(v, part);
  }

  /** What of a cluster can run now, from `first` on. */
  private runSome(c: number, first: number): void {
    const part = this.open(this.n + c);
    const todo = new Least();
    todo.push(first, first);
    for (const v of this.members.get(c)!) if (v !== first && this.part[v]! < 0 && this.waiting[v] === 0) todo.push(v, v);
    while (todo.size) {
      const v = todo.pop();
      if (this.part[v]! >= 0) continue;
      this.run(v, part);
      for (let i = this.outStart[v]!; i < this.outStart[v + 1]!; i++) {
        const w = this.out[i]!;
        if (this.cluster[w] === c && this.part[w]! < 0 && this.waiting[w] === 0) todo.push(w, w);
      }
    }
  }

  private open(item: number): number {
    const part = this.parts++;
    this.nodesOf.push([]);
    if (item >= this.n) {
      const list = this.cut.get(item - this.n);
      if (list) list.push(part);
      else this.cut.set(item - this.n, [part]);
    }
    return part;
  }

  private run(v: number, part: number): void {
    this.part[v] = part;
    this.nodesOf[part]!.push(v);
    this.done++;
    const item = this.item(v);
    for (let i = this.outStart[v]!; i < this.outStart[v + 1]!; i++) {
      const w = this.out[i]!;
      const other = this.item(w);
      if (--this.waiting[w]! === 0) this.startable.push(w, w);
      if (other !== item && --this.outside[other]! === 0 && this.part[w]! < 0) this.ready.push(this.firstOf(other), other);
    }
  }

  /** A part that could as well have run together with the next one of its cluster was cut off for nothing. */
  merge(): void {
    for (const parts of this.cut.values()) {
      if (parts.length < 2) continue;
      for (let i = parts.length - 2; i >= 0; i--) {
        const [early, late] = [parts[i]!, parts[i + 1]!];
        // Parts are numbered in a possible order; between the two there may be nothing that reads the early one …
        if (this.nodesOf[early]!.every((v) => this.reads(v, (p) => p <= early || p >= late))) {
          this.join(early, late);
          parts[i] = late;
        }
        // … or nothing that the late one reads.
        else if (this.fed(late, early)) this.join(late, early);
      }
    }
  }

  private reads(v: number, fine: (part: number) => boolean): boolean {
    for (let i = this.outStart[v]!; i < this.outStart[v + 1]!; i++) if (!fine(this.part[this.out[i]!]!)) return false;
    return true;
  }

  /** Whether all that part `late` reads has run with part `early` or before. */
  private fed(late: number, early: number): boolean {
    this.intoPart ??= this.inverse();
    return this.nodesOf[late]!.every((v) => this.intoPart!.get(v)?.every((u) => this.part[u]! <= early || this.part[u] === late) ?? true);
  }

  private intoPart: Map<number, number[]> | null = null;

  private inverse(): Map<number, number[]> {
    const cut = new Set([...this.cut].flatMap(([c, parts]) => (parts.length > 1 ? [c] : [])));
    const into = new Map<number, number[]>();
    for (let e = 0; e < this.source.length; e++) {
      const [u, v] = [this.source[e]!, this.target[e]!];
      if (u === v || !cut.has(this.cluster[v]!)) continue;
      const list = into.get(v);
      if (list) list.push(u);
      else into.set(v, [u]);
    }
    return into;
  }

  private join(from: number, into: number): void {
    for (const v of this.nodesOf[from]!) {
      this.part[v] = into;
      this.nodesOf[into]!.push(v);
    }
    this.nodesOf[from] = [];
  }
}

/** The least key first. */
class Least {
  size = 0;
  private keys: number[] = [];
  private items: number[] = [];

  top(): number {
    return this.items[0]!;
  }

  push(key: number, item: number): void {
    const { keys, items } = this;
    let i = this.size++;
    for (; i > 0;) {
      const up = (i - 1) >> 1;
      if (keys[up]! <= key) break;
      keys[i] = keys[up]!;
      items[i] = items[up]!;
      i = up;
    }
    keys[i] = key;
    items[i] = item;
  }

  pop(): number {
    const { keys, items } = this;
    const first = items[0]!;
    const size = --this.size;
    const [key, item] = [keys[size]!, items[size]!];
    let i = 0;
    for (;;) {
      let low = 2 * i + 1;
      if (low >= size) break;
      if (low + 1 < size && keys[low + 1]! < keys[low]!) low++;
      if (key <= keys[low]!) break;
      keys[i] = keys[low]!;
      items[i] = items[low]!;
      i = low;
    }
    keys[i] = key;
    items[i] = item;
    return first;
  }
}
