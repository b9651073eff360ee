// What the engine holds of the stage that is looked at.

import type { LayoutCache } from '../layout/nested.ts';
import type { Capture, Graph } from '../wire/capture.ts';
import type { Bodies, Composed } from './compose.ts';
import { csr, type Csr } from '../wire/csr.ts';
import type { Diffs } from './diff.ts';
import { savedTensors } from './flow.ts';
import type { Gradients } from './gradients.ts';
import type { ViewOptions } from './messages.ts';
import { Listings } from './listings.ts';
import { Metrics } from './metrics.ts';
import type { Repeats } from './repeats.ts';
import { Sources } from './sources.ts';
import { Titles } from './titles.ts';
import type { Tree } from './tree.ts';
import { Types } from './types.ts';
import type { Visible } from './visible.ts';

/** One stage of one capture, whatever is open. */
export interface Ground {
  id: number; // of the capture
  capture: Capture;
  diffs: Diffs; // of all its stages
  stage: number;
  graph: Graph;
  bodies: Bodies;
  types: Types;
  outputs: Csr; // values by operator
  readers: Csr; // uses by value
  sources: Sources;
  listings: Listings;
  titles: Titles;
  kept: Int32Array; // by operator: the value that it only keeps for the backward pass, or -1
  metrics: Metrics;
  gradients: Gradients;
  ghosts: number[]; // operators of the stage before, drawn after its own (the last rows of the graph)
  byNode: Uint8Array; // the change of each operator, see diff.ts
}

/** What follows from the options and from what is open. */
export interface Arranged {
  options: ViewOptions;
  tree: Tree;
  open: Uint8Array;
  unfolded: Uint8Array;
  cache: LayoutCache;
  repeats: Repeats;
  visible: Visible;
  inlined: Uint8Array; // operators that are drawn inside another: constants in their reader, copies in what made the tensor
  flow: Pick<Graph, 'useNode' | 'useValue'>; // the uses that are drawn
}

/** One stage of one capture as it is looked at. */
export type View = Ground & Arranged;

/** Lists that a picture may do without are made when asked for. */
export function newGround(
  place: Pick<Ground, 'id' | 'capture' | 'diffs' | 'stage' | 'gradients'>,
  { graph, bodies }: Composed,
  ghosts: number[],
  byNode: Uint8Array,
): Ground {
  const { capture, stage } = place;
  const types = new Types(capture.pools);
  let outputs: Csr | undefined;
  let readers: Csr | undefined;
  let kept: Int32Array | undefined;
  const made: Ground = {
    ...place,
    graph,
    bodies,
    types,
    get outputs(): Csr {
      return (outputs ??= csr(graph.producer, graph.nodes));
    },
    get readers(): Csr {
      return (readers ??= csr(graph.useValue, graph.values));
    },
    get kept(): Int32Array {
      return (kept ??= savedTensors(
        graph,
        capture.pools,
        () => made.outputs,
        () => made.readers,
      ));
    },
    sources: new Sources(capture, graph),
    listings: new Listings(capture.listings(capture.manifest.stages[stage]!.name), graph.nodes),
    titles: new Titles(graph, capture.pools),
    ghosts,
    byNode,
    metrics: new Metrics(capture, stage, graph, types, (): Csr => made.outputs),
  };
  return made;
}
