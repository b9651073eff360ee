// Repeated blocks: neighbouring modules that compute the same, drawn once with "×32".
//
// "The same" is decided by comparing the operators, their order, their inner edges and their inner modules one by one;
// nothing is a hash that could collide.

import type { Graph } from '../wire/capture.ts';
import { row } from './csr.ts';
import type { Tree } from './tree.ts';

export const SHORTEST_RUN = 3;

/** Runs of equal neighbours among the child groups of `group`, as [first, count] in the order of the children. */
export function runs(graph: Graph, tree: Tree, group: number): [number, number][] {
  const children = row(tree.childGroups, group);
  const found: [number, number][] = [];
  let at = 0;
  while (at < children.length) {
    const shape = describe(graph, tree, children[at]!);
    let end = at + 1;
    while (end < children.length && quick(tree, children[at]!, children[end]!) && same(shape, describe(graph, tree, children[end]!))) end++;
    if (end - at >= SHORTEST_RUN) found.push([at, end - at]);
    at = end;
  }
  return found;
}

function quick(tree: Tree, a: number, b: number): boolean {
  return tree.size[a] === tree.size[b] && tree.phase[a] === tree.phase[b];
}

/** Everything that makes two groups the same, as numbers; -1 stands for "from outside". */
function describe(graph: Graph, tree: Tree, group: number): Int32Array {
  const nodes: number[] = [];
  const places: number[] = []; // the place of each operator's group in the walk over the inner groups
  const classes: number[] = [];
  const todo = [group];
  while (todo.length) {
    const g = todo.pop()!;
    const place = classes.length;
    classes.push(row(tree.childGroups, g).length);
    for (const node of row(tree.childNodes, g)) {
      nodes.push(node);
      places.push(place);
    }
    for (const child of row(tree.childGroups, g)) todo.push(child);
  }
  const index = new Map<number, number>();
  nodes.forEach((node, i) => index.set(node, i));
  const out: number[] = [...classes];
  for (const [i, node] of nodes.entries()) {
    out.push(graph.op[node]!, places[i]!, graph.phase[node]!);
    for (let use = graph.useStart[node]!; use < graph.useStart[node + 1]!; use++) {
      const value = graph.useValue[use]!;
      const producer = value < 0 ? -1 : graph.producer[value]!;
      out.push(producer < 0 ? -2 : (index.get(producer) ?? -1));
    }
  }
  return Int32Array.from(out);
}

function same(a: Int32Array, b: Int32Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
