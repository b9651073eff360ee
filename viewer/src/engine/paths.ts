// Following the data: ancestors, descendants, and what lies between.

import { inside } from './answers.ts';
import { row } from '../wire/csr.ts';
import type { View } from './view.ts';

/** Everything that an item depends on (up), or that depends on it (down). */
export function trace(view: View, item: number, way: 'up' | 'down'): number[] {
  const { graph, outputs, readers } = view;
  const seen = new Uint8Array(graph.nodes);
  const todo = inside(view, item);
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

/** The operators on data paths from one item to the other, whichever comes first. */
export function between(view: View, a: number, b: number): number[] {
  const there = intersect(trace(view, a, 'down'), trace(view, b, 'up'));
  return there.length ? there : intersect(trace(view, b, 'down'), trace(view, a, 'up'));
}

function intersect(a: number[], b: number[]): number[] {
  const set = new Set(b);
  return a.filter((x) => set.has(x));
}
