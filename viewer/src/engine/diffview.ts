// Two stages in one picture: removed operators appear as ghosts. And boxes of two pictures that belong
// together.

import { CHANGES, GHOST } from '../picture/changes.ts';
import { scopePath } from '../wire/scopes.ts';
import type { Graph, Pools } from '../wire/capture.ts';
import { inside } from './answers.ts';
import type { Composed } from './compose.ts';
import type { Picture } from './messages.ts';
import type { View } from './view.ts';

const INPUT = 0;

/** The graph with ghosts after its own operators: those of `before` that it does not have any more. */
export function overlay(
  { graph, bodies }: Composed,
  before: Graph,
  ghosts: number[],
  map: ReadonlyMap<number, number[]>,
  pools: Pools,
): Composed {
  if (!ghosts.length) return { graph, bodies };
  const ghost = new Map(ghosts.map((node, i) => [node, graph.nodes + i]));
  // The values of before: a ghost's own come after the others, the rest are what their operator makes now.
  const made = new Map<string, number>();
  for (let value = 0; value < graph.values; value++)
    if (graph.producer[value]! >= 0) made.set(`${graph.producer[value]}/${graph.slot[value]}`, value);
  const named = new Map<string, number>();
  for (const value of graph.inputs) named.set(pools.strings.at(graph.valueName[value]!), value);
  const value = new Int32Array(before.values).fill(-1);
  const own: number[] = [];
  for (let v = 0; v < before.values; v++) {
    const producer = before.producer[v]!;
    if (producer < 0) {
      if (before.role[v] === INPUT) value[v] = named.get(pools.strings.at(before.valueName[v]!)) ?? -1;
      continue;
    }
    if (ghost.has(producer)) value[v] = graph.values + own.push(v) - 1;
    else value[v] = made.get(`${map.get(producer)?.[0] ?? -1}/${before.slot[v]}`) ?? -1;
  }
  const uses: [number, number, number][] = Array.from(graph.useValue, (v, i) => [graph.useNode[i]!, v, graph.useArg[i]!]);
  for (let i = 0; i < before.useValue.length; i++) {
    const [node, v] = [before.useNode[i]!, before.useValue[i]!];
    if (v < 0) continue;
    const reader = ghost.get(node);
    if (reader !== undefined) uses.push([reader, value[v]!, before.useArg[i]!]);
    // What a ghost made went to an operator that is still here.
    else if (ghost.has(before.producer[v]!)) for (const now of map.get(node) ?? []) uses.push([now, value[v]!, before.useArg[i]!]);
  }
  uses.sort((a, b) => a[0] - b[0]);
  const nodes = graph.nodes + ghosts.length;
  const useNode = Int32Array.from(uses, ([node]) => node);
  const useStart = new Int32Array(nodes + 1);
  for (const node of useNode) useStart[node + 1]!++;
  for (let i = 0; i < nodes; i++) useStart[i + 1]! += useStart[i]!;
  const more = <T extends Int32Array | Int8Array>(column: T, of: T, rows: number[]): T => {
    const out = new (column.constructor as new (n: number) => T)(column.length + rows.length);
    out.set(column);
    rows.forEach((row, i) => (out[column.length + i] = of[row]!));
    return out;
  };
  const bodyOf = new Int32Array(nodes).fill(-1);
  bodyOf.set(bodies.bodyOf);
  const producer = more(graph.producer, before.producer, own);
  own.forEach((v, i) => (producer[graph.values + i] = ghost.get(before.producer[v]!)!));
  const storage = more(graph.storage, before.storage, own);
  own.forEach((_, i) => (storage[graph.values + i] = graph.values + i));
  return {
    bodies: { ...bodies, bodyOf },
    graph: {
      ...graph,
      nodes,
      op: more(graph.op, before.op, ghosts),
      name: more(graph.name, before.name, ghosts),
      scope: more(graph.scope, before.scope, ghosts),
      stack: more(graph.stack, before.stack, ghosts),
      attrs: more(graph.attrs, before.attrs, ghosts),
      phase: more(graph.phase, before.phase, ghosts),
      useStart,
      useNode,
      useValue: Int32Array.from(uses, ([, v]) => v),
      useArg: Int32Array.from(uses, ([, , arg]) => arg),
      values: graph.values + own.length,
      producer,
      slot: more(graph.slot, before.slot, own),
      type: more(graph.type, before.type, own),
      valueName: more(graph.valueName, before.valueName, own),
      storage,
      role: more(graph.role, before.role, own),
    },
  };
}

/** The operators of the outer graph that an item stands for. */
export function outerNodes(view: View, item: number): number[] {
  const { bodies } = view;
  const nodes = new Set<number>();
  for (let node of inside(view, item)) {
    while (bodies.bodyOf[node]! >= 0) node = bodies.owner[bodies.bodyOf[node]!]!;
    nodes.add(node);
  }
  return [...nodes];
}

/** An operator as it is drawn: one with graphs inside is a group. */
export function drawnItem(view: View, node: number): number {
  const { tree, bodies } = view;
  return bodies.owner.includes(node) && tree.nodeGroup[node]! >= 0 ? tree.nodes + tree.nodeGroup[node]! : node;
}

/** Whether an item is an operator, or the group of an operator with graphs inside. */
export function isOperator(view: View, item: number): boolean {
  return item < view.tree.nodes || view.tree.labels.has(item - view.tree.nodes);
}

/** By box: the class of its change (with GHOST), and how many operators inside have changed. */
export function boxChanges(view: View, byNode: Uint8Array): Pick<Picture, 'change' | 'changed'> {
  const { visible: v, tree, bodies } = view;
  if (!byNode.some((kind) => kind > 0)) return { change: null, changed: null };
  const change = new Uint8Array(v.count);
  const changed = new Int32Array(v.count);
  const tally = new Int32Array(v.count * (CHANGES.length + 1));
  const ghostly = new Uint8Array(v.count).fill(1);
  for (let node = 0; node < tree.nodes; node++) {
    // What is inside an operator was not changed by itself.
    if (bodies.bodyOf[node]! >= 0) continue;
    const box = v.nodeBox[node]!;
    // What only keeps a tensor is shown by what made the tensor, whose change counts.
    if (box < 0 || (v.item[box]! < tree.nodes && v.item[box] !== node)) continue;
    const kind = byNode[node]! & ~GHOST;
    if (!(byNode[node]! & GHOST)) ghostly[box] = 0;
    if (!kind) continue;
    changed[box]!++;
    tally[box * (CHANGES.length + 1) + kind]!++;
  }
  for (let box = 0; box < v.count; box++) {
    if (!changed[box] || v.open[box]) continue;
    let best = 0;
    for (let kind = 1; kind <= CHANGES.length; kind++) {
      const n = tally[box * (CHANGES.length + 1) + kind]!;
      if (n > (best ? tally[box * (CHANGES.length + 1) + best]! : 0)) best = kind;
    }
    // Of a module with several kinds of changes inside: that it has changed.
    if (tally[box * (CHANGES.length + 1) + best]! < changed[box]!) best = CHANGES.indexOf('changed') + 1;
    change[box] = best | (ghostly[box] ? GHOST : 0);
  }
  return { change, changed };
}

/** Items of two pictures: pairs (new, old, new, old …) of the same thing, of what came out of what, of what went into what. */
export interface Kin {
  same: Int32Array;
  from: Int32Array; // new, old
  into: Int32Array; // old, new
}

export function kin(old: View, now: View, map: ReadonlyMap<number, number[]>, back: ReadonlyMap<number, number[]>): Kin {
  const same: number[] = [];
  const from: number[] = [];
  const into: number[] = [];
  const groups = new Map<string, number>();
  const key = (view: View, g: number) =>
    view.tree.labels.has(g)
      ? ''
      : `${view.tree.phase[g]}:${scopePath(view.capture.pools, view.tree.scope[g]!)}:${view.tree.isPhase[g]}:${view.tree.part[g]}`;
  for (let g = 1; g < old.tree.groups; g++) if (key(old, g)) groups.set(key(old, g), old.tree.nodes + g);
  const inputs = new Map<string, number>();
  const firstInput = (view: View) => view.tree.nodes + view.tree.groups;
  const name = (view: View, item: number) => view.capture.pools.strings.at(view.graph.valueName[item - firstInput(view)]!);
  for (const item of old.visible.item) if (item >= firstInput(old)) inputs.set(name(old, item), item);
  for (const item of now.visible.item) {
    if (item >= firstInput(now)) {
      const other = inputs.get(name(now, item));
      if (other !== undefined) same.push(item, other);
    } else if (isOperator(now, item)) {
      const nodes = outerNodes(now, item);
      const there = nodes.length === 1 ? (back.get(nodes[0]!) ?? []) : [];
      if (!there.length) continue;
      const one = there.length === 1 && map.get(there[0]!)?.length === 1;
      if (one) same.push(item, drawnItem(old, there[0]!));
      else from.push(item, drawnItem(old, there[0]!));
    } else {
      const other = groups.get(key(now, item - now.tree.nodes));
      if (other !== undefined) same.push(item, other);
    }
  }
  for (const [node, there] of map) if (there.length) into.push(drawnItem(old, node), drawnItem(now, there[0]!));
  return { same: Int32Array.from(same), from: Int32Array.from(from), into: Int32Array.from(into) };
}
