// A training step as a U (layout/uturn.ts): which boxes stand in one row, what is kept between them, where the step turns.
//
// A box of the backward pass is in the row of the box whose gradients it computes, by the links between operators; one of
// the optimizer in the row of what reads the parameters that it updates. What the backward pass reads of the forward pass
// is kept for it until then: it is drawn as one rung from a box to its own gradient, as thick as its bytes.

import { Bag } from '../draw/rtree.ts';
import { BETWEEN, RUNG, TIED } from '../layout/types.ts';
import type { Turn } from '../layout/uturn.ts';
import { PHASES, ROLES } from '../scene.ts';
import type { Graph } from '../wire/capture.ts';
import type { Tree } from './tree.ts';
import type { Types } from './types.ts';
import type { Visible } from './visible.ts';

const [FORWARD, BACKWARD, RECOMPUTE, OPTIMIZER] = (['forward', 'backward', 'recompute', 'optimizer'] as const).map((p) =>
  PHASES.indexOf(p),
);
const [PARAMETER, INPUT] = (['parameter', 'input'] as const).map((role) => ROLES.indexOf(role));

/** A picture as a U. The edges of `visible` are those of the U; the last ones, from `drawn` on, only hold boxes in place. */
export interface Turned {
  visible: Visible;
  turn: Turn;
  drawn: number;
  /** By edge: the bytes that a rung keeps; NaN for other edges. */
  kept: Float64Array;
}

interface Input {
  graph: Graph;
  tree: Tree;
  types: Types;
  flow: Pick<Graph, 'useNode' | 'useValue'>;
  visible: Visible;
}

/** Null where there is no such step: no backward pass, none that belongs to the forward pass, or gradients of gradients. */
export function turn(input: Input): Turned | null {
  const step = new Step(input);
  return step.isStep() ? step.turned() : null;
}

class Step {
  private readonly column: Int32Array;
  private readonly columnOf = new Map<number, number>(); // by phase
  private readonly row: Int32Array;
  private readonly inputBox = new Map<number, number>(); // by value
  /** Of boxes of the backward pass that have no row of their own: the box whose gradients they help to compute. */
  private readonly near = new Map<number, number>();
  private readonly inRow = new Map<string, number>(); // the box of a row in a column
  private readonly edges = new Edges();

  constructor(private readonly input: Input) {
    const { tree, visible: v } = input;
    this.column = new Int32Array(v.count);
    this.row = new Int32Array(v.count).fill(-1);
    const phases = new Set<number>();
    for (let box = 0; box < v.count; box++) {
      const group = v.item[box]! - tree.nodes;
      if (v.parent[box]! < 0 && group >= 0 && group < tree.groups && tree.isPhase[group]) phases.add(tree.phase[group]!);
      if (group >= tree.groups) this.inputBox.set(group - tree.groups, box);
    }
    for (const phase of [FORWARD, RECOMPUTE, BACKWARD, OPTIMIZER]) if (phases.has(phase)) this.columnOf.set(phase, this.columnOf.size);
    for (let box = 0; box < v.count; box++) {
      const around = v.parent[box]!;
      const group = v.item[box]! - tree.nodes;
      if (around >= 0) this.column[box] = this.column[around]!;
      else if (group >= 0 && group < tree.groups) this.column[box] = this.columnOf.get(tree.phase[group]!) ?? 0;
    }
  }

  isStep(): boolean {
    const { graph, visible: v } = this.input;
    const links = graph.links.get('grad');
    if (!links || !this.columnOf.has(FORWARD) || !this.columnOf.has(BACKWARD)) return false;
    for (let i = 0; i < links.source.length; i++) if (graph.phase[links.source[i]!] === BACKWARD) return false;
    const back = this.columnOf.get(BACKWARD)!;
    for (let e = 0; e < v.source.length; e++) {
      if (this.column[v.source[e]!] === back && (this.columnOf.get(RECOMPUTE) ?? 0) >= this.column[v.target[e]!]!) return false;
    }
    this.pair();
    let [paired, all] = [0, 0];
    for (let box = 0; box < v.count; box++) {
      if (this.column[box] !== back || v.open[box]) continue;
      all++;
      if (this.row[box]! >= 0 || this.near.has(box)) paired++;
    }
    return paired > 0 && paired >= 0.3 * all;
  }

  turned(): Turned {
    const { visible: v } = this.input;
    const ends = this.seeds();
    this.rewire(ends);
    this.tie();
    const losses = this.losses(ends);
    const drawn = this.edges.count;
    this.guide();
    const more = losses.length;
    const grow = (column: Int32Array, values: number[]): Int32Array => {
      const grown = new Int32Array(v.count + more);
      grown.set(column);
      grown.set(values, v.count);
      return grown;
    };
    const none = losses.map(() => -1);
    const { source, target, uses, value, use, kind, kept, guide } = this.edges;
    return {
      visible: {
        ...v,
        count: v.count + more,
        item: grow(
          v.item,
          losses.map((loss) => this.input.tree.nodes + this.input.tree.groups + loss),
        ),
        parent: grow(v.parent, none),
        open: Uint8Array.from({ length: v.count + more }, (_, box) => v.open[box] ?? 0),
        repeat: grow(
          v.repeat,
          losses.map(() => 1),
        ),
        last: grow(v.last, none),
        order: grow(v.order, none),
        source: source.taken(),
        target: target.taken(),
        uses: uses.taken(),
        value: value.taken(),
        use: use.taken(),
      },
      turn: {
        column: grow(this.column, none),
        upward: [...this.columnOf.keys()].map((phase) => phase === BACKWARD),
        row: grow(this.row, none),
        guide: Uint8Array.from(guide.taken()),
        kind: Uint8Array.from(kind.taken()),
      },
      drawn,
      kept: Float64Array.from(kept),
    };
  }

  // -- rows ---------------------------------------------------------------------------------------

  private pair(): void {
    const { graph, tree, visible: v } = this.input;
    const nodeBoxes = (kind: string): [number, number][] => {
      const links = graph.links.get(kind);
      return Array.from(links?.source ?? [], (node, i) => [v.nodeBox[node]!, v.nodeBox[links!.target[i]!]!]);
    };
    this.match(nodeBoxes('grad'), BACKWARD);
    if (this.columnOf.has(RECOMPUTE)) this.match(nodeBoxes('recompute'), RECOMPUTE);
    if (this.columnOf.has(OPTIMIZER)) this.match(this.updates(), OPTIMIZER);
    // Frames stand level too.
    const frames = new Map<string, number>();
    for (let box = 0; box < v.count; box++) {
      const group = v.item[box]! - tree.nodes;
      if (!v.open[box] || group < 0 || group >= tree.groups) continue;
      const name = tree.isPhase[group] ? `/${tree.part[group]}` : `${tree.scope[group]}/${tree.part[group]}`;
      if (this.column[box] === 0) frames.set(name, box);
      else if (frames.has(name)) this.put(box, frames.get(name)!);
    }
  }

  private put(box: number, first: number): void {
    this.row[first] = first;
    this.row[box] = first;
    this.inRow.set(`${first}/${this.column[first]}`, first);
    this.inRow.set(`${first}/${this.column[box]}`, box);
  }

  /** Pairs of boxes, those with the most links first; a box is in one pair. */
  private match(links: [number, number][], phase: number): void {
    const { count } = this.input.visible;
    const [there, here] = [this.columnOf.get(FORWARD)!, this.columnOf.get(phase)!];
    const many = new Map<number, number>();
    const all = new Map<number, number>(); // of the second box
    for (const [a, b] of links) {
      if (a < 0 || b < 0 || this.column[a] !== there || this.column[b] !== here) continue;
      many.set(a * count + b, (many.get(a * count + b) ?? 0) + 1);
      all.set(b, (all.get(b) ?? 0) + 1);
    }
    const taken = new Set<number>();
    for (const [key, n] of [...many].sort((p, q) => q[1] - p[1] || p[0] - q[0])) {
      const [a, b] = [Math.floor(key / count), key % count];
      if (phase === OPTIMIZER && 2 * n < all.get(b)!) continue; // it updates parameters of many
      if (!taken.has(a) && this.row[b]! < 0) {
        taken.add(a);
        this.put(b, a);
      } else if (this.row[b]! < 0 && !this.near.has(b)) this.near.set(b, a);
    }
    for (const [b] of all) if (this.row[b]! >= 0) this.near.delete(b);
  }

  /** Boxes that read a parameter in the forward pass, and those that update it. */
  private updates(): [number, number][] {
    const { graph, flow, visible: v } = this.input;
    const readers = new Map<number, number[]>();
    const pairs: [number, number][] = [];
    const isParameter = (value: number) => value >= 0 && graph.role[value] === PARAMETER && graph.producer[value]! < 0;
    flow.useValue.forEach((value, use) => {
      const node = flow.useNode[use]!;
      if (!isParameter(value) || graph.phase[node] !== FORWARD || v.nodeBox[node]! < 0) return;
      const list = readers.get(value);
      if (!list) readers.set(value, [v.nodeBox[node]!]);
      else if (!list.includes(v.nodeBox[node]!)) list.push(v.nodeBox[node]!);
    });
    flow.useValue.forEach((value, use) => {
      const node = flow.useNode[use]!;
      if (!isParameter(value) || graph.phase[node] !== OPTIMIZER) return;
      for (const box of readers.get(value) ?? []) pairs.push([box, v.nodeBox[node]!]);
    });
    this.readersOf = readers;
    return pairs;
  }

  private readersOf = new Map<number, number[]>();

  // -- edges --------------------------------------------------------------------------------------

  private rewire(ends: { value: number; from: number; to: number }[]): void {
    const { visible: v } = this.input;
    const back = this.columnOf.get(BACKWARD)!;
    const seeds = new Set(ends.map(({ value, to }) => `${value}/${to}`));
    for (let e = 0; e < v.source.length; e++) {
      const [a, b] = [v.source[e]!, v.target[e]!];
      const [from, to] = [this.column[a]!, this.column[b]!];
      if (from < to && to === back) {
        if (seeds.has(`${v.value[e]}/${b}`)) continue;
        // What is kept for a box of the backward pass runs from its own row.
        if (this.row[b]! >= 0) continue;
      }
      const kind = from === to ? 0 : this.row[a]! >= 0 && this.row[a] === this.row[b] ? RUNG : BETWEEN;
      this.edges.add(a, b, v.uses[e]!, v.value[e]!, v.use[e]!, kind);
    }
    this.keep(new Set(ends.map(({ value }) => value)));
  }

  /** A rung in each row: what its part of the backward pass reads, each piece of memory once. */
  private keep(seeds: Set<number>): void {
    const { graph, types, flow, visible: v } = this.input;
    const back = this.columnOf.get(BACKWARD)!;
    const again = this.columnOf.get(RECOMPUTE) ?? -1;
    const rungs = new Map<number, { values: Set<number>; bytes: number; known: boolean; largest: number; use: number }>();
    for (let use = 0; use < flow.useValue.length; use++) {
      const value = flow.useValue[use]!;
      const b = v.nodeBox[flow.useNode[use]!]!;
      if (value < 0 || b < 0 || this.column[b] !== back || this.row[b]! < 0 || seeds.has(value)) continue;
      const maker = graph.producer[value]!;
      const from = maker >= 0 ? v.nodeBox[maker]! : graph.role[value] === INPUT ? (this.inputBox.get(value) ?? -1) : -1;
      if (from < 0 || this.column[from] === back || this.column[from]! > back) continue;
      const left = this.column[from] === again ? this.inRow.get(`${this.row[b]}/${again}`) : this.row[b]!;
      if (left === undefined) continue;
      const key = left * v.count + b;
      let rung = rungs.get(key);
      if (!rung) rungs.set(key, (rung = { values: new Set(), bytes: 0, known: true, largest: value, use }));
      const memory = graph.storage[value]!;
      if (rung.values.has(memory)) continue;
      rung.values.add(memory);
      const bytes = types.bytes(graph.type[value]!);
      if (bytes < 0) rung.known = false;
      else rung.bytes += bytes;
      if (bytes > types.bytes(graph.type[rung.largest]!)) [rung.largest, rung.use] = [value, use];
    }
    for (const [key, { values, bytes, known, largest, use }] of rungs) {
      this.edges.add(Math.floor(key / v.count), key % v.count, values.size, largest, use, RUNG, known || bytes ? bytes : -1);
    }
  }

  /** Where the step turns: scalars of the forward pass at which the backward pass begins. */
  private seeds(): { value: number; from: number; to: number }[] {
    const { graph, types, flow, visible: v } = this.input;
    const back = this.columnOf.get(BACKWARD)!;
    const scalar = (value: number) => types.shape(graph.type[value]!)?.every((d) => d === 1) ?? false;
    const fed = new Uint8Array(graph.nodes); // reads what the backward pass made
    for (let use = 0; use < flow.useValue.length; use++) {
      const maker = flow.useValue[use]! < 0 ? -1 : graph.producer[flow.useValue[use]!]!;
      if (maker >= 0 && graph.phase[maker] === BACKWARD) fed[flow.useNode[use]!] = 1;
    }
    const found = new Map<string, { value: number; from: number; to: number }>();
    for (let use = 0; use < flow.useValue.length; use++) {
      const [node, value] = [flow.useNode[use]!, flow.useValue[use]!];
      if (value < 0 || graph.phase[node] !== BACKWARD || fed[node] || !scalar(value)) continue;
      const maker = graph.producer[value]!;
      if (maker < 0 || graph.phase[maker] !== FORWARD) continue;
      const [from, to] = [v.nodeBox[maker]!, v.nodeBox[node]!];
      if (from >= 0 && to >= 0 && this.column[to] === back) found.set(`${value}/${to}`, { value, from, to });
    }
    const ends = [...found.values()];
    return ends.length <= 8 ? ends : [];
  }

  private losses(ends: { value: number; from: number; to: number }[]): number[] {
    const { count } = this.input.visible;
    const losses = [...new Set(ends.map(({ value }) => value))];
    losses.forEach((loss, i) => {
      const mine = ends.filter(({ value }) => value === loss);
      this.edges.add(mine[0]!.from, count + i, 1, loss, -1, 0);
      for (const { to } of mine) this.edges.add(count + i, to, 1, loss, -1, 0);
    });
    return losses;
  }

  /** A parameter that several rows read is updated in one of them: the others are joined to it. */
  private tie(): void {
    const optimizer = this.columnOf.get(OPTIMIZER);
    const back = this.columnOf.get(BACKWARD)!;
    const seen = new Set<string>();
    for (const [value, boxes] of this.readersOf) {
      if (boxes.length < 2 || optimizer === undefined) continue;
      const home = boxes.map((box) => this.inRow.get(`${this.row[box]}/${optimizer}`)).find((box) => box !== undefined);
      if (home === undefined) continue;
      for (const box of boxes) {
        const gradient = this.inRow.get(`${this.row[box]}/${back}`);
        if (gradient === undefined || this.row[gradient] === this.row[home] || seen.has(`${gradient}/${home}`)) continue;
        seen.add(`${gradient}/${home}`);
        this.edges.add(gradient, home, 1, value, -1, TIED);
      }
    }
  }

  // -- what holds boxes in place --------------------------------------------------------------------

  /** Boxes that nothing leads to stand below those of the row before; phases that take turns, one below the other. */
  private guide(): void {
    const { tree, visible: v } = this.input;
    const isFed = new Uint8Array(v.count);
    for (let e = 0; e < v.source.length; e++) if (this.column[v.source[e]!] === this.column[v.target[e]!]) isFed[v.target[e]!] = 1;
    const place = (box: number) => (this.row[box]! >= 0 ? v.order[this.row[box]!]! : -1);
    const leaves = (column: number | undefined) =>
      Array.from({ length: v.count }, (_, box) => box).filter((box) => !v.open[box] && this.column[box] === column);
    for (const phase of [RECOMPUTE, OPTIMIZER]) {
      const stack = leaves(this.columnOf.get(phase)).sort((a, b) => place(a) - place(b) || v.order[a]! - v.order[b]!);
      for (let i = 1; i < stack.length; i++) if (!isFed[stack[i]!]) this.edges.add(stack[i - 1]!, stack[i]!, 1, -1, -1, 0, NaN, 1);
    }
    if (!tree.inTurns) return;
    const top = (box: number): number => (v.parent[box]! < 0 ? box : top(v.parent[box]!));
    for (const [phase, column] of this.columnOf) {
      const first = new Map<number, number>(); // a leaf of each frame
      for (const box of leaves(column)) if (tree.isPhase[v.item[top(box)]! - tree.nodes]) first.set(top(box), first.get(top(box)) ?? box);
      const frames = [...first.keys()].sort((a, b) => v.order[a]! - v.order[b]!);
      for (let i = 1; i < frames.length; i++) {
        const [a, b] = [first.get(frames[i - 1]!)!, first.get(frames[i]!)!];
        if (phase === BACKWARD) this.edges.add(b, a, 1, -1, -1, 0, NaN, 1);
        else this.edges.add(a, b, 1, -1, -1, 0, NaN, 1);
      }
    }
  }
}

/** The edges of a U as they are found. */
class Edges {
  readonly source = new Bag();
  readonly target = new Bag();
  readonly uses = new Bag();
  readonly value = new Bag();
  readonly use = new Bag();
  readonly kind = new Bag();
  readonly guide = new Bag();
  readonly kept: number[] = [];

  get count(): number {
    return this.source.size;
  }

  add(a: number, b: number, uses: number, value: number, use: number, kind: number, kept = NaN, guide = 0): void {
    this.source.push(a);
    this.target.push(b);
    this.uses.push(uses);
    this.value.push(value);
    this.use.push(use);
    this.kind.push(kind);
    this.guide.push(guide);
    this.kept.push(kept);
  }
}
