// What the engine holds of the stage that is looked at.

import type { LayoutCache } from '../layout/nested.ts';
import type { Capture, Graph } from '../wire/capture.ts';
import type { Bodies, Composed } from './compose.ts';
import { csr, type Csr } from '../wire/csr.ts';
import type { Twin } from './beside.ts';
import type { Cut } from './cut.ts';
import type { Diffs } from './diff.ts';
import { savedTensors, type Flow } from './flow.ts';
import type { Gradients } from './gradients.ts';
import type { ViewOptions } from './messages.ts';
import { Listings } from './listings.ts';
import { Metrics } from './metrics.ts';
import type { Repeats } from './repeats.ts';
import { Sources } from './sources.ts';
import { kindOrName, passedOver, plumbing, type Kinds } from './story.ts';
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
  views: Int32Array; // by operator: the value that it only sees otherwise, or -1
  plumbing: Uint8Array; // operators that only compute with integers, booleans and constants
  kinds: Kinds;
  metrics: Metrics;
  gradients: Gradients;
  ghosts: number[]; // operators of the stage before, drawn after its own (the last rows of the graph)
  byNode: Uint8Array; // the change of each operator, see diff.ts
  cut: Cut | null; // what the user left out
}

/** What follows from the options and from what is open. */
export interface Arranged {
  options: ViewOptions;
  tree: Tree;
  open: Uint8Array;
  lost: ReadonlySet<string>; // what was open and is hidden now
  unfolded: Uint8Array;
  cache: LayoutCache;
  repeats: Repeats;
  kin: (group: number) => readonly number[]; // the groups that open and fold with it
  visible: Visible;
  scene: number; // that shows it (scene.ts)
  rows: Int32Array | null; // of a U: the row of each box, or -1
  inlined: Uint8Array; // operators that are drawn inside another: constants in their reader, copies in what made the tensor
  passed: Int32Array; // by operator: the value for which it is passed over now, or -1
  flow: Flow; // the uses that are drawn
  twin: Twin | null; // the stage before, where it is drawn beside
  apart: ReadonlySet<number>; // groups whose repeats are drawn one by one because those beside them are others
}

/** One stage of one capture as it is looked at. */
export type View = Ground & Arranged;

/** Lists that a picture may do without are made when asked for. */
export function newGround(
  place: Pick<Ground, 'id' | 'capture' | 'diffs' | 'stage' | 'gradients'>,
  { graph, bodies }: Composed,
  ghosts: number[],
  byNode: Uint8Array,
  named: Kinds,
): Ground {
  const { capture, stage } = place;
  const kinds = kindOrName(named, capture.pools);
  const types = new Types(capture.pools);
  let outputs: Csr | undefined;
  let readers: Csr | undefined;
  let kept: Int32Array | undefined;
  let views: Int32Array | undefined;
  let plain: Uint8Array | undefined;
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
    get views(): Int32Array {
      const owners = new Set(bodies.owner);
      return (views ??= passedOver(graph, types, kinds, (node) => owners.has(node)));
    },
    get plumbing(): Uint8Array {
      return (plain ??= plumbing(graph, types, kinds));
    },
    kinds,
    sources: new Sources(capture, graph),
    listings: new Listings(capture.listings(capture.manifest.stages[stage]!.name), graph.nodes),
    titles: new Titles(graph, capture.pools),
    ghosts,
    byNode,
    cut: null,
    metrics: new Metrics(capture, stage, graph, types, (): Csr => made.outputs),
  };
  return made;
}
