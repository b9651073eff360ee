// Paths: a node is on one where it can be reached from the first step and can reach the last one.

import type { Graph } from '../wire/capture.ts';
import { csr, type Csr } from '../wire/csr.ts';
import type { Conditions, Mask } from './conditions.ts';
import type { Step } from './parse.ts';

const AT_MOST = 10; // nodes that `**` stands for
const NEVER = 255;

export function onPaths(graph: Graph, steps: readonly Step[], conditions: Conditions): Mask {
  const masks = steps.map(({ terms, anyNumber }) =>
    anyNumber ? null : terms.length ? conditions.allOf(terms) : new Uint8Array(graph.nodes).fill(1),
  );
  const maker = new Int32Array(graph.useValue.length).fill(-1);
  for (let u = 0; u < maker.length; u++) if (graph.useValue[u]! >= 0) maker[u] = graph.producer[graph.useValue[u]!]!;
  const makers: Csr = { start: graph.useStart, item: maker };
  const readers = csr(maker, graph.nodes, graph.useNode);
  const found = new Uint8Array(graph.nodes);
  const before = places(masks, graph.nodes, readers);
  const behind = places([...masks].reverse(), graph.nodes, makers).reverse();
  masks.forEach((mask, step) => add(found, before[step]!, behind[step]!, mask ? 0 : AT_MOST - 1));
  return found;
}

/**
 * For each step (a mask, or null for `**`) how early each node can stand there, going by what comes before: 0 at once,
 * 1 as the second of the nodes that `**` stands for … or NEVER.
 */
function places(steps: readonly (Mask | null)[], nodes: number, next: Csr): Uint8Array[] {
  let last: Int32Array = new Int32Array(0); // what can stand right before
  let fromStart = true;
  return steps.map((mask) => {
    const place = new Uint8Array(nodes).fill(fromStart ? 0 : NEVER);
    let front = last;
    let room: Int32Array = new Int32Array(nodes);
    for (let level = 0; level < (mask ? 1 : AT_MOST) && front.length; level++) {
      front = mark(place, level, front, next, room);
      room = room.subarray(front.length);
    }
    if (mask) keep(place, mask);
    last = reached(place, mask ? null : last);
    fromStart &&= !mask;
    return place;
  });
}

/** Adds the nodes whose places from both sides fit together. */
function add(found: Mask, before: Uint8Array, behind: Uint8Array, most: number): void {
  for (let i = 0; i < found.length; i++) if (before[i]! + behind[i]! <= most) found[i] = 1;
}

function keep(place: Uint8Array, mask: Mask): void {
  for (let i = 0; i < place.length; i++) if (!mask[i]) place[i] = NEVER;
}

/** Notes the level of what comes next to these nodes, unless it has one; returns what is new, put in `room`. */
function mark(place: Uint8Array, level: number, from: Int32Array, { start, item }: Csr, room: Int32Array): Int32Array {
  let count = 0;
  for (let i = 0; i < from.length; i++) {
    const end = start[from[i]! + 1]!;
    for (let e = start[from[i]!]!; e < end; e++) {
      const node = item[e]!;
      if (node < 0 || place[node] !== NEVER) continue;
      place[node] = level;
      room[count++] = node;
    }
  }
  return room.subarray(0, count);
}

/** The nodes that have a place, and these others. */
function reached(place: Uint8Array, others: Int32Array | null): Int32Array {
  const here = place.slice();
  if (others) for (let i = 0; i < others.length; i++) here[others[i]!] = 0;
  const nodes = new Int32Array(here.length);
  let count = 0;
  for (let i = 0; i < here.length; i++) if (here[i] !== NEVER) nodes[count++] = i;
  return nodes.subarray(0, count);
}
