// The view tree: operators under modules, and (in a training graph) modules under phases.
//
// Items are numbered: operators 0 … nodes-1, then groups. Group 0 is the root. A group stands for the operators of one
// phase in one scope, because forward and backward of a module in one box would make every graph of boxes a cycle.

import type { Graph, Pools } from '../wire/capture.ts';
import { PHASES } from '../scene.ts';
import type { Bodies } from './compose.ts';
import { csr, row, type Csr } from './csr.ts';

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

export interface TreeOptions {
  split: boolean; // phases apart
  hidden: ReadonlySet<number>; // phases that are not shown
  inlined: Uint8Array; // operators that are drawn inside their user (constants)
  bodies: Bodies;
  opTitle: (node: number) => string;
  phaseNames?: readonly string[];
}

export function buildTree(graph: Graph, pools: Pools, options: TreeOptions): Tree {
  const { nodes, scope, phase } = graph;
  const scopes = pools.scopes.parent.length;
  const { bodies } = options;
  const hidden = Uint8Array.from(PHASES, (_, p) => (options.hidden.has(p) ? 1 : 0));
  const shownPhases = PHASES.map((_, p) => p).filter((p) => !hidden[p] && phase.includes(p));
  const split = options.split && shownPhases.length > 1;

  // Groups by (phase, scope), made from the outside in.
  const byScope = new Int32Array(PHASES.length * scopes).fill(-1);
  const inBodies = new Map<number, number>(); // the same for scopes inside bodies
  const parent: number[] = [-1];
  const groupScope: number[] = [0];
  const groupPhase: number[] = [!split && shownPhases.length === 1 ? shownPhases[0]! : -1];
  const isPhase: number[] = [0];
  const labels = new Map<number, string>();
  const byOwner = new Map<number, number>(); // operators with graphs inside
  const byBody = new Map<number, number>();
  const add = (around: number, s: number, p: number, label: string): number => {
    labels.set(parent.length, label);
    groupScope.push(s);
    groupPhase.push(split ? p : -1);
    isPhase.push(0);
    return parent.push(around) - 1;
  };
  const count = new Map<number, number>();
  for (const node of bodies.owner) count.set(node, (count.get(node) ?? 0) + 1);
  const alone = Array.from(bodies.owner, (node) => count.get(node) === 1);
  const ownerGroup = (node: number): number => {
    let group = byOwner.get(node);
    if (group === undefined) {
      byOwner.set(
        node,
        (group = add(groupOf(phase[node]!, scope[node]!, bodies.bodyOf[node]!), scope[node]!, phase[node]!, options.opTitle(node))),
      );
    }
    return group;
  };
  const bodyGroup = (body: number): number => {
    let group = byBody.get(body);
    const node = bodies.owner[body]!;
    // One graph alone needs no frame of its own.
    if (group === undefined && alone[body]) byBody.set(body, (group = ownerGroup(node)));
    if (group === undefined) byBody.set(body, (group = add(ownerGroup(node), scope[node]!, phase[node]!, bodies.label[body] || 'body')));
    return group;
  };
  const groupOf = (p: number, s: number, body: number): number => {
    if (s === 0 && body >= 0) return bodyGroup(body);
    if (!split && s === 0) return 0;
    const key = (split ? p : 0) * scopes + s;
    let group = body < 0 ? byScope[key]! : (inBodies.get(body * byScope.length + key) ?? -1);
    if (group < 0) {
      const around = s === 0 ? 0 : groupOf(p, pools.scopes.parent[s]!, body);
      group = parent.length;
      if (body < 0) byScope[key] = group;
      else inBodies.set(body * byScope.length + key, group);
      parent.push(around);
      groupScope.push(s);
      groupPhase.push(split ? p : -1);
      isPhase.push(s === 0 ? 1 : 0);
    }
    return group;
  };
  const nodeGroup = new Int32Array(nodes).fill(-1);
  const isOwner = new Uint8Array(nodes);
  for (const node of bodies.owner) isOwner[node] = 1;
  for (let i = 0; i < nodes; i++) {
    const p = phase[i]!;
    if (hidden[p] || options.inlined[i]) continue;
    const known = isOwner[i] || bodies.bodyOf[i]! >= 0 ? -1 : byScope[(split ? p * scopes : 0) + scope[i]!]!;
    if (known >= 0) nodeGroup[i] = known;
    else nodeGroup[i] = isOwner[i] ? ownerGroup(i) : groupOf(p, scope[i]!, bodies.bodyOf[i]!);
  }

  // A constant that stands inside its reader belongs to a module all the same: its own, or the nearest that is drawn.
  const home = options.inlined.includes(1) ? nodeGroup.slice() : nodeGroup;
  for (let i = 0; home !== nodeGroup && i < nodes; i++) {
    if (!options.inlined[i] || hidden[phase[i]!]) continue;
    const body = bodies.bodyOf[i]!;
    let group = -1;
    for (let s = scope[i]!; group < 0; s = pools.scopes.parent[s]!) {
      const key = (split ? phase[i]! : 0) * scopes + s;
      group = body < 0 ? byScope[key]! : (inBodies.get(body * byScope.length + key) ?? -1);
      if (s === 0) break;
    }
    home[i] = group >= 0 ? group : body >= 0 ? (byBody.get(body) ?? 0) : 0;
  }

  const groups = parent.length;
  const childNodes = csr(nodeGroup, groups);
  const tree: Tree = {
    nodes,
    groups,
    parent: Int32Array.from(parent),
    scope: Int32Array.from(groupScope),
    phase: Int8Array.from(groupPhase),
    isPhase: Uint8Array.from(isPhase),
    size: new Int32Array(groups),
    count: new Int32Array(groups),
    first: new Int32Array(groups).fill(nodes),
    nodeGroup,
    home,
    childGroups: { start: new Int32Array(groups + 1), item: new Int32Array(0) },
    childNodes,
    members: home === nodeGroup ? childNodes : csr(home, groups),
    phaseNames: options.phaseNames ?? PHASES,
    labels,
  };
  for (let g = 0; g < groups; g++) {
    const at = tree.childNodes.start[g]!;
    tree.size[g] = tree.childNodes.start[g + 1]! - at;
    tree.count[g] = tree.members.start[g + 1]! - tree.members.start[g]!;
    if (tree.size[g] === 0) continue;
    tree.first[g] = tree.childNodes.item[at]!;
    if (!split && g > 0) tree.phase[g] = phase[tree.first[g]!]!;
  }
  for (let g = groups - 1; g > 0; g--) {
    // groupOf makes parents before their children
    const p = tree.parent[g]!;
    tree.size[p]! += tree.size[g]!;
    tree.count[p]! += tree.count[g]!;
    if (tree.first[g]! < tree.first[p]!) tree.first[p] = tree.first[g]!;
  }
  // Groups are made as their first operator is met, so siblings stand in order already; phases have one of their own.
  tree.childGroups = csr(tree.parent, groups);
  row(tree.childGroups, 0).sort((a, b) => groupOrder(tree, a) - groupOrder(tree, b) || a - b);
  return tree;
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
  const s = tree.scope[group]!;
  const name = pools.scopes.name.at(s) || `(${pools.scopes.cls.at(s)})`;
  const call = pools.scopes.call[s]!;
  return call ? `${name}#${call + 1}` : name;
}

export function groupClass(tree: Tree, pools: Pools, group: number): string {
  return group === 0 || tree.isPhase[group] || tree.labels.has(group) ? '' : pools.scopes.cls.at(tree.scope[group]!);
}

/** The path of a scope, as opscope writes it everywhere. */
export function scopePath(pools: Pools, scope: number): string {
  const parts: string[] = [];
  for (let s = scope; s > 0; s = pools.scopes.parent[s]!) {
    const name = pools.scopes.name.at(s) || `(${pools.scopes.cls.at(s)})`;
    parts.push(pools.scopes.call[s] ? `${name}#${pools.scopes.call[s]! + 1}` : name);
  }
  return parts.reverse().join('/');
}
