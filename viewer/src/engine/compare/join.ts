// Two stages, of one capture or of two, as the stages of a capture of their own: the second was made from the first. As
// analysis/diff/side_by_side.py.

import { Capture, type Graph, type Links, type Listing, type Manifest, type Pools } from '../../wire/capture.ts';
import { FACTS } from '../../wire/facts.ts';
import { Texts, type Table } from '../../wire/table.ts';

export interface Place {
  capture: Capture;
  stage: number;
  name: string;
}

/** Numbers of a pool in the pools of both. */
interface Moved {
  strings: Int32Array;
  attrs: Int32Array;
  types: Int32Array;
  scopes: Int32Array;
  stacks: Int32Array;
}

/** Rows of a pool, each once: those of the first keep their numbers. */
class Merged {
  private ids = new Map<string, number>();
  readonly added: number[] = []; // rows of the second

  constructor(
    private first: number,
    key: (row: number) => string,
  ) {
    for (let row = first - 1; row >= 0; row--) this.ids.set(key(row), row);
  }

  /** The number of a row of the second. */
  of(row: number, key: string): number {
    let id = this.ids.get(key);
    if (id === undefined) this.ids.set(key, (id = this.first + this.added.push(row) - 1));
    return id;
  }
}

/** Columns of both, one after the other. */
function texts(one: Texts, other: Texts, added: number[]): Texts {
  return new Texts(one.length + added.length, (i) => (i < one.length ? one.at(i) : other.at(added[i - one.length]!)));
}

function numbers(one: Int32Array, added: number[], of: (row: number) => number): Int32Array {
  return Int32Array.from([...one, ...added.map(of)]);
}

export function mergePools(a: Pools, b: Pools): { pools: Pools; moved: Moved } {
  const plain = (one: Texts, other: Texts) => {
    const all = new Merged(one.length, (row) => one.at(row));
    const ids = Int32Array.from({ length: other.length }, (_, row) => all.of(row, other.at(row)));
    return { ids, texts: texts(one, other, all.added) };
  };
  const strings = plain(a.strings, b.strings);
  const attrs = plain(a.attrs, b.attrs);
  const typeKey = ({ types }: Pools, row: number) => `${types.dtype.at(row)}\n${types.shape.at(row)}`;
  const types = new Merged(a.types.dtype.length, (row) => typeKey(a, row));
  const typeIds = Int32Array.from({ length: b.types.dtype.length }, (_, row) => types.of(row, typeKey(b, row)));
  const frameKey = ({ frames }: Pools, row: number) => `${frames.file.at(row)}\n${frames.line[row]}\n${frames.fn.at(row)}`;
  const frames = new Merged(a.frames.line.length, (row) => frameKey(a, row));
  const frameIds = Int32Array.from(b.frames.line, (_, row) => frames.of(row, frameKey(b, row)));
  // Of prefix trees: what is around stands before.
  const scopeKey = ({ scopes }: Pools, row: number, around: number) =>
    `${around}\n${scopes.name.at(row)}\n${scopes.cls.at(row)}\n${scopes.call[row]}`;
  const scopes = new Merged(a.scopes.parent.length, (row) => scopeKey(a, row, a.scopes.parent[row]!));
  const scopeIds = new Int32Array(b.scopes.parent.length);
  for (let row = 1; row < scopeIds.length; row++) scopeIds[row] = scopes.of(row, scopeKey(b, row, scopeIds[b.scopes.parent[row]!]!));
  const stacks = new Merged(a.stacks.parent.length, (row) => `${a.stacks.parent[row]} ${a.stacks.frame[row]}`);
  const stackIds = new Int32Array(b.stacks.parent.length);
  for (let row = 1; row < stackIds.length; row++)
    stackIds[row] = stacks.of(row, `${stackIds[b.stacks.parent[row]!]} ${frameIds[b.stacks.frame[row]!]}`);
  return {
    moved: { strings: strings.ids, attrs: attrs.ids, types: typeIds, scopes: scopeIds, stacks: stackIds },
    pools: {
      strings: strings.texts,
      attrs: attrs.texts,
      types: { dtype: texts(a.types.dtype, b.types.dtype, types.added), shape: texts(a.types.shape, b.types.shape, types.added) },
      scopes: {
        parent: numbers(a.scopes.parent, scopes.added, (row) => scopeIds[b.scopes.parent[row]!]!),
        name: texts(a.scopes.name, b.scopes.name, scopes.added),
        cls: texts(a.scopes.cls, b.scopes.cls, scopes.added),
        call: numbers(a.scopes.call, scopes.added, (row) => b.scopes.call[row]!),
      },
      frames: {
        file: texts(a.frames.file, b.frames.file, frames.added),
        line: numbers(a.frames.line, frames.added, (row) => b.frames.line[row]!),
        fn: texts(a.frames.fn, b.frames.fn, frames.added),
      },
      stacks: {
        parent: numbers(a.stacks.parent, stacks.added, (row) => stackIds[b.stacks.parent[row]!]!),
        frame: numbers(a.stacks.frame, stacks.added, (row) => frameIds[b.stacks.frame[row]!]!),
      },
    },
  };
}

export function moveGraph(graph: Graph, moved: Moved, firstGraph: number): Graph {
  const by = (ids: Int32Array) => (column: Int32Array) => column.map((id) => (id < 0 ? id : ids[id]!));
  const [strings, attrs] = [by(moved.strings), by(moved.attrs)];
  const groups = [...graph.groups].map(([kind, sets]) => {
    return [kind, { ...sets, name: strings(sets.name), code: strings(sets.code), attrs: attrs(sets.attrs) }] as const;
  });
  return {
    ...graph,
    op: strings(graph.op),
    name: strings(graph.name),
    scope: by(moved.scopes)(graph.scope),
    stack: by(moved.stacks)(graph.stack),
    attrs: attrs(graph.attrs),
    useArg: strings(graph.useArg),
    type: by(moved.types)(graph.type),
    valueName: strings(graph.valueName),
    groups: new Map(groups),
    bodies: graph.bodies.map((body) => ({ ...body, graph: body.graph + firstGraph })),
  };
}

/** What is in a table by scope or by the name of an operator is there under another number. */
function moveTable(table: Table, ids: Int32Array | null): Table {
  if (!ids) return table;
  const int32 = (column: string) => (column === 'index' ? table.int32(column).map((id) => ids[id] ?? id) : table.int32(column));
  return Object.assign(Object.create(table) as Table, { int32 });
}

const APART: readonly string[] = [FACTS.changes.name, FACTS.breaks.name];

export class Joined extends Capture {
  private links: Links = { source: new Int32Array(0), target: new Int32Array(0) };
  private kept = new Map<number, Promise<Graph>>();

  private constructor(
    private places: [Place, Place],
    private tables: { place: Place; index: number; ids: Int32Array | null }[],
    manifest: Manifest,
    pools: Pools,
    private moved: Moved,
    sources: { path: Texts; text: Texts },
  ) {
    super(manifest, pools, sources, null, null!);
  }

  static of(before: Place, after: Place): Joined {
    const { pools, moved } = mergePools(before.capture.pools, after.capture.pools);
    const [one, other] = [before.capture.manifest, after.capture.manifest];
    const tables: Joined['tables'] = [];
    const stored: Manifest['tables'] = [];
    for (const [at, place] of [before, after].entries()) {
      for (const fact of Object.keys(FACTS)) {
        for (const index of APART.includes(fact) ? [] : place.capture.facts(fact, place.stage)) {
          const table = place.capture.manifest.tables[index]!;
          const ids = at ? ({ scope: moved.scopes, op: moved.strings }[table.by] ?? null) : null;
          tables.push({ place, index, ids });
          stored.push({ ...table, stage: at });
        }
      }
    }
    const stageOf = (place: Place, after: number | null, name: string) => {
      const { graph, warnings } = place.capture.manifest.stages[place.stage]!;
      return { name, graph: after === null ? graph : graph + one.graphs.length, after, seconds: null, warnings };
    };
    const alike = one.origin.framework === other.origin.framework && one.origin.version === other.origin.version;
    const name = before.name === after.name ? `${after.name} (2)` : after.name;
    const manifest: Manifest = {
      ...one,
      origin: { ...one.origin, version: alike ? one.origin.version : '', how: 'compared' },
      warnings: [...new Set([...one.warnings, ...other.warnings])],
      stages: [stageOf(before, null, before.name), stageOf(after, 0, name)],
      graphs: [...one.graphs, ...other.graphs],
      stage_links: [{ before: 0, after: 1, kind: 'lowers' }],
      tables: stored,
    };
    const [a, b] = [before.capture.sources, after.capture.sources];
    const paths = new Set(Array.from({ length: a.path.length }, (_, i) => a.path.at(i)));
    const added = Array.from({ length: b.path.length }, (_, i) => i).filter((i) => !paths.has(b.path.at(i)));
    const sources = { path: texts(a.path, b.path, added), text: texts(a.text, b.text, added) };
    return new Joined([before, after], tables, manifest, pools, moved, sources);
  }

  /** Which operators became which. */
  link(links: Links): void {
    this.links = links;
  }

  override graph(index: number): Promise<Graph> {
    const [one, other] = this.places;
    const first = one.capture.manifest.graphs.length;
    if (index < first) return one.capture.graph(index);
    let graph = this.kept.get(index);
    if (!graph) this.kept.set(index, (graph = other.capture.graph(index - first).then((found) => moveGraph(found, this.moved, first))));
    return graph;
  }

  override stageLink(): Promise<Links> {
    return Promise.resolve(this.links);
  }

  override async stored(index: number): Promise<Table> {
    const { place, index: own, ids } = this.tables[index]!;
    return moveTable(await place.capture.stored(own), ids);
  }

  override listings(stage: string): Map<string, Listing> {
    const { capture, stage: own } = this.places[stage === this.manifest.stages[0]!.name ? 0 : 1];
    return capture.listings(capture.manifest.stages[own]!.name);
  }

  override get files(): Uint8Array[] {
    return []; // of the two that it was made from
  }
}
