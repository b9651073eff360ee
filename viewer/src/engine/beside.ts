// Two stages beside each other: which box is which of the other picture, and what became what.

import { aligned } from '../picture/align.ts';
import { STRUCTURAL, type Ribbon } from '../picture/changes.ts';
import { scopePath } from '../wire/scopes.ts';
import type { StageChanges } from './diff.ts';
import type { Beside, Picture } from './messages.ts';
import type { View } from './view.ts';

/** The stage before, drawn with the one in view. */
export interface Twin {
  view: View;
  map: ReadonlyMap<number, number[]>; // operators before to those after
}

/** Boxes of the stage before that are drawn one by one for a ribbon; more are one module or cannot be told apart. */
const MOST_ENDS = 40;

function keyOf({ tree, capture }: View, g: number): string {
  return `${scopePath(capture.pools, tree.scope[g]!)}/${tree.phase[g]}/${tree.isPhase[g]}/${tree.part[g]}`;
}

function groupsOf(view: View): Map<string, number> {
  const found = new Map<string, number>();
  for (let g = view.tree.groups - 1; g >= 0; g--) if (!view.tree.labels.has(g)) found.set(keyOf(view, g), g);
  return found;
}

/** What is open on one side is open on the other, where both have it. */
export function mirror(from: View, to: View): void {
  const groups = groupsOf(from);
  for (let g = 0; g < to.tree.groups; g++) {
    const other = to.tree.labels.has(g) ? undefined : groups.get(keyOf(to, g));
    if (other === undefined) continue;
    to.open[g] = from.open[other]!;
    to.unfolded[g] = from.unfolded[other]!;
  }
}

/** Repeats are one box where they are so on both sides; else each stands beside its own. */
export function unfoldBoth(one: View, other: View): void {
  const groups = groupsOf(other);
  const [apart, apartThere] = [new Set<number>(), new Set<number>()];
  for (const [key, g] of groupsOf(one)) {
    const there = groups.get(key);
    if (there === undefined || `${one.repeats.runs(g)}` === `${other.repeats.runs(there)}`) continue;
    apart.add(g);
    apartThere.add(there);
  }
  [one.apart, other.apart] = [apart, apartThere];
}

/** By operator: the box that shows it, where that is its own or a module's; -1 for what stands in another's box. */
function boxesOf({ visible: v, tree, bodies }: View): Int32Array {
  return v.nodeBox.map((box, node) =>
    box < 0 || bodies.bodyOf[node]! >= 0 || (v.item[box]! < tree.nodes && v.item[box] !== node) ? -1 : box,
  );
}

/** Pairs of boxes (before, after, …) that show the same thing. */
function pairsOf(twin: Twin, now: View): Int32Array {
  const [one, other] = [boxesOf(twin.view), boxesOf(now)];
  const votes = new Map<number, number>();
  for (const [node, there] of twin.map) {
    const box = one[node] ?? -1;
    // Of several with several, the first of both are level; which of the others are, nobody knows.
    const to = other[there[0] ?? -1] ?? -1;
    const key = box * now.visible.count + to;
    if (box >= 0 && to >= 0) votes.set(key, (votes.get(key) ?? 0) + 1);
  }
  const found = new Map<number, number>();
  const taken = new Set<number>();
  // Those that share most are counterparts; of equal ones the first.
  for (const [key] of [...votes].sort((a, b) => b[1] - a[1] || a[0] - b[0])) {
    const [box, to] = [Math.floor(key / now.visible.count), key % now.visible.count];
    if (found.has(box) || taken.has(to)) continue;
    found.set(box, to);
    taken.add(to);
  }
  const groups = groupsOf(now);
  for (const [key, g] of groupsOf(twin.view)) {
    const there = groups.get(key);
    if (!g || there === undefined) continue;
    const [box, to] = [twin.view.visible.groupBox[g]!, now.visible.groupBox[there]!];
    if (twin.view.visible.open[box] && now.visible.open[to]) found.set(box, to);
  }
  const inputs = namedInputs(now);
  for (const [name, box] of namedInputs(twin.view)) if (inputs.has(name)) found.set(box, inputs.get(name)!);
  return Int32Array.from([...found].flat());
}

function namedInputs({ tree, visible: v, capture, graph }: View): Map<string, number> {
  const first = tree.nodes + tree.groups;
  const found = new Map<string, number>();
  v.item.forEach((item, box) => item >= first && found.set(capture.pools.strings.at(graph.valueName[item - first]!), box));
  return found;
}

/** What became of what, between boxes; those between the same boxes are one. */
function ribbonsOf(twin: Twin, now: View, { changes }: StageChanges): Ribbon[] {
  const ends = (nodeBox: Int32Array, nodes: number[]) => [...new Set(nodes.map((node) => nodeBox[node] ?? -1))].filter((box) => box >= 0);
  const found = new Map<string, Ribbon>();
  let number = 0;
  for (const { kind, before, after } of changes) {
    if (!before.length || !after.length) continue;
    const own = STRUCTURAL.has(kind) ? ++number : 0;
    const [from, to] = [ends(twin.view.visible.nodeBox, before), ends(now.visible.nodeBox, after)];
    if (!from.length || !to.length || from.length > MOST_ENDS || to.length > MOST_ENDS) continue;
    const key = `${from}|${to}`;
    const same = found.get(key);
    // Several between the same two modules have no number of their own.
    if (same) found.set(key, { ...same, number: 0, count: same.count + 1 });
    else found.set(key, { kind, number: own, count: 1, before: from, after: to });
  }
  return [...found.values()];
}

/** By box: the number of the one ribbon that ends there, 0 where there is none or there are several. */
function numbersOf(ribbons: Ribbon[], side: 'before' | 'after', boxes: number): Uint16Array {
  const numbers = new Uint16Array(boxes);
  const met = new Uint8Array(boxes);
  for (const ribbon of ribbons) for (const box of ribbon[side]) numbers[box] = met[box]++ ? 0 : ribbon.number;
  return numbers;
}

/** Both pictures, aligned, with what leads from one to the other. */
export function beside(before: Picture, now: Picture, twin: Twin, view: View): [Picture, Beside] {
  const pairs = pairsOf(twin, view);
  const [left, right] = aligned(before.scene, now.scene, pairs);
  const ribbons = ribbonsOf(twin, view, view.diffs.of(view.stage)!);
  const joined = { stage: twin.view.stage, pairs, ribbons };
  return [
    { ...now, scene: right, numbers: numbersOf(ribbons, 'after', right.boxes.count) },
    { ...joined, picture: { ...before, scene: left, numbers: numbersOf(ribbons, 'before', left.boxes.count) } },
  ];
}
