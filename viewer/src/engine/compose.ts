// Graphs inside operators (branches, loop bodies, fused graphs) put into the graph around them, so that they open in
// place: their operators come after the outer ones, and what they read from outside is joined to what made it.

import type { Graph } from '../wire/capture.ts';

export interface Bodies {
  owner: Int32Array; // of each body: the operator it is in
  label: string[];
  bodyOf: Int32Array; // of each operator: the body it is in, or -1
  results: [number, number][]; // the operator a body is in, and a value that the body hands to it
}

export interface Composed {
  graph: Graph;
  bodies: Bodies;
}

const DEEPEST = 6;

export async function compose(graph: Graph, inner: (index: number) => Promise<Graph>): Promise<Composed> {
  const bodies: Bodies = { owner: new Int32Array(0), label: [], bodyOf: new Int32Array(graph.nodes).fill(-1), results: [] };
  if (!graph.bodies.length) return { graph, bodies };
  const parts: { graph: Graph; node: number; value: number; body: number; bound: Map<number, number> }[] = [];
  const owner: number[] = [];
  let nodes = 0;
  let values = 0;
  const add = async (part: Graph, body: number, bound: Map<number, number>, depth: number): Promise<void> => {
    const here = { graph: part, node: nodes, value: values, body, bound };
    parts.push(here);
    nodes += part.nodes;
    values += part.values;
    if (depth === DEEPEST) return;
    for (const entry of part.bodies) {
      const index = owner.push(here.node + entry.node) - 1;
      bodies.label.push(entry.label);
      const outer = new Map(entry.bindings.map(([inside, outside]) => [inside, bound.get(outside) ?? here.value + outside]));
      await add(await inner(entry.graph), index, outer, depth + 1);
    }
  };
  await add(graph, -1, new Map(), 0);

  const join = <T extends Int32Array | Int8Array>(
    pick: (part: Graph) => T,
    shift?: (part: (typeof parts)[number], x: number) => number,
  ): T => {
    const first = pick(graph);
    const out = new (first.constructor as new (n: number) => T)(parts.reduce((n, part) => n + pick(part.graph).length, 0));
    let at = 0;
    for (const part of parts) for (const x of pick(part.graph)) out[at++] = shift ? shift(part, x) : x;
    return out;
  };
  const node = (part: (typeof parts)[number], x: number) => (x < 0 ? x : x + part.node);
  const value = (part: (typeof parts)[number], x: number) => (x < 0 ? x : (part.bound.get(x) ?? x + part.value));
  const useNode = join((g) => g.useNode, node);
  const useStart = new Int32Array(nodes + 1);
  for (const n of useNode) useStart[n + 1]!++;
  for (let i = 0; i < nodes; i++) useStart[i + 1]! += useStart[i]!;
  bodies.owner = Int32Array.from(owner);
  for (const part of parts)
    if (part.body >= 0) for (const out of part.graph.outputs) if (out >= 0) bodies.results.push([owner[part.body]!, value(part, out)]);
  bodies.bodyOf = new Int32Array(nodes);
  for (const part of parts) bodies.bodyOf.fill(part.body, part.node, part.node + part.graph.nodes);
  return {
    bodies,
    graph: {
      ...graph, // links, groups, inputs and outputs are those of the outer graph
      nodes,
      values,
      op: join((g) => g.op),
      name: join((g) => g.name),
      scope: join((g) => g.scope),
      stack: join((g) => g.stack),
      attrs: join((g) => g.attrs),
      phase: join((g) => g.phase),
      useStart,
      useNode,
      useValue: join((g) => g.useValue, value),
      useArg: join((g) => g.useArg),
      producer: join((g) => g.producer, node),
      slot: join((g) => g.slot),
      type: join((g) => g.type),
      valueName: join((g) => g.valueName),
      storage: join(
        (g) => g.storage,
        (part, x) => x + part.value,
      ),
      role: join((g) => g.role),
    },
  };
}
