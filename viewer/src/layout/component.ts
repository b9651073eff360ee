// One connected graph in layers: the steps of the pipeline, in order.

import { buildArcs, splitFans, type Arcs } from './arcs.ts';
import { balance } from './balance.ts';
import { placeItems } from './coordinates.ts';
import { findBands } from './bands.ts';
import { breakCycles, SELF } from './cycles.ts';
import { gapsFor } from './gaps.ts';
import { layoutBands } from './grid.ts';
import { buildLayers, spanLimit, type Layered } from './layers.ts';
import { orderLayers } from './order.ts';
import { assignRanks } from './rank.ts';
import { LOOP_ROOM } from './lines.ts';
import { route } from './route.ts';
import { orderAtPorts } from './ports.ts';
import { clearSide } from './sides.ts';
import type { FlatGraph, FlatLayout, Options, PortedGraph } from './types.ts';

/** Graphs up to this size get the better and slower steps. */
const SMALL = 6000;
/** What those may cost, in links looked at: so many for each box and edge, but not more than a tenth of a second. */
const EFFORT = 800,
  MOST_EFFORT = 2_500_000;
/** Lines of a fan up to this many layers long may run apart. */
const FAN = 24;

/** One drawing in layers: the steps of the pipeline, in order. Layers that are much too wide are broken into rows, if they may. */
export function layoutLayers(graph: FlatGraph | PortedGraph, options: Options, breakable = true): FlatLayout {
  const { n, source, target } = graph;
  const m = source.length;
  const inPorts = 'tail' in graph ? graph.inPorts : 0,
    outPorts = 'tail' in graph ? graph.outPorts : 0;
  const solid = n - inPorts - outPorts;
  const good = options.quality !== 'fast' && n <= SMALL;

  const kind = breakCycles(n, source, target, graph.order);
  const shared = buildArcs(graph, kind);
  const ranks = assignRanks(n, shared, inPorts, outPorts);
  const bands = breakable ? findBands(graph, shared, kind, ranks, inPorts + outPorts, options) : null;
  if (bands) return layoutBands(graph, bands, options, (part, o) => layoutLayers(part, o, false));
  const limit = good
    ? spanLimit(shared, ranks.rank, ranks.layers, 4 * n + 12000, 40 * n + 30000)
    : spanLimit(shared, ranks.rank, ranks.layers, 2 * n, 8 * m);

  const arrange = (arcs: Arcs) => {
    const layered = buildLayers(n, arcs, ranks, limit);
    const half = new Float64Array(layered.count);
    for (let v = 0; v < n; v++) half[v] = graph.width[v] / 2;
    for (let e = 0; e < m; e++) if (kind[e] === SELF) half[source[e]] = graph.width[source[e]] / 2 + LOOP_ROOM;
    const { order, crossings } = orderLayers(
      layered,
      { left: good ? Math.min(MOST_EFFORT, EFFORT * (n + m)) : 0 },
      portShare(arcs, half, solid),
    );
    return { arcs, layered, half, order, crossings };
  };
  let best = arrange(shared);
  if (good && best.crossings) {
    const split = splitFans(shared, ranks.rank, FAN);
    const other = split && arrange(split);
    if (other && other.crossings < 0.95 * best.crossings) best = other;
  }

  const { arcs, layered, half } = best;
  const order = options.side && good ? clearSide(layered, best.order, solid, graph, options.side) : best.order;
  const share = good ? portShare(arcs, half, solid) : null;
  if (share) orderAtPorts(layered, order, share, solid, options.side !== undefined);
  balance(layered, order, half);
  const gaps = gapsFor(options.gapX, mostLines(layered, solid));
  const { gapY, maxHeight } = options;
  const effort = good ? { rounds: 5, passes: 4 } : { rounds: 2, passes: 0 };
  const centre = placeItems({
    layered,
    order,
    half,
    gaps,
    ...effort,
    boxes: solid,
    folded: maxHeight !== undefined,
    chains: options.side !== undefined,
  });
  return route({ graph, kind, arcs, layered, order, centre, half, gaps, gapY, maxHeight });
}

/** The most lines (bends, ports) that a layer has. */
function mostLines(layered: Layered, solid: number): number {
  const lines = new Int32Array(layered.layers);
  let most = 0;
  for (let v = solid; v < layered.count; v++) most = Math.max(most, ++lines[layered.layer[v]]);
  return most;
}

/** How far a port moves a line's end within the place of its box, for boxes that have ports. */
function portShare(arcs: Arcs, half: Float64Array, solid: number): Float32Array | null {
  if (!arcs.tailAt) return null;
  const share = new Float32Array(half.length);
  for (let v = 0; v < solid; v++) if (half[v] > 0) share[v] = 0.45 / half[v];
  return share;
}
