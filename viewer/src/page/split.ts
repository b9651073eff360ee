// Before | after: the stage that this one was made from, drawn beside it. What is selected in one is selected in the other.

import { bindGestures } from '../draw/gestures.ts';
import { Renderer } from '../draw/renderer.ts';
import { fillsOf } from './painting.ts';
import type { Calls, Picture } from '../engine/messages.ts';
import { h } from '../panels/dom.ts';
import { BoxKind } from '../scene.ts';
import type { App } from './app.ts';

export class SplitPane {
  readonly canvas = h('canvas', { class: 'pane-graph', tabindex: 0, role: 'application', 'aria-label': 'before' });
  private label = h('div', { class: 'pane-label' });
  readonly element = h('section', { class: 'centre before-pane', hidden: true }, this.canvas, this.label);
  private renderer: Renderer;
  private picture: Picture | null = null;
  private shownFor = '';
  selection: number[] = [];

  constructor(private app: App) {
    this.renderer = new Renderer(this.canvas, app.theme);
    bindGestures(this.canvas, this.renderer.camera, {
      tap: (x, y, event) => {
        const item = this.at(x, y);
        this.canvas.focus();
        if (item < 0) app.run(app.select([], false));
        else app.run(this.select(event.shiftKey ? [...this.selection, item] : [item]));
      },
      doubleTap: (x, y) => app.run(this.toggle(this.at(x, y))),
      hover: (x, y) => this.renderer.setPaint({ hovered: x < 0 ? -1 : this.renderer.hitBox(x, y) }),
    });
    new ResizeObserver(() => this.renderer.resize()).observe(this.canvas);
  }

  get open(): boolean {
    return !this.element.hidden;
  }

  /** The stage that is drawn, or -1. */
  get stage(): number {
    return this.app.compare === 'split' ? (this.app.shown?.changes?.before ?? -1) : -1;
  }

  get busy(): boolean {
    return this.open && this.renderer.busy();
  }

  state(): Record<string, unknown> | null {
    if (!this.open || !this.picture) return null;
    return {
      stage: this.app.captures[this.app.capture]!.stages[this.stage]!.name,
      boxCount: this.picture.scene.boxes.count,
      selection: this.selection,
    };
  }

  private ask<K extends keyof Calls>(call: K, ...args: Parameters<Calls[K]>): Promise<ReturnType<Calls[K]>> {
    return this.app.client.aside(this.stage, this.app.stage, call, args) as Promise<ReturnType<Calls[K]>>;
  }

  private at(x: number, y: number): number {
    const box = this.renderer.hitBox(x, y);
    return box >= 0 ? this.picture!.scene.boxes.item[box]! : -1;
  }

  /** Draw the stage before, or hide it. */
  async show(): Promise<void> {
    const { app } = this;
    const stage = this.stage;
    const was = this.open;
    this.element.hidden = stage < 0;
    app.root.classList.toggle('splitting', stage >= 0);
    if (stage < 0) {
      this.shownFor = '';
      return;
    }
    this.renderer.setTheme(app.theme);
    this.label.textContent = app.captures[app.capture]!.stages[stage]!.name;
    const key = `${app.capture}/${stage}/${JSON.stringify(app.viewOptions)}`;
    this.draw((await this.ask('stage', app.capture, stage, app.viewOptions)) as Picture);
    if (key !== this.shownFor || !was) this.fit();
    this.shownFor = key;
    await this.mark(await this.counterparts());
  }

  private draw(picture: Picture): void {
    const before = this.picture;
    this.picture = picture;
    this.renderer.setScene(picture.scene, picture.index, before?.scene);
    this.renderer.setPaint({ change: picture.change, changed: picture.changed, fill: fillsOf(picture, this.app.theme) });
  }

  /** The same size as the picture beside it, from the top. */
  private fit(): void {
    const scene = this.picture!.scene;
    const { camera } = this.renderer;
    camera.resize(this.canvas.clientWidth, this.canvas.clientHeight);
    const whole = camera.fitOf({ x: 0, y: 0, width: scene.width, height: scene.height }, 36);
    const zoom = Math.max(whole.zoom, Math.min(0.6, (camera.screen.width - 48) / Math.max(1, scene.width)));
    const y = zoom > whole.zoom ? camera.screen.height / 2 / zoom - 48 / zoom : whole.y;
    camera.set({ ...whole, y, zoom });
  }

  private async counterparts(): Promise<number[]> {
    const { app } = this;
    if (!app.selection.length) return [];
    const paths = await app.client.across(app.selection.slice(0, 200), app.stage, this.stage);
    return this.ask('drawn', await this.ask('items', paths));
  }

  /** Follow what is selected in the main picture. */
  async follow(): Promise<void> {
    if (this.stage < 0 || !this.picture) return;
    const items = await this.counterparts();
    if (items.length) await this.reveal(items);
    await this.mark(items);
  }

  private async mark(items: number[]): Promise<void> {
    this.selection = items;
    const boxes = items.length ? await this.ask('boxes', items) : [];
    this.renderer.setPaint({ selected: new Set(boxes) });
  }

  private async reveal(items: number[]): Promise<void> {
    const boxes = this.picture!.scene.boxes;
    if (items.some((item) => !boxes.item.includes(item))) this.draw((await this.ask('reveal', items)) as Picture);
    const all = this.picture!.scene.boxes;
    const shown = await this.ask('boxes', items);
    if (!shown.length) return;
    const [x, y] = [Math.min(...shown.map((b) => all.x[b]!)), Math.min(...shown.map((b) => all.y[b]!))];
    const right = Math.max(...shown.map((b) => all.x[b]! + all.width[b]!));
    const below = Math.max(...shown.map((b) => all.y[b]! + all.height[b]!));
    void this.renderer.camera.reveal({ x, y, width: right - x, height: below - y });
  }

  /** Select operators of the stage before; the main picture follows with what became of them. */
  async select(items: number[]): Promise<void> {
    const { app } = this;
    const wanted = await this.ask('drawn', items);
    const paths = await this.ask('across', wanted, this.stage, app.stage);
    const there = await app.client.drawn(await app.client.items(paths));
    await app.select([...new Set(there)], there.length > 0);
    await this.reveal(wanted);
    await this.mark(wanted);
  }

  private async toggle(item: number): Promise<void> {
    const box = this.picture?.scene.boxes.item.indexOf(item) ?? -1;
    if (box < 0) return;
    const kind = this.picture!.scene.boxes.kind[box]!;
    if (kind === BoxKind.Op || kind === BoxKind.Input || kind === BoxKind.Loss) return;
    this.draw(
      (await this.ask(
        kind === BoxKind.Folded ? 'unfold' : 'open',
        ...((kind === BoxKind.Folded ? [item] : [[item], kind !== BoxKind.Open]) as never),
      )) as Picture,
    );
    await this.mark(this.selection);
  }
}
