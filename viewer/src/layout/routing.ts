// What the last steps of the pipeline start from: a graph on its layers, and the place of every item along its layer.

import type { Arcs } from './arcs.ts';
import type { Gaps } from './gaps.ts';
import type { Order } from './crossings.ts';
import type { Layered } from './layers.ts';
import type { FlatGraph, PortedGraph } from './types.ts';

export interface Routing {
  graph: FlatGraph | PortedGraph;
  /** Of each edge: 0, BACK or SELF. */
  kind: Uint8Array;
  arcs: Arcs;
  layered: Layered;
  order: Order;
  /** Of each item, along its layer. */
  centre: Float64Array;
  half: Float64Array;
  gaps: Gaps;
  gapY: number;
  /** Fold what is higher than this. */
  maxHeight: number | undefined;
}
