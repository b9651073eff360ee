// Which boxes are on the screen, and which edges join them, for what is open now.

import type { Graph } from '../wire/capture.ts';
import { csr, row } from './csr.ts';
import type { Repeats } from './repeats.ts';
import { groupOrder, type Tree } from './tree.ts';

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
}

export interface Shown {
  open: Uint8Array; // by group
  unfolded: Uint8Array; // by group: its repeated children are drawn one by one
  repeats: Repeats;
  inputs: Int32Array; // values drawn as boxes of their own
  weight: (value: number) => number; // size of a value, to choose which one an edge shows
}

export function visible(graph: Graph, tree: Tree, shown: Shown): Visible {
  const item: number[] = [];
  const parent: number[] = [];
  const open: number[] = [];
  const repeat: number[] = [];
  const last: number[] = [];
  const order: number[] = [];
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
    return item.length - 1;
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
  while (todo.length) {
    const [group, box] = todo.shift()!;
    fill(group, box);
  }
  // What is inside a closed group is shown by its box. Groups are numbered parents first.
  for (let g = 1; g < tree.groups; g++) if (groupBox[g]! < 0) groupBox[g] = groupBox[tree.parent[g]!]!;
  for (let i = 0; i < tree.nodes; i++) {
    if (nodeBox[i]! < 0 && tree.nodeGroup[i]! >= 0) nodeBox[i] = groupBox[tree.nodeGroup[i]!]!;
  }
  const inputBox = new Map<number, number>();
  for (const value of shown.inputs) {
    inputBox.set(value, add(tree.nodes + tree.groups + value, -1, 0, 1, -1));
  }
  return {
    count: item.length,
    item: Int32Array.from(item),
    parent: Int32Array.from(parent),
    open: Uint8Array.from(open),
    repeat: Int32Array.from(repeat),
    last: Int32Array.from(last),
    order: Int32Array.from(order),
    nodeBox,
    groupBox: groupBox.map((box, g) => (ownBox[g]! >= 0 ? ownBox[g]! : box)),
    ...edges(graph, nodeBox, inputBox, item.length, shown.weight),
  };
}

/** Uses between different boxes, one edge for all of a pair. */
function edges(graph: Graph, nodeBox: Int32Array, inputBox: Map<number, number>, boxes: number, weight: (value: number) => number) {
  const from = new Int32Array(graph.useValue.length).fill(-1);
  for (let use = 0; use < from.length; use++) {
    const value = graph.useValue[use]!;
    if (value < 0) continue;
    const producer = graph.producer[value]!;
    const box = producer >= 0 ? nodeBox[producer]! : (inputBox.get(value) ?? -1);
    const to = nodeBox[graph.useNode[use]!]!;
    if (box >= 0 && to >= 0 && box !== to) from[use] = box;
  }
  const bySource = csr(from, boxes);
  const source: number[] = [];
  const target: number[] = [];
  const uses: number[] = [];
  const values: number[] = [];
  const edgeTo = new Int32Array(boxes).fill(-1); // the edge from the current source to a target
  for (let box = 0; box < boxes; box++) {
    const first = source.length;
    for (const use of row(bySource, box)) {
      const to = nodeBox[graph.useNode[use]!]!;
      const value = graph.useValue[use]!;
      let edge = edgeTo[to]!;
      if (edge < first) {
        edge = edgeTo[to] = source.length;
        source.push(box);
        target.push(to);
        uses.push(0);
        values.push(value);
      }
      uses[edge]!++;
      if (weight(value) > weight(values[edge]!)) values[edge] = value;
    }
  }
  return {
    source: Int32Array.from(source),
    target: Int32Array.from(target),
    uses: Int32Array.from(uses),
    value: Int32Array.from(values),
  };
}
