// The view tree: operators under modules, and (in a training graph) modules under phases.
//
// Items are numbered: operators 0 … nodes-1, then groups. Group 0 is the root. A group stands for the operators of one
// phase in one scope, because forward and backward of a module in one box would make every graph of boxes a cycle; for the
// same reason a module between whose operators others run is several groups (orderly.ts). Lists of modules, which run
// nothing themselves, are no groups: their names stand before those of their modules.

import type { Graph, Pools } from '../wire/capture.ts';
import { PHASES } from '../scene.ts';
import type { Bodies } from './compose.ts';
import { csr, row, type Csr } from '../wire/csr.ts';
import { scopeLabel } from '../wire/scopes.ts';
import { gather, Gathered } from './gather.ts';
import { addGroup, addTo, followLead, makeOrderly, type Grouping } from './orderly.ts';

/** Purposes of groups beside those of plumbing. */
export const [ALIKE, SECTION] = [4, 5];
const PLUMBING = ['positions and mask', 'positions', 'mask', 'plumbing'];

const [FORWARD, BACKWARD, OPTIMIZER] = [PHASES.indexOf('forward'), PHASES.indexOf('backward'), PHASES.indexOf('optimizer')];
const IN_ROUNDS = [FORWARD, BACKWARD, PHASES.indexOf('recompute')];

/** Modules that only hold others, in PyTorch, PaddlePaddle and MegEngine. */
const LISTS = /^(?:Module|Layer|Parameter)(?:List|Dict)$/;

export interface Tree {
  nodes: number; // operators
  groups: number;
  parent: Int32Array; // of a group: a group, or -1
  scope: Int32Array;
  phase: Int8Array; // of a group: its phase, or -1 where it holds several
  isPhase: Uint8Array; // the group is a phase itself, not a module
  inTurns: boolean; // phases have parts
  part: Int32Array; // 0: all of its module; else which of its parts, from 1 …
  parts: Int32Array; // … of how many
  size: Int32Array; // operators inside that are drawn
  count: Int32Array; // all operators inside, as `opscope info` counts them
  first: Int32Array; // the first operator inside, by execution
  last: Int32Array;
  rank: Int32Array; // how many operators that are drawn come before each operator
  forward: boolean; // no operator reads what a later one makes
  nodeGroup: Int32Array; // the group around each operator that is drawn; -1: hidden
  home: Int32Array; // the group that counts each operator, drawn by itself or inside another; -1: its phase is hidden
  childGroups: Csr; // by first operator
  childNodes: Csr;
  members: Csr; // as childNodes, with what is drawn inside other operators
  phaseNames: readonly string[]; // by place in PHASES, in the language of the page
  purpose: Int8Array; // of a group of plumbing: what it is about (see story.ts); ALIKE or SECTION (gather.ts); -1: of all others
  section: Int32Array; // of a section: its number, the same in all phases; -1 of all others
  opTitle: (node: number) => string;
  plumbingNames: readonly string[]; // by purpose, in the language of the page
  labels: Map<number, string>; // groups that are no modules: an operator with graphs inside, and each of those graphs
}

interface TreeOptions {
  split: boolean; // phases apart
  hidden: ReadonlySet<number>; // phases that are not shown
  inlined: Uint8Array; // operators that are drawn inside their user (constants)
  gone?: Uint8Array; // operators that are not shown
  bodies: Bodies;
  opTitle: (node: number) => string;
  phaseNames?: readonly string[];
  plumbing?: Uint8Array; // operators that stand in one box beside the others of their module
  purpose?: (members: Int32Array) => number;
  plumbingNames?: readonly string[];
  gather?: (node: number) => number; // too much is gathered: by operator its first output, or -1
  flow?: Pick<Graph, 'useNode' | 'useValue'>; // the uses that are drawn; all of them where absent
}

export function buildTree(graph: Graph, pools: Pools, options: TreeOptions): Tree {
  const shown = shownPhases(graph, options);
  const groups = new GroupMaker(graph, pools, options, shown);
  const nodeGroup = groupNodes(graph, groups, options, shown);
  const grouping = groups.grouping(nodeGroup);
  if (shown.split) cutRounds(grouping, graph, options.bodies);
  if (options.plumbing) gatherPlumbing(grouping, options.plumbing);
  const forward = makeOrderly(grouping, { ...(options.flow ?? graph), producer: graph.producer });
  if (shown.split && grouping.phase.includes(FORWARD)) followLead(grouping, FORWARD, groups.ranForward());
  if (options.gather) {
    const drawn = { ...(options.flow ?? graph), producer: graph.producer };
    gather(grouping, graph, drawn, options.gather, (scope) => inList(pools, scope));
  }
  const home = homes(graph, grouping, pools, options, shown);
  const tree = newTree(graph, grouping, home, forward, options);
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
  #lists: Uint8Array; // scopes that are lists of modules
  #owners: Map<number, number> | undefined;

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
    this.#lists = listScopes(graph, pools);
  }

  /** The module of the parameter that a scope is named after, by scope: `h.0.ln` of `h.0.ln.weight`. */
  #moduleOf(): Map<number, number> {
    if (this.#owners) return this.#owners;
    this.#owners = new Map();
    const { parent, name } = this.#pools.scopes;
    const { nodes, phase, scope } = this.#graph;
    const ran = this.ranForward();
    const updates = new Set<number>();
    for (let i = 0; i < nodes; i++) if (phase[i] === OPTIMIZER) updates.add(scope[i]!);
    const modules = new Map<string, number>();
    for (let s = parent.length - 1; s > 0; s--) {
      if (!ran[s]) continue;
      const path: string[] = [];
      for (let at = s; at > 0; at = parent[at]!) path.unshift(name.at(at));
      if (path.includes('')) continue; // it has no name
      modules.set(path.join('.'), s);
      // The model itself has a name in the capture, but none in the names of its parameters.
      if (!modules.has(path.slice(1).join('.'))) modules.set(path.slice(1).join('.'), s);
    }
    for (const s of updates) {
      if (!name.at(s) || parent[s]! <= 0 || parent[parent[s]!] !== 0) continue;
      // Some modules only hold parameters that the module around them reads.
      const path = name.at(s).split('.');
      let module: number | undefined;
      while (path.length && module === undefined) module = path.pop() === undefined ? undefined : modules.get(path.join('.'));
      if (module !== undefined) this.#owners.set(s, module);
    }
    return this.#owners;
  }

  /** Modules of the forward pass, by scope. */
  ranForward(): Uint8Array {
    const { parent } = this.#pools.scopes;
    const { nodes, phase, scope } = this.#graph;
    const ran = new Uint8Array(parent.length);
    for (let i = 0; i < nodes; i++) if (phase[i] === FORWARD) for (let s = scope[i]!; s > 0 && !ran[s]; s = parent[s]!) ran[s] = 1;
    return ran;
  }

  /** All that was made. */
  grouping(nodeGroup: Int32Array): Grouping {
    const { parent, scope, phase, isPhase, labels } = this;
    return {
      parent,
      scope,
      phase,
      isPhase,
      labels,
      nodeGroup,
      part: parent.map(() => 0),
      parts: parent.map(() => 0),
      gathered: parent.map(() => Gathered.No),
      section: parent.map(() => -1),
    };
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
    for (let s = scope; around < 0; s = this.#above(s, phase)) {
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

  /** The scope around a scope that has a group. What updates a parameter belongs to the module of that parameter. */
  #above(scope: number, phase: number): number {
    const { parent } = this.#pools.scopes;
    let above = phase === OPTIMIZER ? (this.#moduleOf().get(scope) ?? parent[scope]!) : parent[scope]!;
    while (this.#lists[above]) above = parent[above]!;
    return above;
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

  #add(around: number, scope: number, phase: number, isPhase: boolean, label?: string): number {
    if (label !== undefined) this.labels.set(this.parent.length, label);
    this.scope.push(scope);
    this.phase.push(this.#split ? phase : -1);
    this.isPhase.push(isPhase ? 1 : 0);
    return this.parent.push(around) - 1;
  }
}

/** The group around each operator that is drawn. */
function groupNodes({ nodes, scope, phase }: Graph, groups: GroupMaker, { inlined, bodies, gone }: TreeOptions, { hidden }: ShownPhases) {
  const nodeGroup = new Int32Array(nodes).fill(-1);
  const isOwner = new Uint8Array(nodes);
  for (const node of bodies.owner) isOwner[node] = 1;
  for (let i = 0; i < nodes; i++) {
    const p = phase[i]!;
    if (hidden[p] || inlined[i] || gone?.[i]) continue;
    const body = bodies.bodyOf[i]!;
    const known = isOwner[i] || body >= 0 ? -1 : groups.byScope[groups.key(p, scope[i]!)]!;
    if (known >= 0) nodeGroup[i] = known;
    else nodeGroup[i] = isOwner[i] ? groups.ofOwner(i) : groups.of(p, scope[i]!, body);
  }
  return nodeGroup;
}

const MOST_ROUNDS = 8;

/**
 * Where forward and backward take turns (gradients that are added up over several batches, two losses), each turn has
 * phases of its own. A few operators of the forward pass after the last of the backward pass are no turn.
 */
function cutRounds(groups: Grouping, { nodes, phase }: Graph, { owner, bodyOf }: Bodies): void {
  const { nodeGroup } = groups;
  // What is inside of an operator stands behind all others, and belongs to the turn of that operator.
  const inside = bodyOf.findIndex((body) => body >= 0);
  const outer = inside < 0 ? nodes : inside;
  let all = 0;
  for (let i = 0; i < outer; i++) if (phase[i] === FORWARD) all++;
  const begins = [0]; // the operator with which each turn begins
  let [turned, first, ahead] = [false, 0, 0]; // since the turn began: its backward pass has begun; the forward operators after that
  for (let i = 0; i < outer; i++) {
    if (phase[i] === FORWARD) {
      if (turned && ahead++ === 0) first = i;
    } else if (phase[i] === BACKWARD) {
      if (ahead > 0.05 * all) begins.push(first);
      [turned, ahead] = [true, 0];
    }
  }
  if (begins.length < 2 || begins.length > MOST_ROUNDS) return;
  const copies = new Map<string, number>();
  const copy = (g: number, round: number): number => {
    const key = `${g}/${round}`;
    let made = copies.get(key);
    if (made === undefined) {
      made = addGroup(groups, g, groups.isPhase[g] ? groups.parent[g]! : copy(groups.parent[g]!, round));
      copies.set(key, made);
      if (groups.isPhase[g]) {
        groups.part[g] = 1;
        groups.part[made] = round + 1;
        for (const one of [g, made]) groups.parts[one] = begins.length;
      }
    }
    return made;
  };
  let round = 0;
  const rounds = new Uint8Array(nodes);
  for (let i = 0; i < nodes; i++) {
    if (i === begins[round + 1]) round++;
    rounds[i] = i < outer ? round : rounds[owner[bodyOf[i]!]!]!;
    if (rounds[i] && nodeGroup[i]! > 0 && IN_ROUNDS.includes(phase[i]!)) nodeGroup[i] = copy(nodeGroup[i]!, rounds[i]!);
  }
}

/** One group in each module for what is only plumbing, where that is several operators among others. */
function gatherPlumbing(groups: Grouping, plumbing: Uint8Array): void {
  const { nodeGroup, parent, labels } = groups;
  const count = new Int32Array(parent.length);
  const others = new Uint8Array(parent.length);
  for (const p of parent) if (p >= 0) others[p] = 1;
  for (let i = 0; i < nodeGroup.length; i++) {
    const g = nodeGroup[i]!;
    if (g < 0) continue;
    if (plumbing[i]) count[g]!++;
    else others[g] = 1;
  }
  const made = new Map<number, number>();
  for (let i = 0; i < nodeGroup.length; i++) {
    if (!plumbing[i]) continue;
    const g = nodeGroup[i]!;
    if (g < 0 || count[g]! < 2 || !others[g] || labels.has(g)) continue;
    let group = made.get(g);
    if (group === undefined) {
      made.set(g, (group = addTo(groups, g, Gathered.Plumbing)));
    }
    nodeGroup[i] = group;
  }
}

/** Lists of modules that ran nothing themselves, by scope. */
function listScopes(graph: Graph, { scopes }: Pools): Uint8Array {
  const lists = Uint8Array.from({ length: scopes.parent.length }, (_, s) => (s > 0 && LISTS.test(scopes.cls.at(s)) ? 1 : 0));
  if (lists.includes(1)) for (const s of graph.scope) lists[s] = 0;
  return lists;
}

/**
 * A constant that is drawn inside its reader belongs to a module all the same: its own, or the nearest that is drawn; of a
 * module in parts, the largest.
 */
function homes(graph: Graph, groups: Grouping, pools: Pools, options: TreeOptions, { hidden, split }: ShownPhases): Int32Array {
  const { inlined, bodies, gone } = options;
  const { nodeGroup, scope, phase, parent, labels } = groups;
  const guests = guestsIn(graph, groups, pools);
  if (!inlined.includes(1)) return guests.size ? nodeGroup.map((g, i) => guests.get(i) ?? g) : nodeGroup;
  const size = new Int32Array(parent.length);
  const bodyOf = new Int32Array(parent.length).fill(-1);
  for (let i = 0; i < graph.nodes; i++) {
    if (nodeGroup[i]! < 0) continue;
    size[nodeGroup[i]!]!++;
    bodyOf[nodeGroup[i]!] = bodies.bodyOf[i]!;
  }
  const inside = bodies.owner.length > 0;
  const scopes = pools.scopes.parent.length;
  const key = (p: number, s: number, body: number) => ((inside ? body + 1 : 0) * PHASES.length + (split ? p : 0)) * scopes + s;
  const known = new Int32Array((inside ? bodies.owner.length + 1 : 1) * PHASES.length * scopes).fill(-1);
  for (let g = parent.length - 1; g > 0; g--) {
    size[parent[g]!]! += size[g]!; // made before its children
    if (labels.has(g) || groups.gathered[g]) continue;
    const at = key(phase[g]!, scope[g]!, bodyOf[g]!);
    if (known[at]! < 0 || size[g]! >= size[known[at]!]!) known[at] = g;
  }
  const home = nodeGroup.slice();
  for (const [node, group] of guests) home[node] = group;
  for (let i = 0; i < graph.nodes; i++) {
    const p = graph.phase[i]!;
    if (!inlined[i] || hidden[p] || gone?.[i]) continue;
    home[i] = 0;
    for (let s = graph.scope[i]!; s >= 0; s = pools.scopes.parent[s]!) {
      let group = known[key(p, s, bodies.bodyOf[i]!)]!;
      if (group < 0 && inside) group = known[key(p, s, -1)]!;
      if (group < 0) continue;
      home[i] = group;
      break;
    }
  }
  return home;
}

/** Operators that are drawn in a module of their own module (orderly.ts), and the group that counts them. */
function guestsIn(graph: Graph, { nodeGroup, scope, parent, isPhase, labels }: Grouping, { scopes }: Pools): Map<number, number> {
  const found = new Map<number, number>();
  const isWithin = new Uint8Array(scope.length).fill(2); // by group, for the operator before: 2 is not known
  let last = -1;
  for (let i = 0; i < nodeGroup.length; i++) {
    const [g, s] = [nodeGroup[i]!, graph.scope[i]!];
    if (g <= 0 || isPhase[g] || labels.has(g) || scope[g] === s) continue;
    if (s !== last) isWithin.fill(2);
    last = s;
    if (isWithin[g] === 2) {
      let at = s;
      while (at > 0 && at !== scope[g]) at = scopes.parent[at]!;
      isWithin[g] = at === scope[g] ? 1 : 0; // what is deeper has no group of its own
    }
    if (isWithin[g]) continue;
    let around = parent[g]!;
    while (around > 0 && !isPhase[around] && scope[around] !== s) around = parent[around]!;
    found.set(i, around);
  }
  return found;
}

function newTree({ nodes }: Graph, made: Grouping, home: Int32Array, forward: boolean, options: TreeOptions): Tree {
  const { nodeGroup } = made;
  const groups = made.parent.length;
  const parent = Int32Array.from(made.parent);
  const childNodes = csr(nodeGroup, groups);
  const rank = new Int32Array(nodes);
  for (let i = 0, drawn = 0; i < nodes; i++) {
    rank[i] = drawn;
    if (nodeGroup[i]! >= 0) drawn++;
  }
  return {
    nodes,
    groups,
    parent,
    scope: Int32Array.from(made.scope),
    phase: Int8Array.from(made.phase),
    isPhase: Uint8Array.from(made.isPhase),
    inTurns: made.part.some((part, g) => part > 0 && made.isPhase[g]! > 0),
    part: Int32Array.from(made.part),
    parts: Int32Array.from(made.parts),
    size: new Int32Array(groups),
    count: new Int32Array(groups),
    first: new Int32Array(groups).fill(nodes),
    last: new Int32Array(groups).fill(-1),
    rank,
    forward,
    nodeGroup,
    home,
    childGroups: csr(parent, groups),
    childNodes,
    members: home === nodeGroup ? childNodes : csr(home, groups),
    phaseNames: options.phaseNames ?? PHASES,
    purpose: Int8Array.from(made.gathered, (why, g) =>
      why === Gathered.No ? -1 : why === Gathered.Alike ? ALIKE : why === Gathered.Section ? SECTION : options.purpose!(row(childNodes, g)),
    ),
    section: Int32Array.from(made.section),
    opTitle: options.opTitle,
    plumbingNames: options.plumbingNames ?? PLUMBING,
    labels: made.labels,
  };
}

/** How many operators are in each group, which is the first, and of which phase they are. */
function countOperators(tree: Tree, { phase }: Graph, split: boolean): void {
  const { groups, childNodes, members, size, count, first, last } = tree;
  for (let g = 0; g < groups; g++) {
    const at = childNodes.start[g]!;
    size[g] = childNodes.start[g + 1]! - at;
    count[g] = members.start[g + 1]! - members.start[g]!;
    if (size[g] === 0) continue;
    first[g] = childNodes.item[at]!;
    last[g] = childNodes.item[childNodes.start[g + 1]! - 1]!;
    if (!split && g > 0) tree.phase[g] = phase[first[g]!]!;
  }
  for (let g = groups - 1; g > 0; g--) {
    const p = tree.parent[g]!; // made before its children
    size[p]! += size[g]!;
    count[p]! += count[g]!;
    if (first[g]! < first[p]!) first[p] = first[g]!;
    if (last[g]! > last[p]!) last[p] = last[g]!;
  }
}

// init, forward, backward, recompute, optimizer, other (which is mostly input data); all before any operator.
const PHASE_ORDER = [-60, -40, -20, -30, -10, -50];

/** Modules by their first operator; phases in the order of a training step, because some of an optimizer's arithmetic
 * runs long before the gradients that it waits for. Phases that take turns stand as they run. */
export function groupOrder(tree: Tree, group: number): number {
  if (!tree.isPhase[group] || tree.inTurns) return tree.first[group]!;
  return PHASE_ORDER[tree.phase[group]!]!;
}

/** `down.0` of the first module of a list, and of all others their name. */
function inList(pools: Pools, scope: number): string {
  const label = scopeLabel(pools, scope);
  return /^\d/.test(label) ? `${scopeLabel(pools, pools.scopes.parent[scope]!)}.${label}` : label;
}

/** The name of a group, as the page shows it. */
export function groupTitle(tree: Tree, pools: Pools, group: number): string {
  if (group === 0) return 'graph';
  if (tree.purpose[group] === ALIKE) return tree.opTitle(tree.first[group]!);
  if (tree.purpose[group] === SECTION) return sectionTitle(tree, pools, group);
  if (tree.purpose[group]! >= 0) return tree.plumbingNames[tree.purpose[group]!]!;
  const label = tree.labels.get(group);
  if (label !== undefined) return label;
  if (tree.isPhase[group]) {
    const name = tree.phaseNames[tree.phase[group]!] ?? '?';
    const all = [...row(tree.childGroups, 0)].reduce((n, g) => n + (tree.phase[g] === tree.phase[group] ? tree.size[g]! : 0), 0);
    return tree.part[group] && tree.size[group]! < 0.9 * all ? `${name} ${tree.part[group]}` : name;
  }
  // With the names of what is around it and has no group.
  const around = tree.scope[tree.parent[group]!]!;
  const names = [scopeLabel(pools, tree.scope[group]!)];
  let s = pools.scopes.parent[tree.scope[group]!]!;
  for (; s > 0 && s !== around; s = pools.scopes.parent[s]!) names.push(scopeLabel(pools, s));
  if (s === around || around === 0) return names.reverse().join('.');
  // What updates a parameter stands in the module of the parameter.
  return tree.phase[group] === OPTIMIZER ? withoutModule(pools, names[0]!, around) : names[0]!;
}

/** `out_proj.weight` of `layers.0.attention.out_proj.weight` in the module `layers.0.attention`. */
function withoutModule(pools: Pools, parameter: string, module: number): string {
  const { parent, name } = pools.scopes;
  const path: string[] = [];
  for (let s = module; s > 0; s = parent[s]!) path.unshift(name.at(s));
  for (let from = 0; from <= path.length; from++) {
    const before = path
      .slice(from)
      .map((part) => `${part}.`)
      .join('');
    if (before && parameter.startsWith(before)) return parameter.slice(before.length);
  }
  return parameter;
}

/** `conv1 … layer2`: what a section begins and ends with; `cat + up.0` where that is all of it. */
function sectionTitle(tree: Tree, pools: Pools, group: number): string {
  const [groups, nodes] = [row(tree.childGroups, group), row(tree.childNodes, group)];
  const title = (last: boolean): string => {
    const [g, node] = last ? [groups[groups.length - 1], nodes[nodes.length - 1]] : [groups[0], nodes[0]];
    if (g === undefined || (node !== undefined && (last ? node > tree.last[g]! : node < tree.first[g]!))) return tree.opTitle(node!);
    return groupTitle(tree, pools, g);
  };
  const [first, last] = [title(false), title(true)];
  const said = upTo(first, last);
  return groups.length + nodes.length === 2 && said.endsWith(` … ${last}`) ? `${first} + ${last}` : said;
}

/** `h.0 … 11`: what the last name shares with the first is not said again. */
export function upTo(first: string, last: string): string {
  const shared = first.lastIndexOf('.') + 1;
  return `${first} … ${shared && last.startsWith(first.slice(0, shared)) ? last.slice(shared) : last}`;
}

export function groupClass(tree: Tree, pools: Pools, group: number): string {
  return group === 0 || tree.isPhase[group] || tree.purpose[group]! >= 0 || tree.labels.has(group)
    ? ''
    : pools.scopes.cls.at(tree.scope[group]!);
}
