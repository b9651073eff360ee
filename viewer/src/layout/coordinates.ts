// Where every item is placed along its layer: near what it is connected to, as far as order and gaps allow.

import { widestLayer, type Order } from './crossings.ts';
import { separation, type Gaps } from './gaps.ts';
import type { Layered } from './layers.ts';
import { straighten } from './straighten.ts';

/** How strongly links pull that lead from what only feeds, or to what only ends. */
const LEAF = 0.02;
/** How strongly a link pulls that is the only one between two boxes on adjacent layers. */
const CHAIN = 16;
/** How strongly a line pulls that must not move at all: what pulls at the boxes beside it adds up over thousands of layers. */
const HELD = 1e9;
/** How strongly the other side pulls an item that nothing pulls on the side looked at. */
const WEAK = 0.001;
/** In every so many layers there is one where lines may step back to the middle. */
const WINDOW = 32;

interface Placing {
  layered: Layered;
  order: Order;
  /** Half the width of each item. */
  half: Float64Array;
  gaps: Gaps;
  /** How often all layers are placed, and how often lines are straightened after that. */
  rounds: number;
  passes: number;
  /** Items from here on (bends, ports) are lines. All but the boxes where absent. */
  boxes?: number;
  /** The drawing will be folded into columns. */
  folded?: boolean;
  /** Boxes of which each leads to the next stand exactly below each other, whatever runs beside them. */
  chains?: boolean;
}

/**
 * The x of every item's centre. Each layer in turn is placed as near as its order and gaps allow to
 * where its neighbours pull it: weighted isotonic regression, solved exactly by pooling adjacent
 * violators. Links of lines pull harder than links of boxes, so that long lines are straight.
 */
export function placeItems(placing: Placing): Float64Array {
  const { layered, order, half, gaps, passes, boxes = layered.boxes } = placing;
  const { layers } = layered;
  const side = findSide(layered, order);
  const strength = linkStrength(layered, side, boxes);
  if (placing.chains) holdChains(layered, side, strength, boxes);
  const placer = new Placer(placing, strength, boxes);
  placer.packLayers();
  placer.findCalm();
  for (let round = 0; round < placing.rounds; round++) {
    for (let r = 1; r < layers; r++) placer.place(r, true);
    for (let r = layers - 2; r >= 0; r--) placer.place(r, false);
  }
  const { x, stepped: held } = placer;
  // Where lines are not straightened one by one, they at least run on where they are, and the boxes beside them with them.
  if (!passes) {
    holdLines(layered, strength, boxes);
    for (let r = 1; r < layers; r++) placer.settle(r);
  }
  if (passes) straighten({ layered, order, half, gaps, x, passes, boxes, held, ...straightPulls(layered, side, strength) });
  return x;
}

/** What is next to the flow: items that only feed something, or only end it (a tree of boxes with one way on). */
interface Side {
  feeds: Uint8Array;
  ends: Uint8Array;
}

function findSide(layered: Layered, { at }: Order): Side {
  const { count, upper, lower, downStart, upStart, upLink } = layered;
  const feeds = new Uint8Array(count),
    ends = new Uint8Array(count);
  for (let i = 0; i < count; i++) {
    const v = at[i];
    let yes = downStart[v + 1] - downStart[v] === 1 ? 1 : 0;
    for (let k = upStart[v]; yes && k < upStart[v + 1]; k++) yes = feeds[upper[upLink[k]]];
    feeds[v] = yes;
  }
  for (let i = count - 1; i >= 0; i--) {
    const v = at[i];
    let yes = upStart[v + 1] - upStart[v] === 1 ? 1 : 0;
    for (let l = downStart[v]; yes && l < downStart[v + 1]; l++) yes = ends[lower[l]];
    ends[v] = yes;
  }
  return { feeds, ends };
}

/** How straight each link should be. What is next to the flow must not push it aside. */
function linkStrength({ links, upper, lower, weight }: Layered, { feeds, ends }: Side, boxes: number): Float32Array {
  const strength = new Float32Array(links);
  for (let l = 0; l < links; l++) {
    const u = upper[l],
      v = lower[l];
    const lines = (u >= boxes ? 1 : 0) + (v >= boxes ? 1 : 0);
    strength[l] = feeds[u] || ends[v] ? LEAF : (lines === 2 ? 8 : lines === 1 ? 2 : 1) * Math.min(weight[l], 4);
  }
  return strength;
}

/** Links from box to box pull hardest where there is only one from the upper and one to the lower box. */
function holdChains({ links, upper, lower }: Layered, { feeds, ends }: Side, strength: Float32Array, boxes: number): void {
  const [down, up] = [new Int32Array(boxes), new Int32Array(boxes)];
  const isChain = (l: number) => upper[l] < boxes && lower[l] < boxes && !feeds[upper[l]] && !ends[lower[l]];
  for (let l = 0; l < links; l++) {
    if (!isChain(l)) continue;
    down[upper[l]]++;
    up[lower[l]]++;
  }
  for (let l = 0; l < links; l++) if (isChain(l) && down[upper[l]] === 1 && up[lower[l]] === 1) strength[l] = Math.max(strength[l], CHAIN);
}

/** From here on, lines leave their place only where boxes give them no room. */
function holdLines({ links, upper, lower }: Layered, strength: Float32Array, boxes: number): void {
  for (let l = 0; l < links; l++) if (upper[l] >= boxes && lower[l] >= boxes) strength[l] = HELD;
}

/** How hard a link pulls its lower and its upper item when lines are straightened. */
function straightPulls({ links, upper, lower }: Layered, { feeds, ends }: Side, strength: Float32Array) {
  // a parameter goes where its box is, and its box minds how long the line becomes, but not the other way round
  const pullUp = strength.slice(),
    pullDown = strength.slice();
  for (let l = 0; l < links; l++) {
    if (feeds[upper[l]]) [pullUp[l], pullDown[l]] = [1, 0.3];
    else if (ends[lower[l]]) [pullUp[l], pullDown[l]] = [0.3, 1];
  }
  return { pullUp, pullDown };
}

class Placer {
  readonly x: Float64Array;
  /** Layers on which lines have stepped back to the middle. */
  readonly stepped: Uint8Array;
  private readonly layered: Layered;
  private readonly order: Order;
  private readonly half: Float64Array;
  private readonly gaps: Gaps;
  private readonly folded: boolean;
  /** Layers on which they may, and how far they may be from it. */
  private readonly calm: Uint8Array;
  private tolerance = Infinity;
  /** By item of the current layer: its distance from the first, where it would be if all were packed, and how strongly. */
  private readonly offset: Float64Array;
  private readonly want: Float64Array;
  private readonly force: Float64Array;
  /** Blocks of items that are as close as they can be. */
  private readonly blockSum: Float64Array;
  private readonly blockForce: Float64Array;
  private readonly blockEnd: Int32Array;

  constructor(
    placing: Placing,
    private readonly strength: Float32Array,
    private readonly boxes: number,
  ) {
    const { layered, order, half, gaps } = placing;
    this.layered = layered;
    this.order = order;
    this.half = half;
    this.gaps = gaps;
    this.folded = placing.folded ?? false;
    this.x = new Float64Array(layered.count);
    this.calm = new Uint8Array(layered.layers);
    this.stepped = new Uint8Array(layered.layers);
    const widest = widestLayer(order);
    this.offset = new Float64Array(widest);
    this.want = new Float64Array(widest);
    this.force = new Float64Array(widest);
    this.blockSum = new Float64Array(widest);
    this.blockForce = new Float64Array(widest);
    this.blockEnd = new Int32Array(widest);
  }

  /** To begin with, every layer packed around the middle. */
  packLayers(): void {
    const { x, half, gaps, boxes } = this;
    const { start, at } = this.order;
    for (let r = 0; r < this.layered.layers; r++) {
      const from = start[r],
        to = start[r + 1];
      if (from === to) continue;
      let w = 0;
      x[at[from]] = 0;
      for (let i = from + 1; i < to; i++) {
        w += separation(at[i - 1], at[i], half, gaps, boxes);
        x[at[i]] = w;
      }
      for (let i = from; i < to; i++) x[at[i]] -= w / 2;
    }
  }

  /**
   * Aligning layer by layer, small lopsidedness adds up and a deep drawing drifts away sideways. So
   * now and then, on the layer with fewest items, all lines step back to the middle together.
   */
  findCalm(): void {
    const { x, calm } = this;
    const { layers } = this.layered;
    const { start, at } = this.order;
    let broadest = 0;
    for (let r = 0; r < layers; r += WINDOW) {
      let best = r;
      for (let q = r; q < Math.min(r + WINDOW, layers); q++) {
        const size = start[q + 1] - start[q];
        if (size < start[best + 1] - start[best]) best = q;
        if (size) broadest = Math.max(broadest, x[at[start[q + 1] - 1]] - x[at[start[q]]]);
      }
      calm[best] = 1;
    }
    // every column of a folded drawing is moved into place anyway
    if (!this.folded) this.tolerance = Math.max(300, 0.25 * broadest);
  }

  /** Places layer r by the layer above (when going down) or below it. */
  place(r: number, down: boolean): void {
    this.pull(r, down);
    if (this.calm[r]) this.stepBack(r);
    this.pool(r);
  }

  /** The same once more, by the layer above. */
  settle(r: number): void {
    this.pull(r, true);
    this.pool(r);
  }

  private pull(r: number, down: boolean): void {
    const { x, offset, want, force, half, gaps, boxes } = this;
    const { start, at } = this.order;
    const from = start[r],
      size = start[r + 1] - from;
    let shift = 0;
    for (let i = 0; i < size; i++) {
      const v = at[from + i];
      if (i) shift += separation(at[from + i - 1], v, half, gaps, boxes);
      offset[i] = shift;
      if (down) this.pullFromAbove(i, v, 1);
      else this.pullFromBelow(i, v, 1);
      if (force[i] === 0) {
        if (down) this.pullFromBelow(i, v, WEAK);
        else this.pullFromAbove(i, v, WEAK);
      }
      if (force[i] === 0) {
        want[i] = WEAK * x[v];
        force[i] = WEAK;
      }
      want[i] = want[i] / force[i] - shift;
    }
  }

  /** What pulls item i of a layer, which is v, from above. `want` is the sum of places times strengths for now. */
  private pullFromAbove(i: number, v: number, scale: number): void {
    const { x, strength } = this;
    const { upper, upperAt, lowerAt, upStart, upLink } = this.layered;
    let sum = 0,
      f = 0;
    for (let k = upStart[v]; k < upStart[v + 1]; k++) {
      const l = upLink[k],
        s = strength[l] * scale;
      sum += s * (upperAt ? x[upper[l]] + upperAt[l] - lowerAt![l] : x[upper[l]]);
      f += s;
    }
    this.want[i] = sum;
    this.force[i] = f;
  }

  private pullFromBelow(i: number, v: number, scale: number): void {
    const { x, strength } = this;
    const { lower, upperAt, lowerAt, downStart } = this.layered;
    let sum = 0,
      f = 0;
    for (let l = downStart[v]; l < downStart[v + 1]; l++) {
      const s = strength[l] * scale;
      sum += s * (lowerAt ? x[lower[l]] + lowerAt[l] - upperAt![l] : x[lower[l]]);
      f += s;
    }
    this.want[i] = sum;
    this.force[i] = f;
  }

  /** A layer that is pulled too far from the middle as a whole goes there. */
  private stepBack(r: number): void {
    const { offset, want, force, stepped } = this;
    const { start } = this.order;
    const size = start[r + 1] - start[r];
    let sum = 0,
      all = 0;
    for (let i = 0; i < size; i++) {
      sum += force[i] * (want[i] + offset[i]);
      all += force[i];
    }
    const middle = sum / all;
    stepped[r] = Math.abs(middle) > this.tolerance ? 1 : 0;
    if (stepped[r]) for (let i = 0; i < size; i++) want[i] -= middle;
  }

  /** Pools adjacent violators: items that would overlap become a block at the mean of where they want to be. */
  private pool(r: number): void {
    const { x, offset, want, force, blockSum, blockForce, blockEnd } = this;
    const { start, at } = this.order;
    const from = start[r],
      size = start[r + 1] - from;
    let blocks = 0;
    for (let i = 0; i < size; i++) {
      let s = want[i] * force[i],
        f = force[i];
      while (blocks && blockSum[blocks - 1] * f >= s * blockForce[blocks - 1]) {
        blocks--;
        s += blockSum[blocks];
        f += blockForce[blocks];
      }
      blockSum[blocks] = s;
      blockForce[blocks] = f;
      blockEnd[blocks++] = i + 1;
    }
    let i = 0;
    for (let b = 0; b < blocks; b++) {
      const z = blockSum[b] / blockForce[b];
      for (; i < blockEnd[b]; i++) x[at[from + i]] = z + offset[i];
    }
  }
}
