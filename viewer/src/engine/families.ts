// What boxes are about: the family of their operators (products, norms, activations …), or what a text of the user's says.

import { FACTS, FAMILIES } from '../wire/facts.ts';
import { inside } from './answers.ts';
import type { View } from './view.ts';

const OTHER = FAMILIES.indexOf('other');
/** Says nothing about what a module is for. */
const ASIDE = new Set([FAMILIES.indexOf('movement'), OTHER]);

const known = new WeakMap<View['graph'], Promise<Uint8Array>>();

/** By operator: a place in FAMILIES. */
function familiesOf({ capture, stage, graph }: View): Promise<Uint8Array> {
  let found = known.get(graph);
  if (!found) known.set(graph, (found = read(capture, stage, graph)));
  return found;
}

async function read(capture: View['capture'], stage: number, graph: View['graph']): Promise<Uint8Array> {
  const column = FACTS.kinds.columns.family;
  const [byOp, byNode] = await Promise.all(['op', 'node'].map((by) => capture.fact(FACTS.kinds.name, stage, by)));
  const ofOp = new Map<number, number>();
  if (byOp?.has(column)) byOp.numbers(column).forEach((family, row) => ofOp.set(byOp.int32('index')[row]!, family));
  const families = Uint8Array.from(graph.op, (op) => ofOp.get(op) ?? OTHER);
  if (byNode?.has(column)) byNode.numbers(column).forEach((family, row) => (families[byNode.int32('index')[row]!] = family));
  return families;
}

/** By box: its family, counted from 1; 0 where it has operators of several, or is none. */
export async function families(view: View): Promise<Uint8Array> {
  const of = await familiesOf(view);
  const { visible: v, tree, metrics } = view;
  return Uint8Array.from(v.item, (item, box) => {
    if (item >= tree.nodes + tree.groups || v.open[box]) return 0;
    if (item < tree.nodes) return of[item]! + 1;
    const nodes = inside(view, item);
    const all = new Set(nodes.map((node) => of[node]!));
    const about = new Set([...all].filter((family) => !ASIDE.has(family)));
    // A linear layer is a product, though it adds a bias.
    const heavy = new Set(nodes.filter((node) => (metrics.value('MACs', node) ?? 0) > 0).map((node) => of[node]!));
    const isSmall = tree.childGroups.start[item - tree.nodes] === tree.childGroups.start[item - tree.nodes + 1];
    const one = isSmall && heavy.size === 1 ? heavy : about.size ? about : all;
    return one.size === 1 ? [...one][0]! + 1 : 0;
  });
}

/** By box: which of `names` a text of the user's says, counted from 1. */
export function saidOf(view: View, column: string): { of: Uint8Array; names: string[] } {
  const { visible: v, tree, metrics } = view;
  const names: string[] = [];
  const places = new Map<string, number>();
  const place = (text: string | null): number => {
    if (text === null) return 0;
    if (!places.has(text) && names.length < 250) places.set(text, names.push(text));
    return places.get(text) ?? 0;
  };
  const of = Uint8Array.from(v.item, (item, box) => {
    if (item >= tree.nodes + tree.groups || v.open[box]) return 0;
    const own = metrics.text(column, item, tree);
    if (own !== null || item < tree.nodes) return place(own);
    const all = new Set(inside(view, item).map((node) => metrics.text(column, node, tree)));
    return all.size === 1 ? place([...all][0]!) : 0;
  });
  return { of, names };
}
