// Before | after: the stage that this one was made from, drawn beside it. What is selected in one is selected in the other.

import { bindGestures } from '../draw/gestures.ts';
import { Renderer } from '../draw/renderer.ts';
import type { Theme } from '../draw/theme.ts';
import type { Aside, Calls, Picture, ViewOptions } from '../engine/messages.ts';
import { BoxKind } from '../scene.ts';
import { h } from '../widgets/dom.ts';
import { around } from './drawing.ts';
import type { Page } from './page.ts';
import { changeFill } from './painting.ts';
import { select } from './selecting.ts';

const MOST_FOLLOWED = 200; // selected items that are looked for in the other stage

export class SplitPane {
  private canvas = h('canvas', { class: 'pane-graph', tabindex: 0, role: 'application', 'aria-label': 'before' });
  private label = h('div', { class: 'pane-label' });
  private renderer: Renderer;
  private picture: Picture | null = null;
  private shownFor = '';
  private selection: number[] = [];

  constructor(private page: Page) {
    const { state, views, places } = page;
    places.before.append(this.canvas, this.label);
    this.renderer = new Renderer(this.canvas, state.theme.get());
    page.drawing.push(this);
    bindGestures(this.canvas, this.renderer.camera, {
      tap: (x, y, event) => {
        const item = this.at(x, y);
        this.canvas.focus();
        if (item < 0) page.run(select(page, [], false));
        else page.run(this.select(event.shiftKey ? [...this.selection, item] : [item]));
      },
      doubleTap: (x, y) => page.run(this.toggle(this.at(x, y))),
      hover: (x, y) => this.renderer.setPaint({ hovered: x < 0 ? -1 : this.renderer.hitBox(x, y) }),
    });
    new ResizeObserver(() => this.renderer.resize()).observe(this.canvas);
    views.add(
      'stage before',
      () => [this.stage, state.shown.get(), state.options.get(), state.theme.get(), page.words()] as const,
      ([stage, , options, theme]) => this.show(stage, options, theme),
    );
    views.add(
      'selection in the stage before',
      () => [state.selection.get(), this.stage] as const,
      () => this.follow(),
    );
  }

  get open(): boolean {
    return !this.page.places.before.hidden;
  }

  /** The stage that is drawn, or -1. */
  private get stage(): number {
    const { compare, shown } = this.page.state;
    return compare.get() === 'split' ? (shown.get()?.changes?.before ?? -1) : -1;
  }

  get busy(): boolean {
    return this.open && this.renderer.busy();
  }

  /** For scripts. */
  describe(): Record<string, unknown> | null {
    if (!this.open || !this.picture || this.stage < 0) return null;
    return {
      stage: this.page.state.info.get()!.stages[this.stage]!.name,
      boxCount: this.picture.scene.boxes.count,
      selection: this.selection,
    };
  }

  private ask<K extends Aside>(call: K, ...args: Parameters<Calls[K]>): Promise<ReturnType<Calls[K]>> {
    return this.page.client.aside(this.stage, this.page.state.stage.get(), call, args) as Promise<ReturnType<Calls[K]>>;
  }

  private at(x: number, y: number): number {
    const box = this.renderer.hitBox(x, y);
    return box >= 0 ? this.picture!.scene.boxes.item[box]! : -1;
  }

  /** Draw the stage before, or hide it. */
  private async show(stage: number, options: ViewOptions, theme: Theme): Promise<void> {
    const { places, root, state } = this.page;
    const was = this.open;
    places.before.hidden = stage < 0;
    root.classList.toggle('splitting', stage >= 0);
    if (stage < 0) {
      this.shownFor = '';
      return;
    }
    this.renderer.setTheme(theme);
    this.label.textContent = state.info.get()!.stages[stage]!.name;
    const key = `${state.capture.get()}/${stage}/${JSON.stringify(options)}`;
    this.draw(await this.ask('stage', state.capture.get(), stage, options));
    if (key !== this.shownFor || !was) this.fit();
    this.shownFor = key;
    await this.mark(await this.counterparts());
  }

  private draw(picture: Picture): void {
    const before = this.picture;
    this.picture = picture;
    this.renderer.setScene(picture.scene, picture.index, before?.scene);
    this.renderer.setPaint({ change: picture.change, changed: picture.changed, fill: changeFill(picture, this.page.state.theme.get()) });
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
    const { state, client } = this.page;
    const selection = state.selection.get().slice(0, MOST_FOLLOWED);
    if (!selection.length) return [];
    return this.ask('drawn', await this.ask('items', await client.across(selection, state.stage.get(), this.stage)));
  }

  /** Follow what is selected in the main picture. What the main picture has not is left selected here. */
  private async follow(): Promise<void> {
    if (this.stage < 0 || !this.picture) return;
    const items = await this.counterparts();
    if (!items.length && this.only) return;
    if (items.length) await this.reveal(items);
    await this.mark(items);
  }

  /** What is selected here alone. */
  private only = false;

  private async mark(items: number[]): Promise<void> {
    this.selection = items;
    const boxes = items.length ? await this.ask('boxes', items) : [];
    this.renderer.setPaint({ selected: new Set(boxes) });
  }

  private async reveal(items: number[]): Promise<void> {
    const boxes = this.picture!.scene.boxes;
    if (items.some((item) => !boxes.item.includes(item))) this.draw(await this.ask('reveal', items));
    const shown = await this.ask('boxes', items);
    if (shown.length) void this.renderer.camera.reveal(around(this.picture!.scene, shown));
  }

  /** Select operators of the stage before; the main picture follows with what became of them. */
  async select(items: number[]): Promise<void> {
    const { page } = this;
    const wanted = await this.ask('drawn', items);
    const paths = await this.ask('across', wanted, this.stage, page.state.stage.get());
    const there = await page.client.drawn(await page.client.items(paths));
    this.only = true;
    await select(page, [...new Set(there)], there.length > 0);
    page.views.run(); // before what it makes of the selection, what is wanted
    await this.reveal(wanted);
    await this.mark(wanted);
    this.only = false;
  }

  private async toggle(item: number): Promise<void> {
    const { boxes } = this.picture?.scene ?? {};
    const box = boxes?.item.indexOf(item) ?? -1;
    if (!boxes || box < 0) return;
    const kind = boxes.kind[box]!;
    if (kind === BoxKind.Op || kind === BoxKind.Input || kind === BoxKind.Loss) return;
    this.draw(await (kind === BoxKind.Folded ? this.ask('unfold', item) : this.ask('open', [item], kind !== BoxKind.Open)));
    await this.mark(this.selection);
  }
}
