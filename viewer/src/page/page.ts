// What the parts of the page share: the state, the engine, and the places where things are drawn.

import { Minimap } from '../draw/minimap.ts';
import { Renderer } from '../draw/renderer.ts';
import { dark, light } from '../draw/theme.ts';
import type { Address, Content } from '../engine/content.ts';
import type { Chosen, Picture } from '../engine/messages.ts';
import type { Device } from '../engine/roofs.ts';
import type { Panel } from '../panels/panel.ts';
import type { Client } from '../state/client.ts';
import { isLater } from '../state/later.ts';
import { newState, type State } from '../state/page.ts';
import { Views } from '../state/store.ts';
import type { Words } from '../state/words.ts';
import { h, replace } from '../widgets/dom.ts';

/** What the page cannot do by itself: main.ts says where it comes from. */
export interface Services {
  /** Text of a source file that is not in the capture, where a server can read it. */
  source(capture: number, file: string): Promise<string | null>;
  /** The captures of two addresses compared by the server; null where there is none. */
  compare(before: Served, after: Served): Promise<{ content: Content; name: string } | null>;
  /** The page with all that the server shows, in one file; null where there is no server. */
  wholePage(): Promise<string | null>;
  /** A table that only a server can read, as CSV; null where there is none. */
  table(file: File): Promise<string | null>;
  /** An .opscope file for any dropped file, and for a large one what it costs, counted when the graph is there. */
  convert(file: File): Promise<{ content: Content; name: string; costs?: Address }>;
  devices: Device[]; // for the roofline
  editor: string; // link to open a file in an editor, with {file} and {line}
}

/** A stage of what a server shows at an address. */
export interface Served {
  url: string;
  stage: number;
}

const NOTE_MS = 4000;
const OFFER_MS = 8000;

export type Places = ReturnType<typeof makePlaces>;

function makePlaces() {
  return {
    canvas: h('canvas', { class: 'graph', tabindex: 0, role: 'application' }),
    before: h('section', { class: 'centre before-pane', hidden: true }),
    tabs: h('nav', { class: 'tabs' }),
    stages: h('nav', { class: 'stages' }),
    search: h('input', { type: 'search', class: 'search', spellcheck: 'false', autocomplete: 'off' }),
    toolbar: h('div', { class: 'toolbar', role: 'toolbar' }),
    chips: h('div', { class: 'chips' }),
    strip: h('div', { class: 'strip', hidden: true }),
    legend: h('div', { class: 'legend' }),
    left: h('aside', { class: 'left' }),
    leftHead: h('div', { class: 'panel-tabs', role: 'tablist' }),
    leftBody: h('div', { class: 'panel-body' }),
    right: h('aside', { class: 'right' }),
    low: h('section', { class: 'low' }),
    lowHead: h('div', { class: 'panel-tabs low-tabs', role: 'tablist' }),
    lowBody: h('div', { class: 'low-body' }),
    note: h('div', { class: 'note', role: 'status' }),
    tip: h('div', { class: 'tip' }),
  };
}

export class Page {
  readonly state: State = newState({
    language: navigator.language.startsWith('zh') ? 'zh' : 'en',
    theme: matchMedia('(prefers-color-scheme: dark)').matches ? dark : light,
  });
  readonly views = new Views((error) => this.fail(error));
  readonly places: Places = makePlaces();
  readonly renderer: Renderer;
  readonly minimap: Minimap;
  readonly panels = new Map<string, Panel>();
  /** Where captures came from, of those that a server shows. */
  readonly served = new Map<number, string>();
  /** What captures were made from by comparing them here. */
  readonly joined = new Map<number, [Chosen, Chosen]>();
  /** What is beside the drawing and draws too. */
  readonly drawing: { busy: boolean }[] = [];
  private pending = 0;
  /** Of history.ts: a command is under way, steps that were forgotten, the browser goes one step. */
  inStep = false;
  dropped = 0;
  awaited = false;
  /** Of the result of a search that was stepped to: what was open before it. */
  lastHit: { before: Promise<number>; shown: Picture | null } | null = null;

  constructor(
    readonly root: HTMLElement,
    readonly client: Client,
    readonly services: Services,
  ) {
    const p = this.places;
    p.left.append(p.leftHead, p.leftBody);
    p.low.append(p.lowHead, p.lowBody);
    const centre = h('section', { class: 'centre' }, p.canvas, p.legend, p.tip, p.note);
    const panes = h('div', { class: 'panes' }, p.before, centre);
    replace(
      root,
      h('header', { class: 'bar' }, h('h1', { class: 'logo' }, 'opscope'), p.tabs, p.search, p.toolbar),
      p.stages,
      h('main', {}, p.left, h('div', { class: 'middle' }, p.chips, p.strip, panes, p.low), p.right),
    );
    this.renderer = new Renderer(p.canvas, this.state.theme.get());
    this.minimap = new Minimap(this.renderer);
    centre.append(this.minimap.element);
  }

  words(): Words {
    return this.state.words.get();
  }

  /** Work under way counts for `idle`; a failure is shown, not lost. */
  run(work: Promise<unknown>): void {
    this.wait();
    work.catch((error: unknown) => this.fail(error)).finally(() => this.done());
  }

  /** Something is under way until `done`. */
  wait(): void {
    this.pending++;
  }

  done(): void {
    this.pending--;
  }

  /** Resolves when all that was begun is shown. */
  async idle(): Promise<void> {
    do await new Promise((resolve) => requestAnimationFrame(resolve));
    while (!this.isIdle());
  }

  private isIdle(): boolean {
    const working = this.pending > 0 || this.client.busy() || this.views.busy || isLater();
    return this.state.ready.get() && !working && !this.renderer.busy() && !this.drawing.some(({ busy }) => busy);
  }

  /** A line below the drawing, for some seconds; with something that one may do about it. */
  say(text: string, bad = false, offer?: { text: string; run: () => void }): void {
    const { note } = this.places;
    const act = offer && h('button', { class: 'link', 'data-key': 'offer', onclick: () => (this.say(''), offer.run()) }, offer.text);
    replace(note, text, act && ' · ', act);
    note.className = bad ? 'note bad' : 'note';
    clearTimeout(this.saying);
    if (!bad && text) this.saying = window.setTimeout(() => this.say(''), offer ? OFFER_MS : NOTE_MS);
  }

  private saying = 0;

  fail(error: unknown): void {
    this.say(error instanceof Error ? error.message : String(error), true);
  }
}
