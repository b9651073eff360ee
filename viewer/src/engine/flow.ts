// Which uses are drawn as edges. Some things are drawn otherwise than they are stored: what an operator computes in the
// graphs inside it goes through those graphs; autograd's own copies of saved tensors (a `detach` that the forward pass
// makes, another that the backward pass reads) are passed over, and so is what only sees a tensor otherwise (story.ts).

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

/** The uses that make edges: `useValue` and `useNode` as in a graph. What is read is seen as the value `read`. */
export interface Flow extends Pick<Graph, 'useNode' | 'useValue'> {
  read: Int32Array;
}

/** `passed`: by operator the value that it hands on, and -1 for those that are drawn; or empty. */
export function flow(graph: Graph, bodies: Bodies, passed: Int32Array): Flow {
  let { useNode, useValue } = graph;
  const read = useValue;
  if (passed.length) {
    useValue = useValue.slice();
    for (let use = 0; use < useValue.length; use++) {
      if (passed[useNode[use]!]! >= 0) useValue[use] = -1;
      // Each hands on what was made before it, so this ends.
      for (;;) {
        const maker = useValue[use]! < 0 ? -1 : graph.producer[useValue[use]!]!;
        if (maker < 0 || passed[maker]! < 0) break;
        useValue[use] = passed[maker]!;
      }
    }
  }
  if (!bodies.results.length) return { useNode, useValue, read };
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
  const seen: number[] = [];
  for (let use = 0; use < useValue.length; use++) {
    const value = useValue[use]!;
    if (value >= 0 && inside.has(key(useNode[use]!, value))) continue;
    nodes.push(useNode[use]!);
    values.push(value);
    seen.push(read[use]!);
  }
  for (const [owner, result] of bodies.results) {
    let value = result;
    for (let maker; (maker = graph.producer[value]!) >= 0 && passed.length && passed[maker]! >= 0;) value = passed[maker]!;
    nodes.push(owner);
    values.push(value);
    seen.push(result);
  }
  return { useNode: Int32Array.from(nodes), useValue: Int32Array.from(values), read: Int32Array.from(seen) };
}
