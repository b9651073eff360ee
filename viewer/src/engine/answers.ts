// What an item is: the answers that panels show.

import { scopePath } from '../wire/scopes.ts';
import { PHASES, ROLES } from '../scene.ts';
import { row } from '../wire/csr.ts';
import type { Groups, Pools } from '../wire/capture.ts';
import { boundary, bytesOf, calledAt, neighbour } from './boundary.ts';
import { FACTS } from '../wire/facts.ts';
import type { Details, KernelDetails, KernelRow, Label, Measure, Ref, TreePage, TreeRow } from './messages.ts';
import { groupClass, groupOrder, groupTitle } from './tree.ts';
import type { View } from './view.ts';

const BACKWARD = PHASES.indexOf('backward');
const INIT = PHASES.indexOf('init');
const MOST_REFS = 40;
const MOST_CHIEF = 4; // operators of a module whose attributes are its own

export function ref(view: View, item: number): Ref {
  const { tree, graph, capture } = view;
  if (item < tree.nodes) return { item, label: view.titles.of(item), full: capture.pools.strings.at(graph.op[item]!) };
  return { item, label: groupTitle(tree, capture.pools, item - tree.nodes) };
}

export function around(view: View, item: number): Ref[] {
  const { tree } = view;
  const path: Ref[] = [];
  let g = item < tree.nodes ? tree.nodeGroup[item]! : (tree.parent[item - tree.nodes] ?? -1);
  for (; g > 0; g = tree.parent[g]!) path.push(ref(view, tree.nodes + g));
  return path.reverse();
}

/** Whether an operator only keeps a tensor for the backward pass, and is passed over. */
function isSaved(view: View, node: number): boolean {
  return !view.options.saved && (view.kept[node] ?? -1) >= 0;
}

/** What made the tensor that a chain of operators hands on as it is: an operator, or -1 for an input. */
function makerOf({ graph, passed }: View, node: number): number {
  let maker = node;
  while (maker >= 0 && (passed[maker] ?? -1) >= 0) maker = graph.producer[passed[maker]!]!;
  return maker;
}

/** The operator whose box shows one that has none of its own: what made a saved tensor, or reads a constant; or -1. */
export function drawnIn(view: View, node: number): number {
  if (!view.inlined[node]) return -1;
  const maker = (view.passed[node] ?? -1) >= 0 ? makerOf(view, node) : -1;
  if (maker >= 0) return maker;
  for (const value of row(view.outputs, node)) for (const use of row(view.readers, value)) return view.graph.useNode[use]!;
  return -1;
}

/** All that is known of an item: of a value that comes from outside, a group, or an operator. */
export function details(view: View, item: number): Details {
  const found = itemDetails(view, item);
  const { ghosts, tree } = view;
  const first = tree.nodes - ghosts.length;
  if (!ghosts.length || item >= first) return found;
  // What is here reads nothing that is gone.
  found.inputs = found.inputs.filter(({ from }) => !from || from.item < first || from.item >= tree.nodes);
  for (const out of found.outputs) out.to = out.to.filter(({ item: reader }) => reader < first || reader >= tree.nodes);
  return found;
}

function itemDetails(view: View, item: number): Details {
  const { nodes, groups } = view.tree;
  if (item >= nodes + groups) return inputDetails(view, item, item - nodes - groups);
  return item >= nodes ? groupDetails(view, item, item - nodes) : opDetails(view, item);
}

function noDetails(view: View, item: number, kind: Details['kind']): Details {
  return {
    item,
    kind,
    title: '',
    op: '',
    cls: '',
    path: around(view, item),
    phase: '',
    name: '',
    attrs: [],
    inputs: [],
    outputs: [],
    backward: [],
    forward: [],
    drawnWith: null,
    kernels: [],
    frames: [],
    builtAt: [],
    held: [],
    more: { inputs: 0, outputs: 0, held: 0 },
    kept: 0,
    maker: null,
    size: 1,
    phases: [],
    ops: [],
    measured: [],
  };
}

function inputDetails(view: View, item: number, value: number): Details {
  const { graph, capture } = view;
  const node = graph.producer[value]!;
  const name = capture.pools.strings.at(graph.valueName[value]!);
  const maker = node < 0 ? null : ref(view, node);
  return {
    ...noDetails(view, item, maker ? 'tensor' : 'input'),
    title: name || maker?.label || `input ${value}`,
    path: node < 0 ? [] : around(view, node),
    phase: node < 0 ? '' : PHASES[graph.phase[node]!]!,
    maker,
    outputs: [outputDetails(view, value)],
  };
}

function groupDetails(view: View, item: number, group: number): Details {
  const { tree, graph } = view;
  const { pools } = view.capture;
  const nodes = inside(view, item);
  const phases = PHASES.map(() => 0);
  const ops = new Map<string, number>();
  for (const node of nodes) {
    phases[graph.phase[node]!]!++;
    const op = pools.strings.at(graph.op[node]!);
    ops.set(op, (ops.get(op) ?? 0) + 1);
  }
  // A module that holds modules only has no phase of its own, but often a common one.
  const common = phases.flatMap((n, i) => (n ? [i] : []));
  const phase = tree.phase[group]! >= 0 ? tree.phase[group]! : common.length === 1 ? common[0]! : -1;
  return {
    ...noDetails(view, item, 'group'),
    title: groupTitle(tree, pools, group),
    cls: groupClass(tree, pools, group),
    phase: phase >= 0 ? PHASES[phase]! : '',
    size: tree.count[group]!,
    phases,
    ops: [...ops].sort((a, b) => b[1] - a[1]).slice(0, 12),
    ...atBoundary(view, item, nodes),
    ...inOtherPhases(view, group),
  };
}

/** What a module is to the others. A module of one operator says what that is. */
function atBoundary(view: View, item: number, nodes: number[]): Partial<Details> {
  const { tree, metrics } = view;
  const group = item - tree.nodes;
  const { inputs, outputs, held, kept } = boundary(view, nodes);
  const from = (node: number) => neighbour(view, group, node, (one) => ref(view, one));
  const within = (g: number) => inside(view, tree.nodes + g);
  const builds =
    tree.scope[group]! > 0 ? range(tree.groups).find((g) => tree.scope[g] === tree.scope[group] && tree.phase[g] === INIT) : undefined;
  return {
    inputs: inputs.slice(0, MOST_REFS).map((value) => valueDetails(view, value, '', from)),
    outputs: outputs.slice(0, MOST_REFS).map((value) => {
      const out = outputDetails(view, value);
      const to = new Map(
        out.to
          .filter(({ item: node }) => !isIn(view, node, group))
          .map((one) => from(one.item))
          .map((one) => [one.item, one]),
      );
      return { ...out, to: [...to.values()] };
    }),
    held: held.slice(0, MOST_REFS).map((value) => valueDetails(view, value, '', from)),
    more: { inputs: unlisted(inputs), outputs: unlisted(outputs), held: unlisted(held) },
    kept: bytesOf(view, kept),
    attrs: attributesOf(view, nodes),
    frames: tree.isPhase[group] ? [] : calledAt(view, group, within),
    builtAt: builds === undefined || builds === group ? [] : calledAt(view, builds, within),
    measured: metrics.describeGroup(item, tree, nodes, bytesOf(view, outputs)),
  };
}

function unlisted(values: readonly number[]): number {
  return Math.max(0, values.length - MOST_REFS);
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

function isIn({ tree }: View, node: number, group: number): boolean {
  for (let g = tree.home[node] ?? -1; g >= 0; g = tree.parent[g]!) if (g === group) return true;
  return false;
}

/** The attributes of the operators that a module is about: those that compute most, or its only one. */
function attributesOf(view: View, nodes: number[]): [string, string][] {
  const { metrics, tree, passed } = view;
  const drawn = nodes.filter((node) => tree.nodeGroup[node]! >= 0 && (passed[node] ?? -1) < 0);
  const chief = nodes.filter((node) => (metrics.value('MACs', node) ?? 0) > 0);
  const about = chief.length && chief.length <= MOST_CHIEF ? chief : drawn.length === 1 ? drawn : [];
  const rows = about.flatMap((node) => {
    const own = ownAttributes(view, node);
    return about.length > 1 ? own.map(([key, text]): [string, string] => [`${view.titles.of(node)}.${key}`, text]) : own;
  });
  return [...new Map(rows.map((pair) => [pair.join('='), pair])).values()];
}

/** The same module in the other phases. */
function inOtherPhases({ tree, capture }: View, group: number): Pick<Details, 'backward' | 'forward'> {
  const backward: Ref[] = [];
  const forward: Ref[] = [];
  if (tree.scope[group]! > 0) {
    for (let other = 1; other < tree.groups; other++) {
      if (other === group || tree.scope[other] !== tree.scope[group]) continue;
      const label = `${tree.phaseNames[tree.phase[other]!] ?? ''} ${groupTitle(tree, capture.pools, other)}`;
      (tree.phase[other] === BACKWARD ? backward : forward).push({ item: tree.nodes + other, label });
    }
  }
  return { backward, forward };
}

function opDetails(view: View, node: number): Details {
  const { graph } = view;
  const { pools } = view.capture;
  const op = pools.strings.at(graph.op[node]!);
  const scope = graph.scope[node]!;
  return {
    ...noDetails(view, node, 'op'),
    op,
    title: op,
    name: pools.strings.at(graph.name[node]!),
    phase: PHASES[graph.phase[node]!]!,
    cls: scope ? pools.scopes.cls.at(scope) : '',
    attrs: ownAttributes(view, node),
    inputs: argumentDetails(view, node),
    outputs: [...row(view.outputs, node)].map((value) => outputDetails(view, value)),
    ...gradientLinks(view, node),
    kernels: kernelsOf(view, node),
    frames: view.sources.frames(node),
    measured: view.metrics.describe(node),
    ...shownWith(view, node),
  };
}

function ownAttributes({ graph, capture }: View, node: number): [string, string][] {
  const attrs = JSON.parse(capture.pools.attrs.at(graph.attrs[node]!)) as Record<string, unknown>;
  return Object.entries(attrs).map(([key, value]) => [key, typeof value === 'string' ? value : JSON.stringify(value)]);
}

function argumentDetails(view: View, node: number): Details['inputs'] {
  const { graph } = view;
  const { strings } = view.capture.pools;
  const inputs: Details['inputs'] = [];
  for (let use = graph.useStart[node]!; use < graph.useStart[node + 1]!; use++) {
    const arg = strings.at(graph.useArg[use]!);
    const value = graph.useValue[use]!;
    if (value < 0) {
      inputs.push({ item: -1, arg, value: 'null', type: '', bytes: -1, role: '', seen: '', from: null });
      continue;
    }
    inputs.push(valueDetails(view, value, arg, (node) => ref(view, node)));
  }
  return inputs;
}

function valueDetails(view: View, value: number, arg: string, from: (node: number) => Ref): Details['inputs'][number] {
  const { graph, types, tree } = view;
  const producer = graph.producer[value]!;
  return {
    item: tree.nodes + tree.groups + value,
    arg,
    value: view.capture.pools.strings.at(graph.valueName[value]!),
    type: types.text(graph.type[value]!),
    bytes: types.bytes(graph.type[value]!),
    role: ROLES[graph.role[value]!]!,
    seen: seen(view, value),
    from: producer < 0 ? null : from(producer),
  };
}

/** What computes the gradient of an operator, and whose gradient it computes. */
function gradientLinks(view: View, node: number): Pick<Details, 'backward' | 'forward'> {
  const backward: Ref[] = [];
  const forward: Ref[] = [];
  const { source, target } = view.graph.links.get('grad') ?? { source: [], target: [] };
  for (let i = 0; i < source.length; i++) {
    if (source[i] === node) backward.push(ref(view, target[i]!));
    if (target[i] === node) forward.push(ref(view, source[i]!));
  }
  return { backward, forward };
}

function kernelsOf({ graph, capture }: View, node: number): Details['kernels'] {
  const kernels = graph.groups.get('kernel');
  const found: Details['kernels'] = [];
  for (let k = 0; kernels && k < kernels.name.length; k++) {
    const members = kernels.member.subarray(kernels.start[k]!, kernels.start[k + 1]!);
    if (members.includes(node)) found.push({ index: k, name: capture.pools.strings.at(kernels.name[k]!), ops: members.length });
  }
  return found;
}

/** Where an operator is shown that has no box of its own. */
function shownWith(view: View, node: number): Partial<Pick<Details, 'drawnWith' | 'path'>> {
  const other = drawnIn(view, node);
  if (other < 0) return {};
  return {
    drawnWith: { kind: isSaved(view, node) ? 'saved' : (view.passed[node] ?? -1) >= 0 ? 'view' : 'constant', ...ref(view, other) },
    path: around(view, other),
  };
}

function outputDetails(view: View, value: number): Details['outputs'][number] {
  const { graph, capture, types, readers } = view;
  const users = [...new Set([...row(readers, value)].map((use) => graph.useNode[use]!))];
  return {
    item: view.tree.nodes + view.tree.groups + value,
    value: capture.pools.strings.at(graph.valueName[value]!),
    type: types.text(graph.type[value]!),
    bytes: types.bytes(graph.type[value]!),
    role: ROLES[graph.role[value]!]!,
    seen: seen(view, value),
    to: users.slice(0, MOST_REFS).map((node) => ref(view, node)),
    more: Math.max(0, users.length - MOST_REFS),
  };
}

/** What was seen of a gradient: where it lay, and its figures. */
function seen({ gradients }: View, value: number): string {
  return [gradients.place(value), gradients.measured(value)].filter(Boolean).join(' · ');
}

/** The operators of an item. */
export function inside(view: View, item: number): number[] {
  const { tree } = view;
  if (item < 0) return [];
  if (item < tree.nodes) return [item];
  if (item >= tree.nodes + tree.groups) return [];
  const nodes: number[] = [];
  const todo = [item - tree.nodes];
  while (todo.length) {
    const g = todo.pop()!;
    for (const node of row(tree.members, g)) nodes.push(node);
    for (const child of row(tree.childGroups, g)) todo.push(child);
  }
  return nodes.sort((a, b) => a - b);
}

/** What is right inside of a module: as many as a page has, from `first` on or around one of them. */
export function children(view: View, item: number, first = 0, around = -1): TreePage {
  const { tree } = view;
  const g = item < 0 ? 0 : item - tree.nodes;
  const groups = row(tree.childGroups, g);
  const nodes = row(tree.childNodes, g);
  const inside = new Int32Array(groups.length + nodes.length);
  groups.forEach((child, i) => (inside[i] = tree.nodes + child));
  inside.set(nodes, groups.length);
  const place = (child: number) => (child < tree.nodes ? child : groupOrder(tree, child - tree.nodes));
  if (inside.some((child, i) => i > 0 && place(inside[i - 1]!) > place(child))) inside.sort((a, b) => place(a) - place(b));
  const from = around < 0 ? first : Math.max(0, inside.indexOf(around) - (PAGE >> 1));
  return { first: from, total: inside.length, rows: Array.from(inside.subarray(from, from + PAGE), (child) => treeRow(view, child)) };
}

const PAGE = 1000; // rows

function treeRow({ tree, graph, capture, titles }: View, item: number): TreeRow {
  const child = item - tree.nodes;
  if (child < 0) {
    const full = capture.pools.strings.at(graph.op[item]!);
    return { item, title: titles.of(item), full, cls: '', size: 1, phase: graph.phase[item]!, children: 0, isGroup: false };
  }
  return {
    item,
    title: groupTitle(tree, capture.pools, child),
    cls: groupClass(tree, capture.pools, child),
    size: tree.count[child]!,
    phase: tree.phase[child]! >= 0 ? tree.phase[child]! : graph.phase[tree.first[child]!]!,
    children: row(tree.childGroups, child).length + row(tree.childNodes, child).length,
    isGroup: true,
  };
}

const runsOf = new WeakMap<Groups, number[]>();

/** How often the code of each kernel ran: its name says which, where the compiler's language is known, else its attributes. */
function kernelRuns(kernels: Groups, pools: Pools): number[] {
  const known = runsOf.get(kernels);
  if (known) return known;
  const { name: names, attrs } = kernels;
  const named = new Set([0, ...[...new Set(attrs)].filter((set) => set && languageOf(pools.attrs.at(set)))]);
  const runs = new Map<string, number>();
  const keys = Array.from(names, (name, k) => (named.has(attrs[k]!) ? `/${name}` : `${attrs[k]}/`));
  for (const key of keys) runs.set(key, (runs.get(key) ?? 0) + 1);
  const found = keys.map((key) => runs.get(key)!);
  runsOf.set(kernels, found);
  return found;
}

/** So many kernels from the first one on: there may be a million, and a list shows few. */
export function kernels(view: View, first: number, count: number): KernelRow[] {
  const { graph, capture, metrics } = view;
  const kernels = graph.groups.get('kernel');
  if (!kernels) return [];
  const runs = kernelRuns(kernels, capture.pools);
  const places = Array.from(kernels.name.subarray(first, first + count), (_, i) => first + i);
  return places.map((index) => ({
    index,
    name: capture.pools.strings.at(kernels.name[index]!),
    ops: kernels.start[index + 1]! - kernels.start[index]!,
    runs: runs[index]!,
    code: kernels.code[index]! > 0,
    language: languageOf(capture.pools.attrs.at(kernels.attrs[index]!)),
    time: metrics.kernelTime(index),
  }));
}

/** As the compiler calls it: `triton`, `cpp`, `library`. */
export function languageOf(attrs: string): string {
  const { language } = JSON.parse(attrs || '{}') as { language?: unknown };
  return typeof language === 'string' ? language : '';
}

export async function kernel(view: View, index: number): Promise<KernelDetails> {
  const { graph, capture, stage } = view;
  const kernels = graph.groups.get('kernel')!;
  const attrs = JSON.parse(capture.pools.attrs.at(kernels.attrs[index]!)) as Record<string, unknown>;
  const files = await capture.fact(FACTS.files.name, stage);
  const file = files?.texts(FACTS.files.columns.file).at(files.int32('index').indexOf(index));
  if (file) attrs.file = file;
  return {
    nodes: [...kernels.member.subarray(kernels.start[index]!, kernels.start[index + 1]!)],
    runs: kernelRuns(kernels, capture.pools)[index]!,
    code: capture.pools.strings.at(kernels.code[index]!),
    name: capture.pools.strings.at(kernels.name[index]!),
    attrs: Object.entries(attrs).map(([key, value]) => [key, typeof value === 'string' ? value : JSON.stringify(value)]),
  };
}

export function labels(view: View, items: number[]): Label[] {
  const { tree, graph, capture, types } = view;
  return items.map((item) => ({
    item,
    label: item < tree.nodes ? capture.pools.strings.at(graph.op[item]!) : ref(view, item).label,
    where: scopePath(capture.pools, item < tree.nodes ? graph.scope[item]! : Math.max(0, tree.scope[item - tree.nodes] ?? 0)),
    phase: item < tree.nodes ? graph.phase[item]! : PHASES.length - 1,
    type:
      item >= tree.nodes
        ? groupClass(tree, capture.pools, item - tree.nodes)
        : row(view.outputs, item).length
          ? types.text(graph.type[row(view.outputs, item)[0]!]!)
          : '',
  }));
}

/** Several items together: their operators, each once, and the sum of each figure. */
export function summed(view: View, items: number[]): { count: number; measured: Measure[] } {
  const all = items.length ? items : [view.tree.nodes]; // all that is drawn
  const nodes = [...new Set(all.flatMap((item) => inside(view, item)))].sort((a, b) => a - b);
  return { count: nodes.length, measured: nodes.length ? view.metrics.sum(nodes) : [] };
}
