// Graphs from the descriptions in tests/find_cases.json; docs/find.md says how they are written.

import { readFileSync } from 'node:fs';
import type { Measured } from '../../src/find/conditions.ts';
import { PHASES } from '../../src/scene.ts';
import { starts, type Graph, type Groups, type Pools } from '../../src/wire/capture.ts';
import { Texts } from '../../src/wire/table.ts';

const ROLES = ['input', 'parameter', 'buffer', 'constant', 'activation', 'gradient', 'state'];

interface Value {
  name?: string;
  dtype?: string;
  shape?: (number | string | null)[] | null;
  role?: string;
}

export interface Described {
  kinds?: Record<string, string>;
  inputs?: Value[];
  nodes: {
    op: string;
    name?: string;
    scope?: string[];
    class?: string;
    phase?: string;
    inputs?: number[];
    outputs?: Value[];
    attrs?: Record<string, unknown>;
    frames?: [string, number][];
    time?: number;
  }[];
  kernels?: { name: string; nodes: number[] }[];
  figures?: Record<string, Record<string, number>>;
}

export interface Case {
  graph: Described;
  query: string;
  nodes?: number[];
  error?: string;
}

export function cases(): Case[] {
  const file = new URL('../../../tests/find_cases.json', import.meta.url);
  let graph: Described = { nodes: [] };
  return (JSON.parse(readFileSync(file, 'utf8')) as (Omit<Case, 'graph'> & { graph?: Described })[]).map((entry) => {
    graph = entry.graph ?? graph;
    return { ...entry, graph };
  });
}

/** A pool: rows without repeats, the first of which is nothing. */
class Interned<Row> {
  rows: Row[];
  private ids = new Map<string, number>();

  constructor(nothing: Row) {
    this.rows = [];
    this.add(nothing);
  }

  add(row: Row): number {
    const key = JSON.stringify(row);
    let id = this.ids.get(key);
    if (id === undefined) this.ids.set(key, (id = this.rows.push(row) - 1));
    return id;
  }

  ints(column: (row: Row) => number): Int32Array {
    return Int32Array.from(this.rows, column);
  }

  texts(column: (row: Row) => string): Texts {
    return Texts.of(this.rows.map(column));
  }
}

/** The times and figures of a case. */
export function measured({ nodes, figures }: Described): Measured {
  return {
    time: (node) => nodes[node]!.time ?? null,
    figure: (name, value) => figures?.[value]?.[name] ?? null,
  };
}

export function build(described: Described): { graph: Graph; pools: Pools } {
  const strings = new Interned('');
  const attrs = new Interned('{}');
  const types = new Interned({ dtype: '', shape: 'null' });
  const scopes = new Interned({ parent: -1, name: '', cls: '', call: 0 });
  const frames = new Interned({ file: '', line: 0 });
  const stacks = new Interned({ parent: -1, frame: 0 });

  const { nodes, inputs = [], kernels = [] } = described;
  const uses = nodes.flatMap((node, row) => (node.inputs ?? []).map((value) => ({ row, value })));
  const values = [
    ...inputs.map((value) => ({ ...value, role: value.role ?? 'input', producer: -1, slot: 0 })),
    ...nodes.flatMap((node, producer) =>
      (node.outputs ?? []).map((value, slot) => ({ ...value, role: value.role ?? 'activation', producer, slot })),
    ),
  ];
  const scopeOf = (path: string[], cls: string) =>
    path.reduce((parent, name, i) => scopes.add({ parent, name, cls: i === path.length - 1 ? cls : '', call: 0 }), 0);
  const stackOf = (lines: [string, number][]) =>
    lines.reduce((parent, [file, line]) => stacks.add({ parent, frame: frames.add({ file, line }) }), 0);
  const useNode = Int32Array.from(uses, (use) => use.row);
  const group: Groups = {
    name: Int32Array.from(kernels, (kernel) => strings.add(kernel.name)),
    code: new Int32Array(kernels.length),
    attrs: new Int32Array(kernels.length),
    start: starts(Int32Array.from(kernels.flatMap((kernel, k) => kernel.nodes.map(() => k))), kernels.length),
    member: Int32Array.from(kernels.flatMap((kernel) => kernel.nodes)),
  };
  const graph: Graph = {
    nodes: nodes.length,
    op: Int32Array.from(nodes, (node) => strings.add(node.op)),
    name: Int32Array.from(nodes, (node) => strings.add(node.name ?? '')),
    scope: Int32Array.from(nodes, (node) => scopeOf(node.scope ?? [], node.class ?? '')),
    stack: Int32Array.from(nodes, (node) => stackOf(node.frames ?? [])),
    attrs: Int32Array.from(nodes, (node) => attrs.add(JSON.stringify(node.attrs ?? {}))),
    phase: Int8Array.from(nodes, (node) => (PHASES as readonly string[]).indexOf(node.phase ?? 'other')),
    useStart: starts(useNode, nodes.length),
    useNode,
    useValue: Int32Array.from(uses, (use) => use.value),
    useArg: Int32Array.from(uses, ({ row }, use) => strings.add(String(use - uses.findIndex((other) => other.row === row)))),
    values: values.length,
    producer: Int32Array.from(values, (value) => value.producer),
    slot: Int32Array.from(values, (value) => value.slot),
    type: Int32Array.from(values, ({ dtype = '', shape = null }) => types.add({ dtype, shape: JSON.stringify(shape) })),
    valueName: Int32Array.from(values, (value) => strings.add(value.name ?? '')),
    storage: Int32Array.from(values.keys()),
    role: Int8Array.from(values, (value) => ROLES.indexOf(value.role)),
    inputs: Int32Array.from(inputs.keys()),
    outputs: new Int32Array(0),
    links: new Map(),
    groups: new Map(kernels.length ? [['kernel', group]] : []),
    bodies: [],
  };
  const pools: Pools = {
    strings: strings.texts((text) => text),
    attrs: attrs.texts((text) => text),
    types: { dtype: types.texts((type) => type.dtype), shape: types.texts((type) => type.shape) },
    scopes: {
      parent: scopes.ints((scope) => scope.parent),
      name: scopes.texts((scope) => scope.name),
      cls: scopes.texts((scope) => scope.cls),
      call: scopes.ints((scope) => scope.call),
    },
    frames: {
      file: frames.texts((frame) => frame.file),
      line: frames.ints((frame) => frame.line),
      fn: frames.texts(() => ''),
    },
    stacks: { parent: stacks.ints((stack) => stack.parent), frame: stacks.ints((stack) => stack.frame) },
  };
  return { graph, pools };
}
