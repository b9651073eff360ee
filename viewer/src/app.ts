// The page: one selection that all panels follow, one picture that all commands change.

import { dark, light, type Theme } from './draw/theme.ts';
import { bindGestures } from './draw/gestures.ts';
import { Minimap } from './draw/minimap.ts';
import { savePng } from './draw/png.ts';
import { Renderer } from './draw/renderer.ts';
import type { CaptureInfo, Details, Picture, ViewOptions } from './engine/messages.ts';
import { bytesText } from './engine/types.ts';
import { showCode } from './panels/code.ts';
import { showDetails } from './panels/details.ts';
import { h, replace, short } from './panels/dom.ts';
import { icon, ICONS, type Icon } from './panels/icons.ts';
import { KernelList, ResultList } from './panels/lists.ts';
import { ModuleTree } from './panels/modules.ts';
import { NodeTable } from './panels/table.ts';
import { BoxKind, PHASES, type Phase, type Scene } from './scene.ts';
import type { Client } from './state/client.ts';
import { kernelColour, ramp, RAMP_CSS, scale } from './state/colours.ts';
import * as hash from './state/hash.ts';
import { LANGUAGES, type Language, type Words } from './state/words.ts';
import { writeSvg } from './svg/write.ts';

export interface Services {
  /** Text of a source file that is not in the capture, where a server can read it. */
  source(capture: number, file: string): Promise<string | null>;
  /** Bytes of an .opscope file for any dropped file. */
  convert(file: File): Promise<{ bytes: Uint8Array; name: string }>;
  editor: string; // link to open a file in an editor, with {file} and {line}
}

type LeftTab = 'modules' | 'kernels' | 'results';
type LowTab = 'source' | 'code' | 'table' | '';

interface Moment {
  capture: number;
  stage: number;
  items: number[];
}

const MARGIN = 36;
const READABLE = 0.6; // the zoom below which titles are hard to read

export class App {
  captures: CaptureInfo[] = [];
  capture = 0;
  stage = 0;
  picture: Picture | null = null;
  selection: number[] = [];
  found: number[] = [];
  query = '';
  private related: number[] = [];
  private details: Details | null = null;
  private pickedKernel = -1;
  private viewOptions: ViewOptions = { direction: 'down', split: true, side: true, hidden: [], constants: false };
  private colour = 'phase';
  private edgeLabels: 'hover' | 'always' = 'hover';
  private edgeWidth: 'plain' | 'bytes' = 'plain';
  private past: Moment[] = [];
  private future: Moment[] = [];
  private level = 0;
  private language: Language = navigator.language.startsWith('zh') ? 'zh' : 'en';
  private theme: Theme = matchMedia('(prefers-color-scheme: dark)').matches ? dark : light;
  private leftTab: LeftTab = 'modules';
  private lowTab: LowTab = '';
  private pending = 0;
  private shownFile = '';
  private ready = false;
  private menuOpen = false;
  private allPairs = false;

  private canvas = h('canvas', { class: 'graph', tabindex: 0, role: 'application', 'aria-label': 'graph' });
  private tabs = h('nav', { class: 'tabs', 'aria-label': 'captures' });
  private stages = h('select', {
    class: 'stages',
    'aria-label': 'stage',
    onchange: () => this.run(this.show(this.capture, Number(this.stages.value))),
  });
  private search = h('input', { type: 'search', class: 'search', spellcheck: 'false', autocomplete: 'off' });
  private toolbar = h('div', { class: 'toolbar', role: 'toolbar' });
  private chips = h('div', { class: 'chips' });
  private legend = h('div', { class: 'legend' });
  private leftHead = h('div', { class: 'panel-tabs', role: 'tablist' });
  private left = h('div', { class: 'panel-body' });
  private right = h('aside', { class: 'right' });
  private lowHead = h('div', { class: 'panel-tabs low-tabs', role: 'tablist' });
  private low = h('div', { class: 'low-body' });
  private note = h('div', { class: 'note', role: 'status' });
  private tip = h('div', { class: 'tip' });
  private renderer: Renderer;
  private minimap: Minimap;
  private tree: ModuleTree;
  private kernels: KernelList;
  private results: ResultList;
  private table: NodeTable;

  constructor(
    private root: HTMLElement,
    private client: Client,
    private services: Services,
  ) {
    const centre = h('section', { class: 'centre', 'aria-label': 'graph' }, this.canvas, this.chips, this.legend, this.tip, this.note);
    this.lowPanel = h('section', { class: 'low' }, this.lowHead, this.low);
    replace(
      root,
      h('header', { class: 'bar' }, h('span', { class: 'logo' }, 'opscope'), this.tabs, this.stages, this.search, this.toolbar),
      h(
        'main',
        {},
        h('aside', { class: 'left' }, this.leftHead, this.left),
        h('div', { class: 'middle' }, centre, this.lowPanel),
        this.right,
      ),
    );
    this.renderer = new Renderer(this.canvas, this.theme);
    this.minimap = new Minimap(this.renderer);
    centre.append(this.minimap.element);
    this.tree = new ModuleTree(
      (item) => this.client.children(item),
      { select: (items, reveal) => this.run(this.select(items, reveal)), toggle: (item) => this.run(this.toggle(item)) },
      'modules',
    );
    this.kernels = new KernelList(
      (index) => this.run(this.pickKernel(index)),
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
    this.bind();
    this.redrawChrome();
  }

  private lowPanel: HTMLElement;

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
    while (!this.ready || this.pending || this.client.busy() || this.renderer.busy());
  }

  say(text: string, bad = false): void {
    this.note.textContent = text;
    this.note.className = bad ? 'note bad' : 'note';
    if (!bad) setTimeout(() => (this.note.textContent === text ? (this.note.textContent = '') : null), 4000);
  }

  // -- captures and stages --------------------------------------------------------------------------

  async add(bytes: Uint8Array, name: string): Promise<void> {
    this.say(this.words.loading);
    const info = await this.client.load(bytes, name);
    this.captures.push(info);
    this.say('');
    if (this.captures.length === 1 || this.ready) {
      const saved = hash.read(location.hash);
      const restoring = !this.ready && saved.capture === 0;
      if (restoring) this.viewOptions = { ...this.viewOptions, direction: saved.direction, hidden: saved.hidden };
      await this.show(info.id, restoring ? Math.min(saved.stage, info.stages.length - 1) : 0);
      if (restoring) await this.restore(saved);
    }
    this.ready = true;
    this.redrawChrome();
  }

  private async restore(saved: hash.Saved): Promise<void> {
    if (saved.open) this.draw(await this.client.restore(saved.open));
    if (saved.selection.length) await this.select(await this.client.items(saved.selection), false);
    if (saved.query) {
      this.search.value = saved.query;
      await this.find(saved.query);
    }
    if (saved.view) this.renderer.camera.set(saved.view);
    else if (saved.open) this.fit(0);
  }

  async show(capture: number, stage: number): Promise<void> {
    const info = this.captures[capture];
    if (!info?.stages.length) {
      this.say('this capture has no graph', true);
      return;
    }
    this.capture = capture;
    this.stage = stage;
    this.selection = [];
    this.details = null;
    this.found = [];
    this.pickedKernel = -1;
    const phases = info.stages[stage]!.phases;
    // Making parameters is rarely what one came to see, and most of a training graph's first lines.
    if (!this.ready && !location.hash.includes('h=') && phases[1]! > 0 && phases[0]! > 0) this.viewOptions.hidden = [0];
    this.draw(await this.client.stage(capture, stage, this.viewOptions));
    this.begin();
    await Promise.all([this.tree.reset(), this.client.kernels().then((rows) => this.kernels.set(rows))]);
    this.redrawChrome();
    await this.redrawPanels();
    this.remember();
  }

  // -- the picture ------------------------------------------------------------------------------------

  /** Draw a picture; the box of `anchor` stays where it is on the screen. */
  private draw(picture: Picture, anchor = -1): void {
    const before = this.picture;
    const old = anchor >= 0 && before ? place(before.scene, anchor) : null;
    this.picture = picture;
    this.renderer.setScene(picture.scene, picture.index, before?.scene);
    const now = old ? place(picture.scene, anchor) : null;
    if (old && now) this.renderer.camera.keep({ x: old.x, y: old.y }, { x: now.x, y: now.y });
    this.run(this.repaint());
  }

  /** Open or close a group where it stands; an operator is only selected. */
  async toggle(item: number): Promise<void> {
    const box = this.boxOf(item);
    if (!this.picture || box < 0) return;
    const { kind, repeat } = this.picture.scene.boxes;
    if (kind[box] === BoxKind.Op || kind[box] === BoxKind.Input) return;
    if (repeat[box]! > 1) this.draw(await this.client.unfold(item), item);
    else this.draw(await this.client.open([item], kind[box] !== BoxKind.Open), item);
    this.remember();
  }

  async expandAll(): Promise<void> {
    this.draw(await this.client.openAll());
    this.fit();
    this.remember();
  }

  async expandTo(depth: number): Promise<void> {
    this.level = Math.max(1, depth);
    this.draw(await this.client.openDepth(this.level));
    this.fit();
    this.remember();
  }

  async expand(item: number, open: boolean): Promise<void> {
    this.draw(await this.client.open([item], open), item);
    this.remember();
  }

  private boxOf(item: number): number {
    return this.picture ? this.picture.scene.boxes.item.indexOf(item) : -1;
  }

  /** The whole graph, with room above it for what lies over the drawing. */
  private extent(scene: Scene): { x: number; y: number; width: number; height: number } {
    const above = (scene.height / Math.max(1, this.canvas.clientHeight - 2 * MARGIN)) * 40;
    return { x: 0, y: -above, width: scene.width, height: scene.height + above };
  }

  /** At first: all of it if that can be read, else its beginning at a size that can. */
  private begin(): void {
    const scene = this.picture?.scene;
    if (!scene) return;
    const { camera } = this.renderer;
    camera.resize(this.canvas.clientWidth, this.canvas.clientHeight);
    const whole = camera.fitOf(this.extent(scene), MARGIN);
    if (whole.zoom >= READABLE) {
      camera.set(whole);
      return;
    }
    const zoom = Math.max(Math.min(READABLE + 0.2, (camera.screen.width - 96) / scene.width), 0.35);
    const across = scene.direction === 'down';
    const x = across ? scene.width / 2 : camera.screen.width / 2 / zoom - 48 / zoom;
    const y = across ? camera.screen.height / 2 / zoom - 64 / zoom : scene.height / 2;
    camera.set({ x, y, zoom });
  }

  fit(ms = 300): void {
    const scene = this.picture?.scene;
    if (!scene) return;
    this.renderer.camera.resize(this.canvas.clientWidth, this.canvas.clientHeight);
    void this.renderer.camera.fit(this.extent(scene), MARGIN, ms);
  }

  private async setOptions(options: Partial<ViewOptions>): Promise<void> {
    this.viewOptions = { ...this.viewOptions, ...options };
    const keep = await this.client.paths(this.selection);
    this.draw(await this.client.options(this.viewOptions));
    this.selection = await this.client.items(keep);
    await this.tree.reset();
    this.fit();
    this.redrawChrome();
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
      if (hidden) this.draw(await this.client.reveal(items), items[0]);
      await this.goTo(items);
    }
    await this.redrawPanels();
    await this.repaint();
    this.remember();
  }

  private async goTo(items: number[]): Promise<void> {
    const boxes = await this.client.boxes(items);
    if (!boxes.length || !this.picture) return;
    const all = this.picture.scene.boxes;
    let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
    for (const box of boxes) {
      x0 = Math.min(x0, all.x[box]!);
      y0 = Math.min(y0, all.y[box]!);
      x1 = Math.max(x1, all.x[box]! + all.width[box]!);
      y1 = Math.max(y1, all.y[box]! + all.height[box]!);
    }
    void this.renderer.camera.reveal({ x: x0, y: y0, width: x1 - x0, height: y1 - y0 });
  }

  private async step(from: Moment[], to: Moment[]): Promise<void> {
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
    await this.repaint(true);
    this.say(this.words.found(this.related.length));
  }

  async between(): Promise<void> {
    if (this.selection.length < 2) return;
    this.related = await this.client.between(this.selection[0]!, this.selection.at(-1)!);
    await this.repaint(true);
    this.say(this.words.found(this.related.length));
  }

  async pickKernel(index: number): Promise<void> {
    const kernel = await this.client.kernel(index);
    this.pickedKernel = index;
    this.kernels.mark(index, []);
    this.related = kernel.nodes;
    this.leftTab = 'kernels';
    this.lowTab = 'code';
    this.redrawChrome();
    await this.showLow();
    await this.repaint(true);
    await this.goTo(kernel.nodes);
  }

  async pickLine(file: string, line: number): Promise<void> {
    const nodes = await this.client.lineNodes(file, line);
    this.related = nodes;
    this.shownFile = file;
    this.lowTab = 'source';
    this.redrawChrome();
    await this.showLow(line);
    await this.repaint(true);
    await this.goTo(nodes);
    this.say(this.words.found(nodes.length));
  }

  async find(query: string): Promise<number[]> {
    this.query = query;
    const { nodes, error } = query.trim() ? await this.client.find(query) : { nodes: [], error: '' };
    this.found = nodes;
    this.results.set(nodes, error);
    if (query.trim()) this.leftTab = 'results';
    else if (this.leftTab === 'results') this.leftTab = 'modules';
    this.redrawChrome();
    if (this.lowTab === 'table') await this.showLow();
    await this.repaint();
    this.remember();
    return nodes;
  }

  // -- painting ---------------------------------------------------------------------------------------

  private async repaint(dim = false): Promise<void> {
    if (!this.picture) return;
    const [selected, related, found] = await Promise.all([
      this.client.boxes(this.selection),
      this.client.boxes(this.related),
      this.client.boxes(this.found.length > 20_000 ? this.found.slice(0, 20_000) : this.found),
    ]);
    this.renderer.setPaint({
      selected: new Set(selected),
      related: new Set(related),
      found: new Set(found),
      dim: (dim && related.length > 0) || (found.length > 0 && selected.length === 0),
      links: await this.client.pairs(this.allPairs ? null : (this.selection.at(-1) ?? -1)),
      fill: await this.fills(),
    });
  }

  /** Colours by kernel or by a figure, with their legend. */
  private async fills(): Promise<(string | null)[] | null> {
    if (this.colour === 'phase') {
      replace(this.legend);
      return null;
    }
    if (this.colour === 'kernel') {
      replace(this.legend);
      return (await this.client.kernelOf()).map((kernel) => (kernel < 0 ? null : kernelColour(kernel, this.theme === dark)));
    }
    const { values, min, max } = await this.client.metric(this.colour);
    if (!Number.isFinite(min)) {
      replace(this.legend, `${this.colour}: ${this.words.unknown}`);
      return null;
    }
    const place = scale(min, max);
    replace(
      this.legend,
      h('b', {}, this.colour),
      h('span', {}, metricText(this.colour, min, this.words)),
      h('i', { style: `background:${RAMP_CSS}` }),
      h('span', {}, metricText(this.colour, max, this.words)),
    );
    return values.map((value) => (value === null ? null : ramp(place(value))));
  }

  // -- panels -----------------------------------------------------------------------------------------

  private async redrawPanels(): Promise<void> {
    this.tree.select(this.selection);
    this.table.select(this.selection);
    if (this.details) await this.tree.reveal(this.details.path.map((ref) => ref.item));
    this.tree.select(this.selection);
    showDetails(this.right, this.details, this.selection.length > 1, this.words, {
      select: (items) => this.run(this.select(items, true)),
      toggle: (item) => this.run(this.toggle(item)),
      kernel: (index) => this.run(this.pickKernel(index)),
      line: (file, line) => this.run(this.pickLine(file, line)),
      trace: (way) => this.run(this.trace(way)),
      between: () => this.run(this.between()),
    });
    if (!this.details) this.right.append(...this.about());
    if (this.pickedKernel < 0) this.kernels.mark(-1, this.details?.kernels.map((kernel) => kernel.index) ?? []);
    if (this.lowTab === 'source') {
      const frame = this.details?.frames.at(-1);
      if (frame) this.shownFile = frame.file;
      await this.showLow(frame?.line);
    } else if (this.lowTab === 'code' && this.details?.kernels.length && this.pickedKernel < 0) {
      await this.showLow();
    }
  }

  /** What the capture is, and what it lacks: shown while nothing is selected. */
  private about(): HTMLElement[] {
    const info = this.captures[this.capture];
    const stage = info?.stages[this.stage];
    if (!info || !stage) return [];
    const warnings = [...info.warnings, ...stage.warnings];
    return [
      h(
        'section',
        {},
        h('h3', {}, `${info.framework} ${info.version}`),
        h(
          'dl',
          {},
          ...pairs([
            ['nodes', stage.nodes.toLocaleString()],
            ['values', stage.values.toLocaleString()],
            ['edges', stage.edges.toLocaleString()],
            [this.words.kernels, stage.kernels.toLocaleString()],
            ...Object.entries(stage.links).map(([kind, n]): [string, string] => [`${kind} links`, n.toLocaleString()]),
          ]),
        ),
      ),
      ...(warnings.length
        ? [h('section', {}, h('h3', {}, this.words.warnings), ...warnings.map((text) => h('p', { class: 'warning' }, text)))]
        : []),
    ];
  }

  private async showLow(line = 0): Promise<void> {
    this.lowPanel.classList.toggle('closed', this.lowTab === '');
    if (this.lowTab === 'table') {
      replace(this.low, this.table.element);
      await this.table.show(this.captures[this.capture]?.metrics ?? [], this.query.trim() ? this.found : null);
      this.table.select(this.selection);
    } else if (this.lowTab === 'code') {
      await this.showKernelCode();
    } else if (this.lowTab === 'source') {
      await this.showSource(line);
    }
    this.renderer.resize();
  }

  private async showKernelCode(): Promise<void> {
    const index = this.pickedKernel >= 0 ? this.pickedKernel : this.details?.kernels[0]?.index;
    if (index === undefined) {
      replace(this.low, h('p', { class: 'hint' }, this.words.noKernels));
      return;
    }
    const kernel = await this.client.kernel(index);
    const body = h('div', { class: 'code-body' });
    replace(this.low, h('p', { class: 'code-head' }, h('b', {}, `#${index}`), ` ${short(kernel.name, 140)}`), body);
    if (kernel.code) showCode(body, kernel.code, { language: 'cpp' });
    else replace(body, h('p', { class: 'hint' }, this.words.noCode), h('dl', {}, ...pairs(kernel.attrs)));
  }

  private async showSource(line: number): Promise<void> {
    const files = await this.client.files();
    if (!files.length) {
      replace(this.low, h('p', { class: 'hint' }, this.words.noFiles));
      return;
    }
    if (!files.some((entry) => entry.file === this.shownFile)) {
      const embedded = files.find((entry) => this.captures[this.capture]?.sources.includes(entry.file));
      this.shownFile = (embedded ?? files[0]!).file;
    }
    const file = this.shownFile;
    const picker = h(
      'select',
      {
        'aria-label': 'file',
        onchange: (event: Event) => ((this.shownFile = (event.target as HTMLSelectElement).value), this.run(this.showLow())),
      },
      ...files.map((entry) => h('option', { value: entry.file, selected: entry.file === file }, short(entry.file, 110))),
    );
    const link = this.services.editor.replace('{file}', encodeURI(file)).replace('{line}', String(line || 1));
    const body = h('div', { class: 'code-body' });
    replace(this.low, h('p', { class: 'code-head' }, picker, h('a', { class: 'link', href: link }, this.words.openInEditor)), body);
    const text = (await this.client.source(file)) ?? (await this.services.source(this.capture, file));
    if (text === null) {
      replace(body, h('p', { class: 'hint' }, this.words.noSource));
      return;
    }
    showCode(body, text, {
      language: 'python',
      marked: new Map((await this.client.lines(file)).map(([at, n]) => [at, String(n)])),
      current: new Set(line ? [line] : []),
      onLine: (at) => this.run(this.pickLine(file, at)),
    });
  }

  // -- chrome -----------------------------------------------------------------------------------------

  private redrawChrome(): void {
    const w = this.words;
    document.documentElement.lang = this.language;
    this.root.dataset.theme = this.theme.name;
    this.search.placeholder = w.search;
    this.search.title = w.searchHelp;
    this.search.setAttribute('aria-label', w.search);
    this.right.setAttribute('aria-label', w.details);
    replace(
      this.tabs,
      ...this.captures.map((info, i) =>
        h(
          'button',
          { class: i === this.capture ? 'tab on' : 'tab', title: info.name, onclick: () => this.run(this.show(i, 0)) },
          short(info.name.split(/[\\/]/).at(-1)!, 32),
        ),
      ),
    );
    const info = this.captures[this.capture];
    this.stages.hidden = !info || info.stages.length < 2;
    replace(
      this.stages,
      ...(info?.stages ?? []).map((stage, i) =>
        h('option', { value: i, selected: i === this.stage }, `${stage.name} · ${stage.nodes.toLocaleString()}`),
      ),
    );
    this.redrawChips(info);
    const tool = (image: Icon | string, title: string, run: () => void) =>
      h('button', { class: 'tool', title, 'aria-label': title, onclick: run }, image in ICONS ? icon(image as Icon) : image);
    replace(
      this.toolbar,
      tool('back', w.back, () => this.run(this.step(this.past, this.future))),
      tool('forward', w.forward, () => this.run(this.step(this.future, this.past))),
      h('span', { class: 'gap' }),
      tool('less', w.shallower, () => this.run(this.expandTo(this.level - 1))),
      tool('more', w.deeper, () => this.run(this.expandTo(this.level + 1))),
      tool('all', w.expandAll, () => this.run(this.expandAll())),
      tool('fit', w.fit, () => this.fit()),
      tool(this.viewOptions.direction === 'down' ? 'down' : 'right', w.direction, () => this.flip()),
      this.colourPicker(info),
      h('span', { class: 'gap' }),
      tool('SVG', w.exportSvg, () => this.saveSvg()),
      tool('PNG', w.exportPng, () => this.run(savePng(this.renderer, `${info?.name ?? 'graph'}.png`))),
      tool(this.theme === dark ? 'sun' : 'moon', w.theme, () => this.setTheme(this.theme === dark ? light : dark)),
      tool(w.language, w.language, () => this.setLanguage(this.language === 'en' ? 'zh' : 'en')),
      tool('?', w.help, () => this.help()),
    );
    const tab = (on: boolean, text: string, run: () => void) =>
      h('button', { class: on ? 'on' : '', role: 'tab', 'aria-selected': String(on), onclick: run }, text);
    const goLeft = (name: LeftTab) => () => {
      this.leftTab = name;
      this.redrawChrome();
    };
    replace(
      this.leftHead,
      tab(this.leftTab === 'modules', w.modules, goLeft('modules')),
      tab(this.leftTab === 'kernels', w.kernels, goLeft('kernels')),
      tab(this.leftTab === 'results', w.results, goLeft('results')),
    );
    replace(this.left, { modules: this.tree.element, kernels: this.kernels.element, results: this.results.element }[this.leftTab]);
    const goLow = (name: LowTab) => () => {
      this.lowTab = this.lowTab === name ? '' : name;
      this.redrawChrome();
      this.run(this.showLow());
    };
    replace(
      this.lowHead,
      tab(this.lowTab === 'source', w.source, goLow('source')),
      tab(this.lowTab === 'code', w.code, goLow('code')),
      tab(this.lowTab === 'table', w.table, goLow('table')),
    );
    this.lowPanel.classList.toggle('closed', this.lowTab === '');
    this.renderer.resize();
  }

  private redrawChips(info: CaptureInfo | undefined): void {
    const phases = info?.stages[this.stage]?.phases ?? [];
    const present = phases.flatMap((n, i) => (n ? [i] : []));
    replace(
      this.chips,
      ...(present.length > 1
        ? present.map((i) => {
            const on = !this.viewOptions.hidden.includes(i);
            const name: Phase = PHASES[i]!;
            const flip = () =>
              this.run(this.setOptions({ hidden: on ? [...this.viewOptions.hidden, i] : this.viewOptions.hidden.filter((x) => x !== i) }));
            return h(
              'button',
              { class: on ? 'chip phase on' : 'chip phase', 'aria-pressed': String(on), onclick: flip },
              h('span', { class: `dot phase-${name}` }),
              `${this.words.phases[name]} ${phases[i]!.toLocaleString()}`,
            );
          })
        : []),
      h(
        'details',
        { class: 'menu', open: this.menuOpen, ontoggle: (event: Event) => (this.menuOpen = (event.target as HTMLDetailsElement).open) },
        h('summary', { class: 'chip' }, this.words.viewMenu),
        h(
          'div',
          { class: 'menu-body' },
          present.length > 1
            ? this.option(this.words.split, this.viewOptions.split, () => this.run(this.setOptions({ split: !this.viewOptions.split })))
            : null,
          present.length > 1 && this.viewOptions.split
            ? this.option(this.words.side, this.viewOptions.side, () => this.run(this.setOptions({ side: !this.viewOptions.side })))
            : null,
          this.option(this.words.constants, this.viewOptions.constants, () =>
            this.run(this.setOptions({ constants: !this.viewOptions.constants })),
          ),
          this.captures[this.capture]?.stages[this.stage]?.links.grad
            ? this.option(this.words.pairs, this.allPairs, () => {
                this.allPairs = !this.allPairs;
                this.run(this.repaint());
              })
            : null,
          this.option(this.words.edgeLabels, this.edgeLabels === 'always', () => {
            this.edgeLabels = this.edgeLabels === 'always' ? 'hover' : 'always';
            this.renderer.setPaint({ edgeLabels: this.edgeLabels });
          }),
          this.option(this.words.edgeWidth, this.edgeWidth === 'bytes', () => {
            this.edgeWidth = this.edgeWidth === 'bytes' ? 'plain' : 'bytes';
            this.renderer.setPaint({ edgeWidth: this.edgeWidth });
          }),
        ),
      ),
    );
  }

  private option(text: string, on: boolean, run: () => void): HTMLElement {
    return h('label', {}, h('input', { type: 'checkbox', checked: on, onchange: run }), text);
  }

  private colourPicker(info: CaptureInfo | undefined): HTMLElement {
    const w = this.words;
    const names: [string, string][] = [
      ['phase', w.byPhase],
      ...(info?.stages[this.stage]?.kernels ? [['kernel', w.byKernel] as [string, string]] : []),
      ...(info?.metrics ?? []).map((name): [string, string] => [name, name]),
    ];
    return h(
      'select',
      {
        class: 'tool',
        title: w.colour,
        'aria-label': w.colour,
        onchange: (event: Event) => ((this.colour = (event.target as HTMLSelectElement).value), this.run(this.repaint())),
      },
      ...names.map(([value, text]) => h('option', { value, selected: value === this.colour }, `${w.colour}: ${text}`)),
    );
  }

  private flip(): void {
    this.run(this.setOptions({ direction: this.viewOptions.direction === 'down' ? 'right' : 'down' }));
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    this.renderer.setTheme(theme);
    this.minimap.setTheme(theme);
    this.redrawChrome();
    this.run(this.repaint());
  }

  setLanguage(language: Language): void {
    this.language = language;
    this.redrawChrome();
    this.run(this.redrawPanels());
  }

  private help(): void {
    const close = () => dialog.remove();
    const dialog = h(
      'div',
      { class: 'dialog', role: 'dialog', 'aria-label': this.words.help, onclick: (e: Event) => e.target === dialog && close() },
      h(
        'div',
        { class: 'sheet' },
        h('h2', {}, this.words.help),
        h('dl', {}, ...pairs(this.words.keys)),
        h('p', { class: 'hint' }, this.words.searchHelp),
        h('button', { class: 'chip', onclick: close }, 'Esc'),
      ),
    );
    this.root.append(dialog);
    dialog.querySelector('button')?.focus();
  }

  private saveSvg(): void {
    if (!this.picture) return;
    const text = writeSvg(this.picture.scene, this.theme);
    const link = h('a', {
      href: URL.createObjectURL(new Blob([text], { type: 'image/svg+xml' })),
      download: `${this.captures[this.capture]?.name ?? 'graph'}.svg`,
    });
    link.click();
    URL.revokeObjectURL(link.href);
  }

  // -- events -----------------------------------------------------------------------------------------

  private bind(): void {
    bindGestures(this.canvas, this.renderer.camera, {
      tap: (x, y, event) => {
        const box = this.renderer.hitBox(x, y);
        const item = box >= 0 ? this.picture!.scene.boxes.item[box]! : -1;
        this.canvas.focus();
        if (item < 0) this.run(this.select([], false));
        else this.run(this.select(event.shiftKey && !this.selection.includes(item) ? [...this.selection, item] : [item], false));
      },
      doubleTap: (x, y) => {
        const box = this.renderer.hitBox(x, y);
        if (box >= 0) this.run(this.toggle(this.picture!.scene.boxes.item[box]!));
      },
      hover: (x, y) => this.hover(x, y),
    });
    new ResizeObserver(() => this.renderer.resize()).observe(this.canvas);
    let typing = 0;
    this.search.addEventListener('input', () => {
      clearTimeout(typing);
      typing = window.setTimeout(() => this.run(this.find(this.search.value)), 150);
    });
    this.search.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') this.results.step(event.shiftKey ? -1 : 1);
      if (event.key === 'Escape') {
        this.search.value = '';
        this.run(this.find(''));
        this.canvas.focus();
      }
      event.stopPropagation();
    });
    document.addEventListener('keydown', (event) => this.key(event));
    this.renderer.camera.listen(() => this.remember());
    this.root.addEventListener('dragover', (event) => {
      event.preventDefault();
      this.root.classList.add('dropping');
      this.root.dataset.drop = this.words.drop;
    });
    for (const name of ['dragleave', 'drop']) this.root.addEventListener(name, () => this.root.classList.remove('dropping'));
    this.root.addEventListener('drop', (event) => {
      event.preventDefault();
      for (const file of event.dataTransfer?.files ?? []) this.run(this.drop(file));
    });
  }

  private async drop(file: File): Promise<void> {
    const { bytes, name } = await this.services.convert(file);
    await this.add(bytes, name);
  }

  private hover(x: number, y: number): void {
    const box = x < 0 ? -1 : this.renderer.hitBox(x, y);
    const scene = this.picture?.scene;
    const onBox = box >= 0 && scene && scene.boxes.kind[box] !== BoxKind.Open;
    const edge = x < 0 || onBox ? -1 : this.renderer.hitEdge(x, y);
    this.renderer.setPaint({ hovered: box, hoveredEdge: edge });
    this.canvas.style.cursor = onBox ? 'pointer' : '';
    const label = edge >= 0 && scene ? scene.texts[scene.edges.label[edge]!]! : '';
    if (label && scene) {
      const bytes = scene.edges.bytes[edge]!;
      this.tip.textContent = bytes >= 0 ? `${label} · ${bytesText(bytes)}` : label;
      this.tip.style.transform = `translate(${x + 14}px, ${y + 14}px)`;
    }
    this.tip.classList.toggle('on', Boolean(label));
  }

  private key(event: KeyboardEvent): void {
    if (/^(INPUT|SELECT|TEXTAREA)$/.test((event.target as HTMLElement).tagName)) return;
    const dialog = this.root.querySelector('.dialog');
    if (dialog && event.key === 'Escape') {
      dialog.remove();
      return;
    }
    const item = this.selection.at(-1);
    const pan = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
    const commands: Record<string, () => void> = {
      '/': () => this.search.focus(),
      '?': () => this.help(),
      '0': () => this.fit(),
      '+': () => this.zoom(1.25),
      '=': () => this.zoom(1.25),
      '-': () => this.zoom(0.8),
      '[': () => this.run(this.expandTo(this.level - 1)),
      ']': () => this.run(this.expandTo(this.level + 1)),
      E: () => this.run(this.expandAll()),
      C: () => this.run(this.expandTo(1)),
      n: () => this.results.step(1),
      N: () => this.results.step(-1),
      u: () => this.run(this.trace('up')),
      j: () => this.run(this.trace('down')),
      f: () => this.run(this.goTo(this.selection)),
      d: () => this.flip(),
      t: () => this.setTheme(this.theme === dark ? light : dark),
      Enter: () => item !== undefined && this.run(this.toggle(item)),
      Escape: () => this.run(this.select([], false)),
    };
    if (event.altKey && event.key === 'ArrowLeft') this.run(this.step(this.past, this.future));
    else if (event.altKey && event.key === 'ArrowRight') this.run(this.step(this.future, this.past));
    else if (event.ctrlKey || event.metaKey || event.altKey) return;
    else if (pan && item !== undefined && this.picture) this.neighbour(event.key, item);
    else if (pan) this.renderer.camera.pan(pan[0]!, pan[1]!);
    else if (commands[event.key]) commands[event.key]!();
    else return;
    event.preventDefault();
  }

  /** From box to box with the arrow keys: along the edges, or to the nearest box at that side. */
  private neighbour(key: string, item: number): void {
    const { boxes } = this.picture!.scene;
    const from = this.boxOf(item);
    if (from < 0) return;
    const centre = (box: number): [number, number] => [boxes.x[box]! + boxes.width[box]! / 2, boxes.y[box]! + boxes.height[box]! / 2];
    const [x, y] = centre(from);
    let best = -1;
    let least = Infinity;
    for (let box = 0; box < boxes.count; box++) {
      if (box === from || boxes.kind[box] === BoxKind.Open) continue;
      const [cx, cy] = centre(box);
      const [dx, dy] = [cx - x, cy - y];
      const along = { ArrowLeft: -dx, ArrowRight: dx, ArrowUp: -dy, ArrowDown: dy }[key]!;
      const across = key === 'ArrowLeft' || key === 'ArrowRight' ? Math.abs(dy) : Math.abs(dx);
      if (along > 1 && along + 2 * across < least) {
        least = along + 2 * across;
        best = box;
      }
    }
    if (best >= 0) this.run(this.select([boxes.item[best]!], true));
  }

  private zoom(factor: number): void {
    this.renderer.camera.zoomAt(this.canvas.clientWidth / 2, this.canvas.clientHeight / 2, factor);
  }

  // -- the state, for the URL and for scripts -----------------------------------------------------------

  private remembering = 0;

  private remember(): void {
    clearTimeout(this.remembering);
    this.remembering = window.setTimeout(() => {
      if (this.ready) this.run(this.writeHash());
    }, 250);
  }

  private async writeHash(): Promise<void> {
    const open = this.picture?.open ?? [];
    const text = hash.write({
      capture: this.capture,
      stage: this.stage,
      open: open.length <= 60 ? await this.client.paths(open) : null,
      selection: await this.client.paths(this.selection),
      query: this.query,
      view: this.renderer.camera.view,
      direction: this.viewOptions.direction,
      hidden: this.viewOptions.hidden,
    });
    try {
      history.replaceState(null, '', `#${text}`);
    } catch {
      // A page inside a notebook has no URL of its own.
    }
  }

  state(): Record<string, unknown> {
    const boxes = this.picture?.scene.boxes;
    const texts = this.picture?.scene.texts ?? [];
    return {
      captures: this.captures.map(({ id, name, framework }) => ({ id, name, framework })),
      capture: this.capture,
      stage: this.captures[this.capture]?.stages[this.stage]?.name ?? null,
      boxes: boxes
        ? Array.from({ length: Math.min(boxes.count, 5000) }, (_, i) => ({
            item: boxes.item[i],
            title: texts[boxes.title[i]!],
            kind: boxes.kind[i],
            x: boxes.x[i],
            y: boxes.y[i],
            width: boxes.width[i],
            height: boxes.height[i],
          }))
        : [],
      boxCount: boxes?.count ?? 0,
      edgeCount: this.picture?.scene.edges.count ?? 0,
      selection: this.selection,
      related: this.related.slice(0, 5000),
      found: this.found.length,
      kernel: this.pickedKernel,
      view: this.renderer.camera.view,
      theme: this.theme.name,
      language: this.language,
      hidden: this.viewOptions.hidden.map((i) => PHASES[i]),
      frames: this.renderer.frames.slice(-300),
    };
  }

  /** The handle for scripts and tests; docs/page.md describes it. */
  handle(): Record<string, unknown> {
    const after = async <T>(work: Promise<T>): Promise<T> => {
      const result = await work;
      await this.idle();
      return result;
    };
    const item = async (what: number | string) => (typeof what === 'number' ? what : ((await this.client.items([what]))[0] ?? -1));
    return {
      idle: () => this.idle(),
      state: () => this.state(),
      find: (query: string) => after(this.find(query)),
      select: (ids: (number | string)[] | number | string) =>
        after(
          Promise.all((Array.isArray(ids) ? ids : [ids]).map(item)).then((items) =>
            this.select(
              items.filter((i) => i >= 0),
              true,
            ),
          ),
        ),
      expand: (scope: number | string) => after(item(scope).then((i) => this.expand(i, true))),
      collapse: (scope: number | string) => after(item(scope).then((i) => this.expand(i, false))),
      expandAll: () => after(this.expandAll()),
      view: (x: number, y: number, zoom: number) => (this.renderer.camera.set({ x, y, zoom }), this.idle()),
      kernel: (index: number) => after(this.pickKernel(index)),
      open: (bytes: Uint8Array, name: string) => after(this.add(bytes, name)),
    };
  }
}

function place(scene: Scene, item: number): { x: number; y: number } | null {
  const box = scene.boxes.item.indexOf(item);
  return box < 0 ? null : { x: scene.boxes.x[box]!, y: scene.boxes.y[box]! };
}

function pairs(rows: [string, string][]): HTMLElement[] {
  return rows.flatMap(([key, text]) => [h('dt', {}, key), h('dd', {}, short(text, 400))]);
}

function metricText(metric: string, value: number | null, words: Words): string {
  if (value === null) return words.unknown;
  if (metric === 'output size') return bytesText(value);
  if (metric === 'kernel time') return value >= 1e6 ? `${(value / 1e6).toPrecision(3)} ms` : `${(value / 1e3).toPrecision(3)} µs`;
  return value.toLocaleString();
}
