// What a module is to the others: what comes into it, what it hands on, what it holds and keeps, and where it is called.

import { ROLES } from '../scene.ts';
import { row } from '../wire/csr.ts';
import type { Ref } from './messages.ts';
import { groupTitle } from './tree.ts';
import type { View } from './view.ts';

const HELD = ['parameter', 'buffer'].map((role) => ROLES.indexOf(role as (typeof ROLES)[number]));

export interface Boundary {
  inputs: number[]; // values, in the order in which they are read
  outputs: number[];
  held: number[]; // parameters and buffers that are read inside, each storage once
  kept: number[]; // what other phases read of it, each storage once
}

/** Of operators in the order of their execution. */
export function boundary(view: View, nodes: readonly number[]): Boundary {
  const { graph, readers, outputs } = view;
  const inside = new Set(nodes);
  const [inputs, held, kept, handed, all] = [0, 1, 2, 3, 4].map(() => new Set<number>()) as [Set<number>, ...Set<number>[]];
  const storages = new Set<number>();
  const results = new Set(graph.outputs);
  for (const node of nodes) {
    for (let use = graph.useStart[node]!; use < graph.useStart[node + 1]!; use++) {
      const value = graph.useValue[use]!;
      if (value < 0 || inside.has(graph.producer[value]!)) continue;
      if (graph.producer[value]! >= 0 || !HELD.includes(graph.role[value]!)) inputs.add(value);
      else if (!storages.has(graph.storage[value]!)) {
        storages.add(graph.storage[value]!);
        held!.add(value);
      }
    }
    for (const value of row(outputs, node)) {
      if (results.has(value)) handed!.add(value);
      for (const use of row(readers, value)) {
        const reader = graph.useNode[use]!;
        if (inside.has(reader)) continue;
        all!.add(value);
        if (graph.phase[reader] === graph.phase[node]) handed!.add(value);
        else kept!.add(value);
      }
    }
  }
  const once = new Map([...kept!].map((value) => [graph.storage[value]!, value]));
  return { inputs: [...inputs], outputs: [...(handed!.size ? handed! : all!)], held: [...held!], kept: [...once.values()] };
}

/** The bytes of some values; null where one of them is not known. */
export function bytesOf({ graph, types }: View, values: readonly number[]): number | null {
  let total = 0;
  for (const value of values) {
    const bytes = types.bytes(graph.type[value]!);
    if (bytes < 0) return null;
    total += bytes;
  }
  return total;
}

/** What an operator outside of a group is, seen from it: the largest module around it that the group is not in, or itself. */
export function neighbour(view: View, group: number, node: number, ref: (item: number) => Ref): Ref {
  const { tree, capture } = view;
  const around = new Set<number>();
  for (let g = group; g >= 0; g = tree.parent[g]!) around.add(g);
  let found = -1;
  for (let g = tree.home[node] ?? -1; g > 0 && !around.has(g); g = tree.parent[g]!) if (!tree.isPhase[g]) found = g;
  if (found < 0 || !tree.childNodes.item.length) return ref(node);
  return { item: tree.nodes + found, label: groupTitle(tree, capture.pools, found) };
}

type Frames = ReturnType<View['sources']['frames']>;

/** The frames that all of these have in common, outermost first. */
function common(view: View, nodes: readonly number[]): Frames {
  let shared: Frames | undefined;
  const seen = new Set<number>();
  for (const node of nodes) {
    const stack = view.graph.stack[node]!;
    if (stack <= 0 || seen.has(stack)) continue;
    seen.add(stack);
    const frames = view.sources.frames(node);
    const end = shared ? shared.findIndex((frame, i) => !isSame(frame, frames[i])) : frames.length;
    shared = shared ? (end < 0 ? shared : shared.slice(0, end)) : frames;
  }
  return shared ?? [];
}

function isSame(a: Frames[number], b: Frames[number] | undefined): boolean {
  return b !== undefined && a.line === b.line && a.file === b.file && a.fn === b.fn;
}

/**
 * Where a module is called: what its operators have in common goes one frame further than what those around it have in
 * common. A module that is alone in the one around it is called where that is.
 */
export function calledAt(view: View, group: number, inside: (group: number) => number[]): Frames {
  const { tree } = view;
  const own = common(view, inside(group));
  for (let g = tree.parent[group]!; g >= 0; g = tree.parent[g]!) {
    const outer = common(view, inside(g));
    if (outer.length < own.length) return own.slice(0, outer.length + 1);
    if (tree.isPhase[g]) break;
  }
  return own;
}
