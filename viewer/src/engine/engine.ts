// The engine: holds the captures, knows what is open, makes pictures and answers questions. Runs in a worker.

import { buildIndex } from '../draw/spatial.ts';
import { find } from '../find/find.ts';
import { LayoutCache } from '../layout/nested.ts';
import { PHASES, ROLES, type Scene } from '../scene.ts';
import { Capture, type Graph, type Place } from '../wire/capture.ts';
import { children, details, drawnIn, inside, kernel, kernels, labels } from './answers.ts';
import { compose } from './compose.ts';
import { bytesOf, type Content } from './content.ts';
import { Costs, type Figure } from './cost.ts';
import { alive, costMap, memoryLine, roofs, steps, totals } from './costviews.ts';
import { row } from './csr.ts';
import { CHANGES, classes, Diffs, GHOST, replaced } from './diff.ts';
import { boxChanges, drawnItem, isOperator, kin, outerNodes, overlay, type Kin } from './diffview.ts';
import type {
  Calls,
  CaptureInfo,
  ChangeRow,
  Details,
  EngineWords,
  FateRow,
  KernelRow,
  Label,
  Picture,
  TableRow,
  TreeRow,
  ViewOptions,
} from './messages.ts';
import { flow } from './flow.ts';
import { kindsOf } from './kinds.ts';
import { Listings } from './listings.ts';
import { Metrics } from './metrics.ts';
import { KERNEL_COLOURS, shadesOf } from './shades.ts';
import { between, trace } from './paths.ts';
import { Repeats } from './repeats.ts';
import type { Device } from './roofs.ts';
import { csv, table } from './rows.ts';
import { buildScene } from './scene.ts';
import { purpose, unread } from './story.ts';
import { turn } from './uturn.ts';
import { buildTree, scopePath, type Tree } from './tree.ts';
import { newView, type View } from './view.ts';
import { visible, type Visible } from './visible.ts';
import { rehearse } from './warm.ts';

const FIRST_BOXES = 40; // a picture opens by itself as far as this many boxes …
const [FEWEST_BOXES, MOST_FIRST_BOXES] = [8, 80]; // … or this many, where it would show next to nothing;
const [FEWEST_OF_STEP, MOST_OF_STEP] = [18, 180]; // the same for all columns of a training step together
const [INIT, FORWARD, OPTIMIZER] = [PHASES.indexOf('init'), PHASES.indexOf('forward'), PHASES.indexOf('optimizer')];
const MOST_COMPARED = 1000; // children of a group, to know how many boxes it would be
const MOST_UNFOLDED = 60; // as many as a URL takes
/** Groups that are drawn in advance, and the operators of a graph in which that takes no longer than a moment. */
const REHEARSED = 4;
const MOST_REHEARSED = 250_000;
const NUMBERS = new Intl.NumberFormat('en');
const CONSTANT = ROLES.indexOf('constant');

interface Entry {
  info: CaptureInfo;
  capture: Capture;
  diffs: Diffs;
}

export class Engine {
  private entries: Entry[] = [];
  private views = new Map<string, View>();
  private view!: View; // from the first stage() on
  private toward = -1; // the stage whose changes are marked in the picture of the one before it
  /** What the page looks boxes up in; a picture that nobody points at does without. */
  indexOf: typeof buildIndex = buildIndex;
  /** How many operators, in words of the page's language. */
  counts: (n: number) => string = (n) => `${NUMBERS.format(n)} op${n === 1 ? '' : 's'}`;
  private phaseNames: readonly string[] = PHASES;
  private words: Partial<EngineWords> = {};

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

  /** The largest groups that may be opened next, drawn for nobody: what V8 made of the code then fits this capture. */
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
    const capture = await Capture.open(await bytesOf(data));
    const { manifest } = capture;
    const stages = [];
    for (const stage of manifest.stages) {
      const graph = await capture.graph(stage.graph);
      const texts = new Listings(capture.listings(stage.name), graph.nodes);
      const phases = PHASES.map(() => 0);
      for (let i = 0; i < graph.nodes; i++) phases[graph.phase[i]!]!++;
      stages.push({
        name: stage.name,
        nodes: graph.nodes,
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
        changes: null as CaptureInfo['stages'][number]['changes'],
      });
    }
    const diffs = new Diffs(
      capture,
      stages.map((stage) => stage.nodes),
    );
    await diffs.load();
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
    const info: CaptureInfo = {
      id: this.entries.length,
      name,
      framework: manifest.origin.framework,
      version: manifest.origin.version,
      how: manifest.origin.how,
      warnings: manifest.warnings,
      stages,
      sources,
      metrics: Metrics.names(capture),
      costs: Costs.has(capture),
    };
    this.entries.push({ info, capture, diffs });
    return info;
  }

  async stage(id: number, stage: number, options: ViewOptions): Promise<Picture> {
    const before = this.shown && this.view.capture === this.entries[id]!.capture ? this.view : null;
    this.view = await this.viewOf(id, stage, options, before);
    return this.picture();
  }

  private async viewOf(id: number, stage: number, options: ViewOptions, from: View | null): Promise<View> {
    const { capture, diffs } = this.entries[id]!;
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
      view = newView(capture, stage, shown, options, await kindsOf(capture, stage));
      view.id = id;
      view.ghosts = diff ? replaced(diff) : [];
      view.byNode = byNode;
      this.retree(view, options);
      this.openAtFirst(view);
      this.views.set(key, view);
    } else if (JSON.stringify(view.options) !== JSON.stringify(options)) {
      this.retree(view, options);
    }
    if (from && from !== view) keepOpen(from, view);
    return view;
  }

  /** The same operators in another stage of this capture, by the links between stages; modules by their path. */
  async across(items: number[], from: number, to: number): Promise<string[]> {
    const map = await this.entries[this.view.id]!.diffs.map(from, to);
    const ghosts = this.view.tree.nodes - this.view.ghosts.length;
    const paths = new Set<string>();
    for (const item of items) {
      const input = item - this.view.tree.nodes - this.view.tree.groups;
      if (input >= 0) {
        // An input is the one of the same name.
        const { capture, graph } = this.view;
        const other = await capture.graph(capture.manifest.stages[to]!.graph);
        const name = capture.pools.strings.at(graph.valueName[input]!);
        for (const value of other.inputs) if (capture.pools.strings.at(other.valueName[value]!) === name) paths.add(`%${value}`);
        continue;
      }
      if (!isOperator(this.view, item)) {
        for (const path of this.paths([item])) paths.add(path);
        continue;
      }
      for (const node of outerNodes(this.view, item)) {
        // A ghost is an operator of the stage before this one.
        if (node >= ghosts) for (const other of await this.ofGhost(node - ghosts, to)) paths.add(`#${other}`);
        else for (const other of map.get(node) ?? []) paths.add(`#${other}`);
      }
    }
    return [...paths];
  }

  private async ofGhost(index: number, to: number): Promise<number[]> {
    const { diffs } = this.entries[this.view.id]!;
    const { before } = diffs.of(this.view.stage)!;
    const node = this.view.ghosts[index]!;
    return to === before ? [node] : ((await diffs.map(before, to)).get(node) ?? []);
  }

  // -- stages -------------------------------------------------------------------------------------

  /** Another call about another stage, while this one stays in view. `toward`: the stage whose changes are marked. */
  async aside(stage: number, toward: number, call: keyof Calls, args: unknown[]): Promise<unknown> {
    const kept = this.view;
    try {
      this.view = await this.viewOf(kept.id, stage, { ...kept.options, overlay: undefined }, call === 'stage' ? kept : null);
      this.toward = toward;
      if (call === 'stage') return this.picture();
      await this.count();
      return await (this as unknown as Record<string, (...args: unknown[]) => unknown>)[call]!(...args);
    } finally {
      this.view = kept;
      this.toward = -1;
    }
  }

  /** What the stage in view changed. Operators before are ghosts where those are drawn, else -1 and those of the other stage. */
  changes(): ChangeRow[] {
    const { id, stage, tree, ghosts } = this.view;
    const ghost = new Map(ghosts.map((node, i) => [node, tree.nodes - ghosts.length + i]));
    return (this.entries[id]!.diffs.of(stage)?.changes ?? []).map((change, index) => ({
      index,
      ...change,
      items: change.after.map((node) => drawnItem(this.view, node)),
      ghosts: change.before.flatMap((node) => ghost.get(node) ?? []),
    }));
  }

  /** What becomes of an operator in every stage. */
  async follow(item: number): Promise<FateRow[]> {
    const { id, stage, capture, ghosts, tree } = this.view;
    if (!isOperator(this.view, item)) return [];
    const { diffs } = this.entries[id]!;
    const nodes = outerNodes(this.view, item);
    const first = tree.nodes - ghosts.length;
    const isGhost = nodes.length > 0 && nodes[0]! >= first;
    const fates = isGhost
      ? await diffs.follow(
          nodes.map((node) => ghosts[node - first]!),
          diffs.of(stage)!.before,
        )
      : await diffs.follow(nodes, stage);
    const rows: FateRow[] = [];
    for (const fate of fates) {
      const graph = await capture.graph(capture.manifest.stages[fate.stage]!.graph);
      rows.push({ ...fate, labels: fate.nodes.slice(0, 12).map((node) => capture.pools.strings.at(graph.op[node]!)) });
    }
    return rows;
  }

  /** Which items of the picture of another stage (as it was last shown) are which of this one. */
  async kin(from: number, overlaid: boolean): Promise<Kin> {
    const { id, stage } = this.view;
    const old = this.views.get(`${id}/${from}${overlaid ? '/overlay' : ''}`);
    const { diffs } = this.entries[id]!;
    if (!old?.visible) return { same: new Int32Array(0), from: new Int32Array(0), into: new Int32Array(0) };
    if (from !== stage) return kin(old, this.view, await diffs.map(from, stage), await diffs.map(stage, from));
    const alike = new Map(Array.from({ length: diffs.sizes[stage]! }, (_, node) => [node, [node]]));
    return kin(old, this.view, alike, alike);
  }

  /** Operators as they are drawn. */
  drawn(nodes: number[]): number[] {
    return nodes.map((node) => (node < this.view.tree.nodes ? drawnItem(this.view, node) : node));
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
    this.retree(this.view, options);
    return this.picture();
  }

  /** Build the tree anew, and open in it what was open before (by scope and phase). */
  private retree(view: View, options: ViewOptions): void {
    const before = view.tree as Tree | undefined;
    const [wasOpen, wasUnfolded] = [new Set<string>(), new Set<string>()];
    const keyOf = (tree: Tree, g: number) => `${tree.scope[g]}/${tree.isPhase[g] ? tree.phase[g] : ''}/${tree.labels.get(g) ?? ''}`;
    for (let g = 0; before && g < before.groups; g++) {
      if (view.open[g]) wasOpen.add(keyOf(before, g));
      if (view.unfolded[g]) wasUnfolded.add(keyOf(before, g));
    }
    view.options = options;
    const inlined = options.constants ? new Uint8Array(view.graph.nodes) : constants(view.graph);
    view.passed = passedNow(view, options);
    for (let node = 0; node < view.passed.length; node++) if (view.passed[node]! >= 0) inlined[node] = 1;
    view.flow = flow(view.graph, view.bodies, view.passed);
    view.tree = buildTree(view.graph, view.capture.pools, {
      split: options.split,
      hidden: new Set(options.hidden),
      inlined,
      bodies: view.bodies,
      opTitle: (node) => view.titles.of(node),
      phaseNames: this.phaseNames,
      flow: view.flow,
      plumbing: options.plumbing ? undefined : view.plumbing,
      purpose: (members) => purpose(members, (node) => [view.kinds(view.graph.op[node]!), view.titles.of(node)]),
      plumbingNames: this.words.plumbing,
    });
    view.inlined = inlined;
    view.open = new Uint8Array(view.tree.groups);
    view.unfolded = new Uint8Array(view.tree.groups);
    view.cache = new LayoutCache();
    const kin = isTurned(options) && view.tree.isPhase.includes(1) ? kinOf(view.tree) : () => [];
    view.kin = kin;
    view.repeats = new Repeats(view.graph, view.tree, view.flow, () => view.outputs, kin);
    view.open[0] = 1;
    for (let g = 1; before && g < view.tree.groups; g++) {
      if (wasOpen.has(keyOf(view.tree, g)) || (view.tree.isPhase[g] && !before.isPhase.includes(1))) view.open[g] = 1;
    }
    for (let g = 0; wasUnfolded.size && g < view.tree.groups; g++) if (wasUnfolded.has(keyOf(view.tree, g))) view.unfolded[g] = 1;
  }

  /** Open groups as long as the picture stays readable: all of a level or none, so that equal things look equal. */
  private openAtFirst(view: View): void {
    const step = isTurned(view.options) && view.tree.isPhase.includes(1);
    if (
      step &&
      (this.openLevels(view, FIRST_BOXES, false) >= FEWEST_OF_STEP || this.openLevels(view, MOST_OF_STEP, false) >= FEWEST_OF_STEP)
    )
      return;
    if (this.openLevels(view, FIRST_BOXES) < FEWEST_BOXES) this.openLevels(view, MOST_FIRST_BOXES);
  }

  /** How many boxes there are then. */
  private openLevels(view: View, most: number, forwardAlone = true): number {
    const { tree } = view;
    const inside = (g: number) => shownInside(view, g);
    // What is opened stays a box, around the others.
    const grows = (groups: number[]) => groups.reduce((sum, g) => sum + inside(g).boxes, 0);
    let { boxes, groups } = inside(0);
    boxes += inputsOf(view).length + (forwardAlone ? 0 : 1); // and the loss
    while (groups.length) {
      let level = groups.filter((g) => {
        // What only builds the modules stays closed, and so do modules without modules inside.
        if (tree.phase[g] === INIT && inside(g).boxes > 4) return false;
        // The optimizer opens as far as the modules that it updates.
        if (tree.phase[g] === OPTIMIZER && !tree.isPhase[g] && view.kin(g).length) return false;
        return inside(g).boxes <= Math.min(most, MOST_FIRST_BOXES) && (tree.isPhase[g] || inside(g).groups.length > 0 || inside(g).folds);
      });
      level = [...new Set(level.flatMap((g) => [g, ...view.kin(g).filter((other) => groups.includes(other))]))];
      // Where forward and backward are too much together, the forward pass says more about a model.
      if (forwardAlone && boxes + grows(level) > most && boxes < most / 2) level = level.filter((g) => tree.phase[g] === FORWARD);
      if (grows(level) > 0 && boxes + grows(level) > most) return boxes;
      boxes += grows(level);
      for (const g of level) view.open[g] = 1;
      groups = level.flatMap((g) => inside(g).groups);
    }
    return boxes;
  }

  // -- pictures -----------------------------------------------------------------------------------

  private picture(): Picture {
    const { view } = this;
    const { graph, tree } = view;
    const drawn = this.draw(view.open, view.cache);
    view.visible = drawn.visible;
    view.rows = drawn.rows;
    const { scene } = drawn;
    const open: number[] = [];
    for (let g = 1; g < tree.groups; g++) if (view.open[g]) open.push(tree.nodes + g);
    // Where all are unfolded, nobody did it one by one.
    const several: number[] = [];
    for (let g = 0; g < tree.groups && several.length <= MOST_UNFOLDED; g++) if (view.unfolded[g]) several.push(g);
    const unfolded = several.length > MOST_UNFOLDED ? [] : several.filter((g) => view.repeats.runs(g).length).map((g) => tree.nodes + g);
    const saved = PHASES.map(() => 0);
    const own = tree.nodes - view.ghosts.length;
    view.kept.forEach((value, node) => value >= 0 && node < own && saved[graph.phase[node]!]!++);
    const kinds =
      this.toward >= 0 ? classes(this.entries[view.id]!.diffs.of(this.toward), 'before', graph.nodes) : (view.byNode ?? new Uint8Array(0));
    const { views, plumbing } = view;
    const aside = { saved, views: 0, plumbing: 0 };
    for (let node = 0; node < Math.min(own, views.length); node++) if (views[node]! >= 0) aside.views++;
    for (let node = 0; node < own; node++) aside.plumbing += plumbing[node]!;
    return { scene, index: this.indexOf(scene), open, unfolded, ...aside, ...boxChanges(view, kinds) };
  }

  /** What is visible with these groups open, and where it stands. */
  private draw(open: Uint8Array, cache: LayoutCache): { visible: Visible; scene: Scene; rows: Int32Array | null } {
    const { view } = this;
    const { graph, tree, types } = view;
    const inputs = inputsOf(view);
    let shown = visible({ ...graph, ...view.flow }, tree, {
      open,
      unfolded: view.unfolded,
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
      unread: (nodes) => unread(graph, nodes),
      words: this.words,
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

  restore(paths: string[], unfolded: string[]): Picture {
    const { tree } = this.view;
    this.view.open.fill(0);
    this.view.open[0] = 1;
    for (const item of this.items(paths)) if (item >= tree.nodes) this.view.open[item - tree.nodes] = 1;
    for (const item of this.items(unfolded)) if (item >= tree.nodes) this.view.unfolded[item - tree.nodes] = 1;
    return this.picture();
  }

  /** The boxes of the picture that show these items. */
  boxes(items: number[]): number[] {
    const { tree, visible: v } = this.view;
    const found = new Set<number>();
    for (const item of items) {
      let box = -1;
      if (item < tree.nodes) box = v.nodeBox[item]!;
      else if (item < tree.nodes + tree.groups) box = v.groupBox[item - tree.nodes]!;
      else box = v.item.indexOf(item);
      if (box >= 0) found.add(box);
    }
    return [...found];
  }

  /** Boxes of forward operators and of their gradients, in pairs, each once. */
  pairs(item: number | null): Int32Array {
    const { graph, visible: v, rows, inlined } = this.view;
    const links = graph.links.get('grad');
    if (!links) return new Int32Array(0);
    const members = item === null ? null : new Set(inside(this.view, item));
    const seen = new Set<number>();
    const out: number[] = [];
    for (let i = 0; i < links.source.length; i++) {
      if (members && !members.has(links.source[i]!) && !members.has(links.target[i]!)) continue;
      const [a, b] = [v.nodeBox[links.source[i]!]!, v.nodeBox[links.target[i]!]!];
      if (a < 0 || b < 0 || a === b || seen.has(a * v.count + b)) continue;
      // Where the two stand in one row anyway, an arc says nothing more; nor for what is passed over.
      if (members && rows && ((rows[a]! >= 0 && rows[a] === rows[b]) || inlined[links.source[i]!] || inlined[links.target[i]!])) continue;
      seen.add(a * v.count + b);
      out.push(a, b);
    }
    return Int32Array.from(out);
  }

  // -- names that survive a new session (the URL) ---------------------------------------------------

  paths(items: number[]): string[] {
    return items.map((item) => this.pathOf(item));
  }

  private pathOf(item: number): string {
    const { tree, capture } = this.view;
    if (item < tree.nodes) return `#${item}`;
    const g = item - tree.nodes;
    if (g >= tree.groups) return `%${item - tree.nodes - tree.groups}`;
    const phase = tree.phase[g]! >= 0 ? PHASES[tree.phase[g]!] : '';
    const label = tree.labels.get(g);
    if (label !== undefined) return `@${tree.first[g]}/${label}`;
    if (tree.purpose[g]! >= 0) return `@${tree.first[g]}/plumbing`;
    const part = tree.part[g]! > 1 ? `*${tree.part[g]}` : '';
    return `${phase}:${scopePath(capture.pools, tree.scope[g]!)}${part}`;
  }

  items(paths: string[]): number[] {
    const { tree, capture, graph } = this.view;
    const groups = new Map<string, number>();
    const bare = new Map<string, number>(); // a scope without its phase: the first phase that has it
    for (let g = tree.groups - 1; g > 0; g--) {
      groups.set(this.pathOf(tree.nodes + g), tree.nodes + g);
      bare.set(tree.isPhase[g] ? PHASES[tree.phase[g]!]! : scopePath(capture.pools, tree.scope[g]!), tree.nodes + g);
    }
    return paths.flatMap((path) => {
      if (/^%\d+$/.test(path)) return Number(path.slice(1)) < graph.values ? [tree.nodes + tree.groups + Number(path.slice(1))] : [];
      if (/^#\d+$/.test(path)) return Number(path.slice(1)) < graph.nodes ? [Number(path.slice(1))] : [];
      const found = groups.get(path) ?? bare.get(path);
      return found === undefined ? [] : [found];
    });
  }

  // -- questions ----------------------------------------------------------------------------------

  details(item: number): Details {
    const found = details(this.view, item);
    const { ghosts, tree } = this.view;
    const first = tree.nodes - ghosts.length;
    if (!ghosts.length || item >= first) return found;
    // What is here reads nothing that is gone.
    found.inputs = found.inputs.filter(({ from }) => !from || from.item < first || from.item >= tree.nodes);
    for (const out of found.outputs) out.to = out.to.filter(({ item: reader }) => reader < first || reader >= tree.nodes);
    return found;
  }

  inside(item: number): number[] {
    return inside(this.view, item);
  }

  children(item: number): TreeRow[] {
    return children(this.view, item);
  }

  kernels(): KernelRow[] {
    return kernels(this.view);
  }

  kernel(index: number): ReturnType<Calls['kernel']> {
    return kernel(this.view, index);
  }

  async find(query: string): Promise<{ nodes: number[]; error: string }> {
    const { view } = this;
    const kinds = await kindsOf(view.capture, view.stage);
    try {
      return { nodes: [...find(view.graph, view.capture.pools, query, kinds)], error: '' };
    } catch (error) {
      return { nodes: [], error: error instanceof Error ? error.message : String(error) };
    }
  }

  labels(items: number[]): Label[] {
    return labels(this.view, items);
  }

  // -- the table ----------------------------------------------------------------------------------

  table(sort: number, down: boolean, filter: number[] | null, first: number, count: number): { total: number; rows: TableRow[] } {
    return table(this.view, sort, down, filter, first, count);
  }

  csv(filter: number[] | null): string {
    return csv(this.view, filter);
  }

  // -- source -------------------------------------------------------------------------------------

  source(file: string): string | null {
    return this.view.sources.text(file);
  }

  lineNodes(file: string, line: number): number[] {
    return this.view.sources.nodesAt(file, line);
  }

  lines(file: string): [number, number][] {
    return this.view.sources.lines(file);
  }

  files(): { file: string; lines: number }[] {
    return this.view.sources.files();
  }

  // -- the framework's own texts --------------------------------------------------------------------

  listing(kind: string): { text: string; pairs: Int32Array; places: Place[] } {
    const { listings } = this.view;
    return { text: listings.text(kind), pairs: listings.pairs(kind), places: listings.places(kind) };
  }

  listingLines(kind: string, items: number[]): number[] {
    const { listings, bodies } = this.view;
    const nodes = new Set<number>();
    for (const item of items) {
      for (let node of inside(this.view, item)) {
        // A text tells about the outer graph: what is inside an operator is on that operator's line.
        while (bodies.bodyOf[node]! >= 0) node = bodies.owner[bodies.bodyOf[node]!]!;
        nodes.add(node);
      }
    }
    return listings.lines(kind, nodes);
  }

  // -- paths --------------------------------------------------------------------------------------

  trace(item: number, way: 'up' | 'down'): number[] {
    return trace(this.view, item, way);
  }

  between(a: number, b: number): number[] {
    return between(this.view, a, b);
  }

  // -- colours ------------------------------------------------------------------------------------

  metric(name: string): ReturnType<Calls['metric']> {
    return shadesOf(this.figures(name));
  }

  /** A figure of each box of the picture; NaN where it is not known, and for open groups, whose boxes have their own. */
  figures(name: string): Float64Array {
    const { visible: v, metrics, tree } = this.view;
    const figures = new Float64Array(v.count).fill(NaN);
    for (let box = 0; box < v.count; box++) {
      const item = v.item[box]!;
      if (!v.open[box]) figures[box] = metrics.ofItem(name, item, tree, v.repeat[box]!, () => inside(this.view, item)) ?? NaN;
    }
    return figures;
  }

  // -- costs --------------------------------------------------------------------------------------

  async attach(id: number, data: Content): Promise<string[]> {
    const { capture, info } = this.entries[id]!;
    await capture.attach(await bytesOf(data));
    for (const view of this.views.values()) {
      if (view.capture !== capture) continue;
      view.metrics.columns = Metrics.names(capture);
      view.metrics.costs = null; // read anew when it is asked for
    }
    info.costs = Costs.has(capture);
    return (info.metrics = Metrics.names(capture));
  }

  /** Read what operators cost, before a call that asks for it: the first picture does not wait for that. */
  async count(): Promise<void> {
    const { metrics, capture, stage } = this.view;
    metrics.costs ??= await Costs.read(capture, stage);
  }

  costMap(figure: Figure, root: number, width: number, height: number): ReturnType<Calls['costMap']> {
    return costMap(this.view, figure, root, width, height);
  }

  memoryLine(first: number, last: number, columns: number): ReturnType<Calls['memoryLine']> {
    return memoryLine(this.view, first, last, columns);
  }

  alive(step: number, most: number): ReturnType<Calls['alive']> {
    return alive(this.view, step, most);
  }

  steps(items: number[]): number[] {
    return steps(this.view, items);
  }

  totals(): ReturnType<Calls['totals']> {
    return totals(this.view);
  }

  roofs(device: Device): ReturnType<Calls['roofs']> {
    return roofs(this.view, device);
  }

  kernelOf(): Uint16Array {
    const { visible: v, metrics, tree } = this.view;
    return Uint16Array.from(v.item, (item) => {
      const kernel = item < tree.nodes ? metrics.firstKernel(item) : -1;
      return kernel < 0 ? 0 : 1 + (kernel % KERNEL_COLOURS);
    });
  }
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

/** Data that comes in is a box of its own; parameters stand inside their operator unless they are pulled out. */
function inputsOf(view: View): Int32Array {
  const { graph, options } = view;
  if (!options.constants) return graph.inputs.filter((value) => graph.role[value] === 0);
  const values = Int32Array.from({ length: graph.values }, (_, i) => i);
  return values.filter((value) => graph.producer[value]! < 0 && row(view.readers, value).length > 0);
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
  return (group) =>
    plain(group) ? (byScope.get(tree.scope[group]!) ?? []).filter((g) => tree.phase[g] !== tree.phase[group] && !isUpdate(g)) : [];
}

/** By operator: the value for which it is passed over in a picture of these options, or -1; empty where there is none. */
function passedNow({ graph, kept, views, byNode }: View, options: ViewOptions): Int32Array {
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
