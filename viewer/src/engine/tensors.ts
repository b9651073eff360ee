// Tensors: those that an edge stands for, how long each lives, what was measured of it.

import { shortNumber } from '../text/figures.ts';
import { MEMORY_CLASSES, VALUE_FIGURES, type MemoryClass } from '../wire/facts.ts';
import { ref } from './answers.ts';
import { figuresOf } from './measured.ts';
import type { Ref } from './messages.ts';
import { exponentsOf } from './numbers.ts';
import type { View } from './view.ts';

const MOST = 50;

/** The tensors between two boxes of a scene, the largest last; none where another scene is drawn by now. */
export function edgeTensors(view: View, scene: number, source: number, target: number): number[] {
  if (scene !== view.scene) return [];
  const { visible: v, flow, graph, types, tree } = view;
  const found = new Set<number>();
  for (let use = 0; use < flow.useValue.length; use++) {
    const value = flow.useValue[use]!;
    if (value < 0 || v.nodeBox[flow.useNode[use]!] !== target) continue;
    const maker = graph.producer[value]!;
    if ((maker >= 0 && v.nodeBox[maker] === source) || v.item[source] === tree.nodes + tree.groups + value) found.add(value);
  }
  // A box that only the drawing has (the loss) hands on what is written on the edge.
  for (let e = 0; e < v.source.length && !found.size; e++) {
    if (v.source[e] === source && v.target[e] === target && v.value[e]! >= 0) found.add(v.value[e]!);
  }
  const bytes = (value: number) => types.bytes(graph.type[value]!);
  return [...found]
    .sort((a, b) => bytes(a) - bytes(b) || a - b)
    .slice(-MOST)
    .map((value) => tree.nodes + tree.groups + value);
}

/** When a storage is alive. */
export interface Life {
  cls: MemoryClass;
  born: Ref | null;
  dies: Ref | null;
  steps: number; // operators
}

export interface TensorFacts {
  life: Life | null;
  figures: [string, string][];
  exponents: number[]; // how many of its numbers lie in each range of powers of two; empty: not counted
}

/** What is known of a tensor beside the graph: what it holds and when it is alive, and its figures. */
export async function tensorFacts(view: View, item: number): Promise<TensorFacts> {
  const { capture, stage, tree } = view;
  const value = item - tree.nodes - tree.groups;
  if (value < 0) return { life: null, figures: [], exponents: [] };
  const [measured, counts] = await Promise.all([figuresOf(capture, stage), exponentsOf(view)]);
  const figures = VALUE_FIGURES.flatMap((name): [string, string][] => {
    const figure = measured(name, value);
    return figure === null ? [] : [[name, shortNumber(figure)]];
  });
  return { life: lifeOf(view, value), figures, exponents: counts.get(value) ?? [] };
}

function lifeOf(view: View, value: number): Life | null {
  const { graph, metrics } = view;
  const storages = metrics.costs?.storages;
  const at = storages?.value.findIndex((owner) => graph.storage[owner] === graph.storage[value]) ?? -1;
  if (!storages || at < 0) return null;
  const [born, dies] = [storages.born[at]!, storages.dies[at]!];
  const refOf = (node: number) => (node >= 0 && node < graph.nodes ? ref(view, node) : null);
  return { cls: MEMORY_CLASSES[storages.cls[at]!]!, born: refOf(born), dies: refOf(dies), steps: dies - born + 1 };
}
