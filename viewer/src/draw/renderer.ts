// Draws a scene on a canvas, one frame when something changed.
import type { Paint, Scene } from '../scene.ts';
import { Camera, reducedMotion } from './camera.ts';
import { ghostEdges } from './changes.ts';
import type { Frame } from './frame.ts';
import { frameOf, marksOf, noPaint } from './frame.ts';
import { Fitter } from './label.ts';
import { noMarks } from './marks.ts';
import { Motion, type Kinship } from './motion.ts';
import { paintFrame } from './paint.ts';
import { Pixels } from './pixels.ts';
import { boxAt, buildIndex, edgeAt } from '../picture/spatial.ts';
import type { SceneIndex } from '../picture/spatial.ts';
import type { Theme } from './theme.ts';
import type { View } from './viewport.ts';

const KEPT_FRAMES = 240;
/** How near the pointer must be to an edge, in pixels. */
const REACH = 6;
/** Milliseconds without movement before things settle on whole pixels. */
const SETTLE = 120;

function emptyScene(): Scene {
  const [ints, floats] = [new Int32Array(0), new Float32Array(0)];
  const bytes = new Uint8Array(0);
  return {
    width: 0,
    height: 0,
    texts: [''],
    layout: 'plain',
    rows: 0,
    direction: 'down',
    boxes: {
      count: 0,
      item: ints,
      parent: ints,
      x: floats,
      y: floats,
      width: floats,
      height: floats,
      kind: bytes,
      phase: bytes,
      depth: bytes,
      title: ints,
      detail: ints,
      size: ints,
      repeat: ints,
    },
    edges: {
      count: 0,
      source: ints,
      target: ints,
      start: new Int32Array(1),
      points: floats,
      kind: bytes,
      uses: ints,
      bytes: new Float64Array(0),
      label: ints,
    },
  };
}

export class Renderer {
  readonly camera = new Camera();
  /** Milliseconds of script of the last frames. */
  readonly frames: number[] = [];
  scene: Scene = emptyScene();
  index: SceneIndex = buildIndex(this.scene);
  paint: Paint = noPaint();
  #canvas: HTMLCanvasElement;
  #ctx: CanvasRenderingContext2D;
  #theme: Theme;
  #marks: Uint8Array = new Uint8Array(0);
  #fitter = new Fitter(this.scene);
  #pixels = new Pixels();
  #edgeAlpha: Float32Array | null = null;
  #motion: Motion | null = null;
  /** The scene before, until the first frame of the new one: only then is the new view known. */
  #before: { scene: Scene; index: SceneIndex; view: View; kin?: Kinship } | null = null;
  #drawn: View = this.camera.view;
  #frame = 0;
  #settle: ReturnType<typeof setTimeout> | undefined;
  #lastMove = -Infinity;
  #done: (() => void)[] = [];
  #listeners = new Set<() => void>();

  constructor(canvas: HTMLCanvasElement, theme: Theme) {
    this.#canvas = canvas;
    // No alpha: the page behind never shines through, and the browser need not blend.
    this.#ctx = canvas.getContext('2d', { alpha: false })!;
    this.#theme = theme;
    this.camera.listen(() => {
      this.#lastMove = performance.now();
      this.draw();
    });
  }

  /** Called when another scene is shown; returns the way to stop. */
  listen(changed: () => void): () => void {
    this.#listeners.add(changed);
    return () => this.#listeners.delete(changed);
  }

  get theme(): Theme {
    return this.#theme;
  }

  /**
   * Shows another scene. With `from` (what was shown), what is in both moves to its new place. `kin` says what is in both
   * where items are renumbered.
   */
  setScene(scene: Scene, index: SceneIndex, from?: Scene, kin?: Kinship): void {
    const animate = from !== undefined && from === this.scene && from.boxes.count > 0 && !reducedMotion();
    this.#before = animate ? { scene: this.scene, index: this.index, view: this.#drawn, kin } : null;
    this.#motion = null;
    this.scene = scene;
    this.index = index;
    this.#fitter = new Fitter(scene);
    this.paint = { ...this.paint, ...noMarks() };
    this.#marks = new Uint8Array(scene.boxes.count);
    this.#edgeAlpha = null;
    const whole = this.camera.fitOf({ x: 0, y: 0, width: scene.width, height: scene.height });
    this.camera.minZoom = Math.min(0.2, whole.zoom * 0.5);
    for (const changed of this.#listeners) changed();
    this.draw();
  }

  /** Changes what is lit. Numbers of boxes and edges are those of the scene shown. */
  setPaint(paint: Partial<Paint>): void {
    this.paint = { ...this.paint, ...paint };
    if (paint.selected !== undefined || paint.related !== undefined || paint.found !== undefined) {
      this.#marks = marksOf(this.paint, this.scene.boxes.count);
    }
    if (paint.change !== undefined) this.#edgeAlpha = ghostEdges(this.scene, paint.change);
    this.draw();
  }

  setTheme(theme: Theme): void {
    this.#theme = theme;
    this.draw();
  }

  /** Takes the size of the canvas on the page. Call it when that or the screen's density changes. */
  resize(): void {
    const ratio = globalThis.devicePixelRatio || 1;
    const [width, height] = [this.#canvas.clientWidth || this.#canvas.width, this.#canvas.clientHeight || this.#canvas.height];
    const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
    if (this.#canvas.width !== w || this.#canvas.height !== h) {
      this.#canvas.width = w;
      this.#canvas.height = h;
      // An emptied canvas must not be seen.
      this.camera.resize(width, height);
      this.#paint(performance.now());
    }
    this.camera.resize(width, height);
  }

  /** Asks for a frame. */
  draw(): void {
    if (this.#frame === 0) this.#frame = requestAnimationFrame((now) => this.#tick(now));
  }

  /** True while something moves or waits to be drawn. */
  busy(): boolean {
    return this.#frame !== 0 || this.#motion !== null || this.camera.moving;
  }

  /** Resolves when nothing moves any more. */
  idle(): Promise<void> {
    return this.busy() ? new Promise((done) => this.#done.push(done)) : Promise.resolve();
  }

  /** The innermost box at a place of the canvas, or -1. Open groups count with their whole area. */
  hitBox(x: number, y: number): number {
    const at = this.camera.toWorld(x, y);
    return boxAt(this.scene, this.index, at.x, at.y);
  }

  /** The edge at a place of the canvas, or -1. */
  hitEdge(x: number, y: number): number {
    const at = this.camera.toWorld(x, y);
    // Nothing can be distinguished when boxes are a few pixels.
    return this.camera.view.zoom < 0.15 ? -1 : edgeAt(this.scene, this.index, at.x, at.y, REACH / this.camera.view.zoom);
  }

  #tick(now: number): void {
    this.#frame = 0;
    const more = this.camera.tick(now);
    this.#paint(now);
    if (more || this.#motion !== null) this.draw();
    if (this.#frame === 0) for (const done of this.#done.splice(0)) done();
  }

  #paint(now: number): void {
    const start = performance.now();
    const still = start - this.#lastMove > SETTLE;
    const frame = this.#frameFor(still);
    if (this.#before !== null) {
      const { scene, index, view, kin } = this.#before;
      this.#motion = Motion.between(scene, index, view, frame, this.camera.view, kin);
      this.#before = null;
    }
    // What stays when a movement is over is the scene itself, with all that is said of it.
    if (this.#motion?.over(now)) this.#motion = null;
    paintFrame(this.#motion?.at(now, frame) ?? frame);
    this.#drawn = this.camera.view;
    if (!still) {
      clearTimeout(this.#settle);
      this.#settle = setTimeout(() => this.draw(), SETTLE + 20);
    }
    this.frames.push(performance.now() - start);
    if (this.frames.length > KEPT_FRAMES) this.frames.splice(0, this.frames.length - KEPT_FRAMES);
  }

  #frameFor(still: boolean): Frame {
    return frameOf({
      ctx: this.#ctx,
      scene: this.scene,
      index: this.index,
      theme: this.#theme,
      paint: this.paint,
      marks: this.#marks,
      fitter: this.#fitter,
      pixels: this.#pixels,
      screen: this.camera.screen,
      ratio: globalThis.devicePixelRatio || 1,
      still,
      view: this.camera.view,
      edgeAlpha: this.#edgeAlpha,
    });
  }
}
