// What is different about two operators that belong together, in words, as analysis/diff/details.py.

import { PHASES, ROLES } from '../../scene.ts';
import { Types } from '../types.ts';
import type { Side } from './side.ts';

const LONGEST = 60;
const MOST_NAMED = 8;

type Attributes = Record<string, unknown>;

/** Operator, attributes, types of outputs and of weights, phase. */
export function differences(a: Side, x: number, b: Side, y: number): string[] {
  const found: string[] = [];
  const [before, after] = [opOf(a, x), opOf(b, y)];
  if (before !== after) found.push(`operator: ${before} → ${after}`);
  found.push(...attributes(attributesOf(a, x), attributesOf(b, y)), ...outputs(a, x, b, y), ...weights(a, x, b, y));
  const [was, is] = [a.graph.phase[x]!, b.graph.phase[y]!];
  if (was !== is) found.push(`phase: ${PHASES[was]} → ${PHASES[is]}`);
  return found;
}

function opOf({ graph, pools }: Side, node: number): string {
  return pools.strings.at(graph.op[node]!);
}

function attributesOf({ graph, pools }: Side, node: number): Attributes {
  return JSON.parse(pools.attrs.at(graph.attrs[node]!) || '{}') as Attributes;
}

function attributes(before: Attributes, after: Attributes): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names
    .map((name) => [name, attributeText(before[name]), attributeText(after[name])] as const)
    .filter(([, old, now]) => old !== now)
    .map(([name, old, now]) => `${name}: ${cut(old)} → ${cut(now)}`);
}

function attributeText(value: unknown): string {
  return value === undefined ? 'none' : JSON.stringify(value);
}

function cut(text: string): string {
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST - 1)}…`;
}

function outputs(a: Side, x: number, b: Side, y: number): string[] {
  const [made, now] = [typesMade(a, x), typesMade(b, y)];
  if (made.length !== now.length) return [`outputs: ${made.length} → ${now.length}`];
  return made.flatMap((old, k) => (old === now[k] ? [] : [`${made.length === 1 ? 'output' : `output ${k}`}: ${old} → ${now[k]}`]));
}

const byProducer = new WeakMap<Side, Map<number, number[]>>();

function typesMade(side: Side, node: number): string[] {
  const { producer, slot } = side.graph;
  let made = byProducer.get(side);
  if (!made) {
    byProducer.set(side, (made = new Map()));
    for (let value = 0; value < producer.length; value++) {
      const list = made.get(producer[value]!);
      if (list) list.push(value);
      else made.set(producer[value]!, [value]);
    }
  }
  return (made.get(node) ?? []).sort((v, w) => slot[v]! - slot[w]!).map((value) => typeText(side, value));
}

function typeText({ graph, pools }: Side, value: number): string {
  if (value < 0) return 'nothing';
  const type = graph.type[value]!;
  const shape = new Types(pools).shape(type);
  const dims = shape ? `[${shape.map((size) => size ?? '?').join(',')}]` : '';
  return `${pools.types.dtype.at(type) || '?'}${dims}`; // as the rest of opscope writes it
}

/** Types of what no operator makes: inputs, weights, constants. Other types change where they are made. */
function weights(a: Side, x: number, b: Side, y: number): string[] {
  const [before, after] = [argumentsOf(a, x), argumentsOf(b, y)];
  const names = (list: typeof before) => {
    const all = list.map(({ name }) => name);
    return `(${all.slice(0, MOST_NAMED).join(', ')}${all.length > MOST_NAMED ? ', …' : ''})`;
  };
  if (before.length !== after.length || before.some(({ name }, i) => name !== after[i]!.name))
    return [`arguments: ${names(before)} → ${names(after)}`];
  return before.flatMap(({ name, value, isMade }, i) => {
    const now = after[i]!;
    const called = /^\d+$/.test(name) ? `argument ${name}` : name;
    const [old, other] = [typeText(a, value), typeText(b, now.value)];
    if (value < 0 !== now.value < 0) return [`argument ${name}: ${old} → ${other}`];
    if (value < 0 || isMade || now.isMade) return [];
    const [role, is] = [ROLES[a.graph.role[value]!], ROLES[b.graph.role[now.value]!]];
    return old !== other ? [`${called}: ${old} → ${other}`] : role !== is ? [`${called}: ${role} → ${is}`] : [];
  });
}

function argumentsOf({ graph, pools }: Side, node: number): { name: string; value: number; isMade: boolean }[] {
  return Array.from({ length: graph.useStart[node + 1]! - graph.useStart[node]! }, (_, i) => {
    const use = graph.useStart[node]! + i;
    const value = graph.useValue[use]!;
    return { name: pools.strings.at(graph.useArg[use]!), value, isMade: value >= 0 && graph.producer[value]! >= 0 };
  });
}

/** `3 Matmul + 3 Add`, in the order of appearance. */
export function counted(side: Side, nodes: number[]): string {
  const counts = new Map<string, number>();
  for (const node of nodes) counts.set(opOf(side, node), (counts.get(opOf(side, node)) ?? 0) + 1);
  return [...counts].map(([op, n]) => (n === 1 ? op : `${n} ${op}`)).join(' + ');
}

/** `Reshape Matmul Add`, as compilers name what they fused. */
export function listed(side: Side, nodes: number[]): string {
  return nodes.map((node) => opOf(side, node)).join(' ');
}
