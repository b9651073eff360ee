// What the engine holds of the stage that is looked at.

import type { LayoutCache } from '../layout/nested.ts';
import type { Capture, Graph } from '../wire/capture.ts';
import type { Bodies, Composed } from './compose.ts';
import { csr, type Csr } from './csr.ts';
import type { ViewOptions } from './messages.ts';
import { Metrics } from './metrics.ts';
import type { Repeats } from './repeats.ts';
import { Sources } from './sources.ts';
import type { Tree } from './tree.ts';
import { Types } from './types.ts';
import type { Visible } from './visible.ts';

/** One stage of one capture as it is looked at. */
export interface View {
  capture: Capture;
  stage: number;
  graph: Graph;
  bodies: Bodies;
  types: Types;
  outputs: Csr; // values by operator
  readers: Csr; // uses by value
  options: ViewOptions;
  tree: Tree;
  open: Uint8Array;
  unfolded: Uint8Array;
  cache: LayoutCache;
  repeats: Repeats;
  visible: Visible;
  sources: Sources;
  metrics: Metrics;
}

/** A view without its tree, which depends on the options. Lists that a picture may do without are made when asked for. */
export function newView(capture: Capture, stage: number, { graph, bodies }: Composed, options: ViewOptions): View {
  const types = new Types(capture.pools);
  let outputs: Csr | undefined;
  let readers: Csr | undefined;
  const made = {
    capture,
    stage,
    graph,
    bodies,
    types,
    options,
    get outputs(): Csr {
      return (outputs ??= csr(graph.producer, graph.nodes));
    },
    get readers(): Csr {
      return (readers ??= csr(graph.useValue, graph.values));
    },
    sources: new Sources(capture, graph),
    metrics: new Metrics(capture, stage, graph, types, (): Csr => made.outputs),
  };
  return made as unknown as View;
}
