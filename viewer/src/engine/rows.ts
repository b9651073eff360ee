// The table of operators: rows, sorting, CSV.

import { scopePath } from '../wire/scopes.ts';
import { PHASES } from '../scene.ts';
import { row } from '../wire/csr.ts';
import type { TableRow } from './messages.ts';
import type { View } from './view.ts';

export function cells(view: View, node: number): (string | number | null)[] {
  const { graph, capture, types, outputs, metrics } = view;
  const out = row(outputs, node)[0];
  return [
    node,
    capture.pools.strings.at(graph.op[node]!),
    PHASES[graph.phase[node]!]!,
    scopePath(capture.pools, graph.scope[node]!),
    out === undefined ? '' : capture.pools.strings.at(graph.valueName[out]!),
    out === undefined ? '' : types.text(graph.type[out]!),
    ...metrics.columns.map(
      (name) => metrics.text(name, node, view.tree) ?? (metrics.isElsewhere(name, node) ? '' : metrics.value(name, node)),
    ),
    ...(metrics.costs ? [metrics.how(node)] : []),
  ];
}

export function table(
  view: View,
  sort: number,
  down: boolean,
  filter: number[] | null,
  first: number,
  count: number,
): { total: number; named: boolean; rows: TableRow[] } {
  const { graph, metrics } = view;
  let order = filter ? filter.slice() : Array.from({ length: graph.nodes }, (_, i) => i);
  if (sort > 0) {
    const metric = metrics.columns[sort - 6];
    const key: (node: number) => string | number | null = metric
      ? (node) => metrics.text(metric, node, view.tree) ?? metrics.value(metric, node)
      : (node) => cells(view, node)[sort] ?? '';
    const keys = new Map(order.map((node) => [node, key(node)]));
    // What is not known comes last, whichever way.
    const known = order.filter((node) => keys.get(node) !== null);
    const unknown = order.filter((node) => keys.get(node) === null);
    known.sort((a, b) => compare(keys.get(a)!, keys.get(b)!) || a - b);
    if (down) known.reverse();
    order = [...known, ...unknown];
  } else if (down) order.reverse();
  const named = graph.valueName.some((name, value) => name > 0 && graph.producer[value]! >= 0);
  return { total: order.length, named, rows: order.slice(first, first + count).map((item) => ({ item, cells: cells(view, item) })) };
}

export function csv(view: View, filter: number[] | null): string {
  const { graph, metrics } = view;
  const order = filter ?? Array.from({ length: graph.nodes }, (_, i) => i);
  const quoted = (cell: string | number | null) => {
    const text = cell === null ? '?' : String(cell);
    return /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  const head = ['node', 'op', 'phase', 'module', 'name', 'type', ...metrics.columns, ...(metrics.costs ? ['how'] : [])];
  return [head, ...order.map((node) => cells(view, node))].map((cells) => cells.map(quoted).join(',')).join('\n');
}

function compare(a: string | number, b: string | number): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a).localeCompare(String(b), 'en', { numeric: true });
}
