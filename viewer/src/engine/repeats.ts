// Repeated blocks: neighbouring modules that compute the same, drawn once with "×32".
//
// "The same" is decided by comparing the operators, their order, their inner edges and their inner modules one by one;
// nothing is a hash that could collide.

import type { Graph } from '../wire/capture.ts';
import { row } from '../wire/csr.ts';
import type { Tree } from './tree.ts';

export const SHORTEST_RUN = 3;

/** Finds runs, and remembers them: a tree does not change while it is looked at. */
export class Repeats {
  private known = new Map<number, [number, number][]>();
  /** The place of each operator in the group that is being compared; kept between calls, because it is large. */
  private place: Int32Array;

  constructor(
    private graph: Graph,
    private tree: Tree,
  ) {
    this.place = new Int32Array(graph.nodes).fill(-1);
  }

  /** Runs of equal neighbours among the child groups of `group`, as [first, count] in the order of the children. */
  runs(group: number): [number, number][] {
    let found = this.known.get(group);
    if (!found) this.known.set(group, (found = this.find(row(this.tree.childGroups, group))));
    return found;
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
    const { size, phase } = this.tree;
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
    const { op, phase, useStart, useValue, producer } = this.graph;
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
    const { place } = this;
    const where = (value: number) => (value < 0 ? -3 : producer[value]! < 0 ? -2 : place[producer[value]!]!);
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
}
