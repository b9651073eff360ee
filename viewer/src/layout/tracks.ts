// The level pieces of lanes: a stub leads from a lane's box to the lane, a branch from the lane to each layer where it ends.

import type { Lanes } from './lanes.ts';

export interface Tracks {
  /** How many stubs run below, and how many branches above, each layer. */
  stubs: Int32Array;
  branches: Int32Array;
  /** The branch of an edge that uses a lane, shared with all edges of that lane into that layer. */
  ofEdge: Int32Array;
  /** The lane and the layer of each branch. */
  lane: Int32Array;
  layer: Int32Array;
}

/** The stubs and branches that lanes need: every lane has one stub, and one branch for each layer that it leads to. */
export function collectTracks(lanes: Lanes, layers: number, layer: Int32Array, target: Int32Array): Tracks {
  const m = target.length;
  const stubs = new Int32Array(layers),
    branches = new Int32Array(layers);
  if (!lanes.count) return { stubs, branches, ofEdge: new Int32Array(0), lane: new Int32Array(0), layer: new Int32Array(0) };
  const ofEdge = new Int32Array(m).fill(-1);
  const lane: number[] = [],
    at: number[] = [];
  const known = new Map<number, number>();
  for (let e = 0; e < m; e++) {
    const k = lanes.ofEdge[e];
    if (k < 0) continue;
    const key = k * (layers + 1) + layer[target[e]];
    let b = known.get(key);
    if (b === undefined) {
      known.set(key, (b = lane.length));
      lane.push(k);
      at.push(layer[target[e]]);
      branches[layer[target[e]]]++;
    }
    ofEdge[e] = b;
  }
  for (let k = 0; k < lanes.count; k++) stubs[lanes.origin[k]]++;
  return { stubs, branches, ofEdge, lane: Int32Array.from(lane), layer: Int32Array.from(at) };
}
