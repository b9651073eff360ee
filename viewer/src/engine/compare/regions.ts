// What has no counterpart of its own, gathered into places: a place before and a place after are one change. As
// analysis/diff/regions.py.

import { uses, type Matcher } from './matching.ts';
import type { Side } from './side.ts';

/** Operators of both sides that are one place, those of the second numbered after those of the first. */
export class Groups {
  private readonly root: Int32Array;
  private readonly split: number;
  private readonly members: number[] = [];

  constructor({ a, b }: Matcher) {
    this.split = a.size;
    this.root = Int32Array.from({ length: a.size + b.size }, (_, i) => i);
  }

  id(side: 'a' | 'b', item: number): number {
    return side === 'a' ? item : this.split + item;
  }

  add(member: number): void {
    this.members.push(member);
  }

  find(member: number): number {
    let root = member;
    while (this.root[root] !== root) root = this.root[root]!;
    while (this.root[member] !== root) [this.root[member], member] = [root, this.root[member]!];
    return root;
  }

  join(one: number, other: number): void {
    this.root[this.find(other)] = this.find(one);
  }

  /** (before, after) of each place. */
  sets(): [number[], number[]][] {
    const found = new Map<number, [number[], number[]]>();
    for (const member of this.members) {
      const root = this.find(member);
      const set: [number[], number[]] = found.get(root) ?? [[], []];
      found.set(root, set);
      set[member < this.split ? 0 : 1].push(member < this.split ? member : member - this.split);
    }
    return [...found.values()].map(([before, after]) => [before.sort((x, y) => x - y), after.sort((x, y) => x - y)]);
  }
}

/** Joins what has no counterpart: neighbours, and what makes the same thing for the same reader. */
export function places(match: Matcher): Groups {
  const { a, b } = match;
  const groups = new Groups(match);
  const free = { a: flags(a, match.toB), b: flags(b, match.toA) };
  for (const [name, side] of [['a', a] as const, ['b', b] as const]) {
    free[name].forEach((isFree, item) => isFree && groups.add(groups.id(name, item)));
    for (let use = 0; use < side.source.length; use++) {
      const [from, to] = [side.source[use]!, side.target[use]!];
      if (free[name][from] && free[name][to]) groups.join(groups.id(name, from), groups.id(name, to));
    }
  }
  for (let use = 0; use < a.source.length; use++) {
    const reader = match.toB[a.target[use]!]!;
    if (!free.a[a.source[use]!] || reader < 0) continue;
    for (const other of uses(b.reads, reader))
      if (b.port[other] === a.port[use] && free.b[b.source[other]!])
        groups.join(groups.id('a', a.source[use]!), groups.id('b', b.source[other]!));
  }
  // What the graph gives back, in order, where there are as many.
  if (a.outputs.length === b.outputs.length) {
    a.outputs.forEach((x, i) => {
      if (free.a[x] && free.b[b.outputs[i]!]) groups.join(groups.id('a', x), groups.id('b', b.outputs[i]!));
    });
  }
  joinOneSided(match, free, groups);
  return groups;
}

function flags(side: Side, matched: Int32Array): Uint8Array {
  return Uint8Array.from({ length: side.size }, (_, item) => (item < side.graph.nodes && matched[item]! < 0 ? 1 : 0));
}

/** What only goes and what only comes belong together where both lead nowhere, and they alone read the same value. */
function joinOneSided(match: Matcher, free: Record<'a' | 'b', Uint8Array>, groups: Groups): void {
  const sides = new Map<number, string>();
  for (const name of ['a', 'b'] as const)
    free[name].forEach((isFree, item) => {
      if (!isFree) return;
      const root = groups.find(groups.id(name, item));
      const known = sides.get(root) ?? '';
      sides.set(root, known.includes(name) ? known : known + name);
    });
  const readers = { a: new Map<number, Set<number>>(), b: new Map<number, Set<number>>() };
  for (const name of ['a', 'b'] as const) {
    const side = match[name];
    const leadsOn = (item: number) => free[name][item] && sides.set(groups.find(groups.id(name, item)), 'leads on');
    for (let use = 0; use < side.source.length; use++) {
      const [from, to] = [side.source[use]!, side.target[use]!];
      if (free[name][to]) {
        if (!free[name][from]) readers[name].set(from, (readers[name].get(from) ?? new Set()).add(groups.find(groups.id(name, to))));
      } else leadsOn(from);
    }
    side.outputs.forEach(leadsOn);
  }
  for (const [source, before] of readers.a) {
    const roots = (list: Iterable<number>) => [...new Set([...list].map((root) => groups.find(root)))];
    const [one, other] = [roots(before), roots(readers.b.get(match.toB[source]!) ?? [])];
    if (one.length !== 1 || other.length !== 1 || sides.get(one[0]!) !== 'a' || sides.get(other[0]!) !== 'b') continue;
    groups.join(one[0]!, other[0]!);
    sides.set(groups.find(one[0]!), 'joined');
  }
}
