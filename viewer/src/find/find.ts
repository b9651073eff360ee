// find(graph, pools, query): the nodes that a query of the search language finds. docs/find.md describes it.

import type { Graph, Pools } from '../wire/capture.ts';
import { Conditions, NO_KINDS, NOTHING_MEASURED, type Kinds, type Measured } from './conditions.ts';
import { parse } from './parse.ts';
import { onPaths } from './paths.ts';

export { BadQuery } from './parse.ts';

/** The nodes that match, in execution order; of a path, every node on it. Throws BadQuery. */
export function find(
  graph: Graph,
  pools: Pools,
  query: string,
  kinds: Kinds = NO_KINDS,
  measured: Measured = NOTHING_MEASURED,
): Int32Array {
  const steps = parse(
    query,
    measured.own?.map(({ name }) => name),
  );
  const conditions = new Conditions(graph, pools, kinds, measured);
  const [step] = steps;
  const mask = steps.length === 1 && !step!.anyNumber ? conditions.allOf(step!.terms) : onPaths(graph, steps, conditions);
  let count = 0;
  for (let i = 0; i < mask.length; i++) count += mask[i]!;
  const rows = new Int32Array(count);
  for (let i = 0, row = 0; row < count; i++) if (mask[i]) rows[row++] = i;
  return rows;
}
