// Where a folded drawing goes on in its next column: the lines that lead there, numbered from left to right.

import type { Arcs } from './arcs.ts';
import { columnCount } from './fold.ts';
import type { LaneAt, Lanes } from './lanes.ts';
import type { Routing } from './routing.ts';

export interface Wraps {
  /** How many lines lead from column c to the next. */
  tracks: Int32Array;
  lastLayer: Int32Array; // of each column
  ofItem: Map<number, number>; // track by wrapKey
  ofLane: Map<number, number>; // track by lane · columns + column
}

/** Names the line that leads down from an item: a box has one for each of its tails. */
export const wrapKey = (item: number, tail: number, boxes: number, tails: number) => (item < boxes ? tail : tails + item);

interface Crossing {
  x: number;
  key: number;
  lane: boolean;
}

/** The lines at each fold; null where all is one column. */
export function collectWraps(routing: Routing, lanes: Lanes, laneAt: LaneAt, column: Int32Array): Wraps | null {
  const columns = columnCount(column);
  if (columns <= 1) return null;
  const lastLayer = new Int32Array(columns);
  for (let r = 0; r < column.length; r++) lastLayer[column[r]] = r;
  const found: Crossing[][] = Array.from({ length: columns }, () => []);
  for (let t = 0; t < routing.arcs.tails; t++) chainCrossings(routing, t, column, lastLayer, found);
  for (let k = 0; k < lanes.count; k++) {
    for (let c = column[lanes.first[k]]; c < column[lanes.last[k]]; c++)
      found[c].push({ x: laneAt(k, c), key: k * columns + c, lane: true });
  }
  const wraps: Wraps = { tracks: new Int32Array(columns), lastLayer, ofItem: new Map(), ofLane: new Map() };
  for (let c = 0; c < columns; c++) {
    found[c].sort((a, b) => a.x - b.x || a.key - b.key);
    found[c].forEach((f, i) => (f.lane ? wraps.ofLane : wraps.ofItem).set(f.key, i));
    wraps.tracks[c] = found[c].length;
  }
  return wraps;
}

/** The folds that the shared line of a tail crosses. */
function chainCrossings({ layered, arcs, centre }: Routing, t: number, column: Int32Array, last: Int32Array, found: Crossing[][]): void {
  const box = arcs.tailBox[t],
    r = layered.layer[box],
    length = layered.chainLength[t];
  if (!length && !hasShortArc(arcs, layered.lane, t)) return;
  const end = r + length; // the last layer that this line leaves downwards
  for (let c = column[r]; c < last.length && last[c] <= end; c++) {
    if (last[c] === column.length - 1) break;
    const step = last[c] - r;
    const item = step ? layered.chain[t] + step - 1 : box;
    const x = centre[item] + (step || !arcs.tailAt ? 0 : arcs.tailAt[t]);
    found[c].push({ x, key: wrapKey(item, t, layered.boxes, arcs.tails), lane: false });
  }
}

/** Whether any line of a tail is led by its layers, not by a lane. */
function hasShortArc(arcs: Arcs, lane: Uint8Array, tail: number): boolean {
  for (let a = arcs.start[tail]; a < arcs.start[tail + 1]; a++) if (!lane[a]) return true;
  return false;
}
