// What a picture passes over, so that it tells what a model does. Operators that only see a tensor otherwise (a view, a
// transpose) are part of the edge that goes through them. Arithmetic with integers, booleans and constants (positions,
// masks, sizes) is one box for each module. Both can be shown.

import { PHASES, ROLES } from '../scene.ts';
import type { Graph, Pools } from '../wire/capture.ts';
import { shortOp } from './titles.ts';
import type { Types } from './types.ts';

const [FORWARD, BACKWARD, OPTIMIZER, OTHER] = (['forward', 'backward', 'optimizer', 'other'] as const).map((phase) =>
  PHASES.indexOf(phase),
);
const [INPUT, ACTIVATION, CONSTANT] = (['input', 'activation', 'constant'] as const).map((role) => ROLES.indexOf(role));

const words = (text: string) => new Set(text.split(/\s+/));
/** The same numbers in another shape, or some of them. */
const RESHAPES = words(
  `view reshape flatten unflatten ravel squeeze unsqueeze transpose t permute movedim alias detach lift lift_fresh identity
  contiguous expand broadcast as_strided view_as_real view_as_complex _unsafe_view _reshape_alias broadcast_to fuse_transpose select narrow slice`,
);
/** The same tensor, where the type says so too. */
const COPIES = words('copy clone to cast pad _to_copy dropout getitem');
/** Made of nothing, and always the same. */
const ITEMS = words('item local_scalar_dense');
const FILLS = words('fill empty full zeros ones arange linspace eye scalar scalar_tensor constant new_zeros new_ones new_full');
const RANDOM = words('random dropout multinomial rand randn randint normal uniform bernoulli');
const POSITIONS = words('arange linspace cumsum range size dim numel one_hot topk argmax sort index');
const MASKS = words(
  'where masked_fill tril triu eq ne lt le gt ge less greater equal logical_and logical_or logical_not bitwise_and bitwise_or',
);

const WHOLE =
  /^(?:torch\.|paddle\.)?(?:u?int\d*|[iu]\d+|u?char|u?short|u?long|byte|bool(?:ean)?|pred|index|number|scalar|size|symint|symbool|i1)$/i;

/** Which operators there are, in one vocabulary; by the string that names the operator. */
export type Kinds = (op: number) => string;

/** The kind of an operator, or, where the capture does not say, its name. */
export function kindOrName(kinds: Kinds, pools: Pools): Kinds {
  const known: string[] = [];
  return (op) => (known[op] ??= kinds(op) || shortOp(pools.strings.at(op)));
}

/** By operator: the value that it hands on as it is, or -1. Empty where there is none. */
export function passedOver(graph: Graph, types: Types, kinds: Kinds, isOwner: (node: number) => boolean): Int32Array {
  const { nodes, op, useStart, useValue, producer, type } = graph;
  const way = byOp(graph, (of) => (COPIES.has(kinds(of)) ? COPY : RESHAPES.has(kinds(of)) ? RESHAPE : FILLS.has(kinds(of)) ? SEED : 0));
  // Of gradients alone (what autograd remembers), each operator is all that a picture can show.
  if (!way.some(Boolean) || graph.phase.every((phase) => phase === BACKWARD)) return new Int32Array(0);
  const out = firstOutputs(graph);
  let passed = new Int32Array(0);
  for (let node = 0; node < nodes; node++) {
    const how = way[op[node]!]!;
    const made = out[node]!;
    if (how === 0 || made < 0) continue; // it makes none, or several
    const value = useStart[node]! < useStart[node + 1]! ? useValue[useStart[node]!]! : -1;
    if (value < 0 || isOwner(node) || producer[value]! >= node) continue;
    if (how === COPY && (type[value] !== type[made] || type[value] === 0)) continue;
    if (how === SEED && !isSeed(graph, types, node, value, made)) continue;
    // Other tensors that it reads may say what happens; then the edge would hide them.
    let others = false;
    for (let use = useStart[node]! + 1; use < useStart[node + 1]!; use++)
      if (useValue[use]! >= 0 && producer[useValue[use]!]! >= 0) others = true;
    if (others) continue;
    if (!passed.length) passed = new Int32Array(nodes).fill(-1);
    passed[node] = value;
  }
  return passed;
}

const [RESHAPE, COPY, SEED] = [1, 2, 3];

/** The gradient of the loss by itself, with which the backward pass begins: one, as large as the loss. */
function isSeed({ phase, producer, type }: Graph, types: Types, node: number, loss: number, made: number): boolean {
  if (phase[node] !== BACKWARD || producer[loss]! < 0 || phase[producer[loss]!] !== FORWARD || type[loss] !== type[made]) return false;
  return types.shape(type[loss]!)?.every((d) => d === 1) ?? false;
}

/** Something about every operator that is there, by the string that names it. */
function byOp({ nodes, op }: Graph, of: (op: number) => number): Uint8Array {
  let most = 0;
  for (let node = 0; node < nodes; node++) if (op[node]! > most) most = op[node]!;
  const seen = new Uint8Array(most + 1);
  const found = new Uint8Array(most + 1);
  for (let node = 0; node < nodes; node++) {
    const name = op[node]!;
    if (seen[name]) continue;
    seen[name] = 1;
    found[name] = of(name);
  }
  return found;
}

/** The output of each operator: -1 where there is none, -2 where there are several. */
function firstOutputs({ nodes, values, producer }: Graph): Int32Array {
  const out = new Int32Array(nodes).fill(-1);
  for (let value = 0; value < values; value++) {
    const node = producer[value]!;
    if (node >= 0) out[node] = out[node] === -1 ? value : -2;
  }
  return out;
}

/** Operators that only compute with integers, booleans and constants. */
export function plumbing(graph: Graph, types: Types, kinds: Kinds): Uint8Array {
  const { nodes, values, op, phase, useStart, useValue, producer, type, role } = graph;
  const whole: (boolean | undefined)[] = [];
  const isWhole = (t: number) => (whole[t] ??= WHOLE.test(types.dtypes(t)));
  const makes = new Uint8Array(nodes); // 1: whole numbers, 2: others, of a known type; 4: what has no type
  for (let value = 0; value < values; value++) {
    if (producer[value]! >= 0) makes[producer[value]!]! |= isWhole(type[value]!) ? 1 : types.dtypes(type[value]!) ? 2 : 4;
  }
  const source = byOp(graph, (name) => (RANDOM.has(kinds(name)) ? 2 : FILLS.has(kinds(name)) ? 1 : ITEMS.has(kinds(name)) ? 3 : 0));
  const found = new Uint8Array(nodes);
  for (let node = 0; node < nodes; node++) {
    // What is only looked at, like a size.
    if (makes[node] === 0 && source[op[node]!] === 3 && (phase[node] === FORWARD || phase[node] === OTHER)) found[node] = 1;
    // Where types are not known, nothing is.
    if (makes[node] === 0 || makes[node]! >= 4 || (phase[node] !== FORWARD && phase[node] !== OTHER)) continue;
    if (makes[node] === 1) {
      found[node] = 1;
      continue;
    }
    // Made of nothing but such operators and constants, and not drawn at random: a mask of floats.
    const kind = source[op[node]!]!;
    let plain = kind === 1 || (kind === 0 && useStart[node]! < useStart[node + 1]!);
    for (let use = useStart[node]!; plain && use < useStart[node + 1]!; use++) {
      const value = useValue[use]!;
      if (value < 0) continue;
      const maker = producer[value]!;
      plain = maker >= 0 ? found[maker] === 1 : role[value] === CONSTANT || (role[value] === INPUT && isWhole(type[value]!));
    }
    if (plain) found[node] = 1;
  }
  onlyForPlumbing(graph, types, found);
  return found;
}

/** Numbers that are drawn or made of nothing, and then only looked at (whether to drop a layer), are plumbing too. */
function onlyForPlumbing(
  { nodes, values, phase, producer, type, useStart, useNode, useValue, outputs }: Graph,
  types: Types,
  found: Uint8Array,
): void {
  const wanted = new Uint8Array(nodes); // something else reads it, or it is no number
  const makes = new Uint8Array(nodes);
  for (let value = 0; value < values; value++) {
    const node = producer[value]!;
    if (node < 0) continue;
    makes[node] = 1;
    if (!wanted[node] && !types.shape(type[value]!)?.every((d) => d === 1)) wanted[node] = 1;
  }
  for (const value of outputs) if (value >= 0 && producer[value]! >= 0) wanted[producer[value]!] = 1;
  for (let use = 0; use < useValue.length; use++) {
    const maker = useValue[use]! < 0 ? -1 : producer[useValue[use]!]!;
    if (maker >= 0 && !found[useNode[use]!]) wanted[maker] = 1;
  }
  for (let node = 0; node < nodes; node++) {
    if (found[node] || wanted[node] || !makes[node] || (phase[node] !== FORWARD && phase[node] !== OTHER)) continue;
    let reads = false;
    for (let use = useStart[node]!; use < useStart[node + 1]!; use++) if (useValue[use]! >= 0) reads = true;
    if (!reads) found[node] = 1;
  }
}

/** Operators that make a constant of nothing for one other, which computes: each is drawn inside that one. */
export function loneFills(graph: Graph, kinds: Kinds, plumbing: Uint8Array): number[] {
  const { nodes, op, phase, producer, useStart, useNode, useValue, outputs } = graph;
  const fills = byOp(graph, (of) => (FILLS.has(kinds(of)) ? 1 : 0));
  const isFill = (node: number) => {
    if (!plumbing[node] || !fills[op[node]!]) return false;
    for (let use = useStart[node]!; use < useStart[node + 1]!; use++) if (useValue[use]! >= 0) return false;
    return true;
  };
  const reader = new Map<number, number>(); // of the only one, or -1
  for (let node = 0; node < nodes; node++) if (isFill(node)) reader.set(node, -2);
  if (!reader.size) return [];
  for (const value of outputs) if (value >= 0 && producer[value]! >= 0) reader.delete(producer[value]!);
  useValue.forEach((value, use) => {
    const maker = value < 0 ? -1 : producer[value]!;
    const known = maker < 0 ? undefined : reader.get(maker);
    // The gradient of what reads it may read it again.
    if (known === undefined || known === useNode[use] || phase[useNode[use]!] !== phase[maker]) return;
    reader.set(maker, known === -2 ? useNode[use]! : -1);
  });
  return [...reader].flatMap(([node, by]) => (by >= 0 && !plumbing[by] ? [node] : []));
}

/** What plumbing is about, by its operators' names: a place in the words of the page (positions and mask, positions, mask, others). */
export function purpose(members: Int32Array, names: (node: number) => string[]): number {
  const some = (of: Set<string>) => members.some((node) => names(node).some((name) => of.has(name)));
  const [positions, masks] = [some(POSITIONS), some(MASKS)];
  return positions ? (masks ? 0 : 1) : masks ? 2 : 3;
}

/** Those of some operators whose results nothing reads, and which change nothing. */
export function unread(graph: Graph, of: readonly number[]): Set<number> {
  const { values, phase, producer, useValue, outputs, role, storage } = graph;
  const asked = new Set(of.filter((node) => phase[node] !== OPTIMIZER));
  const found = new Set<number>();
  // Without results of its own, a graph does not say what is needed.
  if (!asked.size || !outputs.length) return found;
  const read = new Uint8Array(values);
  for (const value of useValue) if (value >= 0) read[value] = 1;
  for (const value of outputs) if (value >= 0) read[value] = 1;
  const seen = new Uint8Array(values); // memory that was there before
  const needed = new Set<number>();
  for (let value = 0; value < values; value++) {
    const [node, place] = [producer[value]!, storage[value]!];
    if (node >= 0 && asked.has(node)) {
      found.add(node);
      if (read[value] || role[value] !== ACTIVATION || (place >= 0 && seen[place]!)) needed.add(node);
    }
    if (place >= 0) seen[place] = 1;
  }
  for (const node of needed) found.delete(node);
  return found;
}
