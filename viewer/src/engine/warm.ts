// A rehearsal: pictures of a made-up graph, so that the code is compiled by the time a large group is opened. The first
// picture of a page is small; without this, the first large one would run ten times slower than the next.

import { buildIndex } from '../picture/spatial.ts';
import { LayoutCache } from '../layout/nested.ts';
import { starts, type Graph, type Pools } from '../wire/capture.ts';
import { Texts } from '../wire/table.ts';
import { csr } from '../wire/csr.ts';
import { Repeats } from './repeats.ts';
import { buildScene } from './scene.ts';
import { buildTree } from './tree.ts';
import { Types } from './types.ts';
import { visible } from './visible.ts';

const PARTS = 3;
const SIZES = [100, 400, 800, 800, 800, 800, 800, 800, 1600, 1600, 1600]; // operators in the part that is open: small steps, as a question may come

/** Draws one picture between two yields. */
export function* rehearse(): Generator<void> {
  for (const [turn, size] of SIZES.entries()) {
    const { graph, pools } = example(size, turn);
    const types = new Types(pools);
    const inlined = new Uint8Array(graph.nodes);
    const bodies = { owner: new Int32Array(0), label: [], bodyOf: new Int32Array(graph.nodes).fill(-1), results: [] };
    const tree = buildTree(graph, pools, { split: true, hidden: new Set(), inlined, bodies, opTitle: () => '' });
    const open = new Uint8Array(tree.groups);
    open[0] = open[1] = 1;
    const shown = visible(graph, tree, {
      open,
      unfolded: new Uint8Array(tree.groups),
      repeats: new Repeats(graph, tree),
      inputs: graph.inputs,
      weight: (value) => types.bytes(graph.type[value]!),
    });
    const scene = buildScene({
      graph,
      pools,
      tree,
      types,
      visible: shown,
      direction: 'down',
      side: true,
      cache: new LayoutCache(),
      outputs: () => csr(graph.producer, graph.nodes),
      counts: String,
      read: graph.useValue,
      fast: true,
    });
    buildIndex(scene);
    yield;
  }
}

/** Parts of `size` operators each; an operator reads the one before and some from further back, as layers with skips do. */
function example(size: number, seed: number): { graph: Graph; pools: Pools } {
  const nodes = PARTS * size;
  const readers: number[] = [];
  const read: number[] = [];
  for (let node = 0; node < nodes; node++) {
    readers.push(node, node);
    read.push(node, Math.max(0, node - 1 - ((node * 7 + seed) % 5) * ((node * 31) % 11)));
  }
  const zeros = () => new Int32Array(nodes + 1);
  const useNode = Int32Array.from(readers);
  const graph: Graph = {
    nodes,
    op: zeros().map((_, i) => i % 3),
    name: zeros(),
    scope: zeros().map((_, i) => 1 + Math.floor(i / size)),
    stack: zeros(),
    attrs: zeros(),
    phase: new Int8Array(nodes).fill(1),
    useStart: starts(useNode, nodes),
    useNode,
    useValue: Int32Array.from(read),
    useArg: new Int32Array(useNode.length),
    values: nodes + 1,
    producer: zeros().map((_, value) => value - 1), // value 0 is the input
    slot: zeros(),
    type: zeros(),
    valueName: zeros(),
    storage: zeros(),
    role: new Int8Array(nodes + 1),
    inputs: Int32Array.of(0),
    outputs: Int32Array.of(nodes),
    links: new Map(),
    groups: new Map(),
    bodies: [],
  };
  const none = Texts.of([]);
  const names = Array.from({ length: PARTS + 1 }, (_, part) => `part ${part}`);
  const pools: Pools = {
    strings: Texts.of(['add', 'matmul', 'softmax']),
    attrs: none,
    types: { dtype: Texts.of(['float32']), shape: Texts.of(['[8, 16]']) },
    scopes: { parent: new Int32Array(PARTS + 1), name: Texts.of(names), cls: Texts.of(names), call: new Int32Array(PARTS + 1) },
    frames: { file: none, line: new Int32Array(0), fn: none },
    stacks: { parent: new Int32Array(1), frame: new Int32Array(1) },
  };
  return { graph, pools };
}
