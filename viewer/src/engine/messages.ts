// What the page and the engine (in its worker) say to each other. All heavy work is the engine's.

import type { Scene } from '../scene.ts';
import type { SceneIndex } from '../draw/index.ts';

export interface StageInfo {
  name: string;
  nodes: number;
  values: number;
  edges: number;
  after: number | null;
  phases: number[]; // operators by phase
  kernels: number;
  links: Record<string, number>;
  warnings: string[];
  listings: string[]; // kinds of the framework's own texts, and those whose lines are joined to operators
  linked: string[];
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
}

export interface ViewOptions {
  direction: 'down' | 'right';
  split: boolean;
  hidden: number[]; // phases
  constants: boolean; // constants and parameters as boxes of their own
  saved?: boolean; // autograd's copies of saved tensors too
  side: boolean; // phases beside each other instead of one after the other
}

export interface Picture {
  scene: Scene;
  index: SceneIndex;
  open: number[]; // items of open groups
  saved: number[]; // by phase: operators that only keep tensors for the backward pass
}

export interface Ref {
  item: number;
  label: string;
  full?: string; // where the label is shorter
}

export interface Details {
  item: number;
  kind: 'op' | 'group' | 'input';
  title: string;
  op: string;
  cls: string;
  path: Ref[]; // the groups around it, outermost first
  phase: string;
  name: string;
  attrs: [string, string][];
  inputs: { arg: string; value: string; type: string; bytes: number; role: string; from: Ref | null }[];
  outputs: { value: string; type: string; bytes: number; role: string; to: Ref[]; more: number }[];
  backward: Ref[];
  forward: Ref[];
  drawnWith: Ref | null; // of what is not drawn: what stands for it
  kernels: { index: number; name: string; ops: number }[];
  frames: { file: string; line: number; fn: string }[];
  size: number;
  phases: number[];
  ops: [string, number][];
  measured: [string, string][];
}

export interface KernelRow {
  index: number;
  name: string;
  ops: number;
  runs: number; // how often the same kernel ran
  code: boolean;
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

export interface TableRow {
  item: number;
  cells: (string | number | null)[];
}

/** The calls that the page makes; each answers with a promise. */
export interface Calls {
  load(data: Uint8Array | string, name: string): CaptureInfo; // a string is base64, as a one-file page holds it
  stage(capture: number, stage: number, options: ViewOptions): Picture;
  options(options: ViewOptions): Picture;
  open(items: number[], open: boolean): Picture;
  unfold(item: number): Picture;
  openAll(): Picture;
  openDepth(depth: number): Picture;
  reveal(items: number[]): Picture;
  restore(paths: string[]): Picture;
  boxes(items: number[]): number[];
  pairs(item: number | null): Int32Array; // boxes joined by gradient links: of one item, or all
  details(item: number): Details;
  children(item: number): TreeRow[];
  kernels(): KernelRow[];
  kernel(index: number): { nodes: number[]; code: string; name: string; attrs: [string, string][] };
  find(query: string): { nodes: number[]; error: string };
  labels(items: number[]): { item: number; label: string; where: string }[];
  table(sort: number, down: boolean, filter: number[] | null, first: number, count: number): { total: number; rows: TableRow[] };
  csv(filter: number[] | null): string;
  source(file: string): string | null;
  lineNodes(file: string, line: number): number[];
  lines(file: string): [number, number][]; // line, how many operators
  files(): { file: string; lines: number }[];
  listing(kind: string): { text: string; pairs: Int32Array }; // pairs: line, operator, line, operator …
  listingLines(kind: string, items: number[]): number[];
  across(items: number[], from: number, to: number): string[]; // paths in another stage
  trace(item: number, way: 'up' | 'down'): number[];
  between(a: number, b: number): number[];
  metric(name: string): { values: (number | null)[]; min: number; max: number; unit: string }; // by box of the picture
  kernelOf(): number[]; // by box of the picture: the first kernel of an operator, or -1
  paths(items: number[]): string[];
  items(paths: string[]): number[];
}
