// What a compiler did: kernels in the order of their launches, by module; why two of them are not one; how long it took.

import { FACTS } from '../wire/facts.ts';
import type { Capture } from '../wire/capture.ts';
import type { Table } from '../wire/table.ts';
import { languageOf } from './answers.ts';
import type { View } from './view.ts';

export interface Launch {
  index: number; // of the kernel
  name: string;
  where: string; // the module of all its operators
  lane: number; // the place of the module in `lanes`
  phase: number;
  operators: number;
  language: string;
}

export interface Apart {
  kernel: number;
  other: number;
  reason: string;
}

export interface Took {
  frame: string;
  what: string; // the function
  phase: number; // forward or backward
  parts: { name: string; seconds: number }[];
}

export interface Compiling {
  launches: Launch[];
  lanes: string[]; // modules, in the order in which they first run
  apart: Apart[];
  took: Took[];
  again: { frame: string; reason: string }[]; // compiled once more
  breaks: { file: string; line: number; reason: string }[];
}

const MOST_LANES = 24;

export async function compiling(view: View): Promise<Compiling> {
  const { capture, stage } = view;
  const launches = launchesOf(view);
  return {
    ...inLanes(launches),
    apart: await apartOf(capture, stage),
    took: await tookOf(capture),
    again: await rows(capture, FACTS.recompiles.name, (table, i) => ({
      frame: table.texts(FACTS.recompiles.columns.frame).at(i),
      reason: table.texts(FACTS.recompiles.columns.reason).at(i),
    })),
    breaks: await rows(capture, FACTS.breaks.name, (table, i) => ({
      file: table.texts(FACTS.breaks.columns.file).at(i),
      line: table.figures(FACTS.breaks.columns.line)[i] ?? 0,
      reason: table.texts(FACTS.breaks.columns.reason).at(i),
    })),
  };
}

function launchesOf({ graph, capture }: View): (Launch & { path: string[] })[] {
  const kernels = graph.groups.get('kernel');
  if (!kernels) return [];
  const { scopes, strings, attrs } = capture.pools;
  const known = new Map<number, string[]>([[0, []]]);
  const pathOf = (scope: number): string[] => {
    let path = known.get(scope);
    if (!path) known.set(scope, (path = [...pathOf(scopes.parent[scope]!), scopes.name.at(scope)]));
    return path;
  };
  return Array.from(kernels.name, (name, index) => {
    const members = kernels.member.subarray(kernels.start[index]!, kernels.start[index + 1]!);
    let path: string[] | null = null;
    for (const node of members) {
      const other = pathOf(graph.scope[node]!);
      path = path ? path.slice(0, common(path, other)) : other;
    }
    return {
      index,
      name: strings.at(name),
      path: path ?? [],
      where: (path ?? []).join('/'),
      lane: 0,
      phase: members.length ? graph.phase[members[members.length - 1]!]! : 0,
      operators: members.length,
      language: languageOf(attrs.at(kernels.attrs[index]!)),
    };
  });
}

function common(a: string[], b: string[]): number {
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  return i;
}

/** Lanes are modules as deep as there is room for. */
function inLanes(launches: (Launch & { path: string[] })[]): { launches: Launch[]; lanes: string[] } {
  const lanesAt = (depth: number) => new Set(launches.map(({ path }) => path.slice(0, depth).join('/')));
  let depth = 1;
  const deepest = Math.max(1, ...launches.map(({ path }) => path.length));
  while (depth < deepest && lanesAt(depth + 1).size <= MOST_LANES) depth++;
  const lanes = [...lanesAt(depth)];
  const place = new Map(lanes.map((lane, i) => [lane, i]));
  return {
    lanes,
    launches: launches.map(({ path, ...launch }) => ({ ...launch, lane: place.get(path.slice(0, depth).join('/'))! })),
  };
}

/** Of this stage, or of the kernels that were made of it: their numbers are the same. */
async function apartOf(capture: Capture, stage: number): Promise<Apart[]> {
  const { stages } = capture.manifest;
  const made = stages.findIndex((one, i) => one.after === stage && capture.facts(FACTS.not_fused.name, i).length > 0);
  const table = (await capture.fact(FACTS.not_fused.name, stage)) ?? (made < 0 ? null : await capture.fact(FACTS.not_fused.name, made));
  if (!table) return [];
  const { kernel, other, reason } = FACTS.not_fused.columns;
  const [first, second, words] = [table.figures(kernel), table.figures(other), table.texts(reason)];
  return Array.from(table.int32('index'), (_, i) => ({ kernel: first[i] ?? -1, other: second[i] ?? -1, reason: words.at(i) }));
}

async function tookOf(capture: Capture): Promise<Took[]> {
  const { frame, function: what, direction, phase, time } = FACTS.compile_times.columns;
  const found = new Map<string, Took>();
  await rows(capture, FACTS.compile_times.name, (table, i) => {
    const [name, way] = [table.texts(frame).at(i), table.figures(direction)[i] ?? 0];
    const key = `${name} ${way}`;
    const took: Took = found.get(key) ?? { frame: name, what: table.texts(what).at(i), phase: way, parts: [] };
    took.parts.push({ name: table.texts(phase).at(i), seconds: table.figures(time)[i] ?? 0 });
    found.set(key, took);
  });
  return [...found.values()];
}

/** In a recorded step, the stages of the compiler come after the step itself. */
async function rows<T>(capture: Capture, fact: string, row: (table: Table, i: number) => T): Promise<T[]> {
  const found: T[] = [];
  for (const index of capture.manifest.tables.keys()) {
    if (capture.manifest.tables[index]!.fact !== fact) continue;
    const table = await capture.stored(index);
    for (const i of table.int32('index').keys()) found.push(row(table, i));
  }
  return found;
}
