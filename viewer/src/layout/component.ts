import { buildArcs } from "./arcs.ts";
import { balance } from "./balance.ts";
import { gapsFor, placeItems } from "./coordinates.ts";
import { breakCycles, SELF } from "./cycles.ts";
import { buildLayers, spanLimit } from "./layers.ts";
import { orderLayers, type Effort } from "./order.ts";
import { assignRanks } from "./rank.ts";
import { LOOP_ROOM, route } from "./route.ts";
import type { FlatGraph, FlatLayout, Options, PortedGraph } from "./types.ts";

/** One drawing in layers: the steps of the pipeline, in order. */
export function layoutLayers(graph: FlatGraph | PortedGraph, options: Options): FlatLayout {
  const { n, source, target, order } = graph;
  const m = source.length;
  const inPorts = "tail" in graph ? graph.inPorts : 0, outPorts = "tail" in graph ? graph.outPorts : 0;
  const solid = n - inPorts - outPorts;
  const good = options.quality !== "fast" && n <= 6000;

  const kind = breakCycles(n, source, target, order);
  const arcs = buildArcs(graph, kind);
  const ranks = assignRanks(n, arcs, inPorts, outPorts);
  const limit = good
    ? spanLimit(arcs, ranks.rank, ranks.layers, 10 * n + 10000, 60 * n + 20000)
    : spanLimit(arcs, ranks.rank, ranks.layers, 2 * n, 8 * m);
  const layered = buildLayers(n, arcs, ranks, limit);

  const half = new Float64Array(layered.count);
  for (let v = 0; v < n; v++) half[v] = graph.width[v] / 2;
  for (let e = 0; e < m; e++) if (kind[e] === SELF) half[source[e]] = graph.width[source[e]] / 2 + LOOP_ROOM;
  let share: Float32Array | null = null;
  if (arcs.tailAt) {
    share = new Float32Array(layered.count);
    for (let v = 0; v < solid; v++) if (half[v] > 0) share[v] = 0.45 / half[v];
  }
  const effort: Effort = { left: good ? 8_000_000 : 0 };
  const sequence = orderLayers(layered, effort, share);
  balance(layered, sequence, half);
  const gaps = gapsFor(options.gapX);
  const centre = placeItems(layered, sequence, half, gaps, good ? 6 : 3, good ? 6 : 0, solid);
  return route(graph, kind, arcs, layered, sequence, centre, half, gaps, options.gapY, options.maxHeight);
}
