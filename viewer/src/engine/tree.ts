// The view tree: operators under modules, and (in a training graph) modules under phases.
//
// Items are numbered: operators 0 … nodes-1, then groups. Group 0 is the root. A group stands for the operators of one
// phase in one scope, because forward and backward of a module in one box would make every graph of boxes a cycle.

import type { Graph, Pools } from '../wire/capture.ts';
import { PHASES } from '../scene.ts';
import type { Bodies } from './compose.ts';
import { csr, row, type Csr } from '../wire/csr.ts';
import { scopeLabel } from '../wire/scopes.ts';

export interface Tree {
  nodes: number; // operators
  groups: number;
  parent: Int32Array; // of a group: a group, or -1
  scope: Int32Array;
  phase: Int8Array; // of a group: its phase, or -1 where it holds several
  isPhase: Uint8Array; // the group is a phase itself, not a module
  size: Int32Array; // operators inside that are drawn
  count: Int32Array; // all operators inside, as `opscope info` counts them
  first: Int32Array; // the first operator inside, by execution
  nodeGroup: Int32Array; // the group around each operator that is drawn; -1: hidden
  home: Int32Array; // the group that counts each operator, drawn by itself or inside another; -1: its phase is hidden
  childGroups: Csr; // by first operator
  childNodes: Csr;
  members: Csr; // as childNodes, with what is drawn inside other operators
  phaseNames: readonly string[]; // by place in PHASES, in the language of the page
  labels: Map<number, string>; // groups that are no modules: an operator with graphs inside, and each of those graphs
}

interface TreeOptions {
  split: boolean; // phases apart
  hidden: ReadonlySet<number>; // phases that are not shown
  inlined: Uint8Array; // operators that are drawn inside their user (constants)
  bodies: Bodies;
  opTitle: (node: number) => string;
  phaseNames?: readonly string[];
}

export function buildTree(graph: Graph, pools: Pools, options: TreeOptions): Tree {
  const shown = shownPhases(graph, options);
  const groups = new GroupMaker(graph, pools, options, shown);
  const nodeGroup = groupNodes(graph, groups, options, shown);
  const home = homes(graph, groups, options, shown, nodeGroup);
  const tree = newTree(graph, groups, nodeGroup, home, options.phaseNames ?? PHASES);
  countOperators(tree, graph, shown.split);
  // Groups are made as their first operator is met, so siblings are in order already; phases have one of their own.
  row(tree.childGroups, 0).sort((a, b) => groupOrder(tree, a) - groupOrder(tree, b) || a - b);
  return tree;
}

interface ShownPhases {
  hidden: Uint8Array; // by phase
  split: boolean; // each phase has a group
  only: number; // the phase of all operators, or -1
}

function shownPhases({ phase }: Graph, options: TreeOptions): ShownPhases {
  const hidden = Uint8Array.from(PHASES, (_, p) => (options.hidden.has(p) ? 1 : 0));
  const shown = PHASES.map((_, p) => p).filter((p) => !hidden[p] && phase.includes(p));
  const split = options.split && shown.length > 1;
  return { hidden, split, only: !split && shown.length === 1 ? shown[0]! : -1 };
}

/** Makes groups as operators ask for them, from the outside in: so parents come before their children. */
class GroupMaker {
  readonly parent: number[] = [-1];
  readonly scope: number[] = [0];
  readonly phase: number[];
  readonly isPhase: number[] = [0];
  readonly labels = new Map<number, string>();
  /** Groups by (phase, scope); -1: not made. */
  readonly byScope: Int32Array;
  #inBodies = new Map<number, number>(); // the same for scopes inside bodies
  #byOwner = new Map<number, number>(); // operators with graphs inside
  #byBody = new Map<number, number>();
  #graph: Graph;
  #pools: Pools;
  #bodies: Bodies;
  #opTitle: (node: number) => string;
  #split: boolean;
  #alone: boolean[]; // by body: the only one of its operator

  constructor(graph: Graph, pools: Pools, { bodies, opTitle }: TreeOptions, { split, only }: ShownPhases) {
    this.#graph = graph;
    this.#pools = pools;
    this.#bodies = bodies;
    this.#opTitle = opTitle;
    this.#split = split;
    this.phase = [only];
    this.byScope = new Int32Array(PHASES.length * pools.scopes.parent.length).fill(-1);
    const count = new Map<number, number>();
    for (const node of bodies.owner) count.set(node, (count.get(node) ?? 0) + 1);
    this.#alone = Array.from(bodies.owner, (node) => count.get(node) === 1);
  }

  /** The place of a phase and a scope in `byScope`. */
  key(phase: number, scope: number): number {
    return (this.#split ? phase : 0) * this.#pools.scopes.parent.length + scope;
  }

  /** The group of a phase and a scope, inside a body or (-1) outside; -1 where it is not made. */
  known(phase: number, scope: number, body: number): number {
    const key = this.key(phase, scope);
    return body < 0 ? this.byScope[key]! : (this.#inBodies.get(body * this.byScope.length + key) ?? -1);
  }

  /** The same, made where needed. */
  of(phase: number, scope: number, body: number): number {
    if (scope === 0 && body >= 0) return this.ofBody(body);
    if (scope === 0 && !this.#split) return 0;
    // From the scope up to the first that has a group, and down again: without recursion, however deep scopes are.
    const missing: number[] = [];
    let around = -1;
    for (let s = scope; around < 0; s = this.#pools.scopes.parent[s]!) {
      if (s === 0 && body >= 0) around = this.ofBody(body);
      else if (s === 0 && !this.#split) around = 0;
      else {
        around = this.known(phase, s, body);
        if (around < 0) missing.push(s);
        if (around < 0 && s === 0) break;
      }
    }
    for (let s = missing.pop(); s !== undefined; s = missing.pop()) {
      around = this.#add(Math.max(around, 0), s, phase, s === 0);
      const key = this.key(phase, s);
      if (body < 0) this.byScope[key] = around;
      else this.#inBodies.set(body * this.byScope.length + key, around);
    }
    return around;
  }

  /** The group of an operator that has graphs inside. */
  ofOwner(node: number): number {
    let group = this.#byOwner.get(node);
    if (group === undefined) {
      const { phase, scope } = this.#graph;
      const around = this.of(phase[node]!, scope[node]!, this.#bodies.bodyOf[node]!);
      group = this.#add(around, scope[node]!, phase[node]!, false, this.#opTitle(node));
      this.#byOwner.set(node, group);
    }
    return group;
  }

  /** The group of a graph inside an operator. One graph alone needs no frame of its own. */
  ofBody(body: number): number {
    let group = this.#byBody.get(body);
    if (group === undefined) {
      const { phase, scope } = this.#graph;
      const node = this.#bodies.owner[body]!;
      group = this.ofOwner(node);
      if (!this.#alone[body]) group = this.#add(group, scope[node]!, phase[node]!, false, this.#bodies.label[body] || 'body');
      this.#byBody.set(body, group);
    }
    return group;
  }

  /** The group of the nearest scope that has one already: without any, that of the body, or the root. */
  nearest(phase: number, scope: number, body: number): number {
    for (let s = scope; ; s = this.#pools.scopes.parent[s]!) {
      const group = this.known(phase, s, body);
      if (group >= 0) return group;
      if (s === 0) return body >= 0 ? (this.#byBody.get(body) ?? 0) : 0;
    }
  }

  #add(around: number, scope: number, phase: number, isPhase: boolean, label?: string): number {
    if (label !== undefined) this.labels.set(this.parent.length, label);
    this.scope.push(scope);
    this.phase.push(this.#split ? phase : -1);
    this.isPhase.push(isPhase ? 1 : 0);
    return this.parent.push(around) - 1;
  }
}

/** The group around each operator that is drawn. */
function groupNodes({ nodes, scope, phase }: Graph, groups: GroupMaker, { inlined, bodies }: TreeOptions, { hidden }: ShownPhases) {
  const nodeGroup = new Int32Array(nodes).fill(-1);
  const isOwner = new Uint8Array(nodes);
  for (const node of bodies.owner) isOwner[node] = 1;
  for (let i = 0; i < nodes; i++) {
    const p = phase[i]!;
    if (hidden[p] || inlined[i]) continue;
    const body = bodies.bodyOf[i]!;
    const known = isOwner[i] || body >= 0 ? -1 : groups.byScope[groups.key(p, scope[i]!)]!;
    if (known >= 0) nodeGroup[i] = known;
    else nodeGroup[i] = isOwner[i] ? groups.ofOwner(i) : groups.of(p, scope[i]!, body);
  }
  return nodeGroup;
}

/** A constant that is drawn inside its reader belongs to a module all the same: its own, or the nearest that is drawn. */
function homes(
  { nodes, scope, phase }: Graph,
  groups: GroupMaker,
  { inlined, bodies }: TreeOptions,
  { hidden }: ShownPhases,
  nodeGroup: Int32Array,
): Int32Array {
  if (!inlined.includes(1)) return nodeGroup;
  const home = nodeGroup.slice();
  for (let i = 0; i < nodes; i++) {
    if (inlined[i] && !hidden[phase[i]!]) home[i] = groups.nearest(phase[i]!, scope[i]!, bodies.bodyOf[i]!);
  }
  return home;
}

function newTree({ nodes }: Graph, made: GroupMaker, nodeGroup: Int32Array, home: Int32Array, phaseNames: readonly string[]): Tree {
  const groups = made.parent.length;
  const parent = Int32Array.from(made.parent);
  const childNodes = csr(nodeGroup, groups);
  return {
    nodes,
    groups,
    parent,
    scope: Int32Array.from(made.scope),
    phase: Int8Array.from(made.phase),
    isPhase: Uint8Array.from(made.isPhase),
    size: new Int32Array(groups),
    count: new Int32Array(groups),
    first: new Int32Array(groups).fill(nodes),
    nodeGroup,
    home,
    childGroups: csr(parent, groups),
    childNodes,
    members: home === nodeGroup ? childNodes : csr(home, groups),
    phaseNames,
    labels: made.labels,
  };
}

/** How many operators are in each group, which is the first, and of which phase they are. */
function countOperators(tree: Tree, { phase }: Graph, split: boolean): void {
  const { groups, childNodes, members, size, count, first } = tree;
  for (let g = 0; g < groups; g++) {
    const at = childNodes.start[g]!;
    size[g] = childNodes.start[g + 1]! - at;
    count[g] = members.start[g + 1]! - members.start[g]!;
    if (size[g] === 0) continue;
    first[g] = childNodes.item[at]!;
    if (!split && g > 0) tree.phase[g] = phase[first[g]!]!;
  }
  for (let g = groups - 1; g > 0; g--) {
    const p = tree.parent[g]!; // made before its children
    size[p]! += size[g]!;
    count[p]! += count[g]!;
    if (first[g]! < first[p]!) first[p] = first[g]!;
  }
}

// init, forward, backward, recompute, optimizer, other (which is mostly input data); all before any operator.
const PHASE_ORDER = [-60, -40, -20, -30, -10, -50];

/** Modules by their first operator; phases in the order of a training step, because some of an optimizer's arithmetic
 * runs long before the gradients that it waits for. */
export function groupOrder(tree: Tree, group: number): number {
  return tree.isPhase[group] ? PHASE_ORDER[tree.phase[group]!]! : tree.first[group]!;
}

/** The name of a group, as the page shows it. */
export function groupTitle(tree: Tree, pools: Pools, group: number): string {
  if (group === 0) return 'graph';
  const label = tree.labels.get(group);
  if (label !== undefined) return label;
  if (tree.isPhase[group]) return tree.phaseNames[tree.phase[group]!] ?? '?';
  return scopeLabel(pools, tree.scope[group]!);
}

export function groupClass(tree: Tree, pools: Pools, group: number): string {
  return group === 0 || tree.isPhase[group] || tree.labels.has(group) ? '' : pools.scopes.cls.at(tree.scope[group]!);
}
