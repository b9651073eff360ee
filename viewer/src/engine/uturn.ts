// A training step as a U (layout/uturn.ts): which boxes stand in one row, what is kept between them, where the step turns.
//
// A box of the backward pass is in the row of the box whose gradients it computes, by the links between operators; one of
// the optimizer in the row of what reads the parameters that it updates. What the backward pass reads of the forward pass
// is kept for it until then: it is drawn as one rung from a box to its own gradient, as thick as its bytes.

import { Bag } from '../picture/rtree.ts';
import { BETWEEN, RUNG, TIED } from '../layout/types.ts';
import type { Turn } from '../layout/uturn.ts';
import { PHASES, ROLES } from '../scene.ts';
import type { Graph } from '../wire/capture.ts';
import type { Flow } from './flow.ts';
import type { Tree } from './tree.ts';
import type { Types } from './types.ts';
import type { Visible } from './visible.ts';

const [FORWARD, BACKWARD, RECOMPUTE, OPTIMIZER] = (['forward', 'backward', 'recompute', 'optimizer'] as const).map((p) =>
  PHASES.indexOf(p),
);
const COLUMNS = [FORWARD, RECOMPUTE, BACKWARD, OPTIMIZER];
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
  flow: Flow;
  visible: Visible;
  inlined: Uint8Array; // operators that are drawn inside others
}

/** A column of more boxes is folded, and then nothing stands in a row. */
const HIGHEST = 400;

/** Null where there is no such step: no backward pass, none that belongs to the forward pass, or gradients of gradients. */
export function turn(input: Input): Turned | null {
  const step = new Step(input);
  return step.isStep() ? step.turned() : null;
}

class Step {
  private readonly column: Int32Array;
  private readonly phases: number[] = []; // by column; where forward and backward take turns, they have more than one
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
    const frames: number[] = []; // of phases
    for (let box = 0; box < v.count; box++) {
      const group = v.item[box]! - tree.nodes;
      if (group >= tree.groups) this.inputBox.set(group - tree.groups, box);
      else if (v.parent[box]! < 0 && group >= 0 && tree.isPhase[group] && COLUMNS.includes(tree.phase[group]!)) frames.push(box);
    }
    const phaseOf = (box: number) => tree.phase[v.item[box]! - tree.nodes]!;
    const turns = frames.some((box) => tree.part[v.item[box]! - tree.nodes]! > 0 && [FORWARD, BACKWARD].includes(phaseOf(box)));
    const columnOf = new Map<number, number>(); // by frame, or by phase
    const place = (box: number) => (turns ? v.order[box]! : COLUMNS.indexOf(phaseOf(box)));
    for (const box of frames.sort((a, b) => place(a) - place(b))) {
      const key = turns ? box : -1 - phaseOf(box);
      if (!columnOf.has(key)) columnOf.set(key, this.phases.push(phaseOf(box)) - 1);
    }
    for (let box = 0; box < v.count; box++) {
      const around = v.parent[box]!;
      if (around >= 0) this.column[box] = this.column[around]!;
      else if (frames.includes(box)) this.column[box] = columnOf.get(turns ? box : -1 - phaseOf(box))!;
    }
  }

  private isIn(box: number, phase: number): boolean {
    return box >= 0 && this.phases[this.column[box]!] === phase;
  }

  /** The column in which a turn begins. */
  private round(box: number): number {
    return this.phases.lastIndexOf(FORWARD, this.column[box]!);
  }

  isStep(): boolean {
    const { graph, visible: v } = this.input;
    const links = graph.links.get('grad');
    if (!links || this.phases[0] !== FORWARD || !this.phases.includes(BACKWARD)) return false;
    for (let i = 0; i < links.source.length; i++) if (graph.phase[links.source[i]!] === BACKWARD) return false;
    for (let e = 0; e < v.source.length; e++) {
      if (this.isIn(v.source[e]!, BACKWARD) && (this.isIn(v.target[e]!, FORWARD) || this.isIn(v.target[e]!, RECOMPUTE))) return false;
    }
    const high = this.phases.map(() => 0);
    for (let box = 0; box < v.count; box++) if (!v.open[box]) high[this.column[box]!]!++;
    if (Math.max(...high) > HIGHEST) return false;
    this.pair();
    let [paired, all] = [0, 0];
    for (let box = 0; box < v.count; box++) {
      if (!this.isIn(box, BACKWARD) || v.open[box]) continue;
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
        upward: this.phases.map((phase) => phase === BACKWARD),
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
    const { graph, tree, inlined, visible: v } = this.input;
    const nodeBoxes = (kind: 'grad' | 'recompute'): [number, number][] => {
      const links = graph.links.get(kind);
      const pairs = Array.from(links?.source ?? [], (node, i): [number, number] => [node, links!.target[i]!]);
      // What is passed over says nothing about where a box belongs.
      return pairs.flatMap(([a, b]) => (inlined[a] || inlined[b] ? [] : [[v.nodeBox[a]!, v.nodeBox[b]!]]));
    };
    this.match(nodeBoxes('grad'), BACKWARD);
    if (this.phases.includes(RECOMPUTE)) this.match(nodeBoxes('recompute'), RECOMPUTE);
    // Frames stand level too, and an optimizer that is one box beside the backward pass as a whole.
    const frames = new Map<string, number>();
    for (let box = 0; box < v.count; box++) {
      const group = v.item[box]! - tree.nodes;
      if (group < 0 || group >= tree.groups) continue;
      const name = `${tree.isPhase[group] ? '' : tree.scope[group]}/${tree.isPhase[group] ? 0 : tree.part[group]}/${this.round(box)}`;
      const isWhole = !v.open[box] && v.parent[box]! < 0 && this.isIn(box, OPTIMIZER) && frames.has(name);
      if (isWhole) this.whole.add(box);
      if (!v.open[box] && !isWhole) continue;
      if (this.isIn(box, FORWARD)) frames.set(name, box);
      else if (frames.has(name)) this.put(box, frames.get(name)!);
    }
    if (this.phases.includes(OPTIMIZER)) this.match(this.updates(), OPTIMIZER);
  }

  /** Optimizers that are one box, beside an open backward pass. */
  private readonly whole = new Set<number>();

  private put(box: number, first: number): void {
    this.row[first] = first;
    this.row[box] = first;
    this.inRow.set(`${first}/${FORWARD}`, first);
    this.inRow.set(`${first}/${this.phases[this.column[box]!]}`, box);
  }

  /** Pairs of boxes, those with the most links first; a box is in one pair. */
  private match(links: [number, number][], phase: number): void {
    const { count } = this.input.visible;
    const many = new Map<number, number>();
    const all = new Map<number, number>(); // of the second box
    for (const [a, b] of links) {
      if (!this.isIn(a, FORWARD) || !this.isIn(b, phase)) continue;
      many.set(a * count + b, (many.get(a * count + b) ?? 0) + 1);
      all.set(b, (all.get(b) ?? 0) + 1);
    }
    const taken = new Set<number>();
    const { item } = this.input.visible;
    const { tree } = this.input;
    const scopeOf = (box: number) => tree.scope[item[box]! - tree.nodes] ?? -1;
    // Of equal ones, a module and its own come first.
    const own = (key: number) => (scopeOf(Math.floor(key / count)) === scopeOf(key % count) ? 0 : 1);
    for (const [key, n] of [...many].sort((p, q) => q[1] - p[1] || own(p[0]) - own(q[0]) || p[0] - q[0])) {
      const [a, b] = [Math.floor(key / count), key % count];
      // A box of many modules is in the row of none.
      if (2 * n < all.get(b)!) this.near.set(b, this.near.get(b) ?? a);
      else if (this.round(a) !== this.round(b)) this.near.set(b, a);
      else if (!taken.has(a) && this.row[b]! < 0) {
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
      if (this.whole.has(v.nodeBox[node]!)) return;
      for (const box of readers.get(value) ?? []) pairs.push([box, v.nodeBox[node]!]);
    });
    this.readersOf = readers;
    return pairs;
  }

  private readersOf = new Map<number, number[]>();

  // -- edges --------------------------------------------------------------------------------------

  private rewire(ends: { value: number; from: number; to: number }[]): void {
    const { visible: v } = this.input;
    const seeds = new Set(ends.map(({ value, to }) => `${value}/${to}`));
    const gradients = new Map<number, { uses: number; value: number; use: number }>();
    for (let e = 0; e < v.source.length; e++) {
      const [a, b] = [v.source[e]!, v.target[e]!];
      if (this.isKept(a, b)) {
        if (seeds.has(`${v.value[e]}/${b}`)) continue;
        // What is kept for a box of the backward pass runs from its own row.
        if (this.row[b]! >= 0) continue;
      }
      // Its row says what updates a parameter, and what needs it for gradients.
      if (this.isParameter(a) && this.column[a] !== this.column[b]) continue;
      if (this.whole.has(b) && this.isIn(a, BACKWARD) && v.parent[a]! >= 0) {
        // The gradients of all modules are one line, from the frame around them.
        let frame = a;
        while (v.parent[frame]! >= 0) frame = v.parent[frame]!;
        const key = frame * v.count + b;
        const line = gradients.get(key);
        gradients.set(key, { uses: v.uses[e]! + (line?.uses ?? 0), value: line?.value ?? v.value[e]!, use: line?.use ?? v.use[e]! });
        continue;
      }
      const kind = this.column[a] === this.column[b] ? 0 : this.row[a]! >= 0 && this.row[a] === this.row[b] ? RUNG : BETWEEN;
      this.edges.add(a, b, v.uses[e]!, v.value[e]!, v.use[e]!, kind);
    }
    for (const [key, { uses, value, use }] of gradients) {
      const [a, b] = [Math.floor(key / v.count), key % v.count];
      const isLevel = this.row[a]! >= 0 && this.row[a] === this.row[b] && this.column[b] === this.column[a]! + 1;
      this.edges.add(a, b, uses, value, use, isLevel ? RUNG : BETWEEN);
    }
    this.keep(new Set(ends.map(({ value }) => value)));
  }

  private isParameter(box: number): boolean {
    const { graph, tree, visible: v } = this.input;
    const value = v.item[box]! - tree.nodes - tree.groups;
    return value >= 0 && graph.role[value] === PARAMETER;
  }

  /** Whether what goes from one box to the other waits for the backward pass, or for being computed again. */
  private isKept(a: number, b: number): boolean {
    if (this.isIn(b, RECOMPUTE)) return this.isIn(a, FORWARD);
    return this.isIn(b, BACKWARD) && (this.isIn(a, FORWARD) || this.isIn(a, RECOMPUTE));
  }

  /** A rung in each row: what its part of the backward pass reads, each piece of memory once. */
  private keep(seeds: Set<number>): void {
    const { graph, types, flow, visible: v } = this.input;
    const rungs = new Map<number, { values: Set<number>; bytes: number; known: boolean; largest: number; use: number }>();
    for (let use = 0; use < flow.useValue.length; use++) {
      const value = flow.useValue[use]!;
      const b = v.nodeBox[flow.useNode[use]!]!;
      if (value < 0 || b < 0 || this.row[b]! < 0 || seeds.has(value)) continue;
      const maker = graph.producer[value]!;
      const from = maker >= 0 ? v.nodeBox[maker]! : graph.role[value] === INPUT ? (this.inputBox.get(value) ?? -1) : -1;
      if (from < 0 || !this.isKept(from, b)) continue;
      // Where the row is computed again, what is kept of the forward pass is kept for that.
      const again = this.inRow.get(`${this.row[b]}/${RECOMPUTE}`);
      const [left, right] =
        again === undefined || b === again ? [this.row[b]!, b] : this.isIn(from, RECOMPUTE) ? [again, b] : [this.row[b]!, again];
      const key = left * v.count + right;
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
    const scalar = (value: number) => types.shape(graph.type[value]!)?.every((d) => d === 1) ?? false;
    const fed = new Uint8Array(graph.nodes); // reads what the backward pass made
    for (let use = 0; use < flow.useValue.length; use++) {
      const maker = flow.useValue[use]! < 0 ? -1 : graph.producer[flow.useValue[use]!]!;
      if (maker >= 0 && graph.phase[maker] === BACKWARD) fed[flow.useNode[use]!] = 1;
    }
    // Where the gradient of the loss by itself is passed over, it says which of the scalars is the loss.
    const said = new Set<number>();
    const isSaid = (use: number) => {
      const maker = flow.read[use]! < 0 ? -1 : graph.producer[flow.read[use]!]!;
      return flow.read[use] !== flow.useValue[use] && maker >= 0 && graph.phase[maker] === BACKWARD;
    };
    for (let use = 0; use < flow.useValue.length; use++) if (isSaid(use)) said.add(flow.useNode[use]!);
    const found = new Map<string, { value: number; from: number; to: number }>();
    for (let use = 0; use < flow.useValue.length; use++) {
      const [node, value] = [flow.useNode[use]!, flow.useValue[use]!];
      if (value < 0 || graph.phase[node] !== BACKWARD || !scalar(value) || (said.has(node) ? !isSaid(use) : fed[node])) continue;
      const maker = graph.producer[value]!;
      if (maker < 0 || graph.phase[maker] !== FORWARD) continue;
      const [from, to] = [v.nodeBox[maker]!, v.nodeBox[node]!];
      if (from >= 0 && this.isIn(to, BACKWARD)) found.set(`${value}/${to}`, { value, from, to });
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
    const seen = new Set<string>();
    for (const [value, boxes] of this.readersOf) {
      if (boxes.length < 2) continue;
      const home = boxes.map((box) => this.inRow.get(`${this.row[box]}/${OPTIMIZER}`)).find((box) => box !== undefined);
      if (home === undefined) continue;
      for (const box of boxes) {
        const gradient = this.inRow.get(`${this.row[box]}/${BACKWARD}`);
        if (gradient === undefined || this.row[gradient] === this.row[home] || this.round(gradient) !== this.round(home)) continue;
        if (seen.has(`${gradient}/${home}`)) continue;
        seen.add(`${gradient}/${home}`);
        this.edges.add(gradient, home, 1, value, -1, TIED);
      }
    }
  }

  // -- what holds boxes in place --------------------------------------------------------------------

  /** Boxes that nothing leads to stand below those of the row before. */
  private guide(): void {
    const { visible: v } = this.input;
    const isFed = new Uint8Array(v.count);
    for (let e = 0; e < v.source.length; e++) if (this.column[v.source[e]!] === this.column[v.target[e]!]) isFed[v.target[e]!] = 1;
    const place = (box: number) => (this.row[box]! >= 0 ? v.order[this.row[box]!]! : -1);
    this.phases.forEach((phase, column) => {
      if (phase !== RECOMPUTE && phase !== OPTIMIZER) return;
      const leaves = Array.from(v.item.keys()).filter((box) => !v.open[box] && this.column[box] === column);
      leaves.sort((a, b) => place(a) - place(b) || v.order[a]! - v.order[b]!);
      for (let i = 1; i < leaves.length; i++) if (!isFed[leaves[i]!]) this.edges.add(leaves[i - 1]!, leaves[i]!, 1, -1, -1, 0, NaN, 1);
    });
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
