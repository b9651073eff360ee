// A part of a stage: what the user hid is not drawn, and of what stands alone nothing else is.

import { items as itemsOf, paths } from './names.ts';
import type { View } from './view.ts';

/** What is left out of the drawing. It is never changed: another choice is another cut. */
export interface Cut {
  gone: Uint8Array; // by operator
  hidden: readonly string[]; // names of what was hidden, in order
  isAlone: boolean; // the rest is what is looked at: what comes into it is drawn as its inputs
}

/** The operators of items: all of a folded run, what is drawn inside others, and the graphs inside operators. */
function operatorsOf(view: View, items: readonly number[]): Uint8Array {
  const { tree, bodies, graph } = view;
  const chosen = new Uint8Array(graph.nodes);
  const groups = new Uint8Array(tree.groups);
  for (const item of items.flatMap((one) => runOf(view, one))) {
    if (item < tree.nodes) chosen[item] = 1;
    else if (item < tree.nodes + tree.groups) groups[item - tree.nodes] = 1;
  }
  // Parents come before their children.
  for (let g = 1; g < tree.groups; g++) if (groups[tree.parent[g]!] && tree.parent[g]! > 0) groups[g] = 1;
  for (let node = 0; node < graph.nodes; node++) if (tree.home[node]! > 0 && groups[tree.home[node]!]) chosen[node] = 1;
  for (let node = 0; node < graph.nodes; node++) {
    const body = bodies.bodyOf[node] ?? -1;
    if (body >= 0 && chosen[bodies.owner[body]!]) chosen[node] = 1;
  }
  return chosen;
}

/** A box of a folded run stands for all groups of the run. */
function runOf({ tree, visible: v }: View, item: number): number[] {
  const box = item >= tree.nodes && item < tree.nodes + tree.groups ? (v.groupBox[item - tree.nodes] ?? -1) : -1;
  if (box < 0 || v.item[box] !== item || v.repeat[box]! < 2) return [item];
  const children = [...tree.childGroups.item.subarray(...ends(tree.childGroups.start, tree.parent[item - tree.nodes]!))];
  const first = children.indexOf(item - tree.nodes);
  return children.slice(first, first + v.repeat[box]!).map((group) => tree.nodes + group);
}

function ends(start: Int32Array, at: number): [number, number] {
  return [start[at]!, start[at + 1]!];
}

/** The same without these items; null where nothing would be left. */
export function without(view: View, items: readonly number[]): Cut | null {
  const gone = operatorsOf(view, items);
  const names = paths(view, [...items]);
  if (view.cut) for (let node = 0; node < gone.length; node++) gone[node]! |= view.cut.gone[node]!;
  if (!gone.includes(0)) return null;
  return { gone, hidden: [...(view.cut?.hidden ?? []), ...names], isAlone: view.cut?.isAlone ?? false };
}

/** Nothing but these items, and the same modules in the other phases. */
export function alone(view: View, names: readonly string[]): Cut | null {
  const { tree } = view;
  const chosen = itemsOf(view, [...names]);
  const scopes = new Set(chosen.flatMap((item) => (isModule(view, item) ? [tree.scope[item - tree.nodes]!] : [])));
  for (let g = 1; g < tree.groups; g++) {
    if (isModule(view, tree.nodes + g) && scopes.has(tree.scope[g]!)) chosen.push(tree.nodes + g);
  }
  const kept = operatorsOf(view, chosen);
  if (!kept.includes(1)) return null;
  return { gone: kept.map((is) => 1 - is), hidden: [], isAlone: true };
}

function isModule({ tree }: View, item: number): boolean {
  const g = item - tree.nodes;
  return g > 0 && g < tree.groups && !tree.isPhase[g] && !tree.labels.has(g) && tree.purpose[g]! < 0 && tree.scope[g]! > 0;
}

/** What comes into the operators that are drawn from those that are not. */
export function comingIn({ graph, flow, cut }: View): number[] {
  if (!cut?.isAlone) return [];
  const found = new Set<number>();
  for (let use = 0; use < flow.useValue.length; use++) {
    const value = flow.useValue[use]!;
    const maker = value < 0 ? -1 : graph.producer[value]!;
    if (maker >= 0 && cut.gone[maker] && !cut.gone[flow.useNode[use]!]) found.add(value);
  }
  return [...found];
}

/** What is drawn and read by operators of the same phase that are not drawn. */
export function goingOut({ graph, flow, cut }: View): number[] {
  if (!cut) return [];
  const found = new Set<number>();
  for (let use = 0; use < flow.useValue.length; use++) {
    const value = flow.useValue[use]!;
    const [maker, reader] = [value < 0 ? -1 : graph.producer[value]!, flow.useNode[use]!];
    if (maker >= 0 && !cut.gone[maker] && cut.gone[reader] && graph.phase[maker] === graph.phase[reader]) found.add(value);
  }
  return [...found];
}
