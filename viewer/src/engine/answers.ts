// What an item is: the answers that panels show.

import { PHASES, ROLES } from '../scene.ts';
import { row } from './csr.ts';
import type { Groups } from '../wire/capture.ts';
import type { Calls, Details, KernelRow, Label, Ref, TreeRow } from './messages.ts';
import { groupClass, groupOrder, groupTitle, scopePath } from './tree.ts';
import type { View } from './view.ts';

const MOST_REFS = 40;

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

/** The operator whose box shows one that has none of its own: what made a saved tensor, or reads a constant; or -1. */
export function drawnIn(view: View, node: number): number {
  if (!view.inlined[node]) return -1;
  if (isSaved(view, node)) return view.graph.producer[view.kept[node]!]!;
  for (const value of row(view.outputs, node)) for (const use of row(view.readers, value)) return view.graph.useNode[use]!;
  return -1;
}

export function details(view: View, item: number): Details {
  const { tree, graph, capture, types } = view;
  const { pools } = capture;
  const details: Details = {
    item,
    kind: 'op',
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
    size: 1,
    phases: [],
    ops: [],
    measured: [],
  };
  if (item >= tree.nodes + tree.groups) {
    const value = item - tree.nodes - tree.groups;
    details.kind = 'input';
    details.title = pools.strings.at(graph.valueName[value]!) || `input ${value}`;
    details.outputs = [outputDetails(view, value)];
    return details;
  }
  if (item >= tree.nodes) {
    const g = item - tree.nodes;
    details.kind = 'group';
    details.title = groupTitle(tree, pools, g);
    details.cls = groupClass(tree, pools, g);
    details.phase = tree.phase[g]! >= 0 ? PHASES[tree.phase[g]!]! : '';
    details.size = tree.count[g]!;
    details.phases = PHASES.map(() => 0);
    const ops = new Map<string, number>();
    for (const node of inside(view, item)) {
      details.phases[graph.phase[node]!]!++;
      const op = pools.strings.at(graph.op[node]!);
      ops.set(op, (ops.get(op) ?? 0) + 1);
    }
    // A module that holds modules only has no phase of its own, but often a common one.
    const common = details.phases.flatMap((n, i) => (n ? [i] : []));
    if (!details.phase && common.length === 1) details.phase = PHASES[common[0]!]!;
    details.ops = [...ops].sort((a, b) => b[1] - a[1]).slice(0, 12);
    details.measured = view.metrics.describeGroup(item, tree, inside(view, item));
    // The same module in the other phases.
    for (let other = 1; other < tree.groups; other++) {
      if (other !== g && tree.scope[other] === tree.scope[g] && tree.scope[g]! > 0) {
        const target = tree.phase[other] === PHASES.indexOf('backward') ? details.backward : details.forward;
        target.push({ item: tree.nodes + other, label: `${tree.phaseNames[tree.phase[other]!] ?? ''} ${groupTitle(tree, pools, other)}` });
      }
    }
    return details;
  }
  details.op = pools.strings.at(graph.op[item]!);
  details.title = details.op;
  details.name = pools.strings.at(graph.name[item]!);
  details.phase = PHASES[graph.phase[item]!]!;
  const scope = graph.scope[item]!;
  details.cls = scope ? pools.scopes.cls.at(scope) : '';
  const attrs = JSON.parse(pools.attrs.at(graph.attrs[item]!)) as Record<string, unknown>;
  details.attrs = Object.entries(attrs).map(([key, value]) => [key, typeof value === 'string' ? value : JSON.stringify(value)]);
  for (let use = graph.useStart[item]!; use < graph.useStart[item + 1]!; use++) {
    const value = graph.useValue[use]!;
    const producer = value < 0 ? -1 : graph.producer[value]!;
    details.inputs.push({
      arg: pools.strings.at(graph.useArg[use]!),
      value: value < 0 ? 'null' : pools.strings.at(graph.valueName[value]!),
      type: value < 0 ? '' : types.text(graph.type[value]!),
      bytes: value < 0 ? -1 : types.bytes(graph.type[value]!),
      role: value < 0 ? '' : ROLES[graph.role[value]!]!,
      from: producer < 0 ? null : ref(view, producer),
    });
  }
  for (const value of row(view.outputs, item)) details.outputs.push(outputDetails(view, value));
  const grads = graph.links.get('grad');
  if (grads) {
    for (let i = 0; i < grads.source.length; i++) {
      if (grads.source[i] === item) details.backward.push(ref(view, grads.target[i]!));
      if (grads.target[i] === item) details.forward.push(ref(view, grads.source[i]!));
    }
  }
  const kernels = graph.groups.get('kernel');
  if (kernels) {
    for (let k = 0; k < kernels.name.length; k++) {
      const members = kernels.member.subarray(kernels.start[k]!, kernels.start[k + 1]!);
      if (members.includes(item)) details.kernels.push({ index: k, name: pools.strings.at(kernels.name[k]!), ops: members.length });
    }
  }
  details.frames = view.sources.frames(item);
  const other = drawnIn(view, item);
  if (other >= 0) {
    const kind = isSaved(view, item) ? 'saved' : 'constant';
    details.drawnWith = { kind, ...ref(view, other) };
    details.path = around(view, other);
  }
  details.measured = view.metrics.describe(item);
  return details;
}

export function outputDetails(view: View, value: number): Details['outputs'][number] {
  const { graph, capture, types, readers } = view;
  const users = [...new Set([...row(readers, value)].map((use) => graph.useNode[use]!))];
  return {
    value: capture.pools.strings.at(graph.valueName[value]!),
    type: types.text(graph.type[value]!),
    bytes: types.bytes(graph.type[value]!),
    role: ROLES[graph.role[value]!]!,
    to: users.slice(0, MOST_REFS).map((node) => ref(view, node)),
    more: Math.max(0, users.length - MOST_REFS),
  };
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

export function children(view: View, item: number): TreeRow[] {
  const { tree, graph, capture } = view;
  const g = item < 0 ? 0 : item - tree.nodes;
  const groups = [...row(tree.childGroups, g)].map((child) => ({
    item: tree.nodes + child,
    title: groupTitle(tree, capture.pools, child),
    cls: groupClass(tree, capture.pools, child),
    size: tree.count[child]!,
    phase: tree.phase[child]! >= 0 ? tree.phase[child]! : graph.phase[tree.first[child]!]!,
    children: row(tree.childGroups, child).length + row(tree.childNodes, child).length,
    isGroup: true,
    order: groupOrder(tree, child),
  }));
  const nodes = [...row(tree.childNodes, g).subarray(0, 2000)].map((node) => ({
    item: node,
    title: view.titles.of(node),
    full: capture.pools.strings.at(graph.op[node]!),
    cls: '',
    size: 1,
    phase: graph.phase[node]!,
    children: 0,
    isGroup: false,
    order: node,
  }));
  return [...groups, ...nodes].sort((a, b) => a.order - b.order);
}

/** How often the code of each kernel ran. */
function kernelRuns({ name: names, attrs }: Groups): number[] {
  const runs = new Map<string, number>();
  const keys = Array.from(names, (name, k) => `${attrs[k]}/${attrs[k] ? '' : name}`);
  for (const key of keys) runs.set(key, (runs.get(key) ?? 0) + 1);
  return keys.map((key) => runs.get(key)!);
}

export function kernels(view: View): KernelRow[] {
  const { graph, capture, metrics } = view;
  const kernels = graph.groups.get('kernel');
  if (!kernels) return [];
  const runs = kernelRuns(kernels);
  return Array.from(kernels.name, (name, index) => ({
    index,
    name: capture.pools.strings.at(name),
    ops: kernels.start[index + 1]! - kernels.start[index]!,
    runs: runs[index]!,
    code: kernels.code[index]! > 0,
    time: metrics.kernelTime(index),
  }));
}

export function kernel(view: View, index: number): ReturnType<Calls['kernel']> {
  const { graph, capture } = view;
  const kernels = graph.groups.get('kernel')!;
  const attrs = JSON.parse(capture.pools.attrs.at(kernels.attrs[index]!)) as Record<string, unknown>;
  return {
    nodes: [...kernels.member.subarray(kernels.start[index]!, kernels.start[index + 1]!)],
    runs: kernelRuns(kernels)[index]!,
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
    where: item < tree.nodes ? scopePath(capture.pools, graph.scope[item]!) : '',
    phase: item < tree.nodes ? graph.phase[item]! : PHASES.length - 1,
    type: item < tree.nodes && row(view.outputs, item).length ? types.text(graph.type[row(view.outputs, item)[0]!]!) : '',
  }));
}
