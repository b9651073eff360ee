// Boxes for what is too much to look at one by one. Operators of a module that are all alike (the gradients of twenty
// reads of one tensor) are one box. A module that holds more than a picture can show is cut into stretches of its order of
// execution, where little goes from one to the next; those of the backward pass follow those of the forward pass.

import { PHASES, ROLES } from '../scene.ts';
import type { Graph } from '../wire/capture.ts';
import { csr, row, type Csr } from '../wire/csr.ts';
import { convexParts } from './convex.ts';
import { mergeNeighbours } from './merging.ts';
import { addTo, tidy, type Flow, type Grouping } from './orderly.ts';

/** Why a group is there, where it is no module and no phase. */
export const Gathered = { No: 0, Plumbing: 1, Alike: 2, Section: 3 } as const;

/** Fewer equal neighbours are drawn one by one. */
export const SHORTEST_RUN = 3;

const [FORWARD, BACKWARD] = [PHASES.indexOf('forward'), PHASES.indexOf('backward')];
const SHOWN_WHOLE = [PHASES.indexOf('init'), PHASES.indexOf('optimizer')]; // they stay closed at first
const INPUT = ROLES.indexOf('input');
const MANY = 20; // operators of one module that stand beside each other
const FEWEST_ALIKE = 4;
const [MOST_ITEMS, MOST_OF_STEP] = [40, 26]; // that a picture can show, and a column of a training step
const FEWEST_OF_COLUMN = 8; // boxes that a module of a training step is left with at least
const FEWEST_OF_MODEL = 4; // modules
const MOST_BESIDE_MODEL = 8; // operators of a phase beside the model: the model tells more
const [SHORTEST, LONGEST] = [4, 12]; // items of a section, where there are not many more
const FEWEST_BETWEEN = 3; // operators between modules that are one box
const SECTIONS = 16; // as a rule
const MOST_SECTIONS = 30;
const LARGEST = 2000; // items of a module that is looked at
const MOST_NODES = 250_000; // of one level …
const MOST_OF_GRAPH = 500_000; // … and of a graph: a larger one must open, too
const MOST_TYPES = 2 ** 21; // for a number of its own for every pair of an operator and a type

/** The items directly in a group: groups (as -1 - group) and operators, in an order in which they can run. */
interface Level {
  items: number[];
  /** Edges between items, by place. */
  source: Int32Array;
  target: Int32Array;
}

/** `named`: what a module is called, in its list where it is in one: it says which modules are of one kind. */
export function gather(
  groups: Grouping,
  graph: Graph,
  flow: Flow,
  outputs: (node: number) => number,
  named: (scope: number) => string,
): void {
  if (groups.nodeGroup.length > MOST_OF_GRAPH) return;
  const found = new Gatherer(groups, graph, flow, outputs, named);
  const made = found.alike();
  if (found.cut() || made) tidy(groups, new Set());
}

class Gatherer {
  private readonly boxOf: Int32Array; // by operator, while a level is looked at
  private uses: Csr | undefined;
  private nodes: Int32Array | undefined; // while a level is looked at
  private members!: Csr; // operators by group
  private children!: Csr;
  private readonly isStep: boolean;

  constructor(
    private readonly groups: Grouping,
    private readonly graph: Graph,
    private readonly flow: Flow,
    private readonly output: (node: number) => number,
    private readonly named: (scope: number) => string,
  ) {
    this.boxOf = new Int32Array(groups.nodeGroup.length).fill(-1);
    this.isStep = groups.phase.includes(BACKWARD);
    this.unit = new Int32Array(this.isStep ? groups.nodeGroup.length : 0).fill(-1);
    this.index();
  }

  private index(): void {
    const { parent, nodeGroup } = this.groups;
    this.members = csr(nodeGroup, parent.length);
    this.children = csr(Int32Array.from(parent), parent.length);
  }

  /** One box for operators of a kind, where a module has many of them. */
  alike(): boolean {
    const { groups, members } = this;
    const levels = groups.parent.length;
    let made = false;
    for (let g = 0; g < levels; g++) {
      const own = row(members, g);
      if (own.length < MANY || own.length > LARGEST || groups.gathered[g] || groups.labels.has(g)) continue;
      const kinds = new Map<number, number[]>();
      for (const node of own) {
        const value = this.output(node);
        if (value < 0) continue;
        const key = this.graph.op[node]! * MOST_TYPES + this.graph.type[value]!;
        const list = kinds.get(key);
        if (list) list.push(node);
        else kinds.set(key, [node]);
      }
      const many = [...kinds.values()].filter((list) => list.length >= FEWEST_ALIKE);
      if (many.length && this.join(g, many)) made = true;
    }
    if (made) this.index();
    return made;
  }

  private join(level: number, lists: number[][]): boolean {
    const { groups } = this;
    const found = this.levelOf(level);
    if (!found) return false;
    const { items, source, target } = found;
    const listOf = new Map(lists.flatMap((list, i) => list.map((node): [number, number] => [node, i])));
    const cluster = Int32Array.from(items, (item) => (item < 0 ? -1 : (listOf.get(item) ?? -1)));
    const part = convexParts(source, target, cluster);
    const parts = new Map<number, number[]>();
    items.forEach((item, i) => {
      if (cluster[i]! < 0) return;
      const list = parts.get(part[i]!);
      if (list) list.push(item);
      else parts.set(part[i]!, [item]);
    });
    let made = false;
    for (const list of parts.values()) {
      if (list.length < FEWEST_ALIKE) continue;
      const group = addTo(groups, level, Gathered.Alike);
      for (const node of list) groups.nodeGroup[node] = group;
      made = true;
    }
    return made;
  }

  /** Sections, first those of the forward pass; from the outside in. */
  cut(): boolean {
    const { groups } = this;
    let all = false;
    const sectionOf = new Int32Array(groups.nodeGroup.length).fill(-1); // of operators of the forward pass
    for (const backward of [false, true]) {
      const levels = groups.parent.length;
      let made = false;
      for (let g = 0; g < levels; g++) {
        if (groups.gathered[g] || groups.labels.has(g)) continue;
        if ((groups.phase[g] === BACKWARD) !== backward || SHOWN_WHOLE.includes(groups.phase[g]!)) continue;
        const operators = row(this.members, g).length;
        const children = row(this.children, g).length;
        const many = operators + children;
        if (many <= FEWEST_OF_COLUMN || many > LARGEST) continue;
        const beside = this.isStep && groups.isPhase[g] && children > 0 && !this.holdsModel(g) && operators > MOST_BESIDE_MODEL;
        const most = beside ? MOST_BESIDE_MODEL : this.isOuter(g) ? MOST_OF_STEP : MOST_ITEMS;
        const modules = this.folded(g);
        if (this.merge(g, operators + modules, backward)) {
          made = true;
          continue;
        }
        if (operators + modules <= most) continue;
        const found = this.levelOf(g);
        if (!found) continue;
        const cuts = backward ? this.likeForward(found, sectionOf) : null;
        // Where modules tell the story, they stay, and what runs between them is gathered.
        const section = (modules > most / 2 && !beside) || !modules ? (cuts ?? inSections(found)) : between(found, cuts);
        made = this.sections(g, found, section, sectionOf) || made;
      }
      if (made) this.index();
      all ||= made;
    }
    return all;
  }

  /** By operator of the forward pass of a model that was merged: the box that shows it. */
  private readonly unit: Int32Array;

  /**
   * Fewer boxes in the model of a training step, so that all of the step can be seen: forward and backward have an equal
   * part of what the others leave. In the backward pass, what belongs to one box of the forward pass is one box first.
   */
  private merge(g: number, many: number, backward: boolean): boolean {
    const most = this.most();
    const isModel = this.isModelOfStep(g);
    const follows = backward && this.unit.some((box) => box >= 0 && box < this.next);
    if (!isModel || most < 0 || many > MOST_ITEMS || (many <= most && !follows)) return false;
    const found = this.levelOf(g);
    if (!found) return false;
    const { items } = found;
    const none = new Int32Array(items.length).fill(-1);
    const units = backward ? this.unitsOf(found) : none;
    const clusters = follows
      ? this.convex(
          found,
          units.map((box) => (box < this.next ? box : -1)),
        )
      : none;
    // Equal neighbours are one box already, and remain it.
    const folded = this.runs(g).groups;
    const folds = items.length - many;
    // Where operators are the greater part, they share boxes rather than the modules.
    const isMostlyPlain = items.filter((item) => !this.isModule(item)).length > items.length / 2;
    const room = Math.max(most - (isMostlyPlain ? 1 : 0), FEWEST_OF_COLUMN) + folds;
    const count = (of: Int32Array) => new Set(Array.from(of, (s, i) => (s >= 0 ? s : -1 - i))).size;
    const cost = (a: readonly number[], b: readonly number[], isChain: boolean) => {
      const joined = [...a, ...b];
      if (joined.some((i) => folded.has(-1 - items[i]!))) return Infinity;
      const isOne = backward && units[a[0]!]! >= 0 && joined.every((i) => units[i] === units[a[0]!]);
      const modules = joined.flatMap((i) => (this.isModule(items[i]!) ? [this.named(this.groups.scope[-1 - items[i]!]!)] : []));
      const several = modules.length < 2 ? 1.5 * modules.length : modules.every((name) => stem(name) === stem(modules[0]!)) ? 2 : 3.5;
      return (isOne ? 0 : (isChain ? 0 : 2) + several) + 0.4 * (joined.length - 2);
    };
    const plainly: typeof cost = (a, b, isChain) => ([...a, ...b].some((i) => this.isModule(items[i]!)) ? Infinity : cost(a, b, isChain));
    let section = clusters;
    if (isMostlyPlain) section = mergeNeighbours(items.length, found, section, room, plainly);
    if (count(section) > room) section = mergeNeighbours(items.length, found, section, room, cost);
    // Too much even so: it is cut into stretches.
    if (count(section) - folds > most && many > MOST_OF_STEP && !follows) return false;
    if (!backward) {
      this.next = section.reduce((high, s) => Math.max(high, s), -1) + 1;
      items.forEach((item, i) => {
        for (const node of this.inside(item)) this.unit[node] = section[i]! >= 0 ? section[i]! : this.next + i;
      });
    }
    return this.sections(g, found, section, this.unit, 1);
  }

  /** The largest module of a phase; a phase itself that holds many. */
  private isModelOfStep(g: number): boolean {
    const { parent, isPhase, gathered } = this.groups;
    if (!this.isOuter(g) || gathered[g]) return false;
    if (isPhase[g]) return this.holdsModel(g);
    const size = (child: number) => row(this.members, child).length + row(this.children, child).length;
    return !this.holdsModel(parent[g]!) && row(this.children, parent[g]!).every((child) => gathered[child] || size(child) <= size(g));
  }

  /** Where the model has no box of its own, its modules are in the phase. */
  private holdsModel(phase: number): boolean {
    return row(this.children, phase).filter((child) => !this.groups.gathered[child]).length >= FEWEST_OF_MODEL;
  }

  private next = 0; // after the boxes that are merged in the forward pass

  /** Boxes for each of the two columns; -1 where a step has more of them, or none. */
  private most(): number {
    const { parent, isPhase, phase, gathered } = this.groups;
    const phases = Array.from(parent.keys()).filter((g) => isPhase[g] && [FORWARD, BACKWARD].includes(phase[g]!));
    if (phases.length !== 2 || phase[phases[0]!] === phase[phases[1]!]) return -1;
    let boxes = row(this.children, 0).length + 1; // the loss
    for (const value of this.graph.inputs) if (this.graph.role[value] === INPUT) boxes++;
    for (const g of phases) {
      const [groups, own] = [row(this.children, g), row(this.members, g).length];
      if (!groups.some((child) => !gathered[child])) return -1;
      if (this.holdsModel(g)) continue;
      boxes += groups.length + (own > MOST_BESIDE_MODEL ? Math.ceil(own / LONGEST) : own);
    }
    return Math.floor((MOST_ITEMS - boxes) / 2);
  }

  private isModule(item: number): boolean {
    return item < 0 && !this.groups.gathered[-1 - item];
  }

  /** By item of the backward pass: the box of the forward pass that most of its gradients belong to, or -1. */
  private unitsOf({ items }: Level): Int32Array {
    const votes = this.votes(items, this.unit);
    return Int32Array.from(votes, (of) => [...of].sort((a, b) => b[1] - a[1])[0]?.[0] ?? -1);
  }

  /** Clusters without those parts of them that would make a loop: the largest part keeps the number. */
  private convex({ source, target }: Level, wanted: Int32Array): Int32Array {
    const part = convexParts(source, target, wanted);
    const size = new Map<number, number>();
    for (const p of part) size.set(p, (size.get(p) ?? 0) + 1);
    const largest = new Map<number, number>();
    part.forEach((p, i) => {
      const now = largest.get(wanted[i]!);
      if (wanted[i]! >= 0 && (now === undefined || size.get(p)! > size.get(now)!)) largest.set(wanted[i]!, p);
    });
    return wanted.map((cluster, i) => (cluster >= 0 && largest.get(cluster) === part[i] ? cluster : -1));
  }

  /** A phase of a training step, or a whole model in it: it stands beside its gradients. */
  private isOuter(g: number): boolean {
    const { parent, isPhase } = this.groups;
    return g > 0 && this.isStep && (isPhase[g]! > 0 || isPhase[parent[g]!]! > 0);
  }

  /** How many boxes the groups in a group are, about, when equal neighbours are one. */
  private folded(g: number): number {
    const { count, runs } = this.runs(g);
    return row(this.children, g).length - count + runs;
  }

  /** Groups in a group that will be folded, about: runs of those that look alike. */
  private runs(g: number): { groups: Set<number>; count: number; runs: number } {
    const children = row(this.children, g);
    const groups = new Set<number>();
    let runs = 0;
    for (let from = 0, end; from < children.length; from = end) {
      for (end = from + 1; end < children.length && this.isLike(children[end - 1]!, children[end]!); end++);
      if (end - from < SHORTEST_RUN) continue;
      runs++;
      for (const child of children.subarray(from, end)) groups.add(child);
    }
    return { groups, count: groups.size, runs };
  }

  private isLike(a: number, b: number): boolean {
    const { gathered, parent, scope } = this.groups;
    const isModule = (g: number) => !gathered[g] && scope[g] !== scope[parent[g]!];
    const size = (g: number) => [row(this.members, g).length, row(this.children, g).length];
    const [[p, q], [r, s]] = [size(a), size(b)] as [[number, number], [number, number]];
    return isModule(a) && isModule(b) && p === r && q === s && this.made(a) === this.made(b);
  }

  /** The type of what comes out of a group, last of all. */
  private made(group: number): number {
    const last = this.inside(-1 - group).reduce((late, node) => Math.max(late, node), -1);
    const value = last < 0 ? -1 : this.output(last);
    return value < 0 ? -1 : this.graph.type[value]!;
  }

  private sections(level: number, { items }: Level, section: Int32Array, sectionOf: Int32Array, fewest = 2): boolean {
    const { groups } = this;
    const lists = new Map<number, number[]>();
    items.forEach((item, i) => {
      if (section[i]! < 0) return;
      const list = lists.get(section[i]!);
      if (list) list.push(item);
      else lists.set(section[i]!, [item]);
    });
    if (lists.size < fewest) return false;
    for (const [number, list] of lists) {
      if (list.length < 2) continue;
      const group = addTo(groups, level, Gathered.Section);
      groups.section[group] = number;
      for (const item of list) {
        if (item < 0) groups.parent[-1 - item] = group;
        else groups.nodeGroup[item] = group;
        if (groups.phase[level] === FORWARD) for (const node of this.inside(item)) sectionOf[node] = number;
      }
    }
    return true;
  }

  /** Where the gradients of each section are, or null. */
  private likeForward({ items, source, target }: Level, sectionOf: Int32Array): Int32Array | null {
    const votes = this.votes(items, sectionOf);
    const wanted = votes.map((of) => [...of].sort((a, b) => b[1] - a[1])[0]?.[0] ?? -1);
    if (wanted.every((section) => section < 0)) return null;
    // What belongs to none of them goes with what is before it.
    for (let i = 1; i < wanted.length; i++) if (wanted[i]! < 0) wanted[i] = wanted[i - 1]!;
    for (let i = wanted.length - 2; i >= 0; i--) if (wanted[i]! < 0) wanted[i] = wanted[i + 1]!;
    const part = convexParts(source, target, Int32Array.from(wanted));
    // Of a section that has to be cut, the largest part keeps its number.
    const size = new Map<number, number>();
    for (const p of part) size.set(p, (size.get(p) ?? 0) + 1);
    const most = new Map<number, number>();
    part.forEach((p, i) => {
      const now = most.get(wanted[i]!);
      if (now === undefined || size.get(p)! > size.get(now)!) most.set(wanted[i]!, p);
    });
    let next = Math.max(...wanted) + 1;
    const number = new Map([...most].map(([section, p]) => [p, section]));
    return part.map((p) => {
      if (!number.has(p)) number.set(p, next++);
      return number.get(p)!;
    });
  }

  /** By item: how many of its gradients belong to each section of the forward pass. */
  private votes(items: readonly number[], sectionOf: Int32Array): Map<number, number>[] {
    const votes = items.map(() => new Map<number, number>());
    const boxOf = this.boxOf;
    items.forEach((item, i) => this.inside(item).forEach((node) => (boxOf[node] = i)));
    const links = this.graph.links.get('grad');
    links?.source.forEach((node, i) => {
      const [section, box] = [sectionOf[node]!, boxOf[links.target[i]!]!];
      if (section >= 0 && box >= 0) votes[box]!.set(section, (votes[box]!.get(section) ?? 0) + 1);
    });
    items.forEach((item) => this.inside(item).forEach((node) => (boxOf[node] = -1)));
    return votes;
  }

  /** The operators in an item, itself among them. */
  private inside(item: number): number[] {
    if (item >= 0) return [item];
    const found: number[] = [];
    const todo = [-1 - item];
    for (let g = todo.pop(); g !== undefined; g = todo.pop()) {
      for (const node of row(this.members, g)) found.push(node);
      for (const child of row(this.children, g)) todo.push(child);
    }
    return found;
  }

  /** What is directly in a group, or null where that is too much to look at. */
  private levelOf(level: number): Level | null {
    const { groups, boxOf } = this;
    const { useNode, useValue, producer } = this.flow;
    const uses = (this.uses ??= csr(useNode, groups.nodeGroup.length));
    const [own, kids] = [row(this.members, level), row(this.children, level)];
    const items = [...Array.from(kids, (g) => -1 - g), ...own];
    // The operators in all items, one item after the other.
    const nodes = (this.nodes ??= new Int32Array(groups.nodeGroup.length));
    const [end, first] = [new Int32Array(items.length), new Int32Array(items.length)];
    let count = 0;
    for (let i = 0; i < items.length; i++) {
      const begin = count;
      if (items[i]! >= 0) nodes[count++] = items[i]!;
      else count = this.putInside(-1 - items[i]!, nodes, count);
      end[i] = count;
      if (count > MOST_NODES) return null;
      for (let at = begin; at < count; at++) if (at === begin || nodes[at]! < first[i]!) first[i] = nodes[at]!;
    }
    for (let i = 0, at = 0; i < items.length; i++) for (; at < end[i]!; at++) boxOf[nodes[at]!] = i;
    const [source, target]: number[][] = [[], []];
    const seen = new Int32Array(items.length).fill(-1); // by item: the last one that reads it
    for (let i = 0, at = 0; i < items.length; i++) {
      for (; at < end[i]!; at++) {
        const node = nodes[at]!;
        for (let u = uses.start[node]!; u < uses.start[node + 1]!; u++) {
          const value = useValue[uses.item[u]!]!;
          const maker = value < 0 ? -1 : producer[value]!;
          const from = maker < 0 ? -1 : boxOf[maker]!;
          if (from < 0 || from === i || seen[from] === i) continue;
          seen[from] = i;
          source!.push(from);
          target!.push(i);
        }
      }
    }
    for (let at = 0; at < count; at++) boxOf[nodes[at]!] = -1;
    return ordered({ items, source: Int32Array.from(source!), target: Int32Array.from(target!) }, first);
  }

  /** Puts the operators in a group at a place of a list; the place behind them. */
  private putInside(group: number, list: Int32Array, at: number): number {
    const { members, children } = this;
    const todo = [group];
    for (let g = todo.pop(); g !== undefined; g = todo.pop()) {
      for (let i = members.start[g]!; i < members.start[g + 1]!; i++) list[at++] = members.item[i]!;
      for (let i = children.start[g]!; i < children.start[g + 1]!; i++) todo.push(children.item[i]!);
    }
    return at;
  }
}

/** What modules of one kind have in common: `mid` of `mid1` and `mid_attention`, `down` of `down.0`. */
function stem(name: string): string {
  const end = name.search(/[\d_.#]/);
  return end > 0 ? name.slice(0, end) : name;
}

/** The items in an order in which they can run, as near as may be to that in which they ran. */
function ordered({ items, source, target }: Level, first: Int32Array): Level {
  const n = items.length;
  if (first.every((at, i) => !i || at >= first[i - 1]!) && source.every((a, e) => a < target[e]!)) return { items, source, target };
  const by = Array.from({ length: n }, (_, i) => i).sort((a, b) => first[a]! - first[b]!);
  const place = new Int32Array(n);
  by.forEach((item, i) => (place[item] = i));
  const renamed = (list: Int32Array) => list.map((i) => place[i]!);
  let [from, to] = [renamed(source), renamed(target)];
  let order = by;
  if (from.some((a, e) => a > to[e]!)) {
    // As parts of their own they come out in an order in which they can run.
    const part = convexParts(from, to, new Int32Array(n).fill(-1));
    const next = Array.from({ length: n }, (_, i) => i).sort((a, b) => part[a]! - part[b]!);
    order = next.map((i) => by[i]!);
    const again = new Int32Array(n);
    next.forEach((i, k) => (again[i] = k));
    [from, to] = [from.map((i) => again[i]!), to.map((i) => again[i]!)];
  }
  return { items: order.map((i) => items[i]!), source: from, target: to };
}

/**
 * Sections of operators alone: stretches of those that run between modules, cut as `cuts` says or where little goes across.
 * What stands by itself is in none.
 */
function between({ items, source, target }: Level, cuts: Int32Array | null): Int32Array {
  const wanted = new Int32Array(items.length).fill(-1);
  let next = cuts ? cuts.reduce((most, section) => Math.max(most, section), -1) + 1 : 0;
  for (let from = 0, end; from < items.length; from = end + 1) {
    for (end = from; end < items.length && items[end]! >= 0; end++) if (cuts) wanted[end] = cuts[end]!;
    if (cuts || end - from < FEWEST_BETWEEN) continue;
    const run: Level = { items: items.slice(from, end), source: source.map((i) => i - from), target: target.map((i) => i - from) };
    const isIn = (_: number, e: number) =>
      Math.min(run.source[e]!, run.target[e]!) >= 0 && Math.max(run.source[e]!, run.target[e]!) < end - from;
    const inside = { ...run, source: run.source.filter(isIn), target: run.target.filter(isIn) };
    const found = inSections(inside, Math.ceil((end - from) / LONGEST));
    found.forEach((section, i) => (wanted[from + i] = next + section));
    next += found[found.length - 1]! + 1;
  }
  const part = convexParts(source, target, wanted);
  const size = new Map<number, number>();
  for (const p of part) size.set(p, (size.get(p) ?? 0) + 1);
  const number = new Map<number, number>(); // by part: of a section that has to be cut, the first keeps its number
  const taken = new Set<number>();
  return wanted.map((section, i) => {
    const p = part[i]!;
    if (section < 0 || size.get(p)! < FEWEST_BETWEEN) return -1;
    if (!number.has(p)) number.set(p, taken.has(section) ? next++ : section);
    taken.add(section);
    return number.get(p)!;
  });
}

/** The section of each item: stretches of about equal length, cut where the fewest edges go across. */
function inSections({ items, source, target }: Level, wanted = 0): Int32Array {
  const n = items.length;
  const across = new Int32Array(n + 1); // edges that go over the place before each item
  source.forEach((a, e) => {
    across[a + 1]!++;
    across[target[e]! + 1]!--;
  });
  for (let i = 1; i <= n; i++) across[i]! += across[i - 1]!;
  const many = wanted || Math.min(MOST_SECTIONS, Math.ceil(n / Math.max(SHORTEST, Math.min(LONGEST, n / SECTIONS))));
  const length = n / many;
  const section = new Int32Array(n);
  let from = 0;
  for (let s = 0; from < n; s++) {
    let end = n;
    if (n - from > 1.5 * length) {
      const middle = from + length;
      let best = Infinity;
      for (let at = Math.ceil(from + 0.5 * length); at <= Math.min(n - 1, from + 1.4 * length); at++) {
        const cost = across[at]! + Math.abs(at - middle) / length;
        if (cost < best) [best, end] = [cost, at];
      }
    }
    section.fill(s, from, end);
    from = end;
  }
  return section;
}
