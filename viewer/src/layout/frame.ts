// Where the layers and the columns of a drawing are: how high layers and gaps are, and how a tall stack of them folds.

import { bundle, linePitch } from './gaps.ts';
import { columnCount, cutColumns } from './fold.ts';
import type { Lanes } from './lanes.ts';
import type { Routing } from './routing.ts';
import type { Tracks } from './tracks.ts';
import type { Wraps } from './wraps.ts';

/** Heights of the layers, and of the gap below each but the last. */
export interface Heights {
  layer: Float64Array;
  gap: Float64Array;
}

/** A gap is higher where many lanes run level in it. */
export function layerHeights(routing: Routing, tracks: Tracks): Heights {
  const { graph, layered, gapY } = routing;
  const { layers, layer } = layered;
  const tall = new Float64Array(layers);
  for (let v = 0; v < graph.n; v++) if (graph.height[v] > tall[layer[v]]) tall[layer[v]] = graph.height[v];
  const gap = new Float64Array(Math.max(0, layers - 1));
  const ports = 'tail' in graph ? graph : null;
  for (let r = 0; r + 1 < layers; r++) {
    const busy = tracks.stubs[r] + tracks.branches[r + 1];
    let base = gapY;
    // a border needs less room than a layer of boxes, and next to none where lines run straight on from it
    if (ports && ((r === 0 && ports.inPorts) || (r === layers - 2 && ports.outPorts)))
      base = (busy || bends(routing, r) ? 0.6 : 0.2) * gapY;
    gap[r] = base + Math.min(3 * gapY, Math.max(0, busy - 4) * 3);
  }
  return { layer: tall, gap };
}

/** Whether a line from layer `r` to the next runs aslant. */
function bends({ layered, order: { start, at }, centre }: Routing, r: number): boolean {
  const { downStart, lower, upperAt, lowerAt } = layered;
  for (let i = start[r]; i < start[r + 1]; i++) {
    const v = at[i];
    for (let l = downStart[v]; l < downStart[v + 1]; l++) {
      const aside = centre[v] + (upperAt ? upperAt[l] : 0) - centre[lower[l]] - (lowerAt ? lowerAt[l] : 0);
      if (Math.abs(aside) > 1) return true;
    }
  }
  return false;
}

/** How far each layer reaches to the left and to the right. */
interface Extents {
  left: Float64Array;
  right: Float64Array;
  /** The width of the widest. */
  widest: number;
}

/** The layers as their items are placed; lanes are not among them yet. */
export function layerExtents({ layered: { layers }, order: { start, at }, centre, half }: Routing): Extents {
  const left = new Float64Array(layers),
    right = new Float64Array(layers);
  let widest = 0;
  for (let r = 0; r < layers; r++) {
    if (start[r] === start[r + 1]) continue;
    const a = at[start[r]],
      b = at[start[r + 1] - 1];
    left[r] = centre[a] - half[a];
    right[r] = centre[b] + half[b];
    widest = Math.max(widest, right[r] - left[r]);
  }
  return { left, right, widest };
}

/** The column of each layer: all 0 where nothing has to be folded. */
export function foldLayers(routing: Routing, heights: Heights, { left, right }: Extents, lanes: Lanes): Int32Array {
  const { layered, gaps, maxHeight } = routing;
  if (maxHeight === undefined || layered.layers <= 1) return new Int32Array(layered.layers);
  const pitch = linePitch(gaps.box);
  const gutter = (lines: number) => bundle(lines, pitch) + 2 * gaps.box;
  return cutColumns(heights.layer, heights.gap, linesBelow(routing, lanes), maxHeight, left, right, gutter);
}

/** How many lines lead on from each layer: they would cross a fold below it. */
function linesBelow({ layered }: Routing, lanes: Lanes): Int32Array {
  const { count, layers, layer, downStart } = layered;
  const crossing = new Int32Array(layers);
  for (let v = 0; v < count; v++) if (downStart[v + 1] > downStart[v]) crossing[layer[v]]++;
  const lanesHere = new Int32Array(layers); // of the lanes that begin or end on a layer, how many more begin
  for (let k = 0; k < lanes.count; k++) {
    lanesHere[lanes.first[k]]++;
    lanesHere[lanes.last[k]]--;
  }
  for (let r = 0, passing = 0; r < layers; r++) crossing[r] += passing += lanesHere[r];
  return crossing;
}

/** Columns side by side, with a gutter after each for the lines that lead to the next. */
export interface Columns {
  /** The column of each layer. */
  of: Int32Array;
  count: number;
  /** How far the items of a column are moved to the right. */
  shift: Float64Array;
  /** The left end of the gutter after a column. */
  gutter: Float64Array;
  /** The width of all columns together. */
  width: number;
  /** The space above the first layers. */
  roof: number;
}

export function placeColumns(routing: Routing, of: Int32Array, { left, right }: Extents, tracks: Tracks, wraps: Wraps | null): Columns {
  const { layered, gaps, gapY } = routing;
  const { layers } = layered;
  const pitch = linePitch(gaps.box);
  const count = columnCount(of);
  const shift = new Float64Array(Math.max(1, count)),
    gutter = new Float64Array(Math.max(1, count));
  let cursor = 0,
    roof = 0;
  for (let c = 0, r = 0; c < count; c++) {
    let lo = Infinity,
      hi = -Infinity;
    const head = r;
    for (; r < layers && of[r] === c; r++) {
      lo = Math.min(lo, left[r]);
      hi = Math.max(hi, right[r]);
    }
    shift[c] = cursor - lo;
    cursor += hi - lo;
    gutter[c] = cursor + gaps.box;
    const before = wraps && c ? wraps.tracks[c - 1] : 0;
    if (wraps && c + 1 < count) cursor = gutter[c] + bundle(wraps.tracks[c], pitch) + gaps.box;
    roof = Math.max(roof, (before ? bundle(before, pitch) + gaps.side : 0) + (tracks.branches[head] ? gapY / 2 : 0));
  }
  return { of, count, shift, gutter, width: Math.max(0, cursor), roof };
}

/** Top and bottom of every layer, and of the drawing. */
export interface Stack {
  top: Float64Array;
  bottom: Float64Array;
  height: number;
}

/** Layers one below the other, in each column from the roof down. */
export function stackLayers(routing: Routing, heights: Heights, columns: Columns, tracks: Tracks, wraps: Wraps | null): Stack {
  const { layered, gaps, gapY } = routing;
  const { layers } = layered;
  const column = columns.of,
    pitch = linePitch(gaps.box);
  const top = new Float64Array(layers),
    bottom = new Float64Array(layers);
  let height = 0;
  for (let r = 0; r < layers; r++) {
    const first = r === 0 || column[r] !== column[r - 1];
    top[r] = first ? columns.roof : bottom[r - 1] + heights.gap[r - 1];
    bottom[r] = top[r] + heights.layer[r];
    if (r + 1 < layers && column[r + 1] === column[r]) continue;
    const after = wraps && column[r] + 1 < columns.count ? wraps.tracks[column[r]] : 0;
    height = Math.max(height, bottom[r] + (tracks.stubs[r] ? gapY / 2 : 0) + (after ? bundle(after, pitch) + gaps.side : 0));
  }
  return { top, bottom, height };
}
