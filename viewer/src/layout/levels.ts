// At what height each lane runs level, between its boxes and the place where it runs down or up.

import type { Columns, Heights, Stack } from './frame.ts';
import type { LaneAt, Lanes } from './lanes.ts';
import type { Tracks } from './tracks.ts';

/** The height of each stub (by lane) and of each branch. */
export interface Levels {
  stub: Float64Array;
  branch: Float64Array;
}

/** Stubs: outer lanes nearest to the boxes; branches the other way round: so lanes of one gap do not cross. */
export function placeTracks(
  lanes: Lanes,
  tracks: Tracks,
  laneAt: LaneAt,
  columns: Columns,
  stack: Stack,
  heights: Heights,
  gapY: number,
): Levels {
  const column = columns.of;
  const gapBelow = (r: number) => (r + 1 < column.length && column[r + 1] === column[r] ? heights.gap[r] : gapY);
  const gapAbove = (r: number) => (r > 0 && column[r - 1] === column[r] ? heights.gap[r - 1] : gapY);
  const stubs = byReach(lanes.origin, (k, r) => laneAt(k, column[r]), -1);
  const branches = byReach(tracks.layer, (b, r) => laneAt(tracks.lane[b], column[r]), 1);
  const stub = new Float64Array(lanes.count),
    branch = new Float64Array(tracks.layer.length);
  const used = new Int32Array(column.length);
  for (const k of stubs) {
    const r = lanes.origin[k];
    stub[k] = stack.bottom[r] + (gapBelow(r) / 2) * (++used[r] / (tracks.stubs[r] + 1));
  }
  used.fill(0);
  for (const b of branches) {
    const r = tracks.layer[b];
    branch[b] = stack.top[r] - (gapAbove(r) / 2) * (1 - ++used[r] / (tracks.branches[r] + 1));
  }
  return { stub, branch };
}

/** Stubs or branches by how far out their lanes are on their layer: the nearest first, or (way -1) the farthest. */
function byReach(layer: Int32Array, at: (track: number, layer: number) => number, way: 1 | -1): Int32Array {
  const reach = Float64Array.from(layer, (r, i) => Math.abs(at(i, r)));
  return Int32Array.from(layer, (_, i) => i).sort((a, b) => way * (reach[a] - reach[b]) || a - b);
}
