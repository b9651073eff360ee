// What the page and the engine (in its worker) say to each other. All heavy work is the engine's.

import type { Reached } from './work.ts';
import type { Ribbon } from '../picture/changes.ts';
import type { Scene } from '../scene.ts';
import type { LinkKind, MemoryClass } from '../wire/facts.ts';
import type { Content } from './content.ts';
import type { Cell } from './treemap.ts';
import type { SceneIndex } from '../picture/spatial.ts';
import type { Change, Fate } from './diff.ts';
import type { Kin } from './diffview.ts';
import type { OwnColumn, Placement } from './own.ts';
import type { Questions } from './questions.ts';

export interface KernelDetails {
  nodes: number[];
  runs: number;
  code: string;
  name: string;
  attrs: [string, string][];
}

/** What all of a stage costs, the phases that are hidden too. */
export interface Totals {
  macs: number;
  other: number;
  parameters: number; // NaN: not known
  peak: number; // bytes: the least that these operators need in this order
  atLeast: boolean; // an operator is unknown or missing, so MACs and other FLOPs may be more
  parametersAtLeast: boolean; // operators that read parameters are missing
  time: number; // seconds that were measured; NaN: none
}

export interface StageInfo {
  name: string;
  nodes: number;
  values: number;
  edges: number;
  after: number | null;
  phases: number[]; // operators by phase
  kernels: number;
  links: Partial<Record<LinkKind, number>>;
  warnings: string[];
  listings: string[]; // kinds of the framework's own texts, and those whose lines are joined to operators
  linked: string[];
  seconds: number | null; // that it took to make it
  seams: number; // of several graphs as one: the breaks between them
  /** What it changed, where that is known; numbers by place in CHANGES: of changes, and of operators in them. */
  changes: { before: number; counts: number[]; touched: number[]; same: number } | null;
}

export interface CaptureInfo {
  id: number;
  name: string;
  framework: string;
  version: string;
  how: string;
  warnings: string[];
  stages: StageInfo[];
  sources: string[];
  metrics: string[]; // numeric columns by which boxes can be coloured
  own: Pick<OwnColumn, 'name' | 'unit' | 'isText' | 'roll'>[]; // columns of the user's own and statistics, which are metrics too
  costs: boolean; // what operators cost is here
  facts: string[]; // kinds of facts (wire/facts.ts) that are here
  alone?: readonly string[]; // the modules that stand in it by themselves …
  of?: number; // … of this capture
}

export interface ViewOptions {
  direction: 'down' | 'right';
  split: boolean;
  hidden: number[]; // phases
  constants: boolean; // constants and parameters as boxes of their own
  saved?: boolean; // autograd's copies of saved tensors too
  views?: boolean; // operators that only see a tensor otherwise too
  plumbing?: boolean; // every operator on integers, booleans and constants by itself
  side: boolean; // phases beside each other instead of one after the other
  columns?: boolean; // all of them from the top down, not as a U
  overlay?: boolean; // with what is gone since the stage before
  aligned?: boolean; // with the stage before beside it, counterparts in one row
}

export interface Picture {
  scene: Scene;
  index: SceneIndex;
  open: number[]; // items of open groups
  unfolded: number[]; // items of groups whose repeats are drawn one by one
  hidden: string[]; // names of what the user hid
  saved: number[]; // by phase: operators that only keep tensors for the backward pass
  views: number; // operators that only see a tensor otherwise
  plumbing: number; // operators on integers, booleans and constants
  change: Uint8Array | null; // by box: the class of its change, see diff.ts; null where nothing has changed
  changed: Int32Array | null; // by box: how many operators in it have changed
  seams: number[]; // boxes of breaks between graphs
  numbers?: Uint16Array; // by box: of what became what (Ribbon), 0 for none
  beside?: Beside;
}

/** The stage before, drawn beside the one in view. */
export interface Beside {
  stage: number;
  picture: Picture;
  pairs: Int32Array; // of boxes that show the same thing: before, after, …
  ribbons: Ribbon[];
}

export interface ChangeRow extends Change {
  index: number;
  items: number[]; // in the picture
  ghosts: number[];
  where: string; // the module, or the operator in it
}

export interface FateRow extends Fate {
  labels: string[];
}

export interface Ref {
  item: number;
  label: string;
  full?: string; // where the label is shorter
}

export interface Details {
  item: number;
  kind: 'op' | 'group' | 'input' | 'tensor';
  title: string;
  op: string;
  cls: string;
  path: Ref[]; // the groups around it, outermost first
  phase: string;
  name: string;
  attrs: [string, string][];
  inputs: { item: number; arg: string; value: string; type: string; bytes: number; role: string; seen: string; from: Ref | null }[];
  outputs: { item: number; value: string; type: string; bytes: number; role: string; seen: string; to: Ref[]; more: number }[];
  backward: Ref[];
  forward: Ref[];
  drawnWith: (Ref & { kind: 'saved' | 'view' | 'constant' }) | null; // of what is not drawn: what stands for it
  kernels: { index: number; name: string; ops: number }[];
  frames: { file: string; line: number; fn: string }[]; // of a module: where it is called
  builtAt: Details['frames']; // of a module: where it is constructed
  held: Details['inputs']; // of a module: parameters and buffers that it reads
  more: Record<'inputs' | 'outputs' | 'held', number>; // values that are not listed
  kept: number | null; // of a module: bytes that other phases read of it; null: not known
  maker: Ref | null; // of a tensor
  size: number;
  phases: number[];
  ops: [string, number][];
  measured: Measure[];
}

/** A figure by its name, as text, and which part of the whole stage's it is, where parts add up. */
export type Measure = [name: string, text: string, share?: number];

export interface KernelRow {
  index: number;
  name: string;
  ops: number;
  runs: number; // how often the same kernel ran
  code: boolean;
  language: string; // as the compiler calls it; empty: it does not say
  time: number | null; // ns
}

export interface TreeRow {
  item: number;
  title: string;
  full?: string;
  cls: string;
  size: number;
  phase: number;
  children: number; // groups inside
  isGroup: boolean;
}

/** Some of the rows that are right inside of a module. */
export interface TreePage {
  first: number; // the place of the first of them
  total: number;
  rows: TreeRow[];
}

export interface TableRow {
  item: number;
  cells: (string | number | null)[];
}

/** A module or operator in the map of costs. */
export interface CostCell extends Cell {
  title: string;
  cls: string;
  phase: number; // or -1
}

export interface CostMap {
  cells: CostCell[]; // what is around comes before what is inside
  total: number; // of all that is shown
  unknown: number; // operators whose figure is not known
  unknownOps: string[];
  path: Ref[]; // of what is mapped
}

export interface MemoryLine {
  steps: number;
  first: number;
  last: number;
  at: Int32Array; // by column: the operator at which most is alive
  phases: Uint8Array; // by column
  classes: MemoryClass[];
  live: Float64Array[]; // by class: bytes by column
  atPeak: number[]; // by class
  peak: number; // operator
  peakBytes: number;
  peakOp: string;
}

export interface AliveRow {
  item: number; // that makes it, or reads it first; or -1
  name: string;
  op: string; // that makes it
  where: string;
  type: string;
  cls: MemoryClass;
  bytes: number;
  born: number;
  dies: number;
}

/** Operators that are alike, against a device. */
export interface RoofPoint {
  x: number; // FLOPs for each byte
  y: number; // FLOP/s at best
  seconds: number; // of all of them
  byMemory: boolean;
  op: string;
  full: string;
  phase: number;
  flops: number;
  bytes: number;
  dtype: string;
  nodes: number[];
  count: number;
  took: number; // measured seconds of all of them; NaN: they were not measured
}

export interface Roofs {
  reached: Reached | null; // what was measured of all
  points: RoofPoint[];
  dtypes: string[]; // of products, those that take longest first
  seconds: number; // one after the other
  byMemory: number; // of these
  moving: number; // operators that only move data
  movingSeconds: number;
  unknown: number;
  endless: number; // operators that move nothing
}

/** An operator in a list of results. */
export interface Label {
  item: number;
  label: string;
  where: string;
  phase: number;
  type: string; // of what it makes first
}

/** Words that are drawn, in the language of the page; {n} is a number. */
export interface EngineWords {
  op: string;
  ops: string;
  phases: string[];
  part?: string; // of a module, {i} of {n}
  unread?: string;
  reads?: string;
  keeps?: string; // {bytes} for the backward pass
  tied?: string;
  plumbing?: string[]; // positions and mask, positions, mask, others
}

/** A call that changes what is looked at, or brings something: `moves` as of a question (questions.ts). */
interface Command<F> {
  moves: boolean;
  call?: F; // only its type is there
}

const command = <F>({ moves = false } = {}): Command<F> => ({ moves });
const MOVES = { moves: true };

/** A stage of one of the captures. */
export interface Chosen {
  capture: number;
  stage: number;
}

/** What may be called about another stage than the one in view. */
export type Aside = keyof Questions;

export const COMMANDS = {
  load: command<(data: Content, name: string) => CaptureInfo>(),
  compare: command<(before: Chosen, after: Chosen) => CaptureInfo>(),
  bytes: command<(capture: number) => Uint8Array[]>(),
  /** Costs that came later; answers with all metrics. */
  attach: command<(capture: number, data: Content) => string[]>(),
  addTable: command<(name: string, text: string) => { joined: Placement; info: CaptureInfo }>(),
  stage: command<(capture: number, stage: number, options: ViewOptions) => Picture>(MOVES),
  options: command<(options: ViewOptions) => Picture>(MOVES),
  speak: command<(words: EngineWords) => Picture | null>(MOVES),
  open: command<(items: number[], open: boolean) => Picture>(MOVES),
  unfold: command<(item: number) => Picture>(MOVES),
  openAll: command<() => Picture>(MOVES),
  openDepth: command<(depth: number) => Picture>(MOVES),
  reveal: command<(items: number[]) => Picture>(MOVES),
  restore: command<(open: string[], unfolded: string[], hidden?: string[]) => Picture>(MOVES),
  hide: command<(items: number[]) => Picture | null>(MOVES),
  showHidden: command<() => Picture>(MOVES),
  isolate: command<(items: number[], name: string) => CaptureInfo>(),
  keep: command<() => number>(),
  recall: command<(place: number) => Picture | null>(MOVES),
  kin: command<(from: number, overlaid: boolean) => Kin>(),
  /** A question about another stage of this capture, while the one in view stays. */
  aside: command<(stage: number, call: Aside, args: unknown[]) => unknown>(MOVES),
  /** Open something in the stage that is drawn beside the one in view. */
  beside: command<(call: 'open' | 'unfold' | 'reveal', args: unknown[]) => Picture>(MOVES),
};

export type Commands = { [C in keyof typeof COMMANDS]: (typeof COMMANDS)[C] extends Command<infer F> ? F : never };

/** All calls that the page makes; each answers with a promise. */
export type Calls = Commands & Questions;
