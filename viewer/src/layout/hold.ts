// Edges without a line that hold the boxes of a column of a U in place: one below the other as the rows of the columns
// before them are, and apart from boxes that their rungs would run through.

import type { Part } from './columns.ts';
import { HELD, RUNG, type NestedGraph } from './types.ts';
import type { Turn } from './uturn.ts';

const MOST = 250; // boxes of a column: of more, none is looked at that well
const RUNGS_WITHIN = 44; // of the upper part of a box

/**
 * The graph with edges that hold the boxes of a column in the order of their rows, as the columns before have them, where
 * the data leaves that open.
 */
export function holdRows(graph: NestedGraph, { column, row, upward }: Turn, c: number, parts: Part[]): NestedGraph {
  const tops = new Map<number, number>(); // by row
  for (const part of parts) part.boxes.forEach((box, i) => row[box] >= 0 && !tops.has(row[box]) && tops.set(row[box], part.y[i]));
  const siblings = new Map<number, number[]>();
  for (let box = 0; box < graph.n; box++) {
    if (column[box] !== c || graph.open[box] || !tops.has(row[box])) continue;
    const list = siblings.get(graph.parent[box]);
    if (list) list.push(box);
    else siblings.set(graph.parent[box], [box]);
  }
  const held = new Held(graph, column, c);
  for (const boxes of siblings.values()) {
    boxes.sort((a, b) => tops.get(row[a])! - tops.get(row[b])!);
    for (let i = 1; i < boxes.length; i++) {
      const [above, below] = [boxes[i - 1], boxes[i]];
      if (tops.get(row[below])! - tops.get(row[above])! < 1) continue; // beside each other
      held.hold(upward[c] ? below : above, upward[c] ? above : below);
    }
  }
  return held.graph;
}

/** The same for boxes whose rungs would run through boxes beside them: these come first or later, as they run. */
export function standApart(graph: NestedGraph, { column, row, kind }: Turn, c: number, part: Part): NestedGraph {
  const { boxes, x, y, wide, high } = part;
  if (boxes.length > MOST) return graph;
  const [right, left] = [new Set<number>(), new Set<number>()]; // boxes that rungs leave or reach at that side
  for (let e = 0; e < kind.length; e++) {
    const [a, b] = [graph.source[e], graph.target[e]];
    if (kind[e] !== RUNG || row[a] < 0 || row[a] !== row[b]) continue;
    for (const [box, other] of [
      [a, b],
      [b, a],
    ])
      if (column[box] === c) (column[other] > c ? right : left).add(box);
  }
  const held = new Held(graph, column, c);
  for (let i = 0; i < boxes.length; i++) {
    const box = boxes[i];
    if (graph.open[box] || !(right.has(box) || left.has(box))) continue;
    const bottom = y[i] + Math.min(high[i], RUNGS_WITHIN);
    const around = new Set<number>();
    for (let p = graph.parent[box]; p >= 0; p = graph.parent[p]) around.add(p);
    for (let j = 0; j < boxes.length; j++) {
      if (j === i || around.has(boxes[j]) || y[j] >= bottom || y[j] + high[j] <= y[i]) continue;
      if (x[j] > x[i] + wide[i] - 1 ? !right.has(box) : !left.has(box)) continue;
      const first = graph.order ? graph.order[box] <= graph.order[boxes[j]] : box < boxes[j];
      held.hold(first ? box : boxes[j], first ? boxes[j] : box);
    }
  }
  return held.graph;
}

/** A graph that gets more edges in one of its columns. */
class Held {
  private readonly source: number[] = [];
  private readonly target: number[] = [];
  private readonly inside = new Map<number, Siblings>();

  constructor(
    private readonly before: NestedGraph,
    private readonly column: Int32Array,
    private readonly c: number,
  ) {}

  /** Box `b` comes after `a`, in the direction of the data, where nothing says otherwise. */
  hold(a: number, b: number): void {
    const { before } = this;
    const above = new Set<number>();
    for (let box = before.parent[a]; box >= 0; box = before.parent[box]) above.add(box);
    let around = before.parent[b];
    while (around >= 0 && !above.has(around)) around = before.parent[around];
    let siblings = this.inside.get(around);
    if (!siblings) {
      siblings = new Siblings(before, around);
      for (let e = 0; e < before.source.length; e++) {
        if (this.column[before.source[e]] === this.c && this.column[before.target[e]] === this.c)
          siblings.join(before.source[e], before.target[e]);
      }
      this.inside.set(around, siblings);
    }
    const [p, q] = [siblings.lifted(a), siblings.lifted(b)];
    if (p === q || siblings.reaches(p, q) || siblings.reaches(q, p)) return;
    // Edges lead from and to boxes that are not open.
    this.source.push(this.leafIn(a));
    this.target.push(this.leafIn(b));
    siblings.join(p, q);
  }

  /** The box itself, or the first leaf inside it. */
  private leafIn(box: number): number {
    const { open, parent, n } = this.before;
    for (let v = box; v < n; v++) {
      if (v !== box && parent[v] !== box) continue;
      if (!open[v]) return v;
      box = v;
    }
    return box;
  }

  get graph(): NestedGraph {
    const { before, source, target } = this;
    if (!source.length) return before;
    const from = Int32Array.from([...before.source, ...source]);
    const weight = new Float32Array(from.length).fill(HELD);
    weight.set(before.weight ?? new Float32Array(before.source.length).fill(1));
    return { ...before, source: from, target: Int32Array.from([...before.target, ...target]), weight };
  }
}

/** What leads from where to where among the boxes in one group. */
class Siblings {
  private readonly next = new Map<number, Set<number>>();

  constructor(
    private readonly graph: NestedGraph,
    private readonly around: number,
  ) {}

  /** The box in the group that a box is in, or -1. */
  lifted(box: number): number {
    const { parent } = this.graph;
    while (box >= 0 && parent[box] !== this.around) box = parent[box];
    return box;
  }

  join(a: number, b: number): void {
    const [p, q] = [this.lifted(a), this.lifted(b)];
    if (p < 0 || q < 0 || p === q) return;
    const list = this.next.get(p);
    if (list) list.add(q);
    else this.next.set(p, new Set([q]));
  }

  reaches(from: number, to: number): boolean {
    const seen = new Set([from]);
    const todo = [from];
    for (let v = todo.pop(); v !== undefined; v = todo.pop()) {
      if (v === to) return true;
      for (const w of this.next.get(v) ?? []) if (!seen.has(w)) (todo.push(w), seen.add(w));
    }
    return false;
  }
}
