// The module and the phase of every event, by the operators that it belongs to.

import type { Graph, Pools } from '../../wire/capture.ts';
import { GROUP_COPY, GROUP_KERNEL, NODE, ROW, SCOPE, type Events } from './events.ts';

export interface Belonging {
  scope: Int32Array; // 0: none
  phase: Int8Array; // -1: not known
}

interface OfGroups {
  scope: Int32Array;
  phase: Int8Array;
}

export function belonging(events: Events, graphs: ReadonlyMap<number, Graph>, pools: Pools): Belonging {
  const scope = new Int32Array(events.count);
  const phase = new Int8Array(events.count).fill(-1);
  const groups = new Map<number, OfGroups>();
  for (let i = 0; i < events.count; i++) {
    const by = events.by[i]!;
    if (by === ROW) continue;
    const index = events.index[i]!;
    const graph = graphs.get(events.stage[i]!);
    if (!graph) continue;
    if (by === NODE) {
      scope[i] = graph.scope[index] ?? 0;
      phase[i] = graph.phase[index] ?? -1;
    } else if (by === SCOPE) scope[i] = index < pools.scopes.parent.length ? index : 0;
    else {
      const key = 2 * events.stage[i]! + (by === GROUP_KERNEL ? 0 : 1);
      let of = groups.get(key);
      if (!of) groups.set(key, (of = ofGroups(graph, by, pools)));
      scope[i] = of.scope[index] ?? 0;
      phase[i] = of.phase[index] ?? -1;
    }
  }
  ofModules(events, phase);
  return { scope, phase };
}

/** A call of a module has the phase of the first operator in it. */
function ofModules(events: Events, phase: Int8Array): void {
  for (let track = 0; track < events.tracks.length; track++) {
    let [next, start] = [-1, Infinity];
    for (let i = events.from[track + 1]! - 1; i >= events.from[track]!; i--) {
      if (events.by[i] === SCOPE) phase[i] = start < events.end[i]! ? next : -1;
      else if (phase[i]! >= 0) [next, start] = [phase[i]!, events.start[i]!];
    }
  }
}

/** The operators that an event belongs to, in the graph of its stage. */
export function nodesOf(events: Events, graphs: ReadonlyMap<number, Graph>, event: number): number[] {
  const graph = graphs.get(events.stage[event]!);
  const index = events.index[event]!;
  if (!graph) return [];
  if (events.by[event] === NODE) return [index];
  const groups = groupsOf(graph, events.by[event]!);
  return groups ? [...groups.member.subarray(groups.start[index] ?? 0, groups.start[index + 1] ?? 0)] : [];
}

export function groupsOf(graph: Graph, by: number) {
  if (by !== GROUP_KERNEL && by !== GROUP_COPY) return undefined;
  return graph.groups.get((by === GROUP_KERNEL ? 'kernel' : 'copy') as 'kernel');
}

function ofGroups(graph: Graph, by: number, pools: Pools): OfGroups {
  const groups = groupsOf(graph, by);
  const count = groups ? groups.start.length - 1 : 0;
  const out = { scope: new Int32Array(count), phase: new Int8Array(count).fill(-1) };
  for (let g = 0; groups && g < count; g++) {
    const [first, last] = [groups.start[g]!, groups.start[g + 1]!];
    if (first === last) continue;
    let common = graph.scope[groups.member[first]!]!;
    for (let m = first + 1; m < last; m++) common = around(pools.scopes.parent, common, graph.scope[groups.member[m]!]!);
    out.scope[g] = common;
    out.phase[g] = graph.phase[groups.member[first]!]!;
  }
  return out;
}

/** The innermost module around two. Parents have smaller numbers. */
export function around(parent: Int32Array, a: number, b: number): number {
  while (a !== b) {
    if (a > b) a = parent[a]!;
    else b = parent[b]!;
  }
  return a;
}

/** Groups that hold one of the operators that are marked. */
export function groupsWith(graph: Graph, by: number, nodes: Uint8Array): Uint8Array {
  const groups = groupsOf(graph, by);
  const out = new Uint8Array(groups ? groups.start.length - 1 : 0);
  for (let g = 0; groups && g < out.length; g++)
    for (let m = groups.start[g]!; m < groups.start[g + 1]!; m++) if (nodes[groups.member[m]!]) out[g] = 1;
  return out;
}
