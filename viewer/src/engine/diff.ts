// What a stage changed, and what became of an operator from stage to stage. docs/diff.md has the format in words.

import type { Capture } from '../wire/capture.ts';
import { CHANGES, type ChangeKind } from '../picture/changes.ts';
import { CHANGE_CLASSES, EVIDENCE, FACTS, type ChangeClass, type Evidence } from '../wire/facts.ts';
import type { Table } from '../wire/table.ts';

/** Changes whose operators before are others than those after. */
const REPLACED = new Set<ChangeKind>(['removed', 'fused', 'split', 'rewritten']);

export interface Change {
  kind: ChangeKind;
  before: number[]; // operators
  after: number[];
  evidence: Evidence | '';
  detail: string;
}

export interface StageChanges {
  before: number; // the stage
  changes: Change[];
  same: number; // operators
}

export interface Fate {
  stage: number;
  kind: ChangeClass | 'gone';
  nodes: number[]; // in that stage
  evidence: Evidence | '';
}

type ChangesTable = Pick<Table, 'rows' | 'numbers' | 'lists' | 'texts'>;

/** What a stage changed in the stage `before`. `sizes` are the operators of each stage. */
export function readChanges(table: ChangesTable, before: number, stage: number, sizes: number[]): StageChanges {
  const { columns } = FACTS.changes;
  const [kinds, evidence] = [table.numbers(columns.class), table.numbers(columns.evidence)];
  const [froms, tos] = [table.lists(columns.before), table.lists(columns.after)];
  const details = table.texts(columns.detail);
  const within = (nodes: number[], most: number) => nodes.filter((node) => node >= 0 && node < most);
  const changes: Change[] = [];
  const touched = new Set<number>();
  for (let i = 0; i < table.rows; i++) {
    const kind = CHANGE_CLASSES[kinds[i]!];
    if (!kind || kind === 'same') continue;
    const from = within(froms[i]!, sizes[before]!);
    for (const node of from) touched.add(node);
    const after = within(tos[i]!, sizes[stage]!);
    changes.push({ kind, before: from, after, evidence: EVIDENCE[evidence[i]!] ?? '', detail: details.at(i) });
  }
  return { before, changes, same: sizes[before]! - touched.size };
}

/** By operator: how it came to be in this stage (`after`), or what becomes of it in the next (`before`). */
export function classes(diff: StageChanges | null, side: 'before' | 'after', nodes: number): Uint8Array {
  const out = new Uint8Array(nodes);
  for (const change of diff?.changes ?? []) for (const node of change[side]) out[node] = CHANGES.indexOf(change.kind) + 1;
  return out;
}

/** Operators of the stage before that are not in this one any more. */
export function replaced(diff: StageChanges): number[] {
  const gone = new Set<number>();
  for (const change of diff.changes) if (REPLACED.has(change.kind)) for (const node of change.before) gone.add(node);
  return [...gone].sort((a, b) => a - b);
}

type Map1N = Map<number, number[]>;

/** The stages of a capture and what leads from one to the other. */
export class Diffs {
  private read: (StageChanges | null)[] = [];
  private maps = new Map<string, Map1N>();

  constructor(
    private capture: Capture,
    readonly sizes: number[], // operators by stage
  ) {}

  /** Reads what every stage changed; until then nothing is known of it. */
  async load(): Promise<void> {
    const { stages } = this.capture.manifest;
    this.read = await Promise.all(
      stages.map(async ({ after }, stage) => {
        const table = after === null ? null : await this.capture.fact(FACTS.changes.name, stage);
        return table && after !== null ? readChanges(table, after, stage, this.sizes) : null;
      }),
    );
  }

  set(stage: number, changes: StageChanges): void {
    this.read[stage] = changes;
  }

  of(stage: number): StageChanges | null {
    return this.read[stage] ?? null;
  }

  /** Which operators of a stage are which of another, along the links between stages. */
  async map(from: number, to: number): Promise<Map1N> {
    const key = `${from}/${to}`;
    let found = this.maps.get(key);
    if (found) return found;
    found = new Map();
    const way = this.way(from, to);
    if (way.length === 2) found = await this.direct(from, to);
    else if (way.length > 2) {
      found = await this.map(from, way[1]!);
      for (let i = 1; i + 1 < way.length; i++) {
        const next = await this.map(way[i]!, way[i + 1]!);
        found = new Map(
          [...found].map(([node, there]) => [node, [...new Set(there.flatMap((other) => next.get(other) ?? []))]] as [number, number[]]),
        );
      }
    }
    this.maps.set(key, found);
    return found;
  }

  private async direct(from: number, to: number): Promise<Map1N> {
    const joined: Map1N = new Map();
    for (const [i, link] of (this.capture.manifest.stage_links ?? []).entries()) {
      const there = link.before === from && link.after === to;
      if (!there && !(link.before === to && link.after === from)) continue;
      const { source, target } = await this.capture.stageLink(i);
      const [here, other] = there ? [source, target] : [target, source];
      for (let k = 0; k < here.length; k++) {
        const known = joined.get(here[k]!);
        if (!known) joined.set(here[k]!, [other[k]!]);
        else if (!known.includes(other[k]!)) known.push(other[k]!);
      }
    }
    return joined;
  }

  /** The stages from one to another, along links; [] where there is no way. */
  private way(from: number, to: number): number[] {
    const links = this.capture.manifest.stage_links ?? [];
    const cameFrom = new Map<number, number>([[from, from]]);
    const todo = [from];
    for (let stage = todo.shift(); stage !== undefined && stage !== to; stage = todo.shift()) {
      for (const { before, after, kind } of links) {
        const next = before === stage ? after : after === stage ? before : -1;
        // What only flows from one graph into the next is not the same operator any further on.
        if (next < 0 || cameFrom.has(next) || (kind !== 'lowers' && (stage !== from || next !== to))) continue;
        cameFrom.set(next, stage);
        todo.push(next);
      }
    }
    if (!cameFrom.has(to) || from === to) return [];
    const way = [to];
    while (way[0] !== from) way.unshift(cameFrom.get(way[0]!)!);
    return way;
  }

  /** What becomes of operators in all stages that were made from each other, in their order. */
  async follow(nodes: number[], stage: number): Promise<Fate[]> {
    const { stages } = this.capture.manifest;
    const at = new Map<number, number[]>([[stage, nodes]]);
    const move = async (from: number, to: number) => {
      const map = await this.map(from, to);
      at.set(
        to,
        [...new Set(at.get(from)!.flatMap((node) => map.get(node) ?? []))].sort((a, b) => a - b),
      );
    };
    // To where it all began, and from there to everything that was made of it.
    for (let here = stage, before = stages[here]!.after; before !== null && !at.has(before); before = stages[here]!.after) {
      await move(here, before);
      here = before;
    }
    for (const [i, entry] of stages.entries()) {
      if (entry.after !== null && at.has(entry.after) && !at.has(i)) await move(entry.after, i);
    }
    const fates: Fate[] = [];
    for (const [i, here] of [...at].sort(([a], [b]) => a - b)) {
      const diff = this.of(i);
      const before = diff ? (at.get(diff.before) ?? []) : [];
      const change = diff?.changes.find(
        (one) => one.after.some((node) => here.includes(node)) || one.before.some((node) => before.includes(node)),
      );
      if (!here.length && !before.length) continue;
      fates.push({ stage: i, kind: change?.kind ?? (here.length ? 'same' : 'gone'), nodes: here, evidence: change?.evidence ?? '' });
    }
    return fates;
  }
}
