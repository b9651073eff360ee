// Which boxes are on the screen, and which edges join them, for what is open now.

import type { Graph } from '../wire/capture.ts';
import { Bag } from '../picture/rtree.ts';
import { csr, row } from '../wire/csr.ts';
import type { Repeats } from './repeats.ts';
import { ROLES } from '../scene.ts';
import { groupOrder, type Tree } from './tree.ts';

const INPUT = ROLES.indexOf('input');

export interface Visible {
  count: number;
  item: Int32Array; // operator, group (nodes + g), or input value (nodes + groups + value)
  parent: Int32Array; // box or -1; parents first
  open: Uint8Array;
  repeat: Int32Array;
  last: Int32Array; // of a folded run: the item of its last group; -1 otherwise
  order: Int32Array; // by execution
  nodeBox: Int32Array; // operator -> the box that shows it, or -1
  groupBox: Int32Array; // group -> its own box, open or closed, or the closed one around it; -1 for the root
  source: Int32Array; // edges between boxes that are not open
  target: Int32Array;
  uses: Int32Array;
  value: Int32Array; // the largest (or only) value on an edge
  use: Int32Array; // the use that reads it
}

/** Before the first picture. */
export function nothingVisible(): Visible {
  const none = new Int32Array(0);
  const lists = { item: none, parent: none, repeat: none, last: none, order: none, nodeBox: none, groupBox: none };
  return { count: 0, open: new Uint8Array(0), ...lists, source: none, target: none, uses: none, value: none, use: none };
}

interface Shown {
  open: Uint8Array; // by group
  unfolded: Uint8Array; // by group: its repeated children are drawn one by one
  repeats: Repeats;
  inputs: Int32Array; // values drawn as boxes of their own
  weight: (value: number) => number; // size of a value, to choose which one an edge shows
}

export function visible(graph: Graph, tree: Tree, shown: Shown): Visible {
  const item = new Bag();
  const parent = new Bag();
  const open = new Bag();
  const repeat = new Bag();
  const last = new Bag();
  const order = new Bag();
  const groupBox = new Int32Array(tree.groups).fill(-1); // the closed box that shows all of a group
  const ownBox = new Int32Array(tree.groups).fill(-1);
  const nodeBox = new Int32Array(tree.nodes).fill(-1);

  const add = (id: number, around: number, isOpen: number, times: number, first: number, end = -1): number => {
    item.push(id);
    parent.push(around);
    open.push(isOpen);
    repeat.push(times);
    last.push(end);
    order.push(first);
    return item.size - 1;
  };
  const fill = (group: number, around: number): void => {
    for (const node of row(tree.childNodes, group)) nodeBox[node] = add(node, around, 0, 1, node);
    const children = row(tree.childGroups, group);
    const folded = shown.unfolded[group] ? [] : shown.repeats.runs(group);
    let at = 0;
    for (const [first, count] of [...folded, [children.length, 0] as [number, number]]) {
      for (; at < first; at++) show(children[at]!, around);
      if (count === 0) break;
      const end = tree.nodes + children[at + count - 1]!;
      const box = add(tree.nodes + children[at]!, around, 0, count, tree.first[children[at]!]!, end);
      for (const stop = at + count; at < stop; at++) groupBox[children[at]!] = box;
    }
  };
  const show = (group: number, around: number): void => {
    const isOpen = shown.open[group]!;
    const box = add(tree.nodes + group, around, isOpen, 1, groupOrder(tree, group));
    ownBox[group] = box;
    if (isOpen) todo.push([group, box]);
    else groupBox[group] = box;
  };
  const todo: [number, number][] = [];
  fill(0, -1);
  for (let at = 0; at < todo.length; at++) fill(...todo[at]!);
  // What is inside a closed group is shown by its box. Groups are numbered parents first.
  for (let g = 1; g < tree.groups; g++) if (groupBox[g]! < 0) groupBox[g] = groupBox[tree.parent[g]!]!;
  for (let i = 0; i < tree.nodes; i++) {
    if (nodeBox[i]! < 0 && tree.nodeGroup[i]! >= 0) nodeBox[i] = groupBox[tree.nodeGroup[i]!]!;
  }
  for (let g = 0; g < tree.groups; g++) if (ownBox[g]! < 0) ownBox[g] = groupBox[g]!;
  const inputBox = new Map<number, number>();
  const beside = besideReaders(graph, tree, shown.inputs, { item: item.items, parent: parent.items, repeat: repeat.items, nodeBox });
  for (const value of shown.inputs) {
    const place = beside?.[value] ?? NOWHERE;
    if (place !== INSIDE) inputBox.set(value, add(tree.nodes + tree.groups + value, Math.max(place, -1), 0, 1, -1));
  }
  return {
    count: item.size,
    item: item.taken(),
    parent: parent.taken(),
    open: Uint8Array.from(open.taken()),
    repeat: repeat.taken(),
    last: last.taken(),
    order: order.taken(),
    nodeBox,
    groupBox: ownBox,
    ...edges(graph, nodeBox, inputBox, item.size, shown.weight),
  };
}

const [NOWHERE, INSIDE] = [-3, -2];

/**
 * Parameters and constants that are drawn as boxes stand beside what reads them first, in the box around all that reads
 * them in that phase; those that only closed modules of modules read are INSIDE of these. By value; null where nothing but
 * data comes in.
 */
function besideReaders(graph: Graph, tree: Tree, inputs: Int32Array, boxes: Boxes): Int32Array | null {
  const { values, useNode, useValue, role, producer, phase } = graph;
  const isAsked = (value: number) => role[value] !== INPUT && producer[value]! < 0;
  if (!inputs.some(isAsked)) return null;
  const place = new Int32Array(values).fill(NOWHERE);
  const phaseOf = new Int8Array(values).fill(-1);
  const asked = new Uint8Array(values);
  for (const value of inputs) if (isAsked(value)) asked[value] = 1;
  const { item, parent, repeat, nodeBox } = boxes;
  const common = (a: number, b: number): number => {
    while (a !== b) {
      // Parents come before children.
      if (a > b) a = parent[a]!;
      else b = parent[b]!;
    }
    return a;
  };
  for (let use = 0; use < useValue.length; use++) {
    const value = useValue[use]!;
    if (value < 0 || !asked[value]) continue;
    const node = useNode[use]!;
    const box = nodeBox[node]!;
    if (box < 0 || (phaseOf[value]! >= 0 && phaseOf[value] !== phase[node])) continue;
    phaseOf[value] = phase[node]!;
    const group = item[box]! - tree.nodes;
    const isPlain = group < 0 || !row(tree.childGroups, group).some((g) => tree.purpose[g]! < 0);
    if (!isPlain || repeat[box] !== 1) place[value] = Math.max(place[value]!, INSIDE);
    else place[value] = place[value]! < -1 ? parent[box]! : common(place[value]!, parent[box]!);
  }
  return place;
}

interface Boxes {
  item: ArrayLike<number>;
  parent: ArrayLike<number>;
  repeat: ArrayLike<number>;
  nodeBox: Int32Array;
}

/** Uses between different boxes, one edge for all of a pair. */
function edges(graph: Graph, nodeBox: Int32Array, inputBox: Map<number, number>, boxes: number, weight: (value: number) => number) {
  const { useNode, useValue, producer } = graph;
  // Most uses stay inside a box: only the others are looked at further.
  const from = new Bag();
  const crossing = new Bag();
  for (let use = 0; use < useValue.length; use++) {
    const value = useValue[use]!;
    if (value < 0) continue;
    const to = nodeBox[useNode[use]!]!;
    if (to < 0) continue;
    const maker = producer[value]!;
    let box = maker >= 0 ? nodeBox[maker]! : -1;
    if (box < 0) box = inputBox.get(value) ?? -1;
    if (box < 0 || box === to) continue;
    from.push(box);
    crossing.push(use);
  }
  const bySource = csr(from.taken(), boxes, crossing.taken());
  const source = new Bag();
  const target = new Bag();
  const uses = new Bag();
  const values = new Bag();
  const heaviest = new Bag();
  const edgeTo = new Int32Array(boxes).fill(-1); // the edge from the current source to a target
  for (let box = 0; box < boxes; box++) {
    const first = source.size;
    for (let i = bySource.start[box]!; i < bySource.start[box + 1]!; i++) {
      const use = bySource.item[i]!;
      const to = nodeBox[useNode[use]!]!;
      const value = useValue[use]!;
      let edge = edgeTo[to]!;
      if (edge < first) {
        edge = edgeTo[to] = source.size;
        source.push(box);
        target.push(to);
        uses.push(0);
        values.push(value);
        heaviest.push(use);
      }
      uses.items[edge]!++;
      if (weight(value) <= weight(values.items[edge]!)) continue;
      values.items[edge] = value;
      heaviest.items[edge] = use;
    }
  }
  return {
    source: source.taken(),
    target: target.taken(),
    uses: uses.taken(),
    value: values.taken(),
    use: heaviest.taken(),
  };
}
