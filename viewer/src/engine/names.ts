// Names of items that survive a new session, as the URL has them: `#12` an operator, `%3` a value, `phase:scope` a module.

import { PHASES } from '../scene.ts';
import { scopePath } from '../wire/scopes.ts';
import { ALIKE, SECTION } from './tree.ts';
import type { View } from './view.ts';

const GATHERED: Record<number, string> = { [ALIKE]: 'alike', [SECTION]: 'section' };

export function paths(view: View, items: number[]): string[] {
  return items.map((item) => pathOf(view, item));
}

function pathOf({ tree, capture }: View, item: number): string {
  if (item < tree.nodes) return `#${item}`;
  const g = item - tree.nodes;
  if (g >= tree.groups) return `%${item - tree.nodes - tree.groups}`;
  const phase = tree.phase[g]! >= 0 ? PHASES[tree.phase[g]!] : '';
  const label = tree.labels.get(g);
  if (label !== undefined) return `@${tree.first[g]}/${label}`;
  if (tree.purpose[g]! >= 0) return `@${tree.first[g]}/${GATHERED[tree.purpose[g]!] ?? 'plumbing'}`;
  const part = tree.part[g]! > 1 ? `*${tree.part[g]}` : '';
  return `${phase}:${scopePath(capture.pools, tree.scope[g]!)}${part}`;
}

/** Where an item is, for people and the search: `layer1/0/conv1`; of an operator its number too, of a tensor its name. */
export function scopeOf({ tree, graph, capture }: View, item: number): string {
  const { pools } = capture;
  if (item < tree.nodes) return [scopePath(pools, graph.scope[item]!), `#${item}`].filter(Boolean).join(' ');
  const g = item - tree.nodes;
  if (g < tree.groups) return scopePath(pools, tree.scope[g]!) || (PHASES[tree.phase[g]!] ?? '');
  return pools.strings.at(graph.valueName[g - tree.groups]!) || `%${g - tree.groups}`;
}

/** The items of names; a name that says nothing here is left out. */
export function items(view: View, names: string[]): number[] {
  const { tree, capture, graph } = view;
  const groups = new Map<string, number>();
  const bare = new Map<string, number>(); // a scope without its phase: the first phase that has it
  for (let g = tree.groups - 1; g > 0; g--) {
    groups.set(pathOf(view, tree.nodes + g), tree.nodes + g);
    bare.set(tree.isPhase[g] ? PHASES[tree.phase[g]!]! : scopePath(capture.pools, tree.scope[g]!), tree.nodes + g);
  }
  return names.flatMap((path) => {
    if (/^%\d+$/.test(path)) return Number(path.slice(1)) < graph.values ? [tree.nodes + tree.groups + Number(path.slice(1))] : [];
    if (/^#\d+$/.test(path)) return Number(path.slice(1)) < graph.nodes ? [Number(path.slice(1))] : [];
    const found = groups.get(path) ?? bare.get(path);
    return found === undefined ? [] : [found];
  });
}
