// One of two graphs that are compared: what each operator is, as numbers, and of ever larger neighbourhoods around it.
// Names are left out on purpose: compilers number them. The same as analysis/diff/fingerprints.py.

import type { Graph, Pools } from '../../wire/capture.ts';
import { csr, type Csr } from '../../wire/csr.ts';
import { hashText, mixed, plus, type Hashes } from './hashes.ts';

/** How far a fingerprint looks. */
export const RADIUS = 5;

/** Items are the operators, and behind them the values that no operator makes. */
export interface Side {
  graph: Graph;
  pools: Pools;
  size: number;
  leaves: number[]; // values
  exact: Hashes; // operator, attributes, types, arguments, what is inside; of leaves role and type
  loose: Hashes; // only the operator and its arguments; of leaves the role
  source: Int32Array; // by use that is not null: the item that is read …
  slot: Int32Array; // … its output …
  target: Int32Array; // … the operator that reads it …
  port: Int32Array; // … at this position
  reads: Csr; // uses by the item that reads
  readBy: Csr; // uses by the item that is read
  outputs: number[];
  isOutput: Uint8Array;
}

/** `inside`: by operator, a number for the graphs that are in it. */
export function sideOf(graph: Graph, pools: Pools, inside: Map<number, number>): Side {
  const { nodes, useNode, useValue, useStart, producer } = graph;
  const leaves = leavesOf(graph);
  const item = Int32Array.from(producer);
  leaves.forEach((value, i) => (item[value] = nodes + i));
  const size = nodes + leaves.length;
  const rows = Array.from(useValue, (_, use) => use).filter((use) => useValue[use]! >= 0);
  const column = (of: (use: number) => number) => Int32Array.from(rows, of);
  const [source, target] = [column((use) => item[useValue[use]!]!), column((use) => useNode[use]!)];
  const outputs = Array.from(graph.outputs, (value) => item[value]!).filter((out) => out >= 0);
  const isOutput = new Uint8Array(size);
  for (const out of outputs) isOutput[out] = 1;
  return {
    graph,
    pools,
    size,
    leaves,
    ...labels(graph, pools, leaves, inside),
    source,
    slot: column((use) => graph.slot[useValue[use]!]!),
    target,
    port: column((use) => use - useStart[useNode[use]!]!),
    reads: csr(target, size),
    readBy: csr(source, size),
    outputs,
    isOutput,
  };
}

/** Values that no operator makes and that are read, or go in or out. */
function leavesOf({ values, useValue, inputs, outputs, producer }: Graph): number[] {
  const wanted = new Uint8Array(values);
  for (const list of [useValue, inputs, outputs]) for (const value of list) if (value >= 0) wanted[value] = 1;
  return Array.from(wanted, (_, value) => value).filter((value) => wanted[value] && producer[value]! < 0);
}

function labels(graph: Graph, pools: Pools, leaves: number[], inside: Map<number, number>): { exact: Hashes; loose: Hashes } {
  const once = (look: (id: number) => string) => {
    const known = new Map<number, number>();
    return (id: number) => known.get(id) ?? (known.set(id, hashText(look(id))), known.get(id)!);
  };
  const { nodes, useNode, useValue, useStart, useArg, producer } = graph;
  const text = once((id) => pools.strings.at(id));
  const attrs = once((id) => canonical(pools.attrs.at(id)));
  const type = once((id) => `${pools.types.dtype.at(id)} ${pools.types.shape.at(id)}`);
  const [args, makes, makesAny] = [new Float64Array(nodes), new Float64Array(nodes), new Float64Array(nodes)];
  for (let use = 0; use < useNode.length; use++) {
    const node = useNode[use]!;
    const place = 2 * (use - useStart[node]!) + (useValue[use]! < 0 ? 1 : 0);
    args[node] = plus(args[node]!, mixed(text(useArg[use]!), place));
  }
  for (let value = 0; value < graph.values; value++) {
    const node = producer[value]!;
    if (node < 0) continue;
    makes[node] = plus(makes[node]!, mixed(type(graph.type[value]!), graph.slot[value]!));
    makesAny[node] = plus(makesAny[node]!, mixed(graph.slot[value]!));
  }
  const [exact, loose] = [new Float64Array(nodes + leaves.length), new Float64Array(nodes + leaves.length)];
  for (let node = 0; node < nodes; node++) {
    const op = text(graph.op[node]!);
    exact[node] = mixed(op, attrs(graph.attrs[node]!), makes[node]!, args[node]!, graph.phase[node]!, inside.get(node) ?? 0);
    loose[node] = mixed(op, args[node]!, makesAny[node]!);
  }
  leaves.forEach((value, i) => {
    exact[nodes + i] = mixed(graph.role[value]!, type(graph.type[value]!));
    loose[nodes + i] = mixed(graph.role[value]!);
  });
  return { exact, loose };
}

/** Attributes in one order. */
function canonical(text: string): string {
  if (text.split(':').length <= 2) return text;
  const sorted = (_: string, value: unknown) =>
    value && typeof value === 'object' && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value;
  try {
    return JSON.stringify(JSON.parse(text), sorted);
  } catch {
    return text;
  }
}

/** `start`, and then what the neighbours up to 1, 2, … edges away add to it. */
export function colours(side: Side, start: Hashes, radius = RADIUS): Hashes[] {
  const { source, target, slot, port, size } = side;
  const found = [start];
  for (let round = 0; round < radius; round++) {
    const now = found.at(-1)!;
    const [read, readers] = [new Float64Array(size), new Float64Array(size)];
    for (let use = 0; use < source.length; use++) {
      const wire = slot[use]! * 4096 + port[use]!;
      const [from, to] = [source[use]!, target[use]!];
      read[to] = plus(read[to]!, mixed(now[from]!, wire));
      readers[from] = plus(readers[from]!, mixed(wire, now[to]!));
    }
    for (const out of side.outputs) readers[out] = plus(readers[out]!, 0x1234567);
    found.push(now.map((colour, i) => mixed(colour, read[i]!, readers[i]!)));
  }
  return found;
}

/** The strictest: everything that an item is computed from, and everything it leads to. */
export function closed(side: Side): Hashes {
  const { exact, size, source, target, slot, port } = side;
  const order = executionOrder(side);
  const [up, down] = [exact.slice(), exact.slice()];
  for (const item of order) {
    let sum = 0;
    const { start, item: uses } = side.reads;
    for (let i = start[item]!; i < start[item + 1]!; i++) {
      const use = uses[i]!;
      sum = plus(sum, mixed(port[use]!, slot[use]!, up[source[use]!]!));
    }
    if (start[item + 1]! > start[item]!) up[item] = mixed(exact[item]!, sum);
  }
  for (let at = order.length - 1; at >= 0; at--) {
    const item = order[at]!;
    let sum = 0;
    const { start, item: uses } = side.readBy;
    for (let i = start[item]!; i < start[item + 1]!; i++) {
      const use = uses[i]!;
      sum = plus(sum, mixed(slot[use]!, port[use]!, down[target[use]!]!));
    }
    down[item] = mixed(exact[item]!, side.isOutput[item]!, sum);
  }
  const all = Float64Array.from({ length: size }, (_, i) => mixed(exact[i]!, up[i]!, down[i]!));
  return colours(side, all, 2).at(-1)!;
}

/** Items, each behind what it reads as far as there are no loops; leaves first. */
function executionOrder({ graph: { nodes }, size, source, target, reads, readBy }: Side): number[] {
  const leaves = Array.from({ length: size - nodes }, (_, i) => nodes + i);
  if (!source.some((from, use) => from < nodes && from >= target[use]!)) return [...leaves, ...Array.from({ length: nodes }, (_, i) => i)];
  const waiting = Int32Array.from({ length: size }, (_, item) => reads.start[item + 1]! - reads.start[item]!);
  const ready = Array.from({ length: size }, (_, i) => size - 1 - i).filter((item) => !waiting[item]);
  const order: number[] = [];
  for (let item = ready.pop(); item !== undefined; item = ready.pop()) {
    order.push(item);
    for (let i = readBy.start[item]!; i < readBy.start[item + 1]!; i++) {
      const reader = target[readBy.item[i]!]!;
      if (!--waiting[reader]!) ready.push(reader);
    }
  }
  return order;
}

/** The whole graph as one number, whatever the order of its rows. */
export function fingerprint(side: Side): number {
  return colours(side, side.exact, 3)
    .at(-1)!
    .reduce((sum, colour) => plus(sum, mixed(colour)), side.size);
}
