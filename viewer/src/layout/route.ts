// From the places of items along their layers to the drawing: heights, columns, lanes and lines.

import { APART, linePitch } from './gaps.ts';
import { foldLayers, layerExtents, layerHeights, placeColumns, stackLayers } from './frame.ts';
import { collectLanes, placeLanes } from './lanes.ts';
import { placeTracks } from './levels.ts';
import { drawLines } from './lines.ts';
import type { Routing } from './routing.ts';
import { collectTracks } from './tracks.ts';
import type { FlatLayout } from './types.ts';
import { collectWraps } from './wraps.ts';

/** The last steps of the pipeline, in order. */
export function route(routing: Routing): FlatLayout {
  const { graph, layered, gaps, gapY } = routing;
  const { layers, layer } = layered;
  const lanes = collectLanes(routing);
  const tracks = collectTracks(lanes, layers, layer, graph.target);
  const heights = layerHeights(routing, tracks);
  const extents = layerExtents(routing);
  const column = foldLayers(routing, heights, extents, lanes);

  const pitch = linePitch(gaps.box);
  const widest = Math.min(APART * pitch, Math.max(400, extents.widest));
  const { start, x: laneX } = placeLanes(lanes, column, extents.left, extents.right, gaps.side, pitch, widest);
  const laneAt = (k: number, c: number) => laneX[start[k] + c - column[lanes.first[k]]];

  const wraps = collectWraps(routing, lanes, laneAt, column);
  const columns = placeColumns(routing, column, extents, tracks, wraps);
  const stack = stackLayers(routing, heights, columns, tracks, wraps);
  const levels = placeTracks(lanes, tracks, laneAt, columns, stack, heights, gapY);

  const itemX = new Float64Array(layered.count);
  for (let v = 0; v < layered.count; v++) itemX[v] = routing.centre[v] + columns.shift[column[layer[v]]];
  const x = new Float32Array(graph.n),
    y = new Float32Array(graph.n);
  for (let v = 0; v < graph.n; v++) {
    x[v] = itemX[v] - graph.width[v] / 2;
    y[v] = stack.top[layer[v]] + (heights.layer[layer[v]] - graph.height[v]) / 2;
  }
  const lines = drawLines(routing, { lanes, laneAt, tracks, levels, columns, stack, wraps, itemX, x, y });
  return { width: columns.width, height: stack.height, x, y, ...lines };
}
