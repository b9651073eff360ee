// Tracks as lanes in which nothing overlaps: the phases and modules that operators belong to, and below them what ran.

import type { Pools } from '../../wire/capture.ts';
import type { Belonging } from './belonging.ts';
import { KIND, ROW, type Events } from './events.ts';

const MOST_LEVELS = 8; // of modules
const MOST_LANES = 64; // of one track

export type LaneKind = 'phase' | 'module' | 'event';

/** Spans in order; `ref`: of events their row, of modules their scope. */
export interface Lane {
  track: number;
  kind: LaneKind;
  depth: number;
  start: Float64Array;
  end: Float64Array;
  ref: Int32Array;
  phase: Int8Array;
  /** How long its first spans are together. */
  busy: Float64Array;
}

/** The lanes of all tracks, those of devices first; `python`: with the functions of the program. */
export function lanesOf(events: Events, { scope, phase }: Belonging, pools: Pools, python: boolean): Lane[] {
  const first = (track: number) => events.start[events.from[track]!] ?? Infinity;
  const order = events.tracks
    .map((_, track) => track)
    .filter((track) => events.from[track + 1]! > events.from[track]!)
    .sort((a, b) => {
      const [one, other] = [events.tracks[a]!, events.tracks[b]!];
      return Number(other.isStream) - Number(one.isStream) || one.device - other.device || first(a) - first(b);
    });
  return order.flatMap((track) => {
    const lanes = eventLanes(events, phase, track, python);
    return lanes.length ? [...derived(events, scope, phase, pools, track), ...lanes] : [];
  });
}

function eventLanes(events: Events, phase: Int8Array, track: number, python: boolean): Lane[] {
  const [from, to] = [events.from[track]!, events.from[track + 1]!];
  const depth = new Uint8Array(to - from).fill(255);
  const counts: number[] = [];
  const ends: number[] = [];
  for (let i = from; i < to; i++) {
    if (!python && events.kind[i] === KIND.python) continue;
    while (ends.length && ends.at(-1)! <= events.start[i]!) ends.pop();
    if (ends.length >= MOST_LANES) continue;
    depth[i - from] = ends.length;
    counts[ends.length] = (counts[ends.length] ?? 0) + 1;
    ends.push(events.end[i]!);
  }
  const lanes = counts.map((count, d) => newLane(track, 'event', d, count));
  const next = counts.map(() => 0);
  for (let i = from; i < to; i++) {
    const lane = lanes[depth[i - from]!];
    if (lane) put(lane, next[lane.depth]!++, events.start[i]!, events.end[i]!, i, phase[i]!);
  }
  return lanes.map(summed);
}

function newLane(track: number, kind: LaneKind, depth: number, count: number): Lane {
  const [start, end] = [new Float64Array(count), new Float64Array(count)];
  return { track, kind, depth, start, end, ref: new Int32Array(count), phase: new Int8Array(count), busy: new Float64Array(count + 1) };
}

function put(lane: Lane, at: number, start: number, end: number, ref: number, phase: number): void {
  lane.start[at] = start;
  lane.end[at] = end;
  lane.ref[at] = ref;
  lane.phase[at] = phase;
}

function summed(lane: Lane): Lane {
  for (let i = 0; i < lane.start.length; i++) lane.busy[i + 1] = lane.busy[i]! + (lane.end[i]! - lane.start[i]!);
  return lane;
}

interface Open {
  ref: number;
  phase: number;
  start: number;
  end: number;
}

/** From the first to the last operator that ran in a phase, and in a module without any other between. */
function derived(events: Events, scope: Int32Array, phase: Int8Array, pools: Pools, track: number): Lane[] {
  const isStream = events.tracks[track]!.isStream;
  const done: Open[][] = [];
  const open: (Open | undefined)[] = [];
  const close = (level: number) => {
    for (let l = level; l < open.length; l++) if (open[l]) (done[l] ??= []).push(open[l]!);
    open.length = Math.min(open.length, level);
  };
  const paths = new Map<number, number[]>();
  const pathOf = (at: number) => {
    let path = paths.get(at);
    if (!path) {
      path = [];
      for (let s = at; s > 0; s = pools.scopes.parent[s]!) path.push(s);
      path = path.reverse().slice(0, MOST_LEVELS);
      paths.set(at, path);
    }
    return path;
  };
  for (let i = events.from[track]!; i < events.from[track + 1]!; i++) {
    if (events.by[i] === ROW || phase[i]! < 0 || (!isStream && events.kind[i] !== KIND.operator)) continue;
    const refs = [phase[i]!, ...pathOf(scope[i]!)]; // the phase is the outermost level
    let level = 0;
    while (level < refs.length && open[level]?.ref === refs[level] && open[level]!.phase === phase[i]) level++;
    close(level);
    for (let l = 0; l < level; l++) open[l]!.end = Math.max(open[l]!.end, events.end[i]!);
    for (let l = level; l < refs.length; l++) open[l] = { ref: refs[l]!, phase: phase[i]!, start: events.start[i]!, end: events.end[i]! };
  }
  close(0);
  return done.map((spans, level) => {
    const lane = newLane(track, level ? 'module' : 'phase', level, spans.length);
    spans.forEach((span, i) => put(lane, i, span.start, Math.min(span.end, spans[i + 1]?.start ?? Infinity), span.ref, span.phase));
    return summed(lane);
  });
}

/** When a track did anything by itself: regions and functions of Python are only around that. */
export function busyLane(events: Events, track: number): Lane {
  const spans: [number, number][] = [];
  for (let i = events.from[track]!; i < events.from[track + 1]!; i++) {
    const kind = events.kind[i]!;
    if (kind === KIND.region || kind === KIND.step || kind === KIND.python) continue;
    const last = spans.at(-1);
    if (last && events.start[i]! <= last[1]) last[1] = Math.max(last[1], events.end[i]!);
    else spans.push([events.start[i]!, events.end[i]!]);
  }
  const lane = newLane(track, 'event', 0, spans.length);
  spans.forEach(([start, end], i) => put(lane, i, start, end, i, -1));
  return summed(lane);
}

/** The first span of a lane that ends after a time. */
export function firstAfter(lane: Lane, time: number, from = 0): number {
  let [low, high] = [from, lane.end.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.end[middle]! > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** How long something ran in a lane until then. */
export function busyUntil(lane: Lane, time: number): number {
  const at = firstAfter(lane, time);
  return lane.busy[at]! + (at < lane.start.length ? Math.max(0, time - lane.start[at]!) : 0);
}
