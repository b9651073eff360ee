// What ran when in a measured profile: every event as a row of typed arrays, in the order of its beginning on each track.

import type { Capture, Graph } from '../../wire/capture.ts';
import { FACTS, TIME_UNITS, type EventKind, EVENT_KINDS } from '../../wire/facts.ts';
import { Texts, type Table } from '../../wire/table.ts';

/** What an event belongs to; the same order as `opscope.ir.events.BY`. */
export const [ROW, NODE, SCOPE, GROUP_KERNEL, GROUP_COPY] = [0, 1, 2, 3, 4] as const;
const BY: Record<string, number> = { row: ROW, node: NODE, scope: SCOPE, 'group:kernel': GROUP_KERNEL, 'group:copy': GROUP_COPY };

export const KIND = Object.fromEntries(EVENT_KINDS.map((kind, i) => [kind, i])) as Record<EventKind, number>;

export interface Track {
  name: string;
  isStream: boolean;
  device: number;
  leftOut: number;
}

/** Times are in seconds, from the beginning of the profile. */
export interface Events {
  count: number;
  start: Float64Array;
  end: Float64Array;
  track: Int32Array;
  name: Int32Array;
  kind: Uint8Array;
  delay: Float64Array; // NaN: not known
  launchedOn: Int32Array; // -1: not known
  stage: Int32Array;
  by: Uint8Array;
  index: Int32Array;
  /** By track, where its events begin; one more at the end. */
  from: Int32Array;
  tracks: Track[];
  names: Texts;
  span: number;
}

type Columns = Pick<Events, 'start' | 'end' | 'track' | 'name' | 'kind' | 'delay' | 'launchedOn' | 'stage' | 'by' | 'index'>;

const { events: EVENTS, tracks: TRACKS, event_names: NAMES } = FACTS;

export function hasEvents(capture: Capture): boolean {
  return capture.manifest.tables.some(({ fact }) => fact === EVENTS.name);
}

/** All events of a capture, whatever stage they belong to; null where it has none. */
export async function readEvents(capture: Capture): Promise<Events | null> {
  const all = capture.manifest.tables;
  const places = (fact: string) => all.flatMap((table, i) => (table.fact === fact ? [i] : []));
  const [tracks, names] = [places(TRACKS.name)[0], places(NAMES.name)[0]];
  if (tracks === undefined || names === undefined || !hasEvents(capture)) return null;
  const parts = await Promise.all(
    places(EVENTS.name).map(async (i) => {
      const { stage, by, units } = all[i]!;
      return columnsOf(await capture.stored(i), stage, BY[by] ?? ROW, units);
    }),
  );
  return ordered(joined(parts), readTracks(await capture.stored(tracks)), (await capture.stored(names)).texts(NAMES.columns.name));
}

function readTracks(table: Table): Track[] {
  const { columns } = TRACKS;
  const [names, kinds, devices] = [table.texts(columns.name), table.numbers(columns.kind), table.numbers(columns.device)];
  const lost = table.numbers(columns['left out']);
  return Array.from(kinds, (kind, i) => ({ name: names.at(i), isStream: kind === 1, device: devices[i]!, leftOut: lost[i]! }));
}

function columnsOf(table: Table, stage: number, by: number, units: Record<string, string>): Columns {
  const { columns } = EVENTS;
  const count = table.rows;
  const seconds = (name: 'start' | 'time' | 'delay') => {
    const values = table.numbers(columns[name]);
    const unit = TIME_UNITS[units[name] ?? 'us'] ?? 1e-6;
    const out = new Float64Array(values.length); // the table's own must not change
    for (let i = 0; i < values.length; i++) out[i] = values[i]! * unit;
    return out;
  };
  const [start, end] = [seconds('start'), seconds('time')];
  for (let i = 0; i < count; i++) end[i] = start[i]! + (end[i]! > 0 ? end[i]! : 0);
  const has = (name: 'delay' | 'launched on') => table.has(columns[name]);
  const launched = has('launched on') ? table.numbers(columns['launched on']) : null;
  return {
    start,
    end,
    track: table.int32(columns.track),
    name: table.int32(columns.name),
    kind: Uint8Array.from(table.int8(columns.kind)),
    delay: has('delay') ? seconds('delay') : new Float64Array(count).fill(NaN),
    launchedOn: launched ? Int32Array.from(launched, (track) => (Number.isNaN(track) ? -1 : track)) : new Int32Array(count).fill(-1),
    stage: new Int32Array(count).fill(stage),
    by: new Uint8Array(count).fill(by),
    index: table.int32('index'),
  };
}

function joined(parts: Columns[]): Columns {
  if (parts.length === 1) return parts[0]!;
  const count = parts.reduce((sum, part) => sum + part.start.length, 0);
  const out: Columns = {
    start: new Float64Array(count),
    end: new Float64Array(count),
    track: new Int32Array(count),
    name: new Int32Array(count),
    kind: new Uint8Array(count),
    delay: new Float64Array(count),
    launchedOn: new Int32Array(count),
    stage: new Int32Array(count),
    by: new Uint8Array(count),
    index: new Int32Array(count),
  };
  let at = 0;
  for (const part of parts) {
    for (const key of Object.keys(out) as (keyof Columns)[]) out[key].set(part[key], at);
    at += part.start.length;
  }
  return out;
}

/** By track, then by beginning, what is around others first. */
export function ordered(columns: Columns, tracks: Track[], names: Texts): Events {
  const count = columns.start.length;
  const order = byStart(columns.start, columns.end);
  const from = new Int32Array(tracks.length + 1);
  for (let i = 0; i < count; i++) {
    columns.track[i] = Math.max(0, Math.min(tracks.length - 1, columns.track[i]!));
    from[columns.track[i]! + 1]!++;
  }
  for (let t = 0; t < tracks.length; t++) from[t + 1]! += from[t]!;
  const next = from.slice();
  const places = new Int32Array(count);
  for (const row of order) places[next[columns.track[row]!]!++] = row;
  const taken = <A extends Float64Array | Int32Array | Uint8Array>(column: A): A => {
    const out = column.slice() as A;
    for (let i = 0; i < count; i++) out[i] = column[places[i]!]!;
    return out;
  };
  let span = 0;
  for (let i = 0; i < count; i++) span = Math.max(span, columns.end[i]!);
  return {
    count,
    start: taken(columns.start),
    end: taken(columns.end),
    track: taken(columns.track),
    name: taken(columns.name),
    kind: taken(columns.kind),
    delay: taken(columns.delay),
    launchedOn: taken(columns.launchedOn),
    stage: taken(columns.stage),
    by: taken(columns.by),
    index: taken(columns.index),
    from,
    tracks,
    names,
    span,
  };
}

const BITS = 21; // of the number of an event; a float holds 53 whole

/** Rows in the order of their beginning. Comparing a million pairs takes a second: numbers that hold the row are sorted instead. */
function byStart(start: Float64Array, end: Float64Array): Int32Array {
  const count = start.length;
  const order = new Int32Array(count);
  let most = 0;
  for (const time of start) most = Math.max(most, time);
  if (count >= 2 ** BITS) return order.map((_, i) => i).sort((a, b) => start[a]! - start[b]! || end[b]! - end[a]!);
  const fine = most > 0 ? (2 ** (53 - BITS) - 1) / most : 0;
  const keys = new Float64Array(count);
  for (let i = 0; i < count; i++) keys[i] = Math.floor(Math.max(0, start[i]!) * fine) * 2 ** BITS + i;
  keys.sort();
  for (let i = 0; i < count; i++) order[i] = keys[i]! % 2 ** BITS;
  // What begins at the same mark is not in order yet.
  for (let i = 1; i < count; i++) {
    const row = order[i]!;
    let j = i - 1;
    for (; j >= 0; j--) {
      const before = order[j]!;
      if (start[before]! < start[row]! || (start[before] === start[row] && end[before]! >= end[row]!)) break;
      order[j + 1] = before;
    }
    order[j + 1] = row;
  }
  return order;
}

/** The graphs of the stages that events belong to. */
export async function graphsOf(capture: Capture, events: Events): Promise<Map<number, Graph>> {
  const stages = new Set<number>();
  for (const stage of events.stage) stages.add(stage);
  const found = [...stages].filter((stage) => capture.manifest.stages[stage]);
  return new Map(
    await Promise.all(found.map(async (stage) => [stage, await capture.graph(capture.manifest.stages[stage]!.graph)] as const)),
  );
}
