// The graphs into which a compiler broke one function, as one: each is a module of its own, and between two stands the break,
// with the place, the reason and the values that cross it.

import { PHASES } from '../scene.ts';
import { starts, type Capture, type Graph, type Pools } from '../wire/capture.ts';
import { FACTS } from '../wire/facts.ts';
import { Texts } from '../wire/table.ts';

/** What stands between two graphs. */
export interface Seam {
  node: number;
  reason: string;
}

export interface Whole {
  graph: Graph;
  seams: Seam[];
  /** The stages that it is made of, in order. */
  stages: number[];
}

interface Break {
  file: string;
  line: number; // 0: not known
  reason: string;
}

const FORWARD = PHASES.indexOf('forward');

/** All graphs of a capture as one; null where nothing broke. */
export async function wholeOf(capture: Capture): Promise<Whole | null> {
  const { manifest } = capture;
  const roots = manifest.stages.flatMap(({ after }, i) => (after === null ? [i] : []));
  const broken = new Map<number, Break[]>();
  for (const stage of manifest.stages.keys())
    for (const { before, ...found } of await breaksOf(capture, stage)) {
      // A capture with all passes has one table for all graphs, which names them.
      const at = before === null ? stage : manifest.stages.findIndex(({ name }) => name === before);
      if (roots.includes(at)) broken.set(at, [...(broken.get(at) ?? []), found]);
    }
  // Where a graph ends in a break, the next goes on after it.
  const first = roots.findIndex((stage) => broken.has(stage));
  const last = roots.length - 1 - [...roots].reverse().findIndex((stage) => broken.has(stage));
  const stages = first < 0 ? [] : roots.slice(first, last + 2);
  if (stages.length < 2) return null;
  const graphs = await Promise.all(stages.map((stage) => capture.graph(manifest.stages[stage]!.graph)));
  return new Builder(capture, stages, graphs, broken).build(await crossings(capture, stages, graphs));
}

async function breaksOf(capture: Capture, stage: number): Promise<(Break & { before: string | null })[]> {
  const index = capture.facts(FACTS.breaks.name, stage).find((i) => capture.manifest.tables[i]!.stage === stage);
  if (index === undefined) return [];
  const table = await capture.stored(index);
  const { columns } = FACTS.breaks;
  const [file, line, reason] = [table.texts(columns.file), table.numbers(columns.line), table.texts(columns.reason)];
  const before = table.has(columns.before) ? table.texts(columns.before) : null;
  return Array.from(line, (at, i) => ({ file: file.at(i), line: at || 0, reason: reason.at(i), before: before && before.at(i) }));
}

/** By graph and input: the graph and the value that it is, as far as that was seen. */
type Crossings = Map<string, { piece: number; value: number }>;

async function crossings(capture: Capture, stages: number[], graphs: Graph[]): Promise<Crossings> {
  const found: Crossings = new Map();
  const name = ({ valueName }: Graph, value: number) => capture.pools.strings.at(valueName[value]!);
  for (const [i, link] of (capture.manifest.stage_links ?? []).entries()) {
    const [from, to] = [stages.indexOf(link.before), stages.indexOf(link.after)];
    if (link.kind !== 'flows' || from < 0 || to <= from) continue;
    const [one, other] = [graphs[from]!, graphs[to]!];
    const { source, target } = await capture.stageLink(i);
    source.forEach((maker, k) => {
      const made = Array.from(one.outputs).filter((value) => one.producer[value] === maker);
      const reader = target[k]!;
      const read = Array.from(other.useValue.subarray(other.useStart[reader]!, other.useStart[reader + 1]!));
      const into = read.filter((value) => value >= 0 && other.producer[value]! < 0 && other.inputs.includes(value));
      // It has its name in both, or is the only one of its type.
      for (const value of made) {
        const alike = into.filter((one2) => other.type[one2] === one.type[value]);
        const input = alike.find((one2) => name(other, one2) === name(one, value)) ?? (alike.length === 1 ? alike[0] : undefined);
        if (input !== undefined) found.set(`${to}/${input}`, { piece: from, value });
      }
    });
  }
  return found;
}

class Builder {
  private op: number[] = [];
  private name: number[] = [];
  private scope: number[] = [];
  private stack: number[] = [];
  private attrs: number[] = [];
  private phase: number[] = [];
  private useNode: number[] = [];
  private useValue: number[] = [];
  private useArg: number[] = [];
  private producer: number[] = [];
  private slot: number[] = [];
  private type: number[] = [];
  private valueName: number[] = [];
  private role: number[] = [];
  private inputs: number[] = [];
  private outputs: number[] = [];
  private bodies: Graph['bodies'] = [];
  private grad: { source: number[]; target: number[] } = { source: [], target: [] };
  private readonly pools: Pools;
  private added = { strings: [] as string[], attrs: [] as string[] };

  constructor(
    private capture: Capture,
    private stages: number[],
    private graphs: Graph[],
    private broken: Map<number, Break[]>,
  ) {
    this.pools = capture.pools;
  }

  build(crossed: Crossings): Whole {
    const seams: Seam[] = [];
    const { manifest } = this.capture;
    /** By value of a piece: what it is called beyond the last break. */
    const known = new Map<string, number>();
    for (const [k, graph] of this.graphs.entries()) {
      const values = this.piece(graph, manifest.stages[this.stages[k]!]!.name, (input) => {
        const from = crossed.get(`${k}/${input}`);
        return from && known.get(`${from.piece}/${from.value}`);
      });
      if (k === this.graphs.length - 1) {
        this.outputs = Array.from(graph.outputs, (value) => values[value]!);
        break;
      }
      for (const value of graph.outputs) known.set(`${k}/${value}`, values[value]!);
      const later = new Set([...crossed].filter(([to]) => Number(to.split('/')[0]) > k).map(([, from]) => `${from.piece}/${from.value}`));
      seams.push(this.seam(this.broken.get(this.stages[k]!) ?? [], k, known, later));
    }
    this.pools.strings = longer(this.pools.strings, this.added.strings);
    this.pools.attrs = longer(this.pools.attrs, this.added.attrs);
    return { graph: this.graph(), seams, stages: this.stages };
  }

  /** The operators of one graph, in a module of its own; gives its values' new numbers. */
  private piece(graph: Graph, title: string, outer: (input: number) => number | undefined): number[] {
    const firstNode = this.op.length;
    const values = Array.from({ length: graph.values }, (_, value) => {
      const seen = graph.producer[value]! < 0 ? outer(value) : undefined;
      if (seen !== undefined) return seen;
      const made = graph.producer[value]!;
      return this.value(
        made < 0 ? -1 : made + firstNode,
        graph.slot[value]!,
        graph.type[value]!,
        graph.valueName[value]!,
        graph.role[value]!,
      );
    });
    const scopes = this.scopes(graph, title);
    for (let node = 0; node < graph.nodes; node++) {
      this.op.push(graph.op[node]!);
      this.name.push(graph.name[node]!);
      this.scope.push(scopes.get(graph.scope[node]!)!);
      this.stack.push(graph.stack[node]!);
      this.attrs.push(graph.attrs[node]!);
      this.phase.push(graph.phase[node]!);
    }
    for (let use = 0; use < graph.useNode.length; use++) {
      this.useNode.push(graph.useNode[use]! + firstNode);
      this.useValue.push(graph.useValue[use]! < 0 ? -1 : values[graph.useValue[use]!]!);
      this.useArg.push(graph.useArg[use]!);
    }
    for (const input of graph.inputs) if (outer(input) === undefined) this.inputs.push(values[input]!);
    for (const body of graph.bodies)
      this.bodies.push({ ...body, node: body.node + firstNode, bindings: body.bindings.map(([inside, out]) => [inside, values[out]!]) });
    const links = graph.links.get('grad');
    links?.source.forEach((source, i) => {
      this.grad.source.push(source + firstNode);
      this.grad.target.push(links.target[i]! + firstNode);
    });
    return values;
  }

  /** Where a graph ended: it reads all that the graph gave back, and hands on what is read later. */
  private seam(breaks: Break[], k: number, known: Map<string, number>, later: Set<string>): Seam {
    const node = this.op.length;
    const { file, line, reason } = breaks[0] ?? { file: '', line: 0, reason: '' };
    const place = file ? `${file.split(/[\\/]/).at(-1)}${line ? `:${line}` : ''}` : '';
    const more = breaks.slice(1).map((one) => `${one.file}:${one.line} ${one.reason}`);
    this.op.push(this.string(place ? `graph break · ${place}` : 'graph break'));
    this.name.push(0);
    this.scope.push(0);
    this.stack.push(file && line ? this.frame(file, line) : 0);
    const crossing = [...known].filter(([key]) => later.has(key)).length;
    const told = {
      reason,
      ...(more.length ? { also: more } : {}),
      ...(place ? { at: `${file}:${line}` } : {}),
      'values that cross': crossing,
    };
    this.attrs.push(this.pools.attrs.length + this.added.attrs.push(JSON.stringify(told)) - 1);
    this.phase.push(FORWARD);
    let slot = 0;
    for (const [key, value] of known) {
      const fromHere = key.startsWith(`${k}/`);
      if (!fromHere && !later.has(key)) continue;
      this.useNode.push(node);
      this.useValue.push(value);
      this.useArg.push(this.valueName[value]!);
      if (later.has(key)) known.set(key, this.value(node, slot++, this.type[value]!, this.valueName[value]!, this.role[value]!));
    }
    return { node, reason };
  }

  private value(producer: number, slot: number, type: number, name: number, role: number): number {
    this.slot.push(slot);
    this.type.push(type);
    this.valueName.push(name);
    this.role.push(role);
    return this.producer.push(producer) - 1;
  }

  private string(text: string): number {
    return this.pools.strings.length + this.added.strings.push(text) - 1;
  }

  /** The modules of a graph once more, inside of one for the graph. */
  private scopes(graph: Graph, title: string): Map<number, number> {
    const { scopes } = this.pools;
    const first = scopes.parent.length;
    const root = first;
    const of = new Map<number, number>([[0, root]]);
    const wanted = new Set<number>();
    for (const scope of graph.scope) for (let s = scope; s > 0 && !wanted.has(s); s = scopes.parent[s]!) wanted.add(s);
    const rows = [...wanted].sort((a, b) => a - b);
    rows.forEach((scope, i) => of.set(scope, root + 1 + i));
    this.pools.scopes = {
      parent: Int32Array.from([...scopes.parent, 0, ...rows.map((scope) => of.get(scopes.parent[scope]!)!)]),
      name: longer(scopes.name, [title, ...rows.map((scope) => scopes.name.at(scope))]),
      cls: longer(scopes.cls, ['', ...rows.map((scope) => scopes.cls.at(scope))]),
      call: Int32Array.from([...scopes.call, 0, ...rows.map((scope) => scopes.call[scope]!)]),
    };
    return of;
  }

  private frame(file: string, line: number): number {
    const { frames, stacks } = this.pools;
    this.pools.frames = { file: longer(frames.file, [file]), line: Int32Array.from([...frames.line, line]), fn: longer(frames.fn, ['']) };
    this.pools.stacks = { parent: Int32Array.from([...stacks.parent, 0]), frame: Int32Array.from([...stacks.frame, frames.line.length]) };
    return stacks.parent.length;
  }

  private graph(): Graph {
    const useNode = Int32Array.from(this.useNode);
    const nodes = this.op.length;
    return {
      nodes,
      op: Int32Array.from(this.op),
      name: Int32Array.from(this.name),
      scope: Int32Array.from(this.scope),
      stack: Int32Array.from(this.stack),
      attrs: Int32Array.from(this.attrs),
      phase: Int8Array.from(this.phase),
      useStart: starts(useNode, nodes),
      useNode,
      useValue: Int32Array.from(this.useValue),
      useArg: Int32Array.from(this.useArg),
      values: this.producer.length,
      producer: Int32Array.from(this.producer),
      slot: Int32Array.from(this.slot),
      type: Int32Array.from(this.type),
      valueName: Int32Array.from(this.valueName),
      storage: Int32Array.from(this.producer, (_, value) => value),
      role: Int8Array.from(this.role),
      inputs: Int32Array.from(this.inputs),
      outputs: Int32Array.from(this.outputs),
      links: this.grad.source.length
        ? new Map([['grad', { source: Int32Array.from(this.grad.source), target: Int32Array.from(this.grad.target) }]])
        : new Map(),
      groups: new Map(),
      bodies: this.bodies,
    };
  }
}

function longer(texts: Texts, more: string[]): Texts {
  return new Texts(texts.length + more.length, (i) => (i < texts.length ? texts.at(i) : more[i - texts.length]!));
}
