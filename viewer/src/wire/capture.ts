// An .opscope file as the page holds it. docs/file-format.md has the same in words.

import { FACTS, FILE_VERSION, type GroupKind, type LinkKind } from './facts.ts';
import { Archive } from './zip.ts';
import { Table, Texts } from './table.ts';

export interface Pools {
  strings: Texts;
  attrs: Texts; // JSON
  types: { dtype: Texts; shape: Texts };
  scopes: { parent: Int32Array; name: Texts; cls: Texts; call: Int32Array };
  frames: { file: Texts; line: Int32Array; fn: Texts };
  stacks: { parent: Int32Array; frame: Int32Array };
}

export interface Links {
  source: Int32Array;
  target: Int32Array;
}

export interface Groups {
  name: Int32Array;
  code: Int32Array;
  attrs: Int32Array;
  start: Int32Array;
  member: Int32Array;
}

export interface Body {
  node: number;
  label: string;
  graph: number;
  bindings: [number, number][];
}

export interface Graph {
  nodes: number;
  op: Int32Array;
  name: Int32Array;
  scope: Int32Array;
  stack: Int32Array;
  attrs: Int32Array;
  phase: Int8Array;
  useStart: Int32Array;
  useNode: Int32Array;
  useValue: Int32Array;
  useArg: Int32Array;
  values: number;
  producer: Int32Array;
  slot: Int32Array;
  type: Int32Array;
  valueName: Int32Array;
  storage: Int32Array;
  role: Int8Array;
  inputs: Int32Array;
  outputs: Int32Array;
  links: Map<LinkKind, Links>;
  groups: Map<GroupKind, Groups>;
  bodies: Body[];
}

export interface Stage {
  name: string;
  graph: number;
  after: number | null;
  seconds: number | null;
  warnings: string[];
}

export interface StoredTable {
  name: string;
  stage: number;
  by: string;
  fact?: string; // one of FACTS; files of version 1 do not say
  units: Record<string, string>;
}

/** A text of the framework's own, and (line, operator) pairs. Lines may have a place in the user's code. */
export interface Listing extends Pairs {
  text: () => string;
  places?: Place[];
}

interface Pairs {
  line: number[];
  node: number[];
}

const NO_PAIRS: Pairs = { line: [], node: [] };

/** A file and a line; null where it is not known. */
export type Place = [string, number] | null;

export interface StageLink {
  before: number; // stages
  after: number;
  kind: string;
}

export interface Manifest {
  opscope: number;
  origin: { format: string; framework: string; version: string; how: string };
  warnings: string[];
  stages: Stage[];
  graphs: { links: LinkKind[]; groups: GroupKind[]; bodies: Body[] }[];
  stage_links?: StageLink[];
  tables: StoredTable[];
}

export class Capture {
  private graphs = new Map<number, Promise<Graph>>();
  private breaks = new Map<string, Listing>(); // by stage
  private lines = new Map<string, Map<string, Pairs>>(); // by stage and kind of listing

  protected constructor(
    readonly manifest: Manifest,
    readonly pools: Pools,
    readonly sources: { path: Texts; text: Texts },
    private texts: { stage: Texts; kind: Texts; text: Texts } | null,
    private archive: Archive,
  ) {}

  static async open(bytes: Uint8Array): Promise<Capture> {
    const archive = new Archive(bytes);
    if (!archive.has('manifest.json')) throw new Error('not an .opscope file');
    const manifest = JSON.parse(new TextDecoder().decode(await archive.read('manifest.json'))) as Manifest;
    if (manifest.opscope > FILE_VERSION) {
      throw new Error(`written by a newer opscope (file version ${manifest.opscope}; this page reads up to ${FILE_VERSION})`);
    }
    const table = async (name: string) => new Table(name, await archive.read(`${name}.arrow`));
    const [strings, attrs, types, scopes, frames, stacks, sources] = await Promise.all(
      ['pools/strings', 'pools/attrs', 'pools/types', 'pools/scopes', 'pools/frames', 'pools/stacks', 'sources'].map(table),
    );
    const pools: Pools = {
      strings: strings!.texts('text'),
      attrs: attrs!.texts('json'),
      types: { dtype: types!.texts('dtype'), shape: types!.texts('shape') },
      scopes: {
        parent: scopes!.int32('parent'),
        name: scopes!.texts('name'),
        cls: scopes!.texts('class'),
        call: scopes!.int32('call'),
      },
      frames: { file: frames!.texts('file'), line: frames!.int32('line'), fn: frames!.texts('function') },
      stacks: { parent: stacks!.int32('parent'), frame: stacks!.int32('frame') },
    };
    const listings = archive.has('listings.arrow') ? await table('listings') : null;
    const capture = new Capture(
      manifest,
      pools,
      { path: sources!.texts('path'), text: sources!.texts('text') },
      listings && {
        stage: listings.texts('stage'),
        kind: listings.texts('kind'),
        text: listings.texts('text'),
      },
      archive,
    );
    await capture.readBreaks();
    await capture.readLines();
    if (listings && archive.has('listing_lines.arrow')) capture.readOlderLines(listings, await table('listing_lines'));
    return capture;
  }

  /** Which lines of the listings belong to which operators. */
  private async readLines(): Promise<void> {
    for (const [i, { fact, stage }] of this.manifest.tables.entries()) {
      if (fact !== FACTS.lines.name) continue;
      const table = await this.stored(i);
      const { columns } = FACTS.lines;
      const [kinds, lines, nodes] = [table.texts(columns.listing), table.int32(columns.line), table.int32('index')];
      const name = this.manifest.stages[stage]?.name ?? '';
      for (let row = 0; row < lines.length; row++) this.addLine(name, kinds.at(row), lines[row]!, nodes[row]!);
    }
  }

  /** In files of version 2 they are a member of their own. */
  private readOlderLines(listings: Table, table: Table): void {
    const [stages, kinds] = [listings.texts('stage'), listings.texts('kind')];
    const [lines, nodes] = [table.int32('line'), table.int32('node')];
    table.int32('listing').forEach((listing, row) => this.addLine(stages.at(listing), kinds.at(listing), lines[row]!, nodes[row]!));
  }

  private addLine(stage: string, kind: string, line: number, node: number): void {
    const found = this.lines.get(stage) ?? new Map<string, Pairs>();
    this.lines.set(stage, found);
    const pairs = found.get(kind) ?? { line: [], node: [] };
    found.set(kind, pairs);
    pairs.line.push(line);
    pairs.node.push(node);
  }

  /** Where a compiler left a graph, as a listing of its own. */
  private async readBreaks(): Promise<void> {
    for (const [i, { fact, stage }] of this.manifest.tables.entries()) {
      if (fact !== FACTS.breaks.name) continue;
      const table = await this.stored(i);
      const { columns } = FACTS.breaks;
      const [file, line, reason] = [table.texts(columns.file), table.numbers(columns.line), table.texts(columns.reason)];
      const places = Array.from(line, (at, row): Place => (Number.isNaN(at) ? null : [file.at(row), at]));
      const lines = places.map((place, row) => `${place ? `${place[0]}:${place[1]}: ` : ''}graph break: ${reason.at(row)}`);
      const name = this.manifest.stages[stage]?.name ?? '';
      this.breaks.set(name, { text: () => lines.join('\n'), ...NO_PAIRS, places });
    }
  }

  /** The framework's own texts of a stage, by kind; read when they are asked for. */
  listings(stage: string): Map<string, Listing> {
    const found = new Map<string, Listing>();
    const { texts } = this;
    for (let i = 0; texts && i < texts.kind.length; i++) {
      if (texts.stage.at(i) !== stage) continue;
      const kind = texts.kind.at(i);
      found.set(kind, { text: () => texts.text.at(i), ...(this.lines.get(stage)?.get(kind) ?? NO_PAIRS) });
    }
    const breaks = this.breaks.get(stage);
    if (breaks) found.set(FACTS.breaks.name, breaks);
    return found;
  }

  /** Where the tables of a kind of fact about a stage are. Stages that share a graph share what is known of it. */
  facts(fact: string, stage: number): number[] {
    const { stages, tables } = this.manifest;
    const all = tables.flatMap((table, i) => (table.fact === fact ? [i] : []));
    const own = all.filter((i) => tables[i]!.stage === stage);
    const isShared = Object.values(FACTS).some(({ name, of }) => name === fact && of === 'graph');
    const shared = all.filter((i) => isShared && stages[tables[i]!.stage]?.graph === stages[stage]?.graph);
    return own.length ? own : shared;
  }

  /** The first table of a kind of fact about a stage, by `by`; null where there is none. */
  async fact(fact: string, stage: number, by?: string): Promise<Table | null> {
    const place = this.facts(fact, stage).find((i) => !by || this.manifest.tables[i]!.by === by);
    return place === undefined ? null : this.stored(place);
  }

  /** Pairs of operators that a link between two stages joins. */
  async stageLink(index: number): Promise<Links> {
    const member = `stage_links/${index}`;
    const pairs = new Table(member, await this.archive.read(`${member}.arrow`));
    return { source: pairs.int32('source'), target: pairs.int32('target') };
  }

  /** One more stage, with a graph that was made of others. */
  add(stage: Omit<Stage, 'graph'>, graph: Graph): void {
    const index = this.manifest.graphs.push({ links: [...graph.links.keys()], groups: [], bodies: graph.bodies }) - 1;
    this.graphs.set(index, Promise.resolve(graph));
    this.manifest.stages.push({ ...stage, graph: index });
  }

  graph(index: number): Promise<Graph> {
    let graph = this.graphs.get(index);
    if (!graph) this.graphs.set(index, (graph = this.readGraph(index)));
    return graph;
  }

  async stored(index: number): Promise<Table> {
    const { archive, first } = [...this.more].reverse().find((part) => index >= part.first) ?? { archive: this.archive, first: 0 };
    return new Table(`tables/${index - first}`, await archive.read(`tables/${index - first}.arrow`));
  }

  private more: { archive: Archive; first: number }[] = [];

  /** The file, and those with more tables. */
  get files(): Uint8Array[] {
    return [this.archive, ...this.more.map(({ archive }) => archive)].map(({ bytes }) => bytes);
  }

  /** Tables of this capture that came in a file of their own. */
  async attach(bytes: Uint8Array): Promise<void> {
    const archive = new Archive(bytes);
    const { tables } = JSON.parse(new TextDecoder().decode(await archive.read('manifest.json'))) as Manifest;
    this.more.push({ archive, first: this.manifest.tables.length });
    this.manifest.tables.push(...tables);
  }

  private async readGraph(index: number): Promise<Graph> {
    const entry = this.manifest.graphs[index];
    if (!entry) throw new Error(`graph ${index} is missing`);
    const table = async (name: string) => {
      const member = `graphs/${index}/${name}`;
      return new Table(member, await this.archive.read(`${member}.arrow`));
    };
    const [nodes, uses, values, inputs, outputs] = await Promise.all(['nodes', 'uses', 'values', 'inputs', 'outputs'].map(table));
    const links = new Map<LinkKind, Links>();
    for (const [i, kind] of entry.links.entries()) {
      const pairs = await table(`links/${i}`);
      links.set(kind, { source: pairs.int32('source'), target: pairs.int32('target') });
    }
    const groups = new Map<GroupKind, Groups>();
    for (const [i, kind] of entry.groups.entries()) {
      const sets = await table(`groups/${i}`);
      const members = await table(`groups/${i}/members`);
      groups.set(kind, {
        name: sets.int32('name'),
        code: sets.int32('code'),
        attrs: sets.int32('attrs'),
        start: starts(members.int32('group'), sets.rows),
        member: members.int32('node'),
      });
    }
    const useNode = uses!.int32('node');
    return {
      nodes: nodes!.rows,
      op: nodes!.int32('op'),
      name: nodes!.int32('name'),
      scope: nodes!.int32('scope'),
      stack: nodes!.int32('stack'),
      attrs: nodes!.int32('attrs'),
      phase: nodes!.int8('phase'),
      useStart: starts(useNode, nodes!.rows),
      useNode,
      useValue: uses!.int32('value'),
      useArg: uses!.int32('arg'),
      values: values!.rows,
      producer: values!.int32('producer'),
      slot: values!.int32('slot'),
      type: values!.int32('type'),
      valueName: values!.int32('name'),
      storage: values!.int32('storage'),
      role: values!.int8('role'),
      inputs: inputs!.int32('value'),
      outputs: outputs!.int32('value'),
      links,
      groups,
      bodies: entry.bodies,
    };
  }
}

/** Where the rows of each owner start when they are in the order of their owners. Those without one (-1) are left out. */
export function starts(owner: Int32Array, count: number): Int32Array {
  const start = new Int32Array(count + 1);
  for (let i = 0; i < owner.length; i++) if (owner[i]! >= 0) start[owner[i]! + 1]!++;
  for (let i = 0; i < count; i++) start[i + 1]! += start[i]!;
  return start;
}
