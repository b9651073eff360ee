// The timeline of a measured profile: questions about it, and what is selected and found on it.

import type { Capture, Graph } from '../../wire/capture.ts';
import { EVENT_KINDS, SPELLINGS } from '../../wire/facts.ts';
import { PHASES } from '../../scene.ts';
import { scopeLabel, scopePath } from '../../wire/scopes.ts';
import { inside } from '../answers.ts';
import type { View } from '../view.ts';
import { belonging, groupsOf, groupsWith, nodesOf, type Belonging } from './belonging.ts';
import { graphsOf, KIND, NODE, readEvents, ROW, SCOPE, type Events } from './events.ts';
import { busyLane, firstAfter, lanesOf, type Lane, type LaneKind } from './lanes.ts';
import { placeOf, shortName } from './titles.ts';
import { coverage, windowOf, type Lit, type Window } from './window.ts';

const MOST_NODES = 2000; // that a click selects

/** Colours: the phases, then these. */
export const TONES = ['none', 'python', 'launch', 'region', 'copy'] as const;
export type Tone = (typeof TONES)[number];
const TONE = Object.fromEntries(TONES.map((tone, i) => [tone, PHASES.length + i])) as Record<Tone, number>;

export interface TrackInfo {
  name: string;
  isStream: boolean;
  device: number;
  leftOut: number;
  /** Seconds in which something ran. */
  busy: number;
}

export interface TimelineInfo {
  span: number; // seconds
  events: number;
  python: number; // functions of Python
  tracks: TrackInfo[];
  /** As they stand, from the top. */
  lanes: { track: number; kind: LaneKind; depth: number; spans: number }[];
  steps: { name: string; start: number; end: number }[];
}

/** What is selected, on the timeline. */
export interface Marked {
  spans: number;
  found: number;
  from: number;
  to: number;
  gpu: number; // seconds, of kernels
  kernels: number;
}

/** A span as people read it. */
export interface SpanFacts {
  lane: number;
  span: number;
  title: string;
  name: string;
  kind: string;
  start: number;
  end: number;
  module: string;
  phase: string;
  line: string;
  delay: number | null;
  /** Where the call that started it is. */
  launch: { lane: number; start: number; end: number } | null;
  /** Operators to select, in the graph of a stage. */
  stage: number;
  nodes: number[];
  /** A module, as `items` names it. */
  path: string;
}

class Timeline {
  private layouts = new Map<boolean, Lane[]>();
  private lit = new Map<Lane, Lit>();
  private marks: { selected: Uint8Array; found: Uint8Array; scopes: Uint8Array; phases: number } | null = null;

  /** By track, when it was busy. */
  readonly busy: Lane[];

  private constructor(
    readonly capture: Capture,
    readonly events: Events,
    readonly graphs: ReadonlyMap<number, Graph>,
    readonly of: Belonging,
  ) {
    this.busy = events.tracks.map((_, track) => busyLane(events, track));
  }

  static async read(capture: Capture): Promise<Timeline | null> {
    const events = await readEvents(capture);
    if (!events?.count) return null;
    const graphs = await graphsOf(capture, events);
    return new Timeline(capture, events, graphs, belonging(events, graphs, capture.pools));
  }

  lanes(python: boolean): Lane[] {
    let lanes = this.layouts.get(python);
    if (!lanes) this.layouts.set(python, (lanes = lanesOf(this.events, this.of, this.capture.pools, python)));
    return lanes;
  }

  // -- what is lit ------------------------------------------------------------------------------------

  /** Light what belongs to operators and modules of the stage in view. */
  mark(view: View, items: number[], found: number[]): Marked {
    this.lit.clear();
    this.marks = null;
    const out: Marked = { spans: 0, found: 0, from: Infinity, to: -Infinity, gpu: 0, kernels: 0 };
    if (!items.length && !found.length) return out;
    const { tree } = view;
    const [chosen, hits] = [new Uint8Array(view.graph.nodes), new Uint8Array(view.graph.nodes)];
    const scopes = new Uint8Array(this.capture.pools.scopes.parent.length);
    let phases = 0;
    for (const item of items) {
      for (const node of inside(view, item)) chosen[node] = 1;
      const group = item - tree.nodes;
      if (group < 0 || group >= tree.groups || tree.isPhase[group]) continue;
      scopes[tree.scope[group]!] = 1;
      phases |= tree.phase[group]! >= 0 ? 1 << tree.phase[group]! : 0xff;
    }
    scopes[0] = 0;
    for (let s = 1; s < scopes.length; s++) if (scopes[this.capture.pools.scopes.parent[s]!]) scopes[s] = 1;
    for (const node of found) hits[node] = 1;
    this.marks = {
      selected: this.marked(view, chosen, scopes, phases),
      found: this.marked(view, hits, new Uint8Array(0), 0),
      scopes,
      phases,
    };
    const { events } = this;
    for (let i = 0; i < events.count; i++) {
      if (this.marks.found[i]) out.found++;
      if (!this.marks.selected[i]) continue;
      out.spans++;
      out.from = Math.min(out.from, events.start[i]!);
      out.to = Math.max(out.to, events.end[i]!);
      if (events.kind[i] !== KIND.kernel) continue;
      out.kernels++;
      out.gpu += events.end[i]! - events.start[i]!;
    }
    return out;
  }

  private marked(view: View, nodes: Uint8Array, scopes: Uint8Array, phases: number): Uint8Array {
    const { events } = this;
    const out = new Uint8Array(events.count);
    const isHere = new Map<number, boolean>();
    const groups = new Map<number, Uint8Array>();
    for (let i = 0; i < events.count; i++) {
      const [by, stage, index] = [events.by[i]!, events.stage[i]!, events.index[i]!];
      if (by === ROW) continue;
      if (by === SCOPE) {
        out[i] = scopes[index] && (this.of.phase[i]! < 0 || phases & (1 << this.of.phase[i]!)) ? 1 : 0;
        continue;
      }
      let here = isHere.get(stage * 8 + by);
      if (here === undefined) isHere.set(stage * 8 + by, (here = this.isSame(view, stage, by)));
      if (!here) continue;
      if (by === NODE) out[i] = nodes[index] ?? 0;
      else {
        let of = groups.get(by);
        if (!of) groups.set(by, (of = groupsWith(view.graph as Graph, by, nodes)));
        out[i] = of[index] ?? 0;
      }
    }
    return out;
  }

  /** Whether numbers of a stage are those of the stage in view: the same graph, or of kernels the same launches. */
  private isSame(view: View, stage: number, by: number): boolean {
    const stages = this.capture.manifest.stages;
    if (stage === view.stage || stages[stage]?.graph === stages[view.stage]?.graph) return true;
    if (by === NODE) return false;
    const [theirs, own] = [this.graphs.get(stage), view.graph as Graph].map((graph) => graph && groupsOf(graph, by)?.name);
    return !!theirs && !!own && theirs.length === own.length && theirs.every((name, i) => name === own[i]);
  }

  litOf(lane: Lane): Lit | null {
    const { marks } = this;
    if (!marks) return null;
    let lit = this.lit.get(lane);
    if (lit) return lit;
    const count = lane.ref.length;
    lit = { selected: new Int32Array(count + 1), found: new Int32Array(count + 1) };
    for (let i = 0; i < count; i++) {
      const isEvent = lane.kind === 'event';
      const inModule = lane.kind === 'module' && marks.scopes[lane.ref[i]!] && marks.phases & (1 << lane.phase[i]!) ? 1 : 0;
      lit.selected[i + 1] = lit.selected[i]! + (isEvent ? marks.selected[lane.ref[i]!]! : inModule);
      lit.found[i + 1] = lit.found[i]! + (isEvent ? marks.found[lane.ref[i]!]! : 0);
    }
    this.lit.set(lane, lit);
    return lit;
  }

  // -- what it looks like -----------------------------------------------------------------------------

  tone(lane: Lane, span: number): number {
    if (lane.kind !== 'event') return lane.phase[span]!;
    const event = lane.ref[span]!;
    switch (this.events.kind[event]) {
      case KIND.python:
        return TONE.python;
      case KIND.launch:
        return TONE.launch;
      case KIND.region:
      case KIND.step:
        return TONE.region;
      case KIND.copy:
      case KIND.set:
        return TONE.copy;
      default:
        return lane.phase[span]! >= 0 ? lane.phase[span]! : TONE.none;
    }
  }

  title(lane: Lane, span: number): string {
    if (lane.kind === 'phase') return '';
    if (lane.kind === 'module') return scopeLabel(this.capture.pools, lane.ref[span]!);
    return shortName(this.events.names.at(this.events.name[lane.ref[span]!]!));
  }

  /** The call that started a piece of work. */
  private launchOf(event: number, lanes: Lane[]): SpanFacts['launch'] {
    const { events } = this;
    const [track, delay] = [events.launchedOn[event]!, events.delay[event]!];
    if (track < 0 || Number.isNaN(delay)) return null;
    const time = events.start[event]! - delay;
    for (let l = lanes.length - 1; l >= 0; l--) {
      const lane = lanes[l]!;
      if (lane.track !== track || lane.kind !== 'event') continue;
      const at = firstAfter(lane, time - 1e-9);
      if (at >= lane.start.length || Math.abs(lane.start[at]! - time) > 1e-9) continue;
      if (events.kind[lane.ref[at]!] === KIND.launch || events.kind[lane.ref[at]!] === KIND.operator)
        return { lane: l, start: lane.start[at]!, end: lane.end[at]! };
    }
    return null;
  }

  facts(view: View, python: boolean, laneAt: number, span: number): SpanFacts | null {
    const lanes = this.lanes(python);
    const lane = lanes[laneAt];
    if (!lane || span < 0 || span >= lane.ref.length) return null;
    const { pools } = this.capture;
    const { events } = this;
    const [start, end, ref] = [lane.start[span]!, lane.end[span]!, lane.ref[span]!];
    const phase = lane.phase[span]! >= 0 ? PHASES[lane.phase[span]!]! : '';
    const base = { lane: laneAt, span, start, end, phase, line: '', delay: null, launch: null, stage: view.stage, nodes: [], path: '' };
    if (lane.kind === 'phase') return { ...base, title: phase, name: phase, kind: 'phase', module: '', path: `${phase}:` };
    if (lane.kind === 'module') {
      const path = scopePath(pools, ref);
      const cls = pools.scopes.cls.at(ref);
      return { ...base, title: scopeLabel(pools, ref), name: cls, kind: 'module', module: path, path: `${phase}:${path}` };
    }
    const name = events.names.at(events.name[ref]!);
    const scope = this.of.scope[ref]!;
    const isScope = events.by[ref] === SCOPE;
    const delay = events.delay[ref]!;
    const nodes =
      events.by[ref] === ROW || isScope ? this.within(ref) : { stage: events.stage[ref]!, nodes: nodesOf(events, this.graphs, ref) };
    return {
      ...base,
      title: shortName(name),
      name,
      kind: EVENT_KINDS[events.kind[ref]!] ?? 'call',
      module: scope > 0 ? scopePath(pools, scope) : '',
      line: this.lineOf(nodes.stage, nodes.nodes, name),
      delay: Number.isNaN(delay) ? null : delay,
      launch: this.launchOf(ref, lanes),
      ...nodes,
      nodes: nodes.nodes.slice(0, MOST_NODES),
      path: isScope && scope > 0 ? scopePath(pools, scope) : '',
    };
  }

  /** Of what is nothing of the graph: the operators that ran meanwhile, on the same track. */
  private within(event: number): { stage: number; nodes: number[] } {
    const { events } = this;
    const track = events.track[event]!;
    const nodes = new Set<number>();
    let stage = -1;
    for (let i = event + 1; i < events.from[track + 1]! && events.start[i]! < events.end[event]!; i++) {
      if (events.kind[i] !== KIND.operator || events.by[i] === ROW || events.end[i]! > events.end[event]!) continue;
      if (stage < 0) stage = events.stage[i]!;
      if (events.stage[i] === stage) for (const node of nodesOf(events, this.graphs, i)) nodes.add(node);
      if (nodes.size >= MOST_NODES) break;
    }
    return { stage: Math.max(stage, 0), nodes: [...nodes] };
  }

  private lineOf(stage: number, nodes: number[], name: string): string {
    const place = placeOf(name);
    if (place) return `${place[0]}:${place[1]}`;
    const graph = this.graphs.get(stage);
    const stack = graph && nodes.length ? graph.stack[nodes[0]!]! : 0;
    if (!stack) return '';
    const { frames, stacks } = this.capture.pools;
    const text = (at: number) => `${frames.file.at(stacks.frame[at]!)}:${frames.line[stacks.frame[at]!]}`;
    // The innermost of the user's own.
    for (let at = stack; at > 0; at = stacks.parent[at]!)
      if (!SPELLINGS.FRAMEWORK_FILE.test(frames.file.at(stacks.frame[at]!))) return text(at);
    return text(stack);
  }
}

const read = new WeakMap<Capture, Promise<Timeline | null>>();

function timelineOf({ capture }: View): Promise<Timeline | null> {
  let found = read.get(capture);
  if (!found) read.set(capture, (found = Timeline.read(capture)));
  return found;
}

export async function timelineInfo(view: View, python: boolean): Promise<TimelineInfo | null> {
  const found = await timelineOf(view);
  if (!found) return null;
  const { events } = found;
  const lanes = found.lanes(python);
  let functions = 0;
  const steps: TimelineInfo['steps'] = [];
  for (let i = 0; i < events.count; i++) {
    if (events.kind[i] === KIND.python) functions++;
    if (events.kind[i] === KIND.step) steps.push({ name: events.names.at(events.name[i]!), start: events.start[i]!, end: events.end[i]! });
  }
  return {
    span: events.span,
    events: events.count,
    python: functions,
    tracks: events.tracks.map((track, t) => ({ ...track, busy: found.busy[t]!.busy.at(-1)! })),
    lanes: lanes.map(({ track, kind, depth, ref }) => ({ track, kind, depth, spans: ref.length })),
    steps,
  };
}

export async function timelineWindow(
  view: View,
  python: boolean,
  times: [number, number],
  pixels: number,
  lanes: [number, number],
): Promise<Window | null> {
  const found = await timelineOf(view);
  if (!found) return null;
  const titled = {
    tone: (lane: Lane, span: number) => found.tone(lane, span),
    title: (lane: Lane, span: number) => found.title(lane, span),
    lit: (lane: Lane) => found.litOf(lane),
  };
  return windowOf(found.lanes(python), titled, times, pixels, lanes);
}

/** How busy streams and threads are along the whole run. */
export async function timelineOverview(view: View, pixels: number): Promise<{ streams: Float32Array; threads: Float32Array } | null> {
  const found = await timelineOf(view);
  if (!found) return null;
  const out = { streams: new Float32Array(pixels), threads: new Float32Array(pixels) };
  for (const lane of found.busy) {
    const into = found.events.tracks[lane.track]!.isStream ? out.streams : out.threads;
    coverage(lane, 0, found.events.span, pixels).forEach((share, p) => (into[p] = Math.max(into[p]!, share)));
  }
  return out;
}

export async function timelineMark(view: View, items: number[], found: number[]): Promise<Marked | null> {
  return (await timelineOf(view))?.mark(view, items, found) ?? null;
}

export async function timelineSpan(view: View, python: boolean, lane: number, span: number): Promise<SpanFacts | null> {
  return (await timelineOf(view))?.facts(view, python, lane, span) ?? null;
}

/** The span of a lane that is at a time, or the nearest one. */
export async function timelineAt(view: View, python: boolean, lane: number, time: number): Promise<SpanFacts | null> {
  const found = await timelineOf(view);
  const spans = found?.lanes(python)[lane];
  if (!found || !spans?.start.length) return null;
  let at = Math.min(firstAfter(spans, time), spans.start.length - 1);
  const before = at - 1;
  if (before >= 0 && spans.start[at]! > time && time - spans.end[before]! < spans.start[at]! - time) at = before;
  return found.facts(view, python, lane, at);
}
