// What is different between two graphs, found by structure and never by name, as analysis/diff/compare.py. What that one
// knows besides (what a compiler reported, the inside of fused operators) needs Python: `opscope diff`.

import type { Graph, Pools } from '../../wire/capture.ts';
import { CHANGES } from '../../picture/changes.ts';
import type { Change } from '../diff.ts';
import { counted, differences, listed } from './details.ts';
import { Matcher, pathOf, uses } from './matching.ts';
import { places } from './regions.ts';
import { fingerprint, sideOf, type Side } from './side.ts';

export interface Comparison {
  changes: Change[];
  pairs: [number, number][]; // operators that are counterparts
  links: { source: Int32Array; target: Int32Array }; // which became which
}

/** A matcher as it is read: its first side is the graph before. */
type Match = Pick<Matcher, 'a' | 'b' | 'toA' | 'toB'>;

type Inner = (index: number) => Promise<Graph>;

export async function compare(before: Graph, after: Graph, pools: Pools, inner: Inner): Promise<Comparison> {
  const [a, b] = [await whole(before, pools, inner), await whole(after, pools, inner)];
  // So that it does not matter which is given first.
  const turned = b.graph.nodes < a.graph.nodes || (b.graph.nodes === a.graph.nodes && b.size < a.size);
  const matcher = turned ? new Matcher(b, a) : new Matcher(a, b);
  matcher.run();
  const groups = places(matcher);
  const sets = groups.sets().map(([x, y]): [number[], number[]] => (turned ? [y, x] : [x, y]));
  const match: Match = turned ? { a, b, toA: matcher.toB, toB: matcher.toA } : matcher;
  const pairs = Array.from(match.toB.subarray(0, a.graph.nodes), (y, x): [number, number] => [x, y]).filter(([, y]) => y >= 0);
  const together = (x: number, y: number) =>
    groups.find(groups.id(turned ? 'b' : 'a', x)) === groups.find(groups.id(turned ? 'a' : 'b', y));
  const changes = [...sets.map(([x, y]) => grouped(a, b, x, y)), ...changedPairs(match, pairs, together)];
  changes.sort((one, other) => CHANGES.indexOf(one.kind) - CHANGES.indexOf(other.kind) || place(one) - place(other));
  return { changes, pairs, links: linked(changes, pairs) };
}

function place({ before, after }: Change): number {
  return after[0] ?? 2 ** 31 + (before[0] ?? 0);
}

const DEEPEST = 6;

async function whole(graph: Graph, pools: Pools, inner: Inner, depth = 0): Promise<Side> {
  const inside = new Map<number, number>();
  for (const body of depth < DEEPEST ? graph.bodies : []) {
    const side = await whole(await inner(body.graph), pools, inner, depth + 1);
    inside.set(body.node, (inside.get(body.node) ?? 0) + (fingerprint(side) % 2 ** 40));
  }
  return sideOf(graph, pools, inside);
}

function grouped(a: Side, b: Side, before: number[], after: number[]): Change {
  const change = (kind: Change['kind'], detail: string): Change => ({ kind, before, after, evidence: 'structure', detail });
  if (!after.length) return change('removed', counted(a, before));
  if (!before.length) return change('added', counted(b, after));
  if (before.length === 1 && after.length === 1) return change('changed', differences(a, before[0]!, b, after[0]!).join('; '));
  if (after.length === 1) return change('fused', `${listed(a, before)} → ${listed(b, after)}`);
  if (before.length === 1) return change('split', `${listed(a, before)} → ${listed(b, after)}`);
  return change('rewritten', `${counted(a, before)} → ${counted(b, after)}`);
}

/** Counterparts that are not equal. */
function changedPairs(match: Match, pairs: [number, number][], together: (x: number, y: number) => boolean): Change[] {
  const { a, b } = match;
  const moved = modules(a, b, pairs);
  const found: Change[] = [];
  for (const [x, y] of pairs) {
    const isOther = a.exact[x] !== b.exact[y];
    const wiring = rewired(match, together, x, y);
    const told = isOther ? differences(a, x, b, y) : [];
    const module = moved.get(x);
    if (isOther && !told.length) told.push('what is inside');
    const detail = [...told, ...wiring, ...(module ? [module] : [])].join('; ');
    if (detail) found.push({ kind: isOther ? 'changed' : 'moved', before: [x], after: [y], evidence: 'structure', detail });
  }
  return found;
}

/** Arguments that come from elsewhere, unless what was put in between or taken out explains it. */
function rewired(match: Match, together: (x: number, y: number) => boolean, x: number, y: number): string[] {
  const { a, b, toA, toB } = match;
  const found: string[] = [];
  const theirs = uses(b.reads, y);
  uses(a.reads, x).forEach((use, i) => {
    const other = b.port[theirs[i] ?? -1] === a.port[use] ? theirs[i] : theirs.find((one) => b.port[one] === a.port[use]);
    if (other === undefined) return;
    const [source, now] = [a.source[use]!, b.source[other]!];
    if (toB[source] === now && a.slot[use] === b.slot[other]) return;
    if (!(toB[source]! >= 0 && toA[now]! >= 0)) {
      if (together(source, now) || (source >= a.graph.nodes && now >= b.graph.nodes)) return;
      const [above, after] = [aboveOf(a, toB, source), aboveOf(b, toA, now)];
      if (!above.size || !after.size || [...above].some((item) => after.has(toB[item]!))) return;
    }
    const arg = a.pools.strings.at(a.graph.useArg[a.graph.useStart[x]! + a.port[use]!]!);
    found.push(`argument ${arg} reads ${itemText(b, now)} instead of ${itemText(a, source)}`);
  });
  if (a.isOutput[x] !== b.isOutput[y]) found.push(b.isOutput[y] ? 'is an output of the graph' : 'is no output of the graph any more');
  return found;
}

/** The items with counterparts that an item is made from, through those without. */
function aboveOf(side: Side, matched: Int32Array, item: number): Set<number> {
  const found = new Set<number>();
  const seen = new Set([item]);
  for (const here of seen) {
    if (matched[here]! >= 0) found.add(here);
    else for (const use of uses(side.reads, here)) seen.add(side.source[use]!);
  }
  return found;
}

function itemText(side: Side, item: number): string {
  const { graph, pools } = side;
  if (item >= graph.nodes) return pools.strings.at(graph.valueName[side.leaves[item - graph.nodes]!]!) || 'an input';
  const path = pathOf(side, item);
  const op = pools.strings.at(graph.op[item]!);
  return path ? `${op} in ${path}` : op;
}

/** Operators that are in another module than the others of theirs, by the module that most went to. */
function modules(a: Side, b: Side, pairs: [number, number][]): Map<number, string> {
  const counts = new Map<string, { from: string; to: string; nodes: number[] }>();
  for (const [x, y] of pairs) {
    const [from, to] = [pathOf(a, x), pathOf(b, y)];
    const key = `${from}\n${to}`;
    counts.set(key, { from, to, nodes: [...(counts.get(key)?.nodes ?? []), x] });
  }
  const order = [...counts.values()].sort((p, q) => q.nodes.length - p.nodes.length || Number(q.from === q.to) - Number(p.from === p.to));
  const [homeA, homeB] = [new Map<string, string>(), new Map<string, string>()];
  for (const { from, to } of order) {
    if (!homeA.has(from)) homeA.set(from, to);
    if (!homeB.has(to)) homeB.set(to, from);
  }
  const moved = new Map<number, string>();
  for (const { from, to, nodes } of order) {
    const isHome = homeA.get(from) === to && homeB.get(to) === from;
    if (isHome || !from || !to || from === to) continue;
    for (const node of nodes) moved.set(node, `module: ${from} → ${to}`);
  }
  return moved;
}

/** Which operators became which: counterparts, and all of a change with each other. */
function linked(changes: Change[], pairs: [number, number][]): Comparison['links'] {
  const many = changes.filter(({ before, after }) => before.length > 1 || after.length > 1);
  const inside = new Set(many.flatMap(({ before }) => before));
  const paired = new Set(pairs.map(([x]) => x));
  const singles = changes.filter(({ before, after }) => before.length === 1 && after.length === 1 && !paired.has(before[0]!));
  const all = [
    ...pairs.filter(([x]) => !inside.has(x)),
    ...[...many, ...singles].flatMap(({ before, after }) => before.flatMap((x) => after.map((y): [number, number] => [x, y]))),
  ];
  return { source: Int32Array.from(all, ([x]) => x), target: Int32Array.from(all, ([, y]) => y) };
}
