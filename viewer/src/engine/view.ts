// What the engine holds of the stage that is looked at.

import type { LayoutCache } from '../layout/nested.ts';
import type { Capture, Graph } from '../wire/capture.ts';
import type { Bodies } from './compose.ts';
import type { Csr } from './csr.ts';
import type { ViewOptions } from './messages.ts';
import type { Metrics } from './metrics.ts';
import type { Repeats } from './repeats.ts';
import type { Sources } from './sources.ts';
import type { Tree } from './tree.ts';
import type { Types } from './types.ts';
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
