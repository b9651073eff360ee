// The run of a stage as something to watch: which box is at work when, and what is in memory then.

import { memoryLine } from './costviews.ts';
import type { View } from './view.ts';

const COLUMNS = 400; // of the memory curve
const MOST_STOPS = 600;

export interface Playback {
  /** Boxes in turn, and when each begins: 0 is the first operator, 1 the end. */
  box: Int32Array;
  at: Float64Array;
  /** Bytes alive, in equal parts of the run; empty where they are not known. */
  live: Float64Array;
  peakBytes: number;
}

export function playback(view: View): Playback {
  const { visible: v, tree, graph, ghosts, options } = view;
  const own = graph.nodes - ghosts.length;
  const hidden = new Set(options.hidden);
  let [boxes, starts]: [number[], number[]] = [[], []];
  let last = -1;
  for (let node = 0; node < own; node++) {
    const box = v.nodeBox[node]!;
    // Bookkeeping happens on the way.
    const group = box < 0 ? -1 : v.item[box]! - tree.nodes;
    if (
      box < 0 ||
      box === last ||
      v.open[box] ||
      hidden.has(graph.phase[node]!) ||
      (group >= 0 && group < tree.groups && tree.purpose[group]! >= 0)
    )
      continue;
    // What only keeps or reshapes a tensor stands in the box of another.
    if (v.item[box]! < tree.nodes && v.item[box] !== node) continue;
    boxes.push(box);
    starts.push(node / own);
    last = box;
  }
  if (boxes.length > MOST_STOPS) {
    const kept = Array.from({ length: MOST_STOPS }, (_, i) => Math.floor((i * (boxes.length - 1)) / (MOST_STOPS - 1)));
    [boxes, starts] = [kept.map((i) => boxes[i]!), kept.map((i) => starts[i]!)];
  }
  const line = memoryLine(view, 0, own, COLUMNS);
  const live = new Float64Array(line?.at.length ?? 0);
  for (const column of line?.live ?? []) column.forEach((bytes, i) => (live[i]! += bytes));
  return { box: Int32Array.from(boxes), at: Float64Array.from(starts), live, peakBytes: line?.peakBytes ?? NaN };
}
