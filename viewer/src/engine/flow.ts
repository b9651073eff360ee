// Which uses are drawn as edges. Two things are drawn otherwise than they are stored:
// what an operator computes in the graphs inside it goes through those graphs, and autograd's own copies of saved tensors
// (a `detach` that the forward pass makes, another that the backward pass reads) are passed over.

import { PHASES } from '../scene.ts';
import type { Graph, Pools } from '../wire/capture.ts';
import { SPELLINGS } from '../wire/facts.ts';
import type { Bodies } from './compose.ts';
import { row, type Csr } from '../wire/csr.ts';

const [FORWARD, BACKWARD, RECOMPUTE] = [PHASES.indexOf('forward'), PHASES.indexOf('backward'), PHASES.indexOf('recompute')];

/** By operator: the value that it keeps for the backward pass or takes from there; -1 for all others. Empty where there are none. */
export function savedTensors(graph: Graph, pools: Pools, outputs: () => Csr, readers: () => Csr): Int32Array {
  let kept = new Int32Array(0);
  const known: boolean[] = [];
  const detaches = (node: number) => (known[graph.op[node]!] ??= SPELLINGS.SAVED_COPY.test(pools.strings.at(graph.op[node]!)));
  for (let node = 0; node < graph.nodes; node++) {
    if ((graph.phase[node] !== FORWARD && graph.phase[node] !== RECOMPUTE) || !detaches(node)) continue;
    const value = graph.useValue[graph.useStart[node]!]!;
    if (value === undefined || value < 0) continue;
    const users = [...row(outputs(), node)].flatMap((out) => [...row(readers(), out)].map((use) => graph.useNode[use]!));
    // What the user detaches is read by something else as well.
    if (!users.length || !users.every((user) => graph.phase[user] === BACKWARD && detaches(user))) continue;
    if (!kept.length) kept = new Int32Array(graph.nodes).fill(-1);
    kept[node] = value;
    for (const user of users) kept[user] = value;
  }
  return kept;
}

/** The uses that make edges: `useValue` and `useNode` as in a graph. */
export function flow(graph: Graph, bodies: Bodies, kept: Int32Array | null): Pick<Graph, 'useNode' | 'useValue'> {
  let { useNode, useValue } = graph;
  if (kept?.length) {
    useValue = useValue.slice();
    for (let use = 0; use < useValue.length; use++) {
      if (kept[useNode[use]!]! >= 0) useValue[use] = -1;
      for (let guard = 0; guard < 4; guard++) {
        const maker = useValue[use]! < 0 ? -1 : graph.producer[useValue[use]!]!;
        if (maker < 0 || kept[maker]! < 0) break;
        useValue[use] = kept[maker]!;
      }
    }
  }
  if (!bodies.results.length) return { useNode, useValue };
  // What a graph inside an operator reads goes there, and from its outputs to the operator.
  const inside = new Set<number>();
  const key = (owner: number, value: number) => owner * graph.values + value;
  for (let use = 0; use < useValue.length; use++) {
    if (useValue[use]! < 0) continue;
    for (let body = bodies.bodyOf[useNode[use]!]!; body >= 0; body = bodies.bodyOf[bodies.owner[body]!]!)
      inside.add(key(bodies.owner[body]!, useValue[use]!));
  }
  const nodes: number[] = [];
  const values: number[] = [];
  for (let use = 0; use < useValue.length; use++) {
    const value = useValue[use]!;
    if (value >= 0 && inside.has(key(useNode[use]!, value))) continue;
    nodes.push(useNode[use]!);
    values.push(value);
  }
  for (const [owner, value] of bodies.results) {
    nodes.push(owner);
    values.push(value);
  }
  return { useNode: Int32Array.from(nodes), useValue: Int32Array.from(values) };
}
