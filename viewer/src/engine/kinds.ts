// The operation behind each operator's name, one word in every framework.

import type { Capture } from '../wire/capture.ts';
import { FACTS } from '../wire/facts.ts';

/** By the string that names the operator; empty where the capture does not say. */
export async function kindsOf(capture: Capture, stage: number): Promise<(op: number) => string> {
  const table = await capture.fact(FACTS.kinds.name, stage);
  if (!table) return () => '';
  const kind = table.texts(FACTS.kinds.columns.kind);
  const rows = new Map(Array.from(table.int32('index'), (op, row) => [op, row]));
  return (op) => (rows.has(op) ? kind.at(rows.get(op)!) : '');
}
