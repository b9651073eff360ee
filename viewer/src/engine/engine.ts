// The engine: holds the captures, knows what is open, makes pictures and answers questions. Runs in a worker.

import { CHANGES, GHOST } from '../picture/changes.ts';
import { buildIndex, type SceneIndex } from '../picture/spatial.ts';
import { LayoutCache } from '../layout/nested.ts';
import { PHASES, ROLES, type Scene } from '../scene.ts';
import { Capture, type Graph } from '../wire/capture.ts';
import { drawnIn } from './answers.ts';
import { beside, mirror, unfoldBoth } from './beside.ts';
import { compare } from './compare/compare.ts';
import { Joined } from './compare/join.ts';
import { compose } from './compose.ts';
import { bytesOf, type Content } from './content.ts';
import { Costs } from './cost.ts';
import { row } from '../wire/csr.ts';
import { alone, comingIn, goingOut, without, type Cut } from './cut.ts';
import { items as itemsOf } from './names.ts';
import { classes, Diffs, replaced, type StageChanges } from './diff.ts';
import { boxChanges, kin, overlay, type Kin } from './diffview.ts';
import type { Aside, Calls, CaptureInfo, Chosen, Commands, EngineWords, Picture, ViewOptions } from './messages.ts';
import { flow } from './flow.ts';
import { Gradients } from './gradients.ts';
import { Listings } from './listings.ts';
import { Metrics } from './metrics.ts';
import { join, ownOf, type Placement } from './own.ts';
import { Repeats } from './repeats.ts';
import { columnsOf } from './separated.ts';
import { buildScene } from './scene.ts';
import { loneFills, purpose, unread } from './story.ts';
import { kindsOf } from './kinds.ts';
import { turn } from './uturn.ts';
import { buildTree, SECTION, type Tree } from './tree.ts';
import { asking, isQuestion, QUESTIONS, type Ask } from './questions.ts';
import { newGround, type Arranged, type Ground, type View } from './view.ts';
import { nothingVisible, visible, type Visible } from './visible.ts';
import { wholeOf } from './pieces.ts';
import { rehearse } from './warm.ts';

const FIRST_BOXES = 40; // a picture opens by itself as far as this many boxes …
const [FEWEST_BOXES, MOST_FIRST_BOXES] = [8, 80]; // … or this many, where it would show next to nothing;
const FEWEST_OF_STEP = 14; // the same for all columns of a training step together …
const MOST_OF_STEP = [FIRST_BOXES, 50, 64, 90]; // … or as many as one of these, where there is no other way
const [INIT, FORWARD, OPTIMIZER] = [PHASES.indexOf('init'), PHASES.indexOf('forward'), PHASES.indexOf('optimizer')];
const MOST_COMPARED = 1000; // children of a group, to know how many boxes it would be
const MOST_KEPT = 1e8; // bytes, and steps, of what was open at earlier times
const MOST_STEPS = 1000;
const MOST_UNFOLDED = 60; // as many as a URL takes
/** Groups that are drawn in advance, and the operators of a graph in which that takes no longer than a moment. */
const REHEARSED = 4;
const MOST_REHEARSED = 250_000;
const NUMBERS = new Intl.NumberFormat('en');
const [INPUT, CONSTANT] = [ROLES.indexOf('input'), ROLES.indexOf('constant')];
/** The stage of a capture that is all its graphs as one; no stage of a framework's has this name. */
const ALL_GRAPHS = 'all graphs';
const NO_INDEX = {} as SceneIndex; // until it is made

/** How far a training step is opened. */
interface Opening {
  step?: boolean; // forward and backward together
  without?: number; // a phase that stays closed
  firstTurn?: boolean; // where forward and backward take turns: the first alone
  tried?: boolean; // only counted
}

interface Entry {
  info: CaptureInfo;
  capture: Capture;
  diffs: Diffs;
  alone?: readonly string[]; // the modules that stand in it by themselves
}

/** What was open and hidden at some time. Nothing in it is changed later. */
interface Kept {
  view: View;
  options: ViewOptions;
  cut: Cut | null;
  open: Uint8Array;
  unfolded: Uint8Array;
}

/** What carries out a command may take its time. */
type Served<C> = { [K in keyof C]: C[K] extends (...args: infer A) => infer R ? (...args: A) => R | Promise<R> : never };

export class Engine implements Served<Commands> {
  /** Of a picture: what stands on edges, by value. */
  edgeWords: readonly string[] | null = null;
  private entries: Entry[] = [];
  private seams = new WeakMap<Capture, ReadonlyMap<number, string>>(); // of all graphs as one: what stands for breaks, and why
  private views = new Map<string, View>();
  private scenes = 0; // that were drawn
  private view!: View; // from the first stage() on
  /** What the page looks boxes up in; a picture without a pointer does without. */
  indexOf: typeof buildIndex = buildIndex;
  /** How many operators, in words of the page's language. */
  counts: (n: number) => string = (n) => `${NUMBERS.format(n)} op${n === 1 ? '' : 's'}`;
  private phaseNames: readonly string[] = PHASES;
  private words: Partial<EngineWords> = {};

  /** Questions about the view. What asks for costs must have `count` behind it. */
  readonly ask: Ask = asking(() => this.view);

  /** Any call, by its name. */
  async answer(call: keyof Calls, args: unknown[]): Promise<unknown> {
    const commands: Served<Commands> = this;
    if (isQuestion(call) && QUESTIONS[call].counted) await this.count();
    const run = (isQuestion(call) ? this.ask[call] : commands[call].bind(this)) as (...args: unknown[]) => unknown;
    return run(...args);
  }

  /** What is done when nobody asks for anything: one short step at a time, false when all is done. */
  later(): boolean {
    return !this.spare.next().done;
  }

  /** True when there has been a picture. */
  get shown(): boolean {
    return this.view !== undefined;
  }

  private spare = this.inSpareTime();

  private *inSpareTime(): Generator<void> {
    yield* rehearse();
    yield* this.rehearseLargest();
    // For the first details and traces.
    void this.view.outputs;
    yield;
    void this.view.readers;
  }

  /** The largest groups that may be opened next, drawn without being shown: what V8 made of the code then fits this capture. */
  private *rehearseLargest(): Generator<void> {
    const { tree, visible: v, open } = this.view;
    if (tree.nodes > MOST_REHEARSED) return;
    const closed = Array.from(v.item, (item) => item - tree.nodes).filter((g) => g > 0 && g < tree.groups && !open[g]);
    const children = (g: number) => row(tree.childNodes, g).length + row(tree.childGroups, g).length;
    const largest = closed.sort((a, b) => children(b) - children(a)).slice(0, REHEARSED);
    for (const group of largest) {
      if (this.view.tree !== tree) return;
      const opened = this.view.open.slice();
      opened[group] = 1;
      this.indexOf(this.draw(opened, new LayoutCache()).scene);
      yield;
    }
  }

  // -- captures -----------------------------------------------------------------------------------

  async load(data: Content, name: string): Promise<CaptureInfo> {
    return this.enter(await Capture.open(await bytesOf(data)), name);
  }

  /** Two stages as a capture of their own, with what is different between them. */
  async compare(before: Chosen, after: Chosen): Promise<CaptureInfo> {
    const place = ({ capture: id, stage }: Chosen) => {
      const { capture, info } = this.entries[id]!;
      const { name } = capture.manifest.stages[stage]!;
      return { capture, stage, name: info.stages.length > 1 ? `${info.name} · ${name}` : info.name };
    };
    const joined = Joined.of(place(before), place(after));
    const [then, now] = joined.manifest.stages;
    const graphs = [await joined.graph(then!.graph), await joined.graph(now!.graph)] as const;
    const { changes, links } = await compare(...graphs, joined.pools, (index) => joined.graph(index));
    joined.link(links);
    const touched = new Set(changes.flatMap((change) => change.before));
    return this.enter(joined, `${then!.name} ↔ ${now!.name}`, { before: 0, changes, same: graphs[0].nodes - touched.size });
  }

  /** The bytes of a capture: its file, and what came later. */
  bytes(id: number): Uint8Array[] {
    return this.entries[id]!.capture.files.map((bytes) => bytes.slice());
  }

  private async enter(capture: Capture, name: string, changed?: StageChanges): Promise<CaptureInfo> {
    const { manifest } = capture;
    const whole = await wholeOf(capture);
    if (whole) capture.add({ name: ALL_GRAPHS, after: null, seconds: null, warnings: [] }, whole.graph);
    const stages = [];
    for (const stage of manifest.stages) {
      const graph = await capture.graph(stage.graph);
      const texts = new Listings(capture.listings(stage.name), graph.nodes);
      const phases = PHASES.map(() => 0);
      for (let i = 0; i < graph.nodes; i++) phases[graph.phase[i]!]!++;
      stages.push({
        name: stage.name,
        nodes: graph.nodes - (whole && stage.name === ALL_GRAPHS ? whole.seams.length : 0),
        values: graph.values,
        edges: graph.useValue.includes(-1) ? graph.useValue.filter((value) => value >= 0).length : graph.useValue.length,
        after: stage.after,
        phases,
        kernels: graph.groups.get('kernel')?.name.length ?? 0,
        links: Object.fromEntries([...graph.links].map(([kind, links]) => [kind, links.source.length])),
        warnings: stage.warnings,
        listings: texts.kinds,
        linked: texts.linked,
        seconds: stage.seconds ?? null,
        seams: whole && stage.name === ALL_GRAPHS ? whole.seams.length : 0,
        changes: null as CaptureInfo['stages'][number]['changes'],
      });
    }
    const diffs = new Diffs(
      capture,
      stages.map((stage) => stage.nodes),
    );
    await diffs.load();
    if (changed) diffs.set(1, changed);
    for (const [i, stage] of stages.entries()) {
      const diff = diffs.of(i);
      if (!diff) continue;
      const counts = CHANGES.map((kind) => diff.changes.filter((change) => change.kind === kind).length);
      const touched = CHANGES.map((kind) =>
        diff.changes.reduce((n, change) => n + (change.kind === kind ? change.before.length + change.after.length : 0), 0),
      );
      stage.changes = { before: diff.before, counts, touched, same: diff.same };
    }
    const sources = Array.from({ length: capture.sources.path.length }, (_, i) => capture.sources.path.at(i));
    const own = (await Promise.all(stages.map((_, i) => ownOf(capture, i))))
      .flat()
      .filter(({ name }, i, all) => all.findIndex((one) => one.name === name) === i);
    const info: CaptureInfo = {
      id: this.entries.length,
      name,
      framework: manifest.origin.framework,
      version: manifest.origin.version,
      how: manifest.origin.how,
      warnings: manifest.warnings,
      stages,
      sources,
      metrics: [...Metrics.names(capture), ...own.map(({ name }) => name)],
      own: own.map(({ name, unit, isText, roll }) => ({ name, unit, isText, roll })),
      costs: Costs.has(capture),
      facts: [...new Set(manifest.tables.map(({ fact }) => fact ?? ''))],
    };
    if (whole) this.seams.set(capture, new Map(whole.seams.map(({ node, reason }) => [node, reason])));
    this.entries.push({ info, capture, diffs });
    return info;
  }

  async stage(id: number, stage: number, options: ViewOptions): Promise<Picture> {
    const before = this.shown && this.view.id === id ? this.view : null;
    this.view = await this.viewOf(id, stage, options, before);
    const diff = options.aligned ? this.view.diffs.of(stage) : null;
    if (diff) {
      this.view.twin = {
        view: await this.viewOf(id, diff.before, plainly(options), null),
        map: await this.view.diffs.map(diff.before, stage),
      };
    }
    return this.picture();
  }

  private async viewOf(id: number, stage: number, options: ViewOptions, from: View | null): Promise<View> {
    const { capture, diffs, alone: names } = this.entries[id]!;
    const diff = options.overlay ? diffs.of(stage) : null;
    const key = `${id}/${stage}${diff ? '/overlay' : ''}`;
    let view = this.views.get(key);
    if (!view) {
      const outer = await capture.graph(capture.manifest.stages[stage]!.graph);
      const plain = await compose(outer, (index) => capture.graph(index));
      let shown = plain;
      const kinds = classes(diffs.of(stage), 'after', plain.graph.nodes);
      let byNode = kinds;
      if (diff) {
        const gone = replaced(diff);
        const before = await capture.graph(capture.manifest.stages[diff.before]!.graph);
        shown = overlay(plain, before, gone, await diffs.map(diff.before, stage), capture.pools);
        const ghosts = classes(diff, 'before', before.nodes);
        byNode = new Uint8Array(shown.graph.nodes);
        byNode.set(kinds);
        gone.forEach((node, i) => (byNode[plain.graph.nodes + i] = ghosts[node]! | GHOST));
      }
      view = this.arrange(
        newGround(
          { id, capture, diffs, stage, gradients: await Gradients.read(capture, stage) },
          shown,
          diff ? replaced(diff) : [],
          byNode,
          (await kindsOf(capture, stage)).ofOp,
        ),
        options,
      );
      if (names) this.cutOff(view, alone(view, names));
      this.openAtFirst(view);
      if (names) this.openAlone(view, names);
      this.views.set(key, view);
      if (names) return view; // it is about what is inside
    } else if (JSON.stringify(view.options) !== JSON.stringify(options)) {
      this.arrange(view, options);
    }
    if (from && from !== view) keepOpen(from, view);
    return view;
  }

  // -- stages -------------------------------------------------------------------------------------

  /** A question about another stage, while this one stays in view. */
  async aside(stage: number, call: Aside, args: unknown[]): Promise<unknown> {
    const kept = this.view;
    try {
      this.view = await this.viewOf(kept.id, stage, plainly(kept.options), null);
      return await this.answer(call, args);
    } finally {
      this.view = kept;
    }
  }

  /** Open something in the stage that is drawn beside this one; what both have opens in both. */
  beside(call: 'open' | 'unfold' | 'reveal', args: unknown[]): Picture {
    const kept = this.view;
    if (!kept.twin || !kept.options.aligned) return this.picture();
    this.view = kept.twin.view;
    (this[call] as (...of: unknown[]) => Picture)(...args);
    this.view = kept;
    mirror(kept.twin.view, kept);
    return this.picture();
  }

  /** Which items of the picture of another stage (as it was last shown) are which of this one. */
  async kin(from: number, overlaid: boolean): Promise<Kin> {
    const { id, stage, diffs } = this.view;
    const old = this.views.get(`${id}/${from}${overlaid ? '/overlay' : ''}`);
    if (!old) return { same: new Int32Array(0), from: new Int32Array(0), into: new Int32Array(0) };
    if (from !== stage) return kin(old, this.view, await diffs.map(from, stage), await diffs.map(stage, from));
    const alike = new Map(Array.from({ length: diffs.sizes[stage]! }, (_, node) => [node, [node]]));
    return kin(old, this.view, alike, alike);
  }

  /** The words of the page's language that are drawn: how many operators, and the phases. */
  speak(words: EngineWords): Picture | null {
    this.counts = (n) => (n === 1 ? words.op : words.ops).replace('{n}', NUMBERS.format(n));
    this.phaseNames = words.phases;
    this.words = words;
    for (const view of this.views.values()) {
      view.tree.phaseNames = words.phases;
      view.tree.plumbingNames = words.plumbing ?? view.tree.plumbingNames;
      view.cache = new LayoutCache(); // boxes are as wide as their words
    }
    return this.shown ? this.picture() : null;
  }

  options(options: ViewOptions): Picture {
    this.arrange(this.view, options);
    return this.picture();
  }

  /** Build the tree anew, and open in it what was open before (by scope and phase). */
  private arrange(ground: Ground & Partial<Arranged>, options: ViewOptions): View {
    const { tree: before, open: wereOpen, unfolded: wereUnfolded } = ground;
    const wasOpen = new Set(ground.lost);
    const wasUnfolded = new Set<string>();
    const keyOf = (tree: Tree, g: number) => `${tree.scope[g]}/${tree.isPhase[g] ? tree.phase[g] : ''}/${tree.labels.get(g) ?? ''}`;
    for (let g = 0; before && g < before.groups; g++) {
      if (wereOpen?.[g]) wasOpen.add(keyOf(before, g));
      if (wereUnfolded?.[g]) wasUnfolded.add(keyOf(before, g));
    }
    const inlined = options.constants ? new Uint8Array(ground.graph.nodes) : constants(ground.graph);
    if (!options.constants && !options.plumbing)
      for (const node of loneFills(ground.graph, ground.kinds, ground.plumbing)) inlined[node] = 1;
    const passed = passedNow(ground, options);
    for (let node = 0; node < passed.length; node++) if (passed[node]! >= 0) inlined[node] = 1;
    const drawn = flow(ground.graph, ground.bodies, passed);
    const tree = buildTree(ground.graph, ground.capture.pools, {
      split: options.split,
      hidden: new Set(options.hidden),
      inlined,
      gone: ground.cut?.gone,
      bodies: ground.bodies,
      opTitle: (node) => ground.titles.of(node),
      phaseNames: this.phaseNames,
      flow: drawn,
      plumbing: options.plumbing ? undefined : ground.plumbing,
      purpose: (members) => purpose(members, (node) => [ground.kinds(ground.graph.op[node]!), ground.titles.of(node)]),
      plumbingNames: this.words.plumbing,
      gather: (node) => row(ground.outputs, node)[0] ?? -1,
    });
    const [open, unfolded] = [new Uint8Array(tree.groups), new Uint8Array(tree.groups)];
    open[0] = 1;
    const lost = new Set(wasOpen);
    for (let g = 0; lost.size && g < tree.groups; g++) lost.delete(keyOf(tree, g));
    for (let g = 1; before && g < tree.groups; g++) {
      if (wasOpen.has(keyOf(tree, g)) || (tree.isPhase[g] && !before.isPhase.includes(1))) open[g] = 1;
    }
    for (let g = 0; wasUnfolded.size && g < tree.groups; g++) if (wasUnfolded.has(keyOf(tree, g))) unfolded[g] = 1;
    const kin = isTurned(options) && tree.isPhase.includes(1) ? kinOf(tree) : () => [];
    return Object.assign(ground, {
      options,
      tree,
      open,
      lost,
      unfolded,
      inlined,
      passed,
      flow: drawn,
      kin,
      rows: null,
      cache: new LayoutCache(),
      repeats: new Repeats(ground.graph, tree, drawn, () => ground.outputs, kin),
      visible: ground.visible ?? nothingVisible(),
      scene: ground.scene ?? 0,
      twin: ground.twin ?? null,
      apart: ground.apart ?? new Set(),
    });
  }

  /** What stands alone is open, and so is what is around it. */
  private openAlone(view: View, names: readonly string[]): void {
    const { tree } = view;
    for (const item of itemsOf(view, [...names]))
      for (let g = item - tree.nodes; g > 0 && g < tree.groups; g = tree.parent[g]!)
        for (const one of [g, ...view.kin(g)]) view.open[one] = 1;
    for (let g = 1; g < tree.groups; g++) if (tree.isPhase[g]) view.open[g] = 1;
  }

  /** Open groups as long as the picture stays readable. */
  private openAtFirst(view: View): void {
    const { tree } = view;
    if (!isTurned(view.options) || !tree.isPhase.includes(1)) {
      if (this.openLevels(view, FIRST_BOXES).boxes < FEWEST_BOXES) this.openLevels(view, MOST_FIRST_BOXES);
      return;
    }
    // Of a step, all columns open equally far. Where that is too much, the optimizer stays closed, or all turns but the first.
    const ways: Opening[] = [{}, { without: OPTIMIZER }];
    if (tree.inTurns) ways.push({ firstTurn: true }, { firstTurn: true, without: OPTIMIZER });
    for (const most of MOST_OF_STEP) {
      let best: { boxes: number; levels: number; way: Opening } | null = null;
      for (const way of ways) {
        const { boxes, levels } = this.openLevels(view, most, { ...way, step: true, tried: true });
        if (!best || levels > best.levels) best = { boxes, levels, way };
      }
      if (best!.boxes < FEWEST_OF_STEP && most !== MOST_OF_STEP.at(-1)) continue;
      this.openLevels(view, most, { ...best!.way, step: true });
      return;
    }
  }

  /** Opens all of a level or none, so that equal things look equal; answers how many boxes and how many open levels there are then. */
  private openLevels(view: View, most: number, how: Opening = {}): { boxes: number; levels: number } {
    const { tree } = view;
    const inside = (g: number) => shownInside(view, g);
    // What is opened stays a box, around the others.
    const grows = (groups: number[]) => groups.reduce((sum, g) => sum + inside(g).boxes, 0);
    let { boxes, groups } = inside(0);
    // And what comes in; parameters appear with what reads them.
    boxes += inputsOf(view).filter((value) => view.graph.role[value] === INPUT).length + (how.step ? 1 : 0);
    let levels = 0;
    while (groups.length) {
      let level = groups.filter((g) => {
        // What only builds the modules stays closed, and so do modules without modules inside.
        if (tree.phase[g] === INIT && inside(g).boxes > 4) return false;
        if (tree.phase[g] === how.without || (how.firstTurn && tree.isPhase[g] && tree.part[g]! > 1)) return false;
        // The optimizer opens as far as the modules that it updates.
        if (tree.phase[g] === OPTIMIZER && !tree.isPhase[g] && view.kin(g).length) return false;
        if (!tree.isPhase[g] && (isLikeFolded(view, g) || isBesideMerged(tree, g))) return false;
        return inside(g).boxes <= Math.min(most, MOST_FIRST_BOXES) && (tree.isPhase[g] || holdsModules(view, g));
      });
      const kin = (g: number) => view.kin(g).filter((other) => groups.includes(other) && tree.phase[other] !== how.without);
      level = [...new Set(level.flatMap((g) => [g, ...kin(g)]))];
      // Where forward and backward are too much together, the forward pass says more about a model.
      if (!how.step && boxes + grows(level) > most && boxes < most / 2) level = level.filter((g) => tree.phase[g] === FORWARD);
      if (!level.length || (grows(level) > 0 && boxes + grows(level) > most)) break;
      boxes += grows(level);
      levels++;
      if (!how.tried) for (const g of level) view.open[g] = 1;
      groups = level.flatMap((g) => inside(g).groups);
    }
    return { boxes, levels };
  }

  // -- pictures -----------------------------------------------------------------------------------

  private picture(): Picture {
    const { view } = this;
    const twin = view.options.aligned ? view.twin : null;
    view.apart = new Set();
    if (twin) {
      const options = plainly(view.options);
      if (JSON.stringify(twin.view.options) !== JSON.stringify(options)) this.arrange(twin.view, options);
      mirror(view, twin.view);
      unfoldBoth(view, twin.view);
    }
    const now = this.drawn(view.byNode);
    if (!twin) return { ...now, index: this.indexOf(now.scene) };
    this.view = twin.view;
    const then = this.drawn(classes(view.diffs.of(view.stage), 'before', twin.view.graph.nodes));
    this.view = view;
    const [right, left] = beside(then, now, twin, view);
    const indexed = (picture: Picture): Picture => ({ ...picture, index: this.indexOf(picture.scene) });
    return { ...indexed(right), beside: { ...left, picture: indexed(left.picture) } };
  }

  /** The picture of the view, without an index; `kinds`: the change of each operator. */
  private drawn(kinds: Uint8Array): Picture {
    const { view } = this;
    const { graph, tree } = view;
    const drawn = this.draw(view.open, view.cache);
    view.visible = drawn.visible;
    view.rows = drawn.rows;
    const { scene } = drawn;
    scene.number = view.scene = ++this.scenes;
    const open: number[] = [];
    for (let g = 1; g < tree.groups; g++) if (view.open[g]) open.push(tree.nodes + g);
    // Where all are unfolded, it was not done one by one.
    const several: number[] = [];
    for (let g = 0; g < tree.groups && several.length <= MOST_UNFOLDED; g++) if (view.unfolded[g]) several.push(g);
    const unfolded = several.length > MOST_UNFOLDED ? [] : several.filter((g) => view.repeats.runs(g).length).map((g) => tree.nodes + g);
    const saved = PHASES.map(() => 0);
    const own = tree.nodes - view.ghosts.length;
    view.kept.forEach((value, node) => value >= 0 && node < own && saved[graph.phase[node]!]!++);
    const { views, plumbing } = view;
    const aside = { saved, views: 0, plumbing: 0 };
    for (let node = 0; node < Math.min(own, views.length); node++) if (views[node]! >= 0) aside.views++;
    for (let node = 0; node < own; node++) aside.plumbing += plumbing[node]!;
    const hidden = [...(view.cut?.hidden ?? [])];
    const seams = [...this.seamsOf(view).keys()].map((node) => view.visible.nodeBox[node]!).filter((box) => box >= 0);
    return { scene, index: NO_INDEX, open, unfolded, hidden, seams, ...aside, ...boxChanges(view, kinds) };
  }

  /** By operator of the view: why the graph before it ended. */
  private seamsOf({ capture, stage }: View): ReadonlyMap<number, string> {
    return (capture.manifest.stages[stage]!.name === ALL_GRAPHS && this.seams.get(capture)) || new Map();
  }

  /** What is visible with these groups open, and where it is. */
  private draw(open: Uint8Array, cache: LayoutCache): { visible: Visible; scene: Scene; rows: Int32Array | null } {
    const { view } = this;
    const { graph, tree, types } = view;
    const inputs = inputsOf(view);
    let shown = visible({ ...graph, ...view.flow }, tree, {
      open,
      unfolded: view.apart.size ? view.unfolded.map((one, g) => (view.apart.has(g) ? 1 : one)) : view.unfolded,
      repeats: view.repeats,
      inputs,
      weight: (value) => types.bytes(graph.type[value]!),
    });
    // A constant is shown by what reads it, and what only keeps a tensor by what made the tensor.
    if (view.inlined.includes(1)) standIn(view, shown);
    const turned = isTurned(view.options) ? turn({ graph, tree, types, flow: view.flow, inlined: view.inlined, visible: shown }) : null;
    if (turned) shown = turned.visible;
    const scene = buildScene({
      graph,
      pools: view.capture.pools,
      tree,
      types,
      turned,
      visible: shown,
      direction: view.options.direction,
      side: view.options.side,
      cache,
      outputs: () => view.outputs,
      counts: this.counts,
      read: view.flow.read,
      coming: comingIn(view),
      going: goingOut(view),
      unread: (nodes) => unread(graph, nodes),
      drawnWords: this.words,
      place: (value) => view.gradients.place(value),
      words: this.edgeWords,
      note: (node) => this.seamsOf(view).get(node) ?? '',
    });
    return { visible: shown, scene, rows: turned?.turn.row ?? null };
  }

  open(items: number[], open: boolean): Picture {
    const { tree } = this.view;
    for (const item of items) {
      const g = item - tree.nodes;
      if (g <= 0 || g >= tree.groups) continue;
      for (const group of [g, ...this.view.kin(g)]) this.view.open[group] = open ? 1 : 0;
    }
    return this.picture();
  }

  unfold(item: number): Picture {
    const { tree } = this.view;
    const parent = tree.parent[item - tree.nodes]!;
    const unfolded = this.view.unfolded[parent] ? 0 : 1;
    for (const group of [parent, ...this.view.kin(parent)]) this.view.unfolded[group] = unfolded;
    return this.picture();
  }

  openAll(): Picture {
    this.view.open.fill(1);
    this.view.unfolded.fill(1);
    return this.picture();
  }

  openDepth(depth: number): Picture {
    const { tree } = this.view;
    const level = new Int32Array(tree.groups);
    for (let g = 1; g < tree.groups; g++) {
      level[g] = level[tree.parent[g]!]! + (tree.isPhase[g] ? 0 : 1);
      this.view.open[g] = level[g]! < depth || tree.isPhase[g] ? 1 : 0;
    }
    this.view.unfolded.fill(0);
    return this.picture();
  }

  /** Open what is around these items, so that they can be seen. */
  // -- what is left out ----------------------------------------------------------------------------

  private cutOff(view: View, cut: Cut | null): void {
    view.cut = cut;
    this.arrange(view, view.options);
  }

  /** Null where nothing would be left. */
  hide(items: number[]): Picture | null {
    const cut = without(this.view, items);
    if (!cut) return null;
    this.cutOff(this.view, cut);
    return this.picture();
  }

  showHidden(): Picture {
    const { id, cut } = this.view;
    this.cutOff(this.view, null);
    const { alone: names } = this.entries[id]!;
    if (cut?.isAlone && names) this.cutOff(this.view, alone(this.view, names));
    return this.picture();
  }

  /** The same capture once more, with nothing in it but these modules. */
  isolate(items: number[], name: string): CaptureInfo {
    const { info, capture, diffs } = this.entries[this.view.id]!;
    const id = this.entries.length;
    const names = this.ask.paths(items);
    this.entries.push({ info: { ...info, id, name, alone: names, of: info.of ?? info.id }, capture, diffs, alone: names });
    return this.entries[id]!.info;
  }

  // -- the way back --------------------------------------------------------------------------------

  private kept = new Map<number, Kept>();
  private lastKept = 0;

  /** Keep what is open and hidden now; the answer is for `recall`. */
  keep(): number {
    const { view } = this;
    const last = this.kept.get(this.lastKept);
    // A million groups that were not touched are kept once.
    const again = (now: Uint8Array, before: Uint8Array | undefined) =>
      last?.view === view && before?.length === now.length && before.every((is, i) => is === now[i]) ? before : now.slice();
    const { options, cut } = view;
    const now: Kept = { view, options, cut, open: again(view.open, last?.open), unfolded: again(view.unfolded, last?.unfolded) };
    this.kept.set(++this.lastKept, now);
    let bytes = 0;
    const counted = new Set<Uint8Array>();
    for (const [place, { open, unfolded }] of [...this.kept].reverse()) {
      for (const list of [open, unfolded]) if (!counted.has(list)) bytes += counted.add(list) && list.length;
      if (bytes > MOST_KEPT || this.lastKept - place > MOST_STEPS) this.kept.delete(place);
    }
    return this.lastKept;
  }

  recall(place: number): Picture | null {
    const kept = this.kept.get(place);
    if (!kept) return null;
    const { view, options, cut, open, unfolded } = kept;
    this.view = view;
    if (view.cut !== cut || JSON.stringify(view.options) !== JSON.stringify(options)) {
      view.cut = cut;
      this.arrange(view, options);
    }
    view.open = open.slice();
    view.unfolded = unfolded.slice();
    return this.picture();
  }

  reveal(items: number[]): Picture {
    const { tree } = this.view;
    for (let item of items) {
      const other = item < tree.nodes ? drawnIn(this.view, item) : -1;
      if (other >= 0) item = other;
      let g = item < tree.nodes ? tree.nodeGroup[item]! : (tree.parent[item - tree.nodes] ?? -1);
      let child = item < tree.nodes ? -1 : item - tree.nodes;
      for (; g >= 0; child = g, g = tree.parent[g]!) {
        for (const group of [g, ...this.view.kin(g)]) {
          this.view.open[group] = 1;
          if (child > 0) this.view.unfolded[group] = 1;
        }
      }
    }
    return this.picture();
  }

  restore(paths: string[], unfolded: string[], hidden: string[] = []): Picture {
    // A name may be that of a part of a module, which is numbered among those that are left: one after the other.
    for (const name of hidden) {
      const cut = without(this.view, this.ask.items([name]));
      if (cut) this.cutOff(this.view, cut);
    }
    const { tree } = this.view;
    this.view.open.fill(0);
    this.view.open[0] = 1;
    for (const item of this.ask.items(paths)) if (item >= tree.nodes) this.view.open[item - tree.nodes] = 1;
    for (const item of this.ask.items(unfolded)) if (item >= tree.nodes) this.view.unfolded[item - tree.nodes] = 1;
    return this.picture();
  }

  // -- costs --------------------------------------------------------------------------------------

  async attach(id: number, data: Content): Promise<string[]> {
    const { capture, info } = this.entries[id]!;
    await capture.attach(await bytesOf(data));
    for (const view of this.views.values()) {
      if (view.capture !== capture) continue;
      view.metrics.costs = null; // read again when it is asked for
      await view.metrics.loadOwn();
    }
    info.costs = Costs.has(capture);
    return (info.metrics = [...Metrics.names(capture), ...info.own.map(({ name }) => name)]);
  }

  /** A table of the user's own, joined to the capture in view. */
  async addTable(name: string, text: string): Promise<{ joined: Placement; info: CaptureInfo }> {
    const { capture, id } = this.view;
    const joined = await join(capture, name, columnsOf(name, text));
    const { info } = this.entries[id]!;
    const stages = await Promise.all(capture.manifest.stages.map((_, i) => ownOf(capture, i)));
    const made = stages.flat().filter((column) => joined.columns.includes(column.name));
    info.own = [...info.own, ...made.map(({ name: of, unit, isText }) => ({ name: of, unit, isText }))];
    info.metrics = [...info.metrics, ...joined.columns];
    for (const view of this.views.values()) if (view.capture === capture) await view.metrics.loadOwn();
    return { joined, info };
  }

  /** Read what operators cost and took, before a call that asks for it: the first picture does not wait for that. */
  async count(): Promise<void> {
    const { metrics, capture, stage } = this.view;
    metrics.costs ??= await Costs.read(capture, stage);
    await metrics.measured;
  }
}

/** Of a stage by itself. */
function plainly(options: ViewOptions): ViewOptions {
  return { ...options, overlay: undefined, aligned: undefined };
}

/** What an open group shows: how many boxes, which groups are boxes of their own, and whether equal neighbours are one box. */
function shownInside({ tree, repeats }: View, group: number): { boxes: number; groups: number[]; folds: boolean } {
  const children = row(tree.childGroups, group);
  const nodes = row(tree.childNodes, group).length;
  // Too many in any case: not worth a comparison.
  if (nodes + children.length > MOST_COMPARED) return { boxes: nodes + children.length, groups: [], folds: false };
  const runs = repeats.runs(group);
  const folded = new Set(runs.flatMap(([first, count]) => Array.from({ length: count }, (_, i) => children[first + i]!)));
  const groups = [...children].filter((g) => !folded.has(g) && tree.purpose[g]! < 0);
  return { boxes: nodes + children.length - folded.size + runs.length, groups, folds: runs.length > 0 };
}

/** Whether opening a group shows modules; a frame around a single box that shows none says nothing. */
function holdsModules(view: View, group: number): boolean {
  for (let g = group; ;) {
    const { boxes, groups, folds } = shownInside(view, g);
    if (folds || boxes > 1 || !groups.length) return folds || groups.length > 0;
    g = groups[0]!;
  }
}

/** Whether some of the modules beside a module are folded, and of its class: then it stays closed as they do. */
function isLikeFolded({ tree, repeats, capture }: View, group: number): boolean {
  const { cls } = capture.pools.scopes;
  const siblings = row(tree.childGroups, tree.parent[group]!);
  const own = cls.at(tree.scope[group]!);
  return (
    own !== '' &&
    siblings.length <= MOST_COMPARED &&
    repeats.runs(tree.parent[group]!).some(([at]) => cls.at(tree.scope[siblings[at]!]!) === own)
  );
}

/** Whether modules beside a module share a box, so that the picture is not too long: then it is not opened either. */
function isBesideMerged({ childGroups, parent, purpose }: Tree, group: number): boolean {
  return row(childGroups, parent[group]!).some((g) => purpose[g] === SECTION && row(childGroups, g).some((inner) => purpose[inner]! < 0));
}

/** Data that comes in is a box of its own; parameters are inside their operator unless they are pulled out. */
export function inputsOf(view: View): Int32Array {
  const { graph, options, cut } = view;
  const isRead = (value: number) => !cut || row(view.readers, value).some((use) => !cut.gone[graph.useNode[use]!]);
  const coming = comingIn(view);
  if (!options.constants) return Int32Array.from([...graph.inputs.filter((value) => graph.role[value] === 0 && isRead(value)), ...coming]);
  const values = Int32Array.from({ length: graph.values }, (_, i) => i);
  const outer = values.filter((value) => graph.producer[value]! < 0 && row(view.readers, value).length > 0 && isRead(value));
  return coming.length ? Int32Array.from([...outer, ...coming]) : outer;
}

function isTurned({ split, side, columns }: ViewOptions): boolean {
  return split && side && !columns;
}

/** The groups of the same module in other phases: in a U they open and fold together. */
function kinOf(tree: Tree): (group: number) => readonly number[] {
  const byScope = new Map<number, number[]>();
  const plain = (g: number) => g > 0 && !tree.isPhase[g] && tree.purpose[g]! < 0 && !tree.labels.has(g) && tree.phase[g] !== INIT;
  for (let g = 1; g < tree.groups; g++) {
    if (!plain(g)) continue;
    const list = byScope.get(tree.scope[g]!);
    if (list) list.push(g);
    else byScope.set(tree.scope[g]!, [g]);
  }
  // What updates the parameters of a single module stays one box.
  const isUpdate = (g: number) =>
    tree.phase[g] === OPTIMIZER && row(tree.childGroups, g).every((c) => byScope.get(tree.scope[c]!)!.length < 2);
  const sections = new Map<string, number[]>();
  for (let g = 1; g < tree.groups; g++) {
    if (tree.section[g]! < 0) continue;
    const key = `${tree.scope[g]}/${tree.section[g]}`;
    const list = sections.get(key);
    if (list) list.push(g);
    else sections.set(key, [g]);
  }
  const twins = (group: number) => sections.get(`${tree.scope[group]}/${tree.section[group]}`)!.filter((g) => g !== group);
  return (group) =>
    tree.section[group]! >= 0
      ? twins(group)
      : plain(group)
        ? (byScope.get(tree.scope[group]!) ?? []).filter((g) => tree.phase[g] !== tree.phase[group] && !isUpdate(g))
        : [];
}

/** By operator: the value for which it is passed over in a picture of these options, or -1; empty where there is none. */
function passedNow({ graph, kept, views, byNode }: Ground, options: ViewOptions): Int32Array {
  if ((options.saved || !kept.length) && (options.views || !views.length)) return new Int32Array(0);
  const [saved, seen] = [!options.saved && kept.length > 0, !options.views && views.length > 0];
  const passed = new Int32Array(graph.nodes).fill(-1);
  for (let node = 0; node < graph.nodes; node++) {
    if (kept.length && kept[node]! >= 0) passed[node] = saved ? kept[node]! : -1;
    // What the stage in view has changed is drawn, whatever it is.
    else if (seen && !byNode[node]) passed[node] = views[node]!;
  }
  return passed;
}

/** Boxes for the operators that are drawn inside others; answers.drawnIn says the same of one of them. */
function standIn({ graph, inlined, passed }: View, { nodeBox }: Visible): void {
  const { useNode, useValue, producer } = graph;
  // In order of execution: what it hands on may have been handed on before.
  passed.forEach((value, node) => {
    if (value >= 0 && producer[value]! >= 0) nodeBox[node] = nodeBox[producer[value]!]!;
  });
  for (let use = 0; use < useValue.length; use++) {
    const maker = useValue[use]! < 0 ? -1 : producer[useValue[use]!]!;
    if (maker >= 0 && inlined[maker] && nodeBox[maker]! < 0) nodeBox[maker] = nodeBox[useNode[use]!]!;
  }
}

/** Operators that only make a constant: drawn inside the operator that reads it. */
function constants(graph: Graph): Uint8Array {
  const { useStart, producer, role } = graph;
  const inlined = new Uint8Array(graph.nodes);
  if (!role.includes(CONSTANT)) return inlined;
  for (let value = 0; value < graph.values; value++) {
    const node = producer[value]!;
    if (node >= 0 && role[value] === CONSTANT && useStart[node] === useStart[node + 1]) inlined[node] = 1;
  }
  for (let value = 0; value < graph.values; value++) if (producer[value]! >= 0 && role[value] !== CONSTANT) inlined[producer[value]!] = 0;
  return inlined;
}

/** What is open in one stage is open in the next, where both have it. */
function keepOpen(from: View, to: View): void {
  const key = (view: View, g: number) => `${view.tree.scope[g]}/${view.tree.phase[g]}/${view.tree.isPhase[g]}/${view.tree.part[g]}`;
  const open = new Map<string, number>();
  for (let g = 1; g < from.tree.groups; g++) if (!from.tree.labels.has(g)) open.set(key(from, g), from.open[g]!);
  for (let g = 1; g < to.tree.groups; g++) if (!to.tree.labels.has(g)) to.open[g] = open.get(key(to, g)) ?? to.open[g]!;
}
