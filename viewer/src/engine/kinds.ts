// The operation behind each operator's name, one word in every framework.

import type { Capture } from '../wire/capture.ts';
import type { Kinds } from '../find/conditions.ts';
import { FACTS } from '../wire/facts.ts';

/** By the string that names the operator, and by node where the name does not say it. */
export async function kindsOf(capture: Capture, stage: number): Promise<Kinds> {
  const [ofOp, byNode] = await Promise.all(['op', 'node'].map((by) => read(capture, stage, by)));
  return { ofOp: (op) => ofOp!.get(op) ?? '', byNode: byNode! };
}

async function read(capture: Capture, stage: number, by: string): Promise<Map<number, string>> {
  const table = await capture.fact(FACTS.kinds.name, stage, by);
  if (!table) return new Map();
  const kind = table.texts(FACTS.kinds.columns.kind);
  return new Map(Array.from(table.int32('index'), (at, row) => [at, kind.at(row)]));
}
