// Pictures without a browser: the page's own engine, layout and SVG writer in a bare V8 (src/opscope/export/picture).
// The capture comes as the bytes of an .opscope file whose members are stored, not deflated: there are no streams here.

import './headless/globals.ts';
import type { SceneIndex } from './picture/spatial.ts';
import { dark, light } from './draw/theme.ts';
import { row } from './wire/csr.ts';
import { Engine, inputsOf } from './engine/engine.ts';
import type { Picture, ViewOptions } from './engine/messages.ts';
import { visible } from './engine/visible.ts';
import { PHASES } from './scene.ts';
import { phaseLegend } from './svg/around.ts';
import { playOver } from './svg/play.ts';
import { writeSvg } from './svg/write.ts';

const MARGIN = 24;
const [FORWARD, OPTIMIZER] = [PHASES.indexOf('forward'), PHASES.indexOf('optimizer')];

export interface Wanted {
  stage: number;
  depth: number | null; // null: everything, or as deep as can still be read
  whole: boolean; // everything, repeats too
  open: string[]; // scopes to open besides
  phases: number[]; // those to draw; empty: what the page shows at first
  direction: 'down' | 'right';
  theme: 'light' | 'dark';
  title: string;
  edges: string[] | null; // what is written on edges, by value
  parameters: boolean; // as boxes
  legend: boolean;
  play: boolean;
  most: number; // boxes that a person can still read
}

export interface Drawn {
  svg: string;
  /** Boxes in the picture, and how many it would have with everything open. */
  boxes: number;
  all: number;
  /** How deep each phase is open where that was chosen here; empty where everything is open or a depth was asked for. */
  depths: [string, number][];
  unknown: string[]; // scopes that are not there
  closed: number; // modules that stayed closed at the depth asked for: nobody could read the operators inside
}

/** One picture; `bytes` is the .opscope file. */
export async function draw(bytes: Uint8Array, wanted: Wanted): Promise<Drawn> {
  const engine = new Engine();
  engine.indexOf = () => ({}) as SceneIndex;
  const info = await engine.load(bytes, wanted.title);
  const counts = info.stages[wanted.stage]!.phases;
  const options: ViewOptions = {
    direction: wanted.direction,
    split: true,
    side: true,
    hidden: hiddenOf(counts, wanted.phases),
    constants: wanted.parameters,
  };
  engine.edgeWords = wanted.edges;
  let picture = await engine.stage(info.id, wanted.stage, options);
  const all = boxesAt(engine, new Map(), true);
  let depths: [string, number][] = [];
  let closed = 0;
  if (wanted.whole || (wanted.depth === null && all <= wanted.most)) {
    picture = engine.openAll();
  } else if (wanted.depth !== null) {
    picture = engine.openDepth(wanted.depth);
    const tooLarge = crowded(engine, wanted.most);
    closed = tooLarge.length;
    if (closed) picture = engine.open(tooLarge, false);
  } else {
    const chosen = readable(engine, wanted.most);
    depths = chosen.depths;
    engine.openDepth(1);
    picture = engine.open(chosen.open, true);
  }
  const unknown: string[] = [];
  for (const path of wanted.open) {
    const items = engine.ask.items([path]);
    if (items.length === 0) unknown.push(path);
    else picture = opened(engine, items);
  }
  const theme = wanted.theme === 'dark' ? dark : light;
  const { scene } = picture;
  if (wanted.play) await engine.count();
  const region = { x: -MARGIN, y: -MARGIN, width: scene.width + 2 * MARGIN, height: scene.height + 2 * MARGIN };
  const over = wanted.play ? playOver(scene, engine.ask.playback().of, theme, region, 'peak memory') : undefined;
  const svg = writeSvg(scene, theme, wanted.edges ? { edgeLabels: 'always' } : {}, {
    title: wanted.title,
    around: wanted.legend ? { legend: phaseLegend(scene, theme, PHASES) } : {},
    ...(over ? { over, region } : {}),
  });
  const boxes = picture.scene.boxes.count;
  return { svg, boxes, all, depths: boxes < all ? depths : [], unknown, closed };
}

function opened(engine: Engine, items: number[]): Picture {
  engine.reveal(items);
  return engine.open(items, true);
}

/** Open groups with more operators of their own than a person can read (an optimizer's step); the phases stay open. */
function crowded(engine: Engine, most: number): number[] {
  const { tree, open } = engine['view'];
  const found: number[] = [];
  for (let g = 1; g < tree.groups; g++)
    if (open[g] && !tree.isPhase[g] && row(tree.childNodes, g).length > most) found.push(tree.nodes + g);
  return found;
}

/** As on the page: what only makes parameters is left out where there is a forward pass. */
function hiddenOf(counts: number[], phases: number[]): number[] {
  if (phases.length) return PHASES.map((_, i) => i).filter((i) => !phases.includes(i));
  return counts[0]! > 0 && counts[1]! > 0 ? [0] : [];
}

/**
 * What to open so that a picture can be read: every phase to one depth of its own, each a level deeper in turn as long as
 * the picture has at most so many boxes.
 */
function readable(engine: Engine, most: number): { open: number[]; depths: [string, number][] } {
  const { tree } = engine['view'];
  const phases = Array.from({ length: tree.groups }, (_, g) => g).filter((g) => tree.isPhase[g]);
  const tops = phases.length
    ? [...phases.filter((g) => tree.phase[g]! === FORWARD), ...phases.filter((g) => tree.phase[g]! !== FORWARD)]
    : [0];
  const forward = tops.find((top) => tree.phase[top] === FORWARD);
  const depths = new Map(tops.map((top) => [top, 1]));
  let boxes = boxesAt(engine, depths);
  for (let waiting = tops; waiting.length;) {
    waiting = waiting.filter((top) => {
      const deeper = new Map(depths).set(top, depths.get(top)! + 1);
      // What updates parameters is as deep as the modules that they are in.
      if (tree.phase[top] === OPTIMIZER && forward !== undefined && deeper.get(top)! >= depths.get(forward)!) return false;
      const next = boxesAt(engine, deeper);
      if (next > most || next === boxes) return false;
      depths.set(top, deeper.get(top)!);
      boxes = next;
      return true;
    });
  }
  const open: number[] = [];
  openAt(engine, depths).forEach((isOpen, g) => isOpen && open.push(tree.nodes + g));
  return { open, depths: tops.map((top) => [top ? PHASES[tree.phase[top]!]! : '', depths.get(top)!]) };
}

/** By group: open when what is above it is open to this depth. Everything is, where no depth is known. */
function openAt(engine: Engine, depths: Map<number, number>): Uint8Array {
  const { tree } = engine['view'];
  const open = new Uint8Array(tree.groups).fill(1);
  const level = new Int32Array(tree.groups);
  const top = new Int32Array(tree.groups);
  for (let g = 1; g < tree.groups; g++) {
    const parent = tree.parent[g]!;
    if (tree.isPhase[g]) top[g] = g;
    else [level[g], top[g]] = [level[parent]! + 1, top[parent]!];
    open[g] = tree.isPhase[g] || level[g]! < (depths.get(top[g]!) ?? Infinity) ? 1 : 0;
  }
  return open;
}

/** How many boxes a picture of these depths has, without laying it out. */
function boxesAt(engine: Engine, depths: Map<number, number>, unfolded = false): number {
  const view = engine['view'];
  const { tree, graph, flow, repeats } = view;
  const shown = {
    open: openAt(engine, depths),
    unfolded: new Uint8Array(tree.groups).fill(unfolded ? 1 : 0),
    repeats,
    inputs: inputsOf(view),
    weight: () => 0,
  };
  return visible({ ...graph, ...flow }, tree, shown).count;
}

(globalThis as Record<string, unknown>).opscope = { draw };
