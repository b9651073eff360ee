// What the numbers of a recording say: where NaN and infinite numbers were born and how they spread, gradients along the
// layers, weights.

import { FACTS, ROLES } from '../wire/facts.ts';
import { ref } from './answers.ts';
import { figuresOf } from './measured.ts';
import type { Ref } from './messages.ts';
import { STATISTICS } from './values.ts';
import type { View } from './view.ts';

const PARAMETER = ROLES.indexOf('parameter');

export interface Story {
  kind: string; // nan, inf
  what: string; // the operator, or the role of what came with them
  item: number; // the tensor in which they appear first
  forward: Ref | null; // of a gradient
  spread: number; // operators
  way: Ref[]; // to where they ended
}

/** A parameter or its gradient: figures by place in STATISTICS. */
export interface Weight {
  item: number;
  name: string;
  type: string;
  norm: number; // NaN: not known
  rms: number;
  figures: (number | null)[];
  exponents: number[];
}

export interface Numbers {
  stories: Story[];
  gradients: Weight[];
  weights: Weight[];
}

export async function numbers(view: View): Promise<Numbers> {
  const [stories, named] = await Promise.all([storiesOf(view), weightsOf(view)]);
  return { stories, ...named };
}

async function storiesOf(view: View): Promise<Story[]> {
  const { capture, stage, tree } = view;
  const { name, columns } = FACTS.origins;
  const table = await capture.fact(name, stage);
  if (!table) return [];
  const [value, forward, spread] = [columns.value, columns.forward, columns.spread].map((column) =>
    table.numbers(column),
  ) as Float64Array[];
  const [kind, what, ways] = [table.texts(columns.kind), table.texts(columns.what), table.lists(columns.story)];
  return ways.map((way, i) => ({
    kind: kind.at(i),
    what: what.at(i),
    item: tree.nodes + tree.groups + value![i]!,
    forward: forward![i]! >= 0 ? ref(view, forward![i]!) : null,
    spread: spread![i]!,
    way: way.map((node) => ref(view, node)),
  }));
}

/** Parameters in the order in which they are used first, as they came; gradients in the order of their parameters. */
async function weightsOf(view: View): Promise<{ gradients: Weight[]; weights: Weight[] }> {
  const { capture, stage, graph, types, tree } = view;
  const [figure, counts] = await Promise.all([figuresOf(capture, stage), exponentsOf(view)]);
  const { strings } = capture.pools;
  const weights: Weight[] = [];
  const gradients = new Map<string, Weight>();
  for (let value = 0; value < graph.values; value++) {
    const name = strings.at(graph.valueName[value]!);
    const isGradient = name.endsWith('.grad');
    const isWeight = graph.producer[value]! < 0 && graph.role[value] === PARAMETER;
    if ((!isGradient && !isWeight) || (figure('nan', value) ?? figure('rms', value)) === null) continue;
    const found: Weight = {
      item: tree.nodes + tree.groups + value,
      name,
      type: types.text(graph.type[value]!),
      norm: figure('norm', value) ?? NaN,
      rms: figure('rms', value) ?? NaN,
      figures: STATISTICS.map((of) => figure(of, value)),
      exponents: counts.get(value) ?? [],
    };
    if (isGradient) gradients.set(name, found);
    else weights.push(found);
  }
  const order = new Map(weights.map(({ name }, place) => [`${name}.grad`, place]));
  const place = ({ name }: Weight) => order.get(name) ?? order.size;
  return { weights, gradients: [...gradients.values()].sort((a, b) => place(a) - place(b)) };
}

/** By value: how many of its numbers lie in each range of powers of two. */
export async function exponentsOf({ capture, stage }: View): Promise<Map<number, number[]>> {
  const column = FACTS.values.columns.exponents;
  const found = new Map<number, number[]>();
  for (const index of capture.facts(FACTS.values.name, stage)) {
    const table = await capture.stored(index);
    if (!table.has(column)) continue;
    const lists = table.lists(column);
    table.int32('index').forEach((value, row) => lists[row]!.length && found.set(value, lists[row]!));
  }
  return found;
}
