// The engine: holds the captures, knows what is open, makes pictures and answers questions. Runs in a worker.

import { buildIndex } from '../draw/index.ts';
import { find } from '../find/find.ts';
import { LayoutCache } from '../layout/nested.ts';
import { PHASES, ROLES } from '../scene.ts';
import { Capture, type Graph } from '../wire/capture.ts';
import { children, details, inside, kernel, kernels, labels } from './answers.ts';
import { compose } from './compose.ts';
import { row } from './csr.ts';
import type { Calls, CaptureInfo, Details, KernelRow, Picture, TableRow, TreeRow, ViewOptions } from './messages.ts';
import { flow } from './flow.ts';
import { Listings } from './listings.ts';
import { Metrics } from './metrics.ts';
import { between, trace } from './paths.ts';
import { Repeats } from './repeats.ts';
import { csv, table } from './rows.ts';
import { buildScene } from './scene.ts';
import { buildTree, scopePath, type Tree } from './tree.ts';
import { newView, type View } from './view.ts';
import { visible } from './visible.ts';
import { rehearse } from './warm.ts';

const FIRST_BOXES = 70; // a picture opens by itself as far as this many boxes
const NUMBERS = new Intl.NumberFormat('en');
const CONSTANT = ROLES.indexOf('constant');

interface Entry {
  info: CaptureInfo;
  capture: Capture;
}

export class Engine {
  private entries: Entry[] = [];
  private views = new Map<string, View>();
  private view!: View; // from the first stage() on
  /** How many operators, in words of the page's language. */
  counts: (n: number) => string = (n) => `${NUMBERS.format(n)} op${n === 1 ? '' : 's'}`;

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
    // For the first details and traces.
    void this.view.outputs;
    yield;
    void this.view.readers;
  }

  // -- captures -----------------------------------------------------------------------------------

  async load(data: Uint8Array | string, name: string): Promise<CaptureInfo> {
    const capture = await Capture.open(typeof data === 'string' ? fromBase64(data) : data);
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
      });
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
    };
    this.entries.push({ info, capture });
    return info;
  }

  async stage(id: number, stage: number, options: ViewOptions): Promise<Picture> {
    const key = `${id}/${stage}`;
    let view = this.views.get(key);
    if (!view) {
      const { capture } = this.entries[id]!;
      const outer = await capture.graph(capture.manifest.stages[stage]!.graph);
      view = newView(capture, stage, await compose(outer, (index) => capture.graph(index)), options);
      this.retree(view, options);
      this.openAtFirst(view);
      this.views.set(key, view);
    } else if (JSON.stringify(view.options) !== JSON.stringify(options)) {
      this.retree(view, options);
    }
    this.view = view;
    return this.picture();
  }

  /** The same operators in another stage of this capture, by the links between the two; modules by their path. */
  async across(items: number[], from: number, to: number): Promise<string[]> {
    const { capture, tree } = this.view;
    const links = capture.manifest.stage_links ?? [];
    const joined = new Map<number, number[]>();
    for (const [i, link] of links.entries()) {
      const there = link.before === from && link.after === to;
      if (!there && !(link.before === to && link.after === from)) continue;
      const { source, target } = await capture.stageLink(i);
      const [here, other] = there ? [source, target] : [target, source];
      here.forEach((node, k) => joined.set(node, [...(joined.get(node) ?? []), other[k]!]));
    }
    return items.flatMap((item) => (item < tree.nodes ? (joined.get(item) ?? []).map((node) => `#${node}`) : this.paths([item])));
  }

  options(options: ViewOptions): Picture {
    this.retree(this.view, options);
    return this.picture();
  }

  /** Build the tree anew, and open in it what was open before (by scope and phase). */
  private retree(view: View, options: ViewOptions): void {
    const before = view.tree as Tree | undefined;
    const wasOpen = new Set<string>();
    if (before)
      for (let g = 1; g < before.groups; g++)
        if (view.open[g]) wasOpen.add(`${before.scope[g]}/${before.isPhase[g] ? before.phase[g] : ''}`);
    view.options = options;
    const inlined = options.constants ? new Uint8Array(view.graph.nodes) : constants(view.graph);
    if (!options.saved) view.kept.forEach((value, node) => value >= 0 && (inlined[node] = 1));
    view.flow = flow(view.graph, view.bodies, options.saved ? null : view.kept);
    view.tree = buildTree(view.graph, view.capture.pools, {
      split: options.split,
      hidden: new Set(options.hidden),
      inlined,
      bodies: view.bodies,
      opTitle: (node) => view.titles.of(node),
    });
    view.open = new Uint8Array(view.tree.groups);
    view.unfolded = new Uint8Array(view.tree.groups);
    view.cache = new LayoutCache();
    view.repeats = new Repeats(view.graph, view.tree);
    view.open[0] = 1;
    for (let g = 1; before && g < view.tree.groups; g++) {
      const key = `${view.tree.scope[g]}/${view.tree.isPhase[g] ? view.tree.phase[g] : ''}`;
      if (wasOpen.has(key) || (view.tree.isPhase[g] && !before.isPhase.includes(1))) view.open[g] = 1;
    }
  }

  /** Open the largest groups first, as long as the picture stays readable. */
  private openAtFirst(view: View): void {
    const { tree } = view;
    let boxes = row(tree.childGroups, 0).length + row(tree.childNodes, 0).length;
    const waiting = [...row(tree.childGroups, 0)];
    for (;;) {
      let best = -1;
      for (const [i, g] of waiting.entries()) {
        const grows = row(tree.childGroups, g).length + row(tree.childNodes, g).length - 1;
        // What only builds the modules stays closed, and so do modules without modules inside.
        if (tree.phase[g] === 0 && grows > 3) continue;
        if (row(tree.childGroups, g).length === 0 && !tree.isPhase[g]) continue;
        if (grows > 0 && boxes + grows > FIRST_BOXES) continue;
        if (best < 0 || tree.size[g]! > tree.size[waiting[best]!]!) best = i;
      }
      if (best < 0) return;
      const g = waiting.splice(best, 1)[0]!;
      view.open[g] = 1;
      boxes += row(tree.childGroups, g).length + row(tree.childNodes, g).length - 1;
      waiting.push(...row(tree.childGroups, g));
    }
  }

  // -- pictures -----------------------------------------------------------------------------------

  private picture(): Picture {
    const view = this.view;
    const { graph, tree, types } = view;
    // Data that comes in is a box of its own; parameters stand inside their operator unless they are pulled out.
    const inputs = view.options.constants
      ? Int32Array.from({ length: graph.values }, (_, i) => i).filter(
          (value) => graph.producer[value]! < 0 && row(view.readers, value).length > 0,
        )
      : graph.inputs.filter((value) => graph.role[value] === 0);
    view.visible = visible({ ...graph, ...view.flow }, tree, {
      open: view.open,
      unfolded: view.unfolded,
      repeats: view.repeats,
      inputs,
      weight: (value) => types.bytes(graph.type[value]!),
    });
    // What only keeps a tensor is shown by what made the tensor.
    const { nodeBox } = view.visible;
    if (!view.options.saved)
      view.kept.forEach((value, node) => {
        if (value >= 0 && graph.producer[value]! >= 0) nodeBox[node] = nodeBox[graph.producer[value]!]!;
      });
    const scene = buildScene({
      graph,
      pools: view.capture.pools,
      tree,
      types,
      visible: view.visible,
      direction: view.options.direction,
      side: view.options.side,
      cache: view.cache,
      outputs: () => view.outputs,
      counts: this.counts,
    });
    const open: number[] = [];
    for (let g = 1; g < tree.groups; g++) if (view.open[g]) open.push(tree.nodes + g);
    const saved = PHASES.map(() => 0);
    view.kept.forEach((value, node) => value >= 0 && saved[graph.phase[node]!]!++);
    return { scene, index: buildIndex(scene), open, saved };
  }

  open(items: number[], open: boolean): Picture {
    const { tree } = this.view;
    for (const item of items) {
      const g = item - tree.nodes;
      if (g <= 0 || g >= tree.groups) continue;
      this.view.open[g] = open ? 1 : 0;
    }
    return this.picture();
  }

  unfold(item: number): Picture {
    const { tree } = this.view;
    const parent = tree.parent[item - tree.nodes]!;
    this.view.unfolded[parent] = this.view.unfolded[parent] ? 0 : 1;
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
      const kept = item < tree.nodes && !this.view.options.saved ? this.view.kept[item]! : -1;
      if (kept >= 0 && this.view.graph.producer[kept]! >= 0) item = this.view.graph.producer[kept]!;
      let g = item < tree.nodes ? tree.nodeGroup[item]! : (tree.parent[item - tree.nodes] ?? -1);
      let child = item < tree.nodes ? -1 : item - tree.nodes;
      for (; g >= 0; child = g, g = tree.parent[g]!) {
        this.view.open[g] = 1;
        if (child > 0) this.view.unfolded[g] = 1;
      }
    }
    return this.picture();
  }

  restore(paths: string[]): Picture {
    const { tree } = this.view;
    this.view.open.fill(0);
    this.view.open[0] = 1;
    for (const item of this.items(paths)) if (item >= tree.nodes) this.view.open[item - tree.nodes] = 1;
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
    const { graph, visible: v } = this.view;
    const links = graph.links.get('grad');
    if (!links) return new Int32Array(0);
    const members = item === null ? null : new Set(inside(this.view, item));
    const seen = new Set<number>();
    const out: number[] = [];
    for (let i = 0; i < links.source.length; i++) {
      if (members && !members.has(links.source[i]!) && !members.has(links.target[i]!)) continue;
      const [a, b] = [v.nodeBox[links.source[i]!]!, v.nodeBox[links.target[i]!]!];
      if (a < 0 || b < 0 || a === b || seen.has(a * v.count + b)) continue;
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
    return `${phase}:${scopePath(capture.pools, tree.scope[g]!)}`;
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
      if (/^#\d+$/.test(path)) return Number(path.slice(1)) < graph.nodes ? [Number(path.slice(1))] : [];
      const found = groups.get(path) ?? bare.get(path);
      return found === undefined ? [] : [found];
    });
  }

  // -- questions ----------------------------------------------------------------------------------

  details(item: number): Details {
    return details(this.view, item);
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

  find(query: string): { nodes: number[]; error: string } {
    try {
      return { nodes: [...find(this.view.graph, this.view.capture.pools, query)], error: '' };
    } catch (error) {
      return { nodes: [], error: error instanceof Error ? error.message : String(error) };
    }
  }

  labels(items: number[]): { item: number; label: string; where: string }[] {
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

  listing(kind: string): { text: string; pairs: Int32Array } {
    return { text: this.view.listings.text(kind), pairs: this.view.listings.pairs(kind) };
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

  metric(name: string): { values: (number | null)[]; min: number; max: number; unit: string } {
    const { visible: v, metrics } = this.view;
    const values = Array.from(v.item, (item, box) => {
      if (v.open[box]) return null;
      return metrics.rollUp(name, inside(this.view, item), v.repeat[box]!);
    });
    const known = values.filter((x): x is number => x !== null);
    let min = Infinity;
    let max = -Infinity;
    for (const value of known) {
      if (value < min) min = value;
      if (value > max) max = value;
    }
    return { values, min, max, unit: metrics.unit(name) };
  }

  kernelOf(): number[] {
    const { visible: v, metrics, tree } = this.view;
    return Array.from(v.item, (item) => (item < tree.nodes ? metrics.firstKernel(item) : -1));
  }
}

function fromBase64(text: string): Uint8Array {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
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
