// Groups that can be boxes: at every level of the tree, what data flows through from one group to another comes back to
// none of them. A module whose operators run with others in between becomes several groups of its name, one after the
// other; one that only holds modules gives way to those.

import { convexParts } from './convex.ts';
import { csr, row, type Csr } from '../wire/csr.ts';

/** The groups of a tree while it is made; one row each. */
export interface Grouping {
  parent: number[]; // parents before their children, but for sections until all are tidied
  scope: number[];
  phase: number[];
  isPhase: number[];
  part: number[]; // 0: whole; else which of the parts of its module it is …
  parts: number[]; // … of how many
  gathered: number[]; // why it is there, where it is no module (gather.ts)
  section: number[]; // which of the stretches of its module it is, or -1
  labels: Map<number, string>;
  nodeGroup: Int32Array; // the group around each operator that is drawn, or -1
}

/** The uses that are drawn, and what makes the values. */
export interface Flow {
  useNode: Int32Array;
  useValue: Int32Array;
  producer: Int32Array;
}

/**
 * A module that gave way to those inside it in the phase `lead` does so in the others: there it holds them just the same.
 * Only modules for which `ran` is set were in that phase.
 */
export function followLead(groups: Grouping, lead: number, ran: Uint8Array): void {
  const { parent, scope, phase, isPhase, labels, gathered, nodeGroup } = groups;
  const leading = new Set<number>();
  for (let g = 1; g < parent.length; g++) if (phase[g] === lead) leading.add(scope[g]!);
  const own = new Uint8Array(parent.length);
  for (const g of nodeGroup) if (g >= 0) own[g] = 1;
  const gone = new Set<number>();
  for (let g = 1; g < parent.length; g++) {
    if (phase[g] === lead || isPhase[g] || own[g] || labels.has(g) || gathered[g]) continue;
    if (ran[scope[g]!] && !leading.has(scope[g]!)) gone.add(g);
  }
  if (!gone.size) return;
  for (let g = 1; g < parent.length; g++) while (gone.has(parent[g]!)) parent[g] = parent[parent[g]!]!;
  tidy(groups, gone);
}

/** Answers whether the operators stand in an order in which they can run. */
export function makeOrderly(groups: Grouping, flow: Flow): boolean {
  const forward = runsForward(flow);
  if (!forward || !inTurn(groups)) new Order(groups, flow, forward).refine();
  return forward;
}

function runsForward({ useNode, useValue, producer }: Flow): boolean {
  for (let use = 0; use < useValue.length; use++) {
    const maker = useValue[use]! < 0 ? -1 : producer[useValue[use]!]!;
    if (maker >= useNode[use]!) return false;
  }
  return true;
}

/** Most programs run one module after the other: then there is nothing to do. */
function inTurn(groups: Grouping): boolean {
  const { first, last, size, rank } = spans(groups);
  for (let g = 1; g < first.length; g++) if (size[g]! > 0 && rank[last[g]!]! - rank[first[g]!]! + 1 !== size[g]) return false;
  return true;
}

/** The first and last operator in each group, how many there are, and how many come before each operator. */
function spans({ parent, nodeGroup }: Grouping) {
  const n = nodeGroup.length;
  const first = new Int32Array(parent.length).fill(n);
  const last = new Int32Array(parent.length).fill(-1);
  const size = new Int32Array(parent.length);
  const rank = new Int32Array(n);
  let drawn = 0;
  for (let i = 0; i < n; i++) {
    rank[i] = drawn;
    const g = nodeGroup[i]!;
    if (g < 0) continue;
    drawn++;
    size[g]!++;
    if (first[g] === n) first[g] = i;
    last[g] = i;
  }
  const order = outsideIn(parent);
  for (let i = parent.length - 1; i > 0; i--) {
    const g = order ? order[i]! : i;
    const p = parent[g]!;
    size[p]! += size[g]!;
    if (first[g]! < first[p]!) first[p] = first[g]!;
    if (last[g]! > last[p]!) last[p] = last[g]!;
  }
  return { first, last, size, rank };
}

/** The groups with parents before their children; null where they are numbered so. Sections are made around what was there. */
function outsideIn(parent: number[]): number[] | null {
  if (parent.every((p, g) => p < g)) return null;
  const children = childrenOf(parent);
  const order = [0];
  for (let i = 0; i < order.length; i++) order.push(...row(children, order[i]!));
  return order;
}

/** One more group like another; answers its number. */
export function addGroup(groups: Grouping, like: number, around: number): number {
  const { scope, phase, isPhase, part, parts, gathered, section, labels, parent } = groups;
  scope.push(scope[like]!);
  phase.push(phase[like]!);
  isPhase.push(isPhase[like]!);
  part.push(0);
  parts.push(0);
  gathered.push(gathered[like]!);
  section.push(section[like]!);
  const label = labels.get(like);
  if (label !== undefined) labels.set(parent.length, label);
  return parent.push(around) - 1;
}

/** A group in another, for some of what is in that. */
export function addTo(groups: Grouping, around: number, why: number): number {
  const { scope, phase, isPhase, part, parts, gathered, section, parent } = groups;
  scope.push(scope[around]!);
  phase.push(phase[around]!);
  for (const column of [isPhase, part, parts]) column.push(0);
  gathered.push(why);
  section.push(-1);
  return parent.push(around) - 1;
}

class Order {
  /** Uses by operator, as positions in the flow. */
  private uses: Csr | undefined;
  private readonly at: Int32Array; // the number of an operator among those of the level that is looked at, or -1
  private readonly gone = new Set<number>(); // groups that gave way to what they held
  private readonly refused = new Set<number>(); // groups that cannot be one by taking in operators around them
  private readonly guests = new Map<number, number>(); // operators that are drawn in a module of the module that they are in

  constructor(
    private readonly groups: Grouping,
    private readonly flow: Flow,
    private readonly forward: boolean,
  ) {
    this.at = new Int32Array(groups.nodeGroup.length).fill(-1);
  }

  /** From the outside in: what is cut at one level is looked at again below. */
  refine(): void {
    const { groups } = this;
    let level = [0];
    let { first, last, size, rank } = spans(groups);
    let children = childrenOf(groups.parent);
    while (level.length) {
      const suspects = level.filter((g) => {
        const inside = row(children, g).filter((c) => size[c]! > 0);
        return inside.length > 0 && !(this.forward && inside.every((c) => rank[last[c]!]! - rank[first[c]!]! + 1 === size[c]));
      });
      const doubtful = suspects.length ? this.doubtful(suspects, first) : new Set<number>();
      if (doubtful.size) this.settle(doubtful);
      if (doubtful.size) {
        ({ first, last, size, rank } = spans(groups));
        children = childrenOf(groups.parent);
      }
      level = level.flatMap((g) => [...row(children, g)]);
    }
    this.free();
    tidy(this.groups, this.gone);
  }

  /** One operator needs no box around it. */
  private free(): void {
    const { nodeGroup, gathered, parent } = this.groups;
    const size = new Int32Array(parent.length);
    for (const g of nodeGroup) if (g >= 0) size[g]!++;
    for (let i = 0; i < nodeGroup.length; i++) {
      const g = nodeGroup[i]!;
      if (g >= 0 && gathered[g] && size[g] === 1) nodeGroup[i] = parent[g]!;
    }
  }

  /** Of these groups, none of which is inside another, those in which data may go back to a child that it came from. */
  private doubtful(suspects: number[], first: Int32Array): Set<number> {
    const { nodeGroup } = this.groups;
    const { useNode, useValue, producer } = this.flow;
    const { level, child } = this.levelsAbove(new Set(suspects));
    const found = new Set<number>();
    for (let use = 0; use < useValue.length; use++) {
      const value = useValue[use]!;
      const maker = value < 0 ? -1 : producer[value]!;
      if (maker < 0) continue;
      const [from, to] = [nodeGroup[maker]!, nodeGroup[useNode[use]!]!];
      if (from < 0 || to < 0 || from === to || level[from]! < 0 || level[from] !== level[to]) continue;
      const [a, b] = [child[from]!, child[to]!];
      if (a === b && a >= 0) continue;
      // As long as everything reads what began before it did, nothing goes round.
      if ((a < 0 ? maker : first[a]!) >= (b < 0 ? useNode[use]! : first[b]!)) found.add(level[from]!);
    }
    return found;
  }

  /** Cuts the children of these groups, none of which is inside another, until they can be boxes. */
  private settle(wanted: Set<number>): void {
    const { groups } = this;
    const members = new Map<number, number[]>([...wanted].map((g) => [g, []]));
    const childOf = new Int32Array(groups.nodeGroup.length).fill(-1);
    const under = this.levelsAbove(wanted);
    for (let i = 0; i < groups.nodeGroup.length; i++) {
      const g = groups.nodeGroup[i]!;
      const level = g < 0 ? -1 : under.level[g]!;
      if (level < 0) continue;
      members.get(level)!.push(i);
      childOf[i] = under.child[g]!;
    }
    for (const [level, nodes] of members) this.cut(level, nodes, childOf);
  }

  /** For each group: which of the wanted ones is around it (or is it), and the child of that one by which. */
  private levelsAbove(wanted: Set<number>) {
    const { parent } = this.groups;
    const level = new Int32Array(parent.length).fill(-1);
    const child = new Int32Array(parent.length).fill(-1);
    for (let g = 0; g < parent.length; g++) {
      if (this.gone.has(g)) continue;
      const p = parent[g]!;
      if (wanted.has(g)) level[g] = g;
      else if (p >= 0 && wanted.has(p)) [level[g], child[g]] = [p, g];
      else if (p >= 0) [level[g], child[g]] = [level[p]!, child[p]!];
    }
    return { level, child };
  }

  private cut(level: number, nodes: number[], childOf: Int32Array): void {
    const { groups, at } = this;
    const { source, target } = this.edgesAmong(nodes);
    for (;;) {
      const part = convexParts(
        source,
        target,
        Int32Array.from(nodes, (v) => childOf[v]!),
      );
      const parts = new Map<number, number[]>(); // by child, in order of their first operator
      for (let i = 0; i < nodes.length; i++) {
        const c = childOf[nodes[i]!]!;
        if (c < 0) continue;
        const list = parts.get(c);
        if (!list) parts.set(c, [part[i]!]);
        else if (!list.includes(part[i]!)) list.push(part[i]!);
      }
      const broken = [...parts].filter(([, list]) => list.length > 1);
      const takes = broken.filter(([c]) => this.takeIn(c, nodes, source, target, childOf));
      if (takes.length) continue;
      for (const [c] of broken) this.giveBack(c, level, nodes, childOf);
      // What only holds modules gives way to them; then there may be nothing left to cut.
      const own = new Set(broken.length ? nodes.map((v) => groups.nodeGroup[v]!) : []);
      const holders = new Set(
        broken.flatMap(([c]) => (own.has(c) || groups.isPhase[c] || groups.labels.has(c) || groups.gathered[c] ? [] : [c])),
      );
      if (holders.size) {
        for (const c of holders) this.dissolve(c, level);
        for (const v of nodes) if (holders.has(childOf[v]!)) childOf[v] = this.childUnder(level, groups.nodeGroup[v]!);
        continue;
      }
      for (const [c, list] of broken) this.divide(c, list, nodes, part, childOf);
      break;
    }
    for (const v of nodes) at[v] = -1;
  }

  /**
   * A few operators of the module around it that run between those of a module (a concatenation, a resize) are drawn in its
   * box: then it is one. Answers whether it took any in.
   */
  private takeIn(child: number, nodes: number[], source: Int32Array, target: Int32Array, childOf: Int32Array): boolean {
    const { gathered, labels, nodeGroup } = this.groups;
    if (this.refused.has(child) || gathered[child] || labels.has(child)) return false;
    const between = nodesBetween(nodes.length, source, target, (i) => childOf[nodes[i]!] === child);
    const own = nodes.reduce((n, v) => n + (childOf[v] === child ? 1 : 0), 0);
    if (!between.length || between.length > own / 6 || between.some((i) => childOf[nodes[i]!]! >= 0)) return false;
    for (const i of between) {
      const v = nodes[i]!;
      this.guests.set(v, child);
      childOf[v] = nodeGroup[v] = child;
    }
    return true;
  }

  /** What a module took in for nothing, because it has to be cut all the same. */
  private giveBack(child: number, level: number, nodes: number[], childOf: Int32Array): void {
    if (this.refused.has(child)) return;
    this.refused.add(child);
    for (const v of nodes) {
      if (this.guests.get(v) !== child) continue;
      this.guests.delete(v);
      childOf[v] = -1;
      this.groups.nodeGroup[v] = level;
    }
  }

  private edgesAmong(nodes: number[]): { source: Int32Array; target: Int32Array } {
    const { at } = this;
    const { useNode, useValue, producer } = this.flow;
    const uses = (this.uses ??= csr(useNode, at.length));
    nodes.forEach((v, i) => (at[v] = i));
    const source: number[] = [];
    const target: number[] = [];
    for (let i = 0; i < nodes.length; i++) {
      for (const use of row(uses, nodes[i]!)) {
        const maker = useValue[use]! < 0 ? -1 : producer[useValue[use]!]!;
        if (maker < 0 || at[maker]! < 0) continue;
        source.push(at[maker]!);
        target.push(i);
      }
    }
    return { source: Int32Array.from(source), target: Int32Array.from(target) };
  }

  private dissolve(group: number, into: number): void {
    const { parent } = this.groups;
    for (let g = group + 1; g < parent.length; g++) if (parent[g] === group) parent[g] = into;
    this.gone.add(group);
  }

  private childUnder(level: number, group: number): number {
    const { parent } = this.groups;
    for (let g = group; g !== level; g = parent[g]!) if (parent[g] === level) return g;
    return -1;
  }

  /** The operators of all parts but the first go into copies of their groups. */
  private divide(child: number, parts: number[], nodes: number[], part: Int32Array, childOf: Int32Array): void {
    const { groups } = this;
    const { parent, nodeGroup } = groups;
    const copies = new Map<string, number>();
    const copy = (g: number, p: number): number => {
      const key = `${g}/${p}`;
      let made = copies.get(key);
      if (made === undefined) {
        const around = g === child ? parent[g]! : copy(parent[g]!, p);
        made = addGroup(groups, g, around);
        copies.set(key, made);
        if (g === child) groups.part[made] = parts.indexOf(p) + 1;
      }
      return made;
    };
    groups.part[child] ||= 1;
    for (let i = 0; i < nodes.length; i++) {
      const v = nodes[i]!;
      if (childOf[v] !== child || part[i] === parts[0]) continue;
      nodeGroup[v] = copy(nodeGroup[v]!, part[i]!);
    }
  }
}

/** Nodes on the way from some to some of them. */
function nodesBetween(n: number, source: Int32Array, target: Int32Array, isOne: (i: number) => boolean): number[] {
  const reach = (from: Int32Array, to: Int32Array): Uint8Array => {
    const next = csr(from, n, to);
    const seen = new Uint8Array(n);
    const todo: number[] = [];
    for (let i = 0; i < n; i++) if (isOne(i)) todo.push(i);
    for (let i = todo.pop(); i !== undefined; i = todo.pop()) {
      for (const j of row(next, i)) {
        if (seen[j] || isOne(j)) continue;
        seen[j] = 1;
        todo.push(j);
      }
    }
    return seen;
  };
  const [after, before] = [reach(source, target), reach(target, source)];
  return Array.from(after.keys()).filter((i) => after[i] && before[i]);
}

/** Without the groups that nothing is in any more; parents before children again, siblings by their first operator. */
export function tidy(groups: Grouping, gone: ReadonlySet<number>): void {
  const { first, size } = spans(groups);
  const children = childrenOf(groups.parent);
  const order: number[] = [];
  const walk = (g: number): void => {
    order.push(g);
    const inside = [...row(children, g)].filter((c) => size[c]! > 0 && !gone.has(c));
    for (const c of inside.sort((a, b) => first[a]! - first[b]! || a - b)) walk(c);
  };
  walk(0);
  const number = new Map(order.map((g, i) => [g, i]));
  const pick = <T>(column: T[]): T[] => order.map((g) => column[g]!);
  const parent = order.map((g) => (g === 0 ? -1 : number.get(groups.parent[g]!)!));
  const labels = new Map([...groups.labels].flatMap(([g, label]) => (number.has(g) ? [[number.get(g)!, label] as const] : [])));
  // Parts of the same module are counted anew, wherever they came from.
  const count = new Map<string, number>();
  const part = pick(groups.part);
  const parts = part.map(() => 0);
  const key = (i: number) =>
    `${parent[i]}/${groups.scope[order[i]!]}/${groups.phase[order[i]!]}/${groups.gathered[order[i]!]}/${labels.get(i) ?? ''}`;
  part.forEach((p, i) => p > 0 && count.set(key(i), (count.get(key(i)) ?? 0) + 1));
  const seen = new Map<string, number>();
  part.forEach((p, i) => {
    if (!p) return;
    const k = key(i);
    seen.set(k, (seen.get(k) ?? 0) + 1);
    [part[i], parts[i]] = count.get(k)! > 1 ? [seen.get(k)!, count.get(k)!] : [0, 0];
  });
  for (let i = 0; i < groups.nodeGroup.length; i++) if (groups.nodeGroup[i]! >= 0) groups.nodeGroup[i] = number.get(groups.nodeGroup[i]!)!;
  const [scope, phase, isPhase] = [pick(groups.scope), pick(groups.phase), pick(groups.isPhase)];
  const [gathered, section] = [pick(groups.gathered), pick(groups.section)];
  Object.assign(groups, { parent, scope, phase, isPhase, part, parts, gathered, section, labels });
}

function childrenOf(parent: number[]): Csr {
  return csr(Int32Array.from(parent), parent.length);
}
