// What was measured of a run, piece by piece: the kernels of the same operators together, beside what these cost. And where
// time could be won, which Python computes (analysis/savings.py).

import type { Capture } from '../wire/capture.ts';
import { FACTS, SAVING_KINDS, TIME_UNITS, type SavingKind } from '../wire/facts.ts';
import { row } from '../wire/csr.ts';
import { scopePath } from '../wire/scopes.ts';
import { inside } from './answers.ts';
import { peakOf, standing, type Device } from './roofs.ts';
import { around } from './timeline/belonging.ts';
import type { View } from './view.ts';

/** NaN where it is not known. */
export interface Pieces {
  count: number;
  seconds: Float64Array;
  macs: Float64Array;
  causal: Float64Array;
  other: Float64Array;
  bytes: Float64Array;
  kernels: Float64Array;
  nodes: number[][];
}

const { work: WORK, savings: SAVINGS, utilization: USED, devices: DEVICES } = FACTS;

/** Null where nothing was measured, or its costs are not here. */
export async function piecesOf({ capture, stage }: Pick<View, 'capture' | 'stage'>): Promise<Pieces | null> {
  const place = capture.facts(WORK.name, stage)[0];
  if (place === undefined) return null;
  const table = await capture.stored(place);
  const { columns } = WORK;
  const unit = TIME_UNITS[capture.manifest.tables[place]!.units['time'] ?? 's'] ?? 1;
  return {
    count: table.rows,
    seconds: table.numbers(columns.time).map((time) => time * unit),
    macs: table.numbers(columns.macs),
    causal: table.numbers(columns.causal),
    other: table.numbers(columns.other),
    bytes: table.numbers(columns.bytes),
    kernels: table.numbers(columns.kernels),
    nodes: table.lists(columns.nodes),
  };
}

/** Of work whose cost is known: how long it took, and the least time of its products, of its bytes, and of both. */
export interface Reached {
  seconds: number;
  products: number;
  memory: number;
  bound: number;
  unknown: number; // seconds of work whose cost is not known
}

/** The same rule as analysis/costs/achieved.py. */
export function reachedBy(pieces: Pieces, piece: number, dtype: string, device: Device, sum: Reached): void {
  const seconds = pieces.seconds[piece]!;
  const [macs, causal, other, bytes] = [pieces.macs[piece]!, pieces.causal[piece]!, pieces.other[piece]!, pieces.bytes[piece]!];
  if (Number.isNaN(macs + causal + other + bytes)) {
    sum.unknown += seconds;
    return;
  }
  sum.seconds += seconds;
  sum.products += (2 * macs) / peakOf(device, dtype);
  sum.memory += bytes / device.bandwidth;
  sum.bound += standing({ macs: causal, other, bytes, dtype }, device).seconds;
}

export const nothingReached = (): Reached => ({ seconds: 0, products: 0, memory: 0, bound: 0, unknown: 0 });

/** What items made of a device: work that is wholly theirs. Without items, all of it. */
export async function reached(view: View, items: number[], device: Device): Promise<Reached | null> {
  const pieces = await piecesOf(view);
  if (!pieces) return null;
  const chosen = new Uint8Array(view.graph.nodes);
  for (const item of items) for (const node of inside(view, item)) chosen[node] = 1;
  const sum = nothingReached();
  for (let i = 0; i < pieces.count; i++)
    if (!items.length || pieces.nodes[i]!.every((node) => chosen[node]))
      reachedBy(pieces, i, dtypeOf(view, pieces.nodes[i]![0]!), device, sum);
  return sum;
}

export function dtypeOf({ outputs, graph, capture }: View, node: number): string {
  const value = row(outputs, node)[0];
  return value === undefined ? 'float32' : capture.pools.types.dtype.at(graph.type[value]!);
}

/** The devices of a profile, as the profiler calls them. */
export async function deviceNames({ capture }: View): Promise<string[]> {
  const names = new Set<string>();
  for (const [i, { fact }] of capture.manifest.tables.entries()) {
    if (fact !== DEVICES.name) continue;
    const texts = (await capture.stored(i)).texts(DEVICES.columns.name);
    for (let at = 0; at < texts.length; at++) names.add(texts.at(at));
  }
  return [...names];
}

export interface Saving {
  stage: number;
  kind: SavingKind;
  name: string;
  seconds: number;
  most: number | null;
  count: number;
  nodes: number[];
  module: string;
  why: string;
}

export interface Won {
  rows: Saving[];
  /** Figures of the step by name; shares, or seconds. */
  used: Record<string, number>;
  device: string;
  atLeast: boolean;
}

/** Where time could be won in all stages; most first. */
export async function savings({ capture }: View): Promise<Won> {
  const out: Won = { rows: [], used: {}, device: '', atLeast: false };
  for (const [i, { fact, stage, units }] of capture.manifest.tables.entries()) {
    if (fact === SAVINGS.name) out.rows.push(...(await savingsAt(capture, i, stage, units)));
    if (fact !== USED.name) continue;
    const table = await capture.stored(i);
    const { columns } = USED;
    const [names, shares, times] = [table.texts(columns.name), table.numbers(columns.share), table.numbers(columns.time)];
    for (let at = 0; at < names.length; at++) out.used[names.at(at)] = Number.isNaN(shares[at]!) ? times[at]! : shares[at]!;
    out.device = names.length ? table.texts(columns.device).at(0) : '';
    out.atLeast = names.length > 0 && Boolean(table.numbers(columns['at least'])[0]);
  }
  out.rows.sort((a, b) => (b.most ?? 0) - (a.most ?? 0) || b.seconds - a.seconds);
  return out;
}

async function savingsAt(capture: Capture, place: number, stage: number, units: Record<string, string>): Promise<Saving[]> {
  const table = await capture.stored(place);
  const graph = await capture.graph(capture.manifest.stages[stage]!.graph);
  const { columns } = SAVINGS;
  const unit = (name: string) => TIME_UNITS[units[name] ?? 's'] ?? 1;
  const [kinds, names, whys] = [table.numbers(columns.kind), table.texts(columns.name), table.texts(columns.why)];
  const [times, most, counts] = [table.numbers(columns.time), table.numbers(columns.most), table.numbers(columns.count)];
  return table.lists(columns.nodes).map((nodes, at) => {
    const { parent } = capture.pools.scopes;
    const module = nodes.reduce((common, node) => (common < 0 ? graph.scope[node]! : around(parent, common, graph.scope[node]!)), -1);
    return {
      stage,
      kind: SAVING_KINDS[kinds[at]!] ?? 'idle',
      name: names.at(at),
      seconds: times[at]! * unit('time'),
      most: Number.isNaN(most[at]!) ? null : most[at]! * unit('most'),
      count: counts[at]!,
      nodes,
      module: module > 0 ? scopePath(capture.pools, module) : '',
      why: whys.at(at),
    };
  });
}
