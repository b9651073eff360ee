// Before | after: the stage that this one was made from, drawn beside it under one camera, counterparts in one row. What is
// selected or opened in one is so in the other.

import { bindGestures } from '../draw/gestures.ts';
import { Renderer } from '../draw/renderer.ts';
import { paintRibbons } from '../draw/ribbons.ts';
import type { Aside, Beside, Calls, Picture } from '../engine/messages.ts';
import { BoxKind } from '../scene.ts';
import { h } from '../widgets/dom.ts';
import { about, around, draw, shiftOf } from './drawing.ts';
import type { Page } from './page.ts';
import { changeFill } from './painting.ts';
import { select } from './selecting.ts';

const MOST_FOLLOWED = 200; // selected items that are looked for in the other stage

export class SplitPane {
  private canvas = h('canvas', { class: 'pane-graph', tabindex: 0, role: 'application', 'data-key': 'before' });
  private ribbons = h('canvas', { class: 'ribbons', 'aria-hidden': 'true' });
  private labels = [h('div', { class: 'pane-label' }), h('div', { class: 'pane-label now' })] as const;
  private renderer: Renderer;
  private shown: Beside | null = null;
  private selection: number[] = [];
  /** What is selected here alone. */
  private only = false;
  private apart = 0; // how far the middle of this drawing is from that of the other
  private frame = 0;

  constructor(private page: Page) {
    const { state, views, places, renderer } = page;
    places.before.append(this.canvas, this.labels[0]);
    places.canvas.after(this.labels[1]);
    places.before.parentElement!.append(this.ribbons);
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
      hover: (x, y) => {
        this.renderer.setPaint({ hovered: x < 0 ? -1 : this.renderer.hitBox(x, y) });
        this.soon();
      },
    });
    this.canvas.addEventListener('keydown', (event) => this.key(event));
    new ResizeObserver(() => (this.renderer.resize(), this.soon())).observe(this.canvas);
    renderer.camera.listen(() => this.steer(renderer, this.renderer, -this.apart));
    this.renderer.camera.listen(() => this.steer(this.renderer, renderer, this.apart));
    views.add(
      'stage before',
      () => [state.picture.get(), state.theme.get(), page.words(), state.shown.get()] as const,
      ([picture]) => this.show(picture?.beside ?? null),
    );
    views.add(
      'selection in the stage before',
      () => [state.selection.get(), state.picture.get()] as const,
      () => this.follow(),
    );
    views.add(
      'ribbons',
      () => [state.selection.get(), state.pointer.get()] as const,
      () => this.soon(),
    );
  }

  get open(): boolean {
    return this.shown !== null;
  }

  get busy(): boolean {
    return this.open && (this.renderer.busy() || this.frame !== 0);
  }

  /** For scripts. */
  describe(): Record<string, unknown> | null {
    if (!this.shown) return null;
    const { picture, stage, ribbons, pairs } = this.shown;
    const now = this.page.state.picture.get()!.scene.boxes;
    const then = picture.scene.boxes;
    const at = picture.scene.direction === 'down' ? ('y' as const) : ('x' as const);
    let level = 0;
    for (let i = 0; i < pairs.length; i += 2) if (Math.abs(then[at][pairs[i]!]! - now[at][pairs[i + 1]!]!) < 1) level++;
    return {
      stage: this.page.state.info.get()!.stages[stage]!.name,
      boxCount: then.count,
      selection: this.selection,
      pairs: pairs.length / 2,
      level,
      ribbons: ribbons.map(({ kind, number, count, before, after }) => ({ kind, number, count, sizes: [before.length, after.length] })),
      view: this.renderer.camera.view,
    };
  }

  private ask<K extends Aside>(call: K, ...args: Parameters<Calls[K]>): Promise<ReturnType<Calls[K]>> {
    return this.page.client.aside(this.shown!.stage, call, args) as Promise<ReturnType<Calls[K]>>;
  }

  /** The boxes here that show these items. */
  private async boxesOf(items: number[]): Promise<number[]> {
    if (!this.shown) return [];
    const answer = await this.ask('boxes', items);
    return about(this.shown?.picture ?? null, answer) ?? [];
  }

  private at(x: number, y: number): number {
    const box = this.renderer.hitBox(x, y);
    return box >= 0 ? this.shown!.picture.scene.boxes.item[box]! : -1;
  }

  /** Draw the stage before, or hide it. */
  private async show(beside: Beside | null): Promise<void> {
    const { places, root, state } = this.page;
    const was = this.shown;
    this.shown = beside;
    places.before.hidden = this.ribbons.hidden = !beside;
    root.classList.toggle('splitting', beside !== null);
    if (!beside) return;
    const [before, now] = this.labels;
    const stages = state.info.get()!.stages;
    before.textContent = stages[beside.stage]!.name;
    now.textContent = state.shown.get()!.name;
    this.canvas.setAttribute('aria-label', this.page.words().paneBefore(before.textContent));
    this.renderer.setTheme(state.theme.get());
    this.renderer.resize();
    this.draw(beside.picture, was?.picture);
    this.align();
    await this.mark(this.selection.length || state.selection.get().length ? await this.counterparts() : []);
  }

  private draw(picture: Picture, before?: Picture): void {
    this.renderer.setScene(picture.scene, picture.index, before?.scene);
    const fill = changeFill(picture, this.page.state.theme.get());
    this.renderer.setMarks(picture.scene, { change: picture.change, changed: picture.changed, numbers: picture.numbers ?? null, fill });
  }

  /** One camera: the same rows at the same size. */
  private align(): void {
    const { renderer, state } = this.page;
    renderer.resize();
    const { camera } = renderer;
    this.apart = shiftOf(state.picture.get()!, camera);
    this.renderer.camera.minZoom = camera.minZoom = Math.min(camera.minZoom, this.renderer.camera.minZoom);
    this.steer(renderer, this.renderer, -this.apart);
  }

  private steering = false;

  private steer(from: Renderer, to: Renderer, apart: number): void {
    if (!this.open || this.steering) return;
    this.steering = true;
    const { x, y, zoom } = from.camera.view;
    to.camera.set({ x: x + apart, y, zoom });
    this.steering = false;
    this.soon();
  }

  private soon(): void {
    if (this.open && !this.frame) this.frame = requestAnimationFrame(() => this.paint());
  }

  private paint(): void {
    this.frame = 0;
    if (!this.shown) return;
    const { renderer, state, places } = this.page;
    const panes = this.ribbons.parentElement!;
    const ratio = devicePixelRatio || 1;
    const [width, height] = [panes.clientWidth, panes.clientHeight];
    if (this.ribbons.width !== width * ratio || this.ribbons.height !== height * ratio)
      [this.ribbons.width, this.ribbons.height] = [width * ratio, height * ratio];
    const ctx = this.ribbons.getContext('2d')!;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const start = panes.getBoundingClientRect().left;
    const pane = ({ camera, scene, paint }: Renderer, canvas: HTMLElement) => ({
      scene,
      camera,
      left: canvas.getBoundingClientRect().left - start,
      lit: new Set([...paint.selected, paint.hovered]),
    });
    if (state.picture.get()?.beside !== this.shown) return; // another is on its way
    paintRibbons(ctx, { width, height }, [pane(this.renderer, this.canvas), pane(renderer, places.canvas)], this.shown, state.theme.get());
  }

  private async counterparts(): Promise<number[]> {
    const { state, client } = this.page;
    const selection = state.selection.get().slice(0, MOST_FOLLOWED);
    if (!selection.length) return [];
    return this.ask('drawn', await this.ask('items', await client.across(selection, state.stage.get(), this.shown!.stage)));
  }

  /** Follow what is selected in the main picture. What the main picture has not is left selected here. */
  private async follow(): Promise<void> {
    if (!this.shown) return;
    const items = await this.counterparts();
    if (!items.length && this.only) return;
    await this.mark(items);
  }

  private async mark(items: number[]): Promise<void> {
    this.selection = items;
    const boxes = items.length ? await this.boxesOf(items) : [];
    if (this.shown) this.renderer.setMarks(this.shown.picture.scene, { selected: new Set(boxes) });
    this.soon();
  }

  private async reveal(items: number[]): Promise<void> {
    const isOut = () => items.some((item) => !this.shown!.picture.scene.boxes.item.includes(item));
    if (isOut()) await this.change('reveal', items);
    const boxes = await this.boxesOf(items);
    if (boxes.length) void this.renderer.camera.reveal(around(this.shown!.picture.scene, boxes));
  }

  private async change(call: 'open' | 'unfold' | 'reveal', ...args: unknown[]): Promise<void> {
    draw(this.page, await this.page.client.beside(call, args));
    this.page.views.run();
  }

  /** Select operators of the stage before; the main picture follows with what became of them. */
  async select(items: number[]): Promise<void> {
    if (!this.shown) return;
    const { page } = this;
    const wanted = await this.ask('drawn', items);
    const paths = await this.ask('across', wanted, this.shown.stage, page.state.stage.get());
    const there = await page.client.drawn(await page.client.items(paths));
    this.only = true;
    await select(page, [...new Set(there)], there.length > 0);
    page.views.run(); // before what it makes of the selection, what is wanted
    await this.reveal(wanted);
    await this.mark(wanted);
    this.only = false;
  }

  private async toggle(item: number): Promise<void> {
    const { boxes } = this.shown?.picture.scene ?? {};
    const box = boxes?.item.indexOf(item) ?? -1;
    if (!boxes || box < 0) return;
    const kind = boxes.kind[box]!;
    if (kind === BoxKind.Op || kind === BoxKind.Input || kind === BoxKind.Loss) return;
    await (kind === BoxKind.Folded ? this.change('unfold', item) : this.change('open', [item], kind !== BoxKind.Open));
    await this.mark(this.selection);
  }

  /** Enter opens what is selected here. */
  private key(event: KeyboardEvent): void {
    const item = this.selection.at(-1);
    if (event.key !== 'Enter' || item === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.page.run(this.toggle(item));
  }
}
