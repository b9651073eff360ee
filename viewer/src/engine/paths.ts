// Following the data: ancestors, descendants, and what lies between.

import { inside } from './answers.ts';
import { row } from '../wire/csr.ts';
import type { View } from './view.ts';

/** Everything that an item depends on (up), or that depends on it (down). */
export function trace(view: View, item: number, way: 'up' | 'down'): number[] {
  const { graph, outputs, readers } = view;
  const seen = new Uint8Array(graph.nodes);
  const todo = ends(view, item, way);
  for (const node of todo) seen[node] = 1;
  const next = (node: number) => {
    if (!seen[node]) {
      seen[node] = 1;
      todo.push(node);
    }
  };
  while (todo.length) {
    const node = todo.pop()!;
    if (way === 'up') {
      for (let use = graph.useStart[node]!; use < graph.useStart[node + 1]!; use++) {
        const value = graph.useValue[use]!;
        if (value >= 0 && graph.producer[value]! >= 0) next(graph.producer[value]!);
      }
    } else {
      for (const value of row(outputs, node)) for (const use of row(readers, value)) next(graph.useNode[use]!);
    }
  }
  const found: number[] = [];
  for (let i = 0; i < seen.length; i++) if (seen[i]) found.push(i);
  return found;
}

/** Where following begins: at the operators of an item; of a tensor, at what makes or what reads it. */
function ends(view: View, item: number, way: 'up' | 'down'): number[] {
  const { tree, graph, readers } = view;
  const value = item - tree.nodes - tree.groups;
  if (value < 0) return inside(view, item);
  if (way === 'up') return graph.producer[value]! < 0 ? [] : [graph.producer[value]!];
  return [...new Set([...row(readers, value)].map((use) => graph.useNode[use]!))];
}

/** How many operators an item is: of what is traced, those are not before or after it. */
export function sizeOf(view: View, item: number): number {
  return inside(view, item).length;
}

/** The operators on data paths from one item to the other, whichever comes first. */
export function between(view: View, a: number, b: number): number[] {
  const there = intersect(trace(view, a, 'down'), trace(view, b, 'up'));
  return there.length ? there : intersect(trace(view, b, 'down'), trace(view, a, 'up'));
}

function intersect(a: number[], b: number[]): number[] {
  const set = new Set(b);
  return a.filter((x) => set.has(x));
}
