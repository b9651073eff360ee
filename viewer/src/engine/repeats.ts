// Repeated blocks: neighbouring modules that compute the same, drawn once with "×32".
//
// "The same" is decided by comparing the operators, their order, their inner edges, their inner modules, the types of
// their parameters and of what they make, one by one; nothing is a hash that could collide. Blocks between which others
// run, so that data would go out of the fold and come back, are not folded.

import { PHASES, ROLES } from '../scene.ts';
import type { Graph } from '../wire/capture.ts';
import { convexParts } from './convex.ts';
import { SHORTEST_RUN } from './gather.ts';
import { csr, row, type Csr } from '../wire/csr.ts';
import type { Tree } from './tree.ts';

const OPTIMIZER = PHASES.indexOf('optimizer');
const FIXED = new Set(['parameter', 'buffer', 'constant', 'state'].map((role) => ROLES.indexOf(role as (typeof ROLES)[number])));

/** Finds runs, and remembers them: a tree does not change while it is looked at. */
export class Repeats {
  private known = new Map<number, [number, number][]>();
  private alone = new Map<number, [number, number][]>();
  /** The place of each operator in the group that is being compared; kept between calls, because it is large. */
  private place: Int32Array;
  private outputs: Csr | undefined;
  private uses: Csr | undefined; // of the flow, by operator

  constructor(
    private graph: Graph,
    private tree: Tree,
    private flow: Pick<Graph, 'useNode' | 'useValue'> = graph,
    private makes?: () => Csr, // values by operator
    private tied: (group: number) => readonly number[] = () => [], // groups of other phases that fold with it
  ) {
    this.place = new Int32Array(graph.nodes).fill(-1);
  }

  /** Runs of equal neighbours among the child groups of `group`, as [first, count] in the order of the children. */
  runs(group: number): [number, number][] {
    let found = this.known.get(group);
    if (!found) {
      found = this.own(group);
      if (found.length) for (const other of this.tied(group)) found = this.alsoIn(group, found, other);
      this.known.set(group, found);
    }
    return found;
  }

  /** Without regard to other phases. */
  private own(group: number): [number, number][] {
    let found = this.alone.get(group);
    if (!found) {
      const children = row(this.tree.childGroups, group);
      found = this.find(children);
      if (found.length && !this.together(children, found)) found = this.apart(group, children, found);
      this.alone.set(group, found);
    }
    return found;
  }

  /** What folds in one phase folds in the others with it: a fold goes on as long as the same modules are folded there. */
  private alsoIn(group: number, runs: [number, number][], other: number): [number, number][] {
    const { childGroups, scope } = this.tree;
    const [children, others] = [row(childGroups, group), row(childGroups, other)];
    const runOf = new Map<number, number>(); // by scope: the fold there; -1 for a module that is there by itself
    for (const g of others) runOf.set(scope[g]!, -1);
    this.own(other).forEach(([at, count], r) => others.subarray(at, at + count).forEach((g) => runOf.set(scope[g]!, r)));
    const there = (i: number) => runOf.get(scope[children[i]!]!) ?? -2;
    return runs.flatMap(([at, count]) => {
      const cut: [number, number][] = [];
      for (let i = at; i < at + count;) {
        let end = i + 1;
        while (end < at + count && there(end) === there(i)) end++;
        if (end - i >= SHORTEST_RUN && there(i) !== -1) cut.push([i, end - i]);
        i = end;
      }
      return cut;
    });
  }

  private find(children: Int32Array): [number, number][] {
    const found: [number, number][] = [];
    let at = 0;
    while (at < children.length) {
      let end = at + 1;
      // Most neighbours already differ in size; only then is anything walked over.
      if (end < children.length && this.alike(children[at]!, children[end]!)) {
        const model = this.members(children[at]!);
        while (end < children.length && this.alike(children[at]!, children[end]!) && this.equal(model, this.members(children[end]!))) end++;
      }
      if (end - at >= SHORTEST_RUN) found.push([at, end - at]);
      at = end;
    }
    return found;
  }

  private alike(a: number, b: number): boolean {
    const { size, phase, isPhase, purpose } = this.tree;
    if (isPhase[a] || isPhase[b] || purpose[a]! >= 0 || purpose[b]! >= 0) return false;
    return size[a] === size[b] && phase[a] === phase[b] && row(this.tree.childGroups, a).length === row(this.tree.childGroups, b).length;
  }

  /** The operators of a group in the order of a walk, with a -1 - n where an inner group of n groups begins. */
  private members(group: number): Int32Array {
    const { childGroups, childNodes, size } = this.tree;
    const out: number[] = [];
    const todo = [group];
    while (todo.length) {
      const g = todo.pop()!;
      const first = childGroups.start[g]!;
      const last = childGroups.start[g + 1]!;
      out.push(-1 - (last - first));
      for (let i = childNodes.start[g]!; i < childNodes.start[g + 1]!; i++) out.push(childNodes.item[i]!);
      for (let i = last - 1; i >= first; i--) todo.push(childGroups.item[i]!);
    }
    if (out.length < size[group]!) throw new Error('a group lost its operators');
    return Int32Array.from(out);
  }

  /** The same operators in the same order and groups, reading each other the same way. */
  private equal(a: Int32Array, b: Int32Array): boolean {
    const { op, phase, useStart, useValue, producer, role } = this.graph;
    if (a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) {
      const [x, y] = [a[i]!, b[i]!];
      if (
        x < 0 || y < 0
          ? x !== y
          : op[x] !== op[y] || phase[x] !== phase[y] || useStart[x + 1]! - useStart[x]! !== useStart[y + 1]! - useStart[y]!
      )
        return false;
    }
    if (!this.equalTypes(a, b)) return false;
    const { place } = this;
    // Of what comes from outside, parameters are told from data: the first block may read an input of the graph.
    const outside = (value: number) => (FIXED.has(role[value]!) ? -2 : -1);
    const where = (value: number) => (value < 0 ? -3 : producer[value]! < 0 ? outside(value) : place[producer[value]!]!);
    const from = (members: Int32Array): number[] => {
      for (let i = 0; i < members.length; i++) if (members[i]! >= 0) place[members[i]!] = i;
      const sources: number[] = [];
      for (const node of members) {
        if (node >= 0) for (let use = useStart[node]!; use < useStart[node + 1]!; use++) sources.push(where(useValue[use]!));
      }
      for (const node of members) if (node >= 0) place[node] = -1;
      return sources;
    };
    const [first, second] = [from(a), from(b)];
    return first.every((source, i) => source === second[i]);
  }

  /**
   * Blocks of the same parameters may differ in how much they get (experts, growing sequences); blocks without parameters
   * may not. What an optimizer does is the same for tensors of every size.
   */
  private equalTypes(a: Int32Array, b: Int32Array): boolean {
    const { phase, useStart, useValue, producer, role, type } = this.graph;
    const outputs = (this.outputs ??= this.makes?.() ?? csr(producer, this.graph.nodes));
    let fixed = 0;
    let differ = false;
    for (let i = 0; i < a.length; i++) {
      const [x, y] = [a[i]!, b[i]!];
      if (x < 0) continue;
      if (phase[x] === OPTIMIZER) return true;
      const [from, to] = [useStart[x]!, useStart[y]!];
      for (let use = 0; use < useStart[x + 1]! - from; use++) {
        const [v, w] = [useValue[from + use]!, useValue[to + use]!];
        if (v < 0 || w < 0 || producer[v]! >= 0 || !FIXED.has(role[v]!)) continue;
        if (type[v] !== type[w]) return false;
        fixed++;
      }
      const [makes, others] = [row(outputs, x), row(outputs, y)];
      if (makes.length !== others.length) return false;
      for (let k = 0; k < makes.length; k++) if (type[makes[k]!] !== type[others[k]!]) differ = true;
    }
    return !differ || fixed > 0;
  }

  /** Whether nothing runs between the blocks of each run, so that folding them hides nothing. */
  private together(children: Int32Array, runs: [number, number][]): boolean {
    const { first, last, size, rank, forward } = this.tree;
    return (
      forward &&
      runs.every(([at, count]) => {
        let [from, to, inside] = [Infinity, -1, 0];
        for (const g of children.subarray(at, at + count)) {
          from = Math.min(from, rank[first[g]!]!);
          to = Math.max(to, rank[last[g]!]!);
          inside += size[g]!;
        }
        return to - from + 1 === inside;
      })
    );
  }

  /** The runs cut where folding them would make a loop. */
  private apart(group: number, children: Int32Array, runs: [number, number][]): [number, number][] {
    const { tree, graph, flow } = this;
    const nodes = row(tree.childNodes, group);
    // The boxes of this level, in order.
    const items = [...children, ...[...nodes].map((node) => -1 - node)];
    const firstOf = (item: number) => (item < 0 ? -1 - item : tree.first[item]!);
    const order = items.map((_, i) => i).sort((a, b) => firstOf(items[a]!) - firstOf(items[b]!) || a - b);
    const number = new Int32Array(items.length);
    order.forEach((item, i) => (number[item] = i));
    const boxOf = this.place; // of an operator below this level
    const inside: number[] = [];
    items.forEach((item, i) => {
      for (const node of item < 0 ? [-1 - item] : this.members(item)) if (node >= 0) boxOf[inside[inside.push(node) - 1]!] = number[i]!;
    });
    const source: number[] = [];
    const target: number[] = [];
    const uses = (this.uses ??= csr(flow.useNode, graph.nodes));
    for (const node of inside) {
      for (const use of row(uses, node)) {
        const maker = flow.useValue[use]! < 0 ? -1 : graph.producer[flow.useValue[use]!]!;
        const from = maker < 0 ? -1 : boxOf[maker]!;
        if (from < 0 || from === boxOf[node]) continue;
        source.push(from);
        target.push(boxOf[node]!);
      }
    }
    for (const node of inside) boxOf[node] = -1;
    const cluster = new Int32Array(items.length).fill(-1);
    runs.forEach(([at, count], r) => {
      for (let i = at; i < at + count; i++) cluster[number[i]!] = r;
    });
    const part = convexParts(Int32Array.from(source), Int32Array.from(target), cluster);
    return runs.flatMap(([at, count]) => {
      const cut: [number, number][] = [];
      for (let i = at; i < at + count;) {
        let end = i + 1;
        while (end < at + count && part[number[end]!] === part[number[i]!]) end++;
        if (end - i >= SHORTEST_RUN) cut.push([i, end - i]);
        i = end;
      }
      return cut;
    });
  }
}
