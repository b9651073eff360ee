// The page: one selection that all panels follow, one picture that all commands change.

import { dark, light, type Theme } from '../draw/theme.ts';
import { Minimap } from '../draw/minimap.ts';
import { Renderer } from '../draw/renderer.ts';
import type { Address, Content } from '../engine/content.ts';
import type { CaptureInfo, Details, Picture, StageInfo, Totals, ViewOptions } from '../engine/messages.ts';
import { CostPanel } from '../panels/cost.ts';
import { showDetails, showKernel } from '../panels/details.ts';
import { h, replace, short, straight } from '../panels/dom.ts';
import { ChangeList } from '../panels/changes.ts';
import { breath, isLater } from '../panels/later.ts';
import { ListingPanel } from '../panels/listing.ts';
import { KernelList, ResultList } from '../panels/lists.ts';
import { ModuleTree } from '../panels/modules.ts';
import { metricText, NodeTable } from '../panels/table.ts';
import { BoxKind, PHASES, type Scene } from '../scene.ts';
import type { Device } from '../engine/roofs.ts';
import type { Client } from '../state/client.ts';
import * as hash from '../state/hash.ts';
import { LANGUAGES, type Language, type Words } from '../state/words.ts';
import { writeSvg } from '../svg/write.ts';
import { about, redrawChips, redrawChrome } from './chrome.ts';
import { bind } from './events.ts';
import { writeHash } from './handle.ts';
import { costPanel, loadCosts, loadTotals } from './costs.ts';
import { showLow } from './lower.ts';
import { outline, repaint } from './painting.ts';
import { SplitPane } from './split.ts';
import { bindSticky } from './sticky.ts';
import { drawStage, goToStage, loadChanges, pickChange, redrawStages, showFate, type Compare } from './stages.ts';

export interface Services {
  /** Text of a source file that is not in the capture, where a server can read it. */
  source(capture: number, file: string): Promise<string | null>;
  /** An .opscope file for any dropped file, and for a large one what it costs, counted when the graph is there. */
  convert(file: File): Promise<{ content: Content; name: string; costs?: Address }>;
  devices: Device[]; // for the roofline
  editor: string; // link to open a file in an editor, with {file} and {line}
}

export type LeftTab = 'modules' | 'kernels' | 'changes' | 'results';
export type LowTab = 'source' | 'ir' | 'code' | 'cost' | 'table' | '';

interface Moment {
  capture: number;
  stage: number;
  items: number[];
}

const MARGIN = 36;
const MOST_GLIDING = 4000;
const READABLE = 0.85; // the zoom below which titles are hard to read: they are 11 pixels high there
const NEAR = 0.9; // the zoom at which one arrives at least

export class App {
  captures: CaptureInfo[] = [];
  capture = 0;
  stage = 0;
  picture: Picture | null = null;
  selection: number[] = [];
  found: number[] = [];
  query = '';
  related: number[] = [];
  details: Details | null = null;
  totals: Totals | null = null; // what all of the stage costs, where that is counted
  pickedKernel = -1;
  viewOptions: ViewOptions = { direction: 'down', split: true, side: true, hidden: [], constants: false };
  colour = 'phase';
  edgeLabels: 'hover' | 'always' = 'hover';
  edgeWidth: 'plain' | 'bytes' = 'plain';
  past: Moment[] = [];
  future: Moment[] = [];
  level = 0;
  language: Language = navigator.language.startsWith('zh') ? 'zh' : 'en';
  theme: Theme = matchMedia('(prefers-color-scheme: dark)').matches ? dark : light;
  leftTab: LeftTab = 'modules';
  lowTab: LowTab = '';
  kind = ''; // of the framework's own texts
  pending = 0;
  shownFile = '';
  chosenFile = ''; // by hand, until something else is selected
  ready = false;
  menuOpen = false;
  allPairs = false;
  compare: Compare = 'after'; // with the stage before
  phasesByHand = false; // the user hid or showed one
  opened = ''; // '*': all is open, '*3': three levels are; empty where boxes were opened one by one
  overlaid = false; // the picture has ghosts of the stage before
  hideUnchanged = false; // in the bar of stages

  canvas = h('canvas', { class: 'graph', tabindex: 0, role: 'application', 'aria-label': 'graph' });
  tabs = h('nav', { class: 'tabs', 'aria-label': 'captures' });
  stages = h('nav', { class: 'stages' });
  search = h('input', { type: 'search', class: 'search', spellcheck: 'false', autocomplete: 'off' });
  toolbar = h('div', { class: 'toolbar', role: 'toolbar' });
  chips = h('div', { class: 'chips' });
  legend = h('div', { class: 'legend' });
  leftHead = h('div', { class: 'panel-tabs', role: 'tablist' });
  left = h('div', { class: 'panel-body' });
  right = h('aside', { class: 'right' });
  lowHead = h('div', { class: 'panel-tabs low-tabs', role: 'tablist' });
  low = h('div', { class: 'low-body' });
  note = h('div', { class: 'note', role: 'status' });
  tip = h('div', { class: 'tip' });
  renderer: Renderer;
  minimap: Minimap;
  tree: ModuleTree;
  kernels: KernelList;
  changes: ChangeList;
  split: SplitPane;
  results: ResultList;
  table: NodeTable;
  listing: ListingPanel;
  cost: CostPanel;

  constructor(
    readonly root: HTMLElement,
    readonly client: Client,
    readonly services: Services,
  ) {
    const centre = h('section', { class: 'centre', 'aria-label': 'graph' }, this.canvas, this.legend, this.tip, this.note);
    this.split = new SplitPane(this);
    const panes = h('div', { class: 'panes' }, this.split.element, centre);
    this.lowPanel = h('section', { class: 'low' }, this.lowHead, this.low);
    this.leftPanel = h('aside', { class: 'left' }, this.leftHead, this.left);
    replace(
      root,
      h('header', { class: 'bar' }, h('span', { class: 'logo' }, 'opscope'), this.tabs, this.search, this.toolbar),
      this.stages,
      h('main', {}, this.leftPanel, h('div', { class: 'middle' }, this.chips, panes, this.lowPanel), this.right),
    );
    this.renderer = new Renderer(this.canvas, this.theme);
    this.minimap = new Minimap(this.renderer);
    centre.append(this.minimap.element, bindSticky(this));
    this.tree = new ModuleTree(
      (item) => this.client.children(item),
      { select: (items, reveal) => this.run(this.select(items, reveal)), toggle: (item) => this.run(this.toggle(item)) },
      'modules',
    );
    this.kernels = new KernelList(
      (index) => this.run(this.pickKernel(index)),
      () => this.words,
    );
    this.changes = new ChangeList(
      (row) => this.run(pickChange(this, row)),
      () => this.words,
    );
    this.results = new ResultList(
      (items) => this.client.labels(items),
      (item) => this.run(this.select([item], true)),
      () => this.words,
    );
    this.table = new NodeTable(
      {
        table: (...args) => this.client.table(...args),
        csv: (filter) => this.client.csv(filter),
        select: (item) => this.run(this.select([item], true)),
        text: (metric, value) => metricText(metric, value, this.words),
      },
      () => this.words,
    );
    this.listing = new ListingPanel(
      {
        listing: (kind) => this.client.listing(kind),
        lines: (kind, items) => this.client.listingLines(kind, items),
        select: (nodes, more) => this.run(this.select(more ? [...new Set([...this.selection, ...nodes])] : nodes, true)),
        hover: (nodes) => this.run(outline(this, nodes)),
        place: (file, line) => this.run(this.pickLine(file, line)),
        choose: (kind) => {
          this.kind = kind;
          this.run(showLow(this));
          this.remember();
        },
      },
      () => this.words,
    );
    this.cost = costPanel(this);
    bind(this);
    redrawChrome(this);
    if (this.language !== 'en') this.run(this.speak());
  }

  lowPanel: HTMLElement;
  leftPanel: HTMLElement;

  get words(): Words {
    return LANGUAGES[this.language];
  }

  /** Work under way counts for `idle`; a failure is shown, not lost. */
  run(work: Promise<unknown>): void {
    this.pending++;
    work
      .catch((error: unknown) => this.say(error instanceof Error ? error.message : String(error), true))
      .finally(() => {
        this.pending--;
      });
  }

  async idle(): Promise<void> {
    do await new Promise((resolve) => requestAnimationFrame(resolve));
    while (!this.ready || this.pending || this.client.busy() || this.renderer.busy() || this.split.busy || isLater());
  }

  say(text: string, bad = false): void {
    this.note.textContent = text;
    this.note.className = bad ? 'note bad' : 'note';
    if (!bad) setTimeout(() => (this.note.textContent === text ? (this.note.textContent = '') : null), 4000);
  }

  // -- captures and stages --------------------------------------------------------------------------

  /** One more capture, which is then shown; of those the page begins with (`of` in all), the one that the URL names. */
  async add(data: Content, name: string, costs?: Address, of = 0): Promise<void> {
    this.say(this.words.loading);
    const info = await this.client.load(data, name);
    this.captures.push(info);
    this.say('');
    const saved = hash.read(location.hash);
    const wanted = saved.capture < of ? saved.capture : 0;
    if (!of || this.captures.length - 1 === wanted) {
      const restoring = !this.ready && saved.capture === wanted;
      if (restoring) {
        this.compare = saved.compare;
        const overlay = saved.compare === 'overlay' || undefined;
        this.viewOptions = { ...this.viewOptions, direction: saved.direction, hidden: saved.hidden, overlay };
        this.phasesByHand = location.hash.includes('h=');
        hash.unpack(saved.flags, this);
        this.colour = saved.colour || 'phase';
      }
      // Two graphs that were compared: begin with what is different.
      const first = info.how === 'compared' && !location.hash.includes('s=') ? 1 : 0;
      await this.show(info.id, restoring ? Math.min(saved.stage || first, info.stages.length - 1) : first);
      if (restoring) await this.restore(saved);
    }
    if (!of || this.captures.length - 1 >= wanted) this.ready = true;
    redrawChrome(this);
    if (costs && !info.costs) void loadCosts(this, info, costs);
  }

  async restore(saved: hash.Saved): Promise<void> {
    if (saved.all) await this.expandAs(saved.all);
    else if (saved.open) this.draw(await this.client.restore(saved.open, saved.unfolded));
    if (saved.selection.length) await this.select(await this.client.items(saved.selection), false);
    if (saved.query) {
      this.search.value = saved.query;
      await this.find(saved.query);
    }
    this.lowTab = this.lowTabs().find((tab) => tab === saved.tab) ?? '';
    if (saved.tab === 'cost') this.cost.state = saved.kind;
    else this.kind = saved.kind;
    redrawChrome(this);
    await showLow(this);
    if (saved.kernel >= 0 && saved.kernel < (this.shown?.kernels ?? 0)) await this.pickKernel(saved.kernel, this.selection.length > 0);
    await breath();
    this.renderer.resize(); // to the room that the panels left
    if (saved.view) this.renderer.camera.set(saved.view);
    else if (saved.open || saved.all) this.fit(0);
  }

  /** The stage that is shown. */
  get shown(): StageInfo | undefined {
    return this.captures[this.capture]?.stages[this.stage];
  }

  /** The tabs below that have something to show for it. */
  lowTabs(): LowTab[] {
    const stage = this.shown;
    return ['source', ...(stage?.listings.length ? ['ir' as const] : []), ...(stage?.kernels ? ['code' as const] : []), 'cost', 'table'];
  }

  /** To another stage, by its number or name; what is selected stays selected where the two are linked. */
  async goToStage(stage: number | string): Promise<void> {
    await goToStage(this, stage);
  }

  /** `gently`: from the stage in view, moving as little as can be. */
  async show(capture: number, stage: number, gently = false): Promise<void> {
    const info = this.captures[capture];
    if (!info?.stages.length) {
      this.say('this capture has no graph', true);
      return;
    }
    const from = { stage: this.stage, overlaid: this.overlaid };
    this.capture = capture;
    this.stage = stage;
    this.selection = [];
    this.details = null;
    this.found = [];
    this.related = [];
    this.pickedKernel = -1;
    if (!this.lowTabs().includes(this.lowTab)) this.lowTab = '';
    if (this.leftTab === 'kernels' && !info.stages[stage]!.kernels) this.leftTab = 'modules';
    const phases = info.stages[stage]!.phases;
    // Making parameters is rarely what one came to see, and most of a training graph's first lines.
    if (!this.phasesByHand) this.viewOptions.hidden = phases[1]! > 0 && phases[0]! > 0 ? [0] : [];
    if (this.leftTab === 'changes' && !info.stages[stage]!.changes) this.leftTab = 'modules';
    const picture = await this.client.stage(capture, stage, this.viewOptions);
    this.overlaid = this.viewOptions.overlay === true && info.stages[stage]!.changes !== null;
    if (gently && this.picture) await drawStage(this, picture, from.stage, from.overlaid);
    else {
      this.draw(picture);
      // They take some of the drawing's room.
      redrawStages(this, info);
      redrawChips(this, info);
      this.begin();
      await breath(); // the picture first, then what is around it
    }
    await Promise.all([
      this.tree.reset(),
      this.client.kernels().then((rows) => this.kernels.set(rows)),
      loadChanges(this),
      loadTotals(this),
    ]);
    await this.split.show();
    redrawChrome(this);
    await this.redrawPanels();
    await repaint(this);
    this.remember();
  }

  // -- the picture ------------------------------------------------------------------------------------

  /** Draw a picture; the box of `anchor` stays where it is on the screen. */
  draw(picture: Picture, anchor = -1): void {
    const before = this.picture;
    const old = anchor >= 0 && before ? place(before.scene, anchor) : null;
    this.picture = picture;
    // Boxes glide to their new places where there are few enough to follow.
    const gentle = before !== null && before.scene.boxes.count + picture.scene.boxes.count < MOST_GLIDING;
    this.renderer.setScene(picture.scene, picture.index, gentle ? before.scene : undefined);
    const { edgeLabels, edgeWidth } = this;
    this.renderer.setPaint({ change: picture.change, changed: picture.changed, edgeLabels, edgeWidth });
    const now = old ? place(picture.scene, anchor) : null;
    if (old && now) this.renderer.camera.keep({ x: old.x, y: old.y }, { x: now.x, y: now.y });
    this.run(repaint(this));
  }

  /** Open or close a group where it stands; an operator is only selected. */
  async toggle(item: number): Promise<void> {
    const box = this.boxOf(item);
    if (!this.picture || box < 0) return;
    const { kind, repeat } = this.picture.scene.boxes;
    if (kind[box] === BoxKind.Op || kind[box] === BoxKind.Input || kind[box] === BoxKind.Loss) return;
    this.opened = '';
    const opens = kind[box] !== BoxKind.Open;
    if (repeat[box]! > 1) this.draw(await this.client.unfold(item), item);
    else this.draw(await this.client.open([item], opens), item);
    if (opens) this.bringIn(item);
    this.remember();
  }

  async expandAll(): Promise<void> {
    this.draw(await this.client.openAll());
    this.opened = '*';
    this.fit();
    this.remember();
  }

  async expandTo(depth: number): Promise<void> {
    this.level = Math.max(1, depth);
    this.draw(await this.client.openDepth(this.level));
    this.opened = `*${this.level}`;
    this.fit();
    this.remember();
  }

  /** As `opened` says. */
  private async expandAs(opened: string): Promise<void> {
    if (opened === '*') await this.expandAll();
    else await this.expandTo(Number(opened.slice(1)) || 1);
  }

  async expand(item: number, open: boolean): Promise<void> {
    this.opened = '';
    this.draw(await this.client.open([item], open), item);
    this.remember();
  }

  /** What has been opened comes into view, its header first, at the zoom that is set. */
  private bringIn(item: number): void {
    const box = this.boxOf(item);
    if (box < 0) return;
    const { x, y, width, height } = this.picture!.scene.boxes;
    const { camera } = this.renderer;
    const rect = { x: x[box]!, y: y[box]!, width: width[box]!, height: height[box]! };
    void camera.arrive(rect, camera.view.zoom, camera.view.zoom, 24);
  }

  boxOf(item: number): number {
    return this.picture ? this.picture.scene.boxes.item.indexOf(item) : -1;
  }

  extent(scene: Scene): { x: number; y: number; width: number; height: number } {
    return { x: 0, y: 0, width: scene.width, height: scene.height };
  }

  /** At first: all of it if that can be read, else its beginning at a size that can. */
  begin(): void {
    const scene = this.picture?.scene;
    if (!scene) return;
    const { camera } = this.renderer;
    camera.resize(this.canvas.clientWidth, this.canvas.clientHeight);
    const whole = camera.fitOf(this.extent(scene), MARGIN);
    if (whole.zoom >= READABLE) {
      camera.set(whole);
      return;
    }
    const zoom = Math.max(Math.min(1, (camera.screen.width - 2 * MARGIN) / scene.width), READABLE);
    const across = scene.direction === 'down';
    const fits = across && scene.width * zoom <= camera.screen.width;
    const x = fits ? scene.width / 2 : this.beginning(scene, zoom);
    const y = across ? camera.screen.height / 2 / zoom - MARGIN / zoom : scene.height / 2;
    camera.set({ x, y, zoom });
  }

  /** Where to look along the wide side of a graph that is wider than the window: at its left end, or its first box. */
  private beginning({ boxes, width, direction }: Scene, zoom: number): number {
    const half = this.renderer.camera.screen.width / 2 / zoom;
    const least = half - 48 / zoom;
    if (direction !== 'down') return least;
    let first = 0;
    for (let box = 1; box < boxes.count; box++) {
      const lower = boxes.y[box]! - boxes.y[first]!;
      if (lower < 0 || (lower === 0 && boxes.x[box]! < boxes.x[first]!)) first = box;
    }
    if (!boxes.count) return least;
    return Math.max(least, Math.min(boxes.x[first]! + boxes.width[first]! / 2, width - least));
  }

  fit(ms = 300): void {
    const scene = this.picture?.scene;
    if (!scene) return;
    this.renderer.camera.resize(this.canvas.clientWidth, this.canvas.clientHeight);
    void this.renderer.camera.fit(this.extent(scene), MARGIN, scene.boxes.count > 2 * MOST_GLIDING ? 0 : ms);
  }

  async setOptions(options: Partial<ViewOptions>): Promise<void> {
    this.viewOptions = { ...this.viewOptions, ...options };
    const keep = await this.client.paths(this.selection);
    this.draw(await this.client.options(this.viewOptions));
    this.selection = await this.client.items(keep);
    await this.tree.reset();
    this.fit();
    redrawChrome(this);
    await this.redrawPanels();
    this.remember();
  }

  // -- selection --------------------------------------------------------------------------------------

  async select(items: number[], reveal: boolean, keepHistory = false): Promise<void> {
    if (!keepHistory) {
      this.past.push({ capture: this.capture, stage: this.stage, items: this.selection });
      this.future = [];
    }
    this.selection = items;
    this.pickedKernel = -1;
    this.details = items.length ? await this.client.details(items.at(-1)!) : null;
    this.related = this.details ? [...this.details.backward, ...this.details.forward].map((ref) => ref.item) : [];
    if (reveal && items.length) {
      const boxes = await this.client.boxes(items);
      const shown = this.picture!.scene.boxes;
      const hidden =
        items.length <= 50 &&
        (boxes.length < items.length || boxes.some((box) => shown.repeat[box]! > 1 || !items.includes(shown.item[box]!)));
      if (hidden) {
        this.opened = '';
        this.draw(await this.client.reveal(items), items[0]);
      }
      await this.goTo(items);
    }
    await this.redrawPanels();
    await repaint(this);
    this.remember();
  }

  async goTo(items: number[]): Promise<void> {
    const boxes = await this.client.boxes(items);
    if (!boxes.length || !this.picture) return;
    this.renderer.resize(); // a panel may have opened beside it just now
    const all = this.picture.scene.boxes;
    let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
    for (const box of boxes) {
      x0 = Math.min(x0, all.x[box]!);
      y0 = Math.min(y0, all.y[box]!);
      x1 = Math.max(x1, all.x[box]! + all.width[box]!);
      y1 = Math.max(y1, all.y[box]! + all.height[box]!);
    }
    void this.renderer.camera.arrive({ x: x0, y: y0, width: x1 - x0, height: y1 - y0 }, NEAR);
  }

  async step(from: Moment[], to: Moment[]): Promise<void> {
    const moment = from.pop();
    if (!moment) return;
    to.push({ capture: this.capture, stage: this.stage, items: this.selection });
    if (moment.capture !== this.capture || moment.stage !== this.stage) await this.show(moment.capture, moment.stage);
    await this.select(moment.items, true, true);
  }

  async trace(way: 'up' | 'down'): Promise<void> {
    const item = this.selection.at(-1);
    if (item === undefined) return;
    this.related = await this.client.trace(item, way);
    await repaint(this, true);
    this.say(this.words.found(this.related.length));
  }

  async between(): Promise<void> {
    if (this.selection.length < 2) return;
    this.related = await this.client.between(this.selection[0]!, this.selection.at(-1)!);
    await repaint(this, true);
    this.say(this.words.found(this.related.length));
  }

  /** A kernel by itself, or (`beside`) one of the operator that stays selected. */
  async pickKernel(index: number, beside = false): Promise<void> {
    if (!beside && this.selection.length) await this.select([], false);
    const kernel = await this.client.kernel(index);
    this.pickedKernel = index;
    this.related = kernel.nodes;
    this.leftTab = 'kernels';
    this.lowTab = 'code';
    redrawChrome(this);
    this.kernels.mark(index, []);
    if (!beside) await this.describeKernel();
    await showLow(this);
    await repaint(this, true);
    await this.goTo(kernel.nodes);
    this.remember();
  }

  /** At the right, while a kernel is picked and nothing else. */
  private async describeKernel(): Promise<void> {
    const index = this.pickedKernel;
    const { name, runs, nodes, attrs } = await this.client.kernel(index);
    const refs = (await this.client.labels(nodes.slice(0, 200))).map(({ item, label }) => ({ item, label }));
    showKernel(this.right, { index, name, runs, refs, attrs }, this.words, { select: (items) => this.run(this.select(items, true)) });
  }

  async pickLine(file: string, line: number): Promise<void> {
    const nodes = await this.client.lineNodes(file, line);
    this.related = nodes;
    this.shownFile = file;
    this.lowTab = 'source';
    const reading = document.activeElement?.classList.contains('code'); // by the keys, line by line
    redrawChrome(this);
    await showLow(this, line);
    if (reading) this.low.querySelector<HTMLElement>('.code')?.focus();
    await repaint(this, true);
    await this.goTo(nodes);
    this.say(this.words.found(nodes.length));
  }

  async find(query: string): Promise<number[]> {
    this.query = query;
    const { nodes, error } = query.trim() ? await this.client.find(query) : { nodes: [], error: '' };
    this.found = nodes;
    this.results.set(nodes, error, query.trim() !== '');
    if (query.trim()) this.leftTab = 'results';
    else if (this.leftTab === 'results') this.leftTab = 'modules';
    redrawChrome(this);
    if (this.lowTab === 'table' || this.lowTab === 'ir') await showLow(this);
    await repaint(this);
    this.remember();
    return nodes;
  }

  // -- panels -----------------------------------------------------------------------------------------

  async redrawPanels(): Promise<void> {
    this.tree.select(this.selection);
    this.table.select(this.selection);
    if (this.details) await this.tree.reveal(this.details.path.map((ref) => ref.item));
    this.tree.select(this.selection);
    // A screen reader says where the arrow keys have led.
    const { graph } = this.words.panels;
    this.canvas.setAttribute('aria-label', this.details ? `${graph}: ${straight(short(this.details.title, 80))}` : graph);
    showDetails(this.right, this.details, this.selection.length > 1, this.words, {
      select: (items) => this.run(this.select(items, true)),
      toggle: (item) => this.run(this.toggle(item)),
      kernel: (index) => this.run(this.pickKernel(index, true)),
      line: (file, line) => this.run(this.pickLine(file, line)),
      trace: (way) => this.run(this.trace(way)),
      between: () => this.run(this.between()),
    });
    if (!this.details && this.pickedKernel >= 0) await this.describeKernel();
    else if (!this.details) this.right.append(...about(this));
    await showFate(this);
    await this.split.follow();
    if (this.pickedKernel < 0) this.kernels.mark(-1, this.details?.kernels.map((kernel) => kernel.index) ?? []);
    if (this.lowTab === 'source') {
      this.chosenFile = '';
      await showLow(this);
    } else if (this.lowTab === 'ir' || this.lowTab === 'cost') {
      await showLow(this);
    } else if (this.lowTab === 'code' && this.details?.kernels.length && this.pickedKernel < 0) {
      await showLow(this);
    }
  }

  // -- chrome -----------------------------------------------------------------------------------------

  flip(): void {
    this.run(this.setOptions({ direction: this.viewOptions.direction === 'down' ? 'right' : 'down' }));
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    this.renderer.setTheme(theme);
    this.minimap.setTheme(theme);
    this.run(this.split.show());
    redrawChrome(this);
    this.run(repaint(this));
    if (this.lowTab === 'cost') this.run(showLow(this));
  }

  setLanguage(language: Language): void {
    this.language = language;
    redrawChrome(this);
    this.run(
      (async () => {
        const picture = await this.speak();
        if (picture) this.draw(picture);
        await this.tree.reset();
        await this.redrawPanels();
      })(),
    );
  }

  /** The words that are drawn are the engine's to know. */
  private speak(): Promise<Picture | null> {
    const { phases, ...words } = this.words.drawn;
    return this.client.speak({ ...words, phases: PHASES.map((name) => phases[name]) });
  }

  saveSvg(): void {
    if (!this.picture) return;
    const text = writeSvg(this.picture.scene, this.theme, this.renderer.paint);
    const link = h('a', {
      href: URL.createObjectURL(new Blob([text], { type: 'image/svg+xml' })),
      download: `${this.captures[this.capture]?.name ?? 'graph'}.svg`,
    });
    link.click();
    URL.revokeObjectURL(link.href);
  }

  // -- events -----------------------------------------------------------------------------------------

  zoom(factor: number): void {
    this.renderer.camera.zoomAt(this.canvas.clientWidth / 2, this.canvas.clientHeight / 2, factor);
  }

  // -- the state, for the URL and for scripts -----------------------------------------------------------

  remembering = 0;

  remember(): void {
    clearTimeout(this.remembering);
    this.remembering = window.setTimeout(() => {
      if (this.ready) this.run(writeHash(this));
    }, 250);
  }
}

function place(scene: Scene, item: number): { x: number; y: number } | null {
  const box = scene.boxes.item.indexOf(item);
  return box < 0 ? null : { x: scene.boxes.x[box]!, y: scene.boxes.y[box]! };
}
