// Statistics of tensors that were measured while a model ran.

import { FACTS } from '../wire/facts.ts';
import { drawnItem } from './diffview.ts';
import type { View } from './view.ts';

/** What was measured of a tensor, as the columns of the fact `values` are called. */
export const STATISTICS = ['min', 'max', 'mean', 'std', 'nan', 'inf'] as const;

export interface ValueRow {
  item: number; // that makes it, or the value itself where it comes from outside
  name: string;
  op: string; // that makes it
  type: string;
  figures: (number | null)[]; // by place in STATISTICS; null: not known, NaN: that is what was measured
}

/** All tensors of the stage of which there are statistics, those with NaN or infinite numbers first. */
export async function values(view: View): Promise<ValueRow[]> {
  const { capture, graph, stage, tree, types } = view;
  const tables = await Promise.all(capture.facts(FACTS.values.name, stage).map((index) => capture.stored(index)));
  const table = tables.find((one) => STATISTICS.some((name) => one.has(FACTS.values.columns[name])));
  if (!table) return [];
  const { strings } = capture.pools;
  const columns = STATISTICS.map((name) => {
    const column = FACTS.values.columns[name];
    return table.has(column) ? table.figures(column) : null;
  });
  const rows = Array.from(table.int32('index'), (value, row): ValueRow => {
    const maker = graph.producer[value]!;
    return {
      item: maker < 0 ? tree.nodes + tree.groups + value : drawnItem(view, maker),
      name: strings.at(graph.valueName[value]!),
      op: maker < 0 ? '' : strings.at(graph.op[maker]!),
      type: types.text(graph.type[value]!),
      figures: columns.map((column) => column?.[row] ?? null),
    };
  });
  const bad = ({ figures }: ValueRow) => ((figures[4] ?? 0) > 0 || (figures[5] ?? 0) > 0 ? 0 : 1);
  return rows.sort((a, b) => bad(a) - bad(b));
}
