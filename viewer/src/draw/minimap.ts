// A small picture of the whole graph with the part on the screen; drag in it to move. It hides itself when
// everything is in view.
import type { Fill, Scene } from '../scene.ts';
import type { Camera } from './camera.ts';
import { markChanges } from './changes.ts';
import { frameOf, noPaint } from './frame.ts';
import { Fitter } from './label.ts';
import { paintOverview } from './overview.ts';
import { Pixels } from './pixels.ts';
import type { Renderer } from './renderer.ts';
import { roundRect } from './shapes.ts';
import type { Theme } from './theme.ts';
import type { Rect, Size, View } from './viewport.ts';
import { fitted, toScreen, toWorld } from './viewport.ts';

const MARGIN = 6;
/** Boxes from a graph that is ten times longer than wide stay a few pixels wide. */
const LEAST = { width: 72, height: 56 } as const;

/** The size of a map for a graph: its shape, within the most that is allowed. */
export function mapSize(graph: Size, most: Size): Size {
  const scale = Math.min(most.width / Math.max(1, graph.width), most.height / Math.max(1, graph.height));
  return {
    width: Math.round(Math.min(most.width, Math.max(LEAST.width, graph.width * scale))),
    height: Math.round(Math.min(most.height, Math.max(LEAST.height, graph.height * scale))),
  };
}

/** True when all of the graph is on the screen. */
export function allInView(graph: Size, seen: Rect): boolean {
  return seen.x <= 0 && seen.y <= 0 && seen.x + seen.width >= graph.width && seen.y + seen.height >= graph.height;
}

export class Minimap {
  /** The canvas, to be put on the page; it is hidden when there is nothing to say. */
  readonly element: HTMLCanvasElement;
  #ctx: CanvasRenderingContext2D;
  #renderer: Renderer;
  #camera: Camera;
  #theme: Theme;
  #picture: HTMLCanvasElement | null = null;
  #view: View = { x: 0, y: 0, zoom: 1 };
  #size: Size = { width: 1, height: 1 };
  #most: Size;
  #drawnFor: Size = { width: 0, height: 0 };
  #frame = 0;
  #fill: Fill | null = null;

  constructor(renderer: Renderer, most: Size = { width: 200, height: 170 }) {
    this.element = document.createElement('canvas');
    this.element.className = 'minimap';
    this.element.setAttribute('aria-hidden', 'true');
    this.element.style.touchAction = 'none';
    this.element.hidden = true;
    this.#ctx = this.element.getContext('2d')!;
    this.#renderer = renderer;
    this.#camera = renderer.camera;
    this.#theme = renderer.theme;
    this.#most = most;
    this.#camera.listen(() => this.draw());
    renderer.listen(() => {
      this.#picture = null;
      this.draw();
    });
    this.#listen();
  }

  setTheme(theme: Theme): void {
    this.#theme = theme;
    this.#picture = null;
    this.draw();
  }

  draw(): void {
    if (this.#frame === 0) {
      this.#frame = requestAnimationFrame(() => {
        this.#frame = 0;
        this.#paint();
      });
    }
  }

  #paint(): void {
    const { scene } = this.#renderer;
    const hidden = scene.boxes.count === 0 || allInView(scene, this.#camera.visible());
    if (this.element.hidden !== hidden) this.element.hidden = hidden;
    if (hidden) return;
    if (this.#drawnFor.width !== this.#camera.screen.width || this.#drawnFor.height !== this.#camera.screen.height) this.#picture = null;
    // It has the colours of the drawing.
    if (this.#fill !== this.#renderer.paint.fill) this.#picture = null;
    this.#fill = this.#renderer.paint.fill;
    this.#picture ??= this.#drawPicture(scene);
    const ctx = this.#ctx;
    const ratio = this.element.width / this.#size.width;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, this.element.width, this.element.height);
    ctx.drawImage(this.#picture, 0, 0);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const seen = this.#camera.visible();
    const a = toScreen(this.#view, this.#size, seen.x, seen.y);
    const b = toScreen(this.#view, this.#size, seen.x + seen.width, seen.y + seen.height);
    const [x0, y0] = [Math.max(1, a.x), Math.max(1, a.y)];
    const [x1, y1] = [Math.min(this.#size.width - 1, b.x), Math.min(this.#size.height - 1, b.y)];
    const [w, h] = [Math.max(5, x1 - x0), Math.max(5, y1 - y0)];
    roundRect(ctx, Math.min(x0, this.#size.width - 6), Math.min(y0, this.#size.height - 6), w, h, 3);
    ctx.globalAlpha = 0.14;
    ctx.fillStyle = this.#theme.viewport;
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.strokeStyle = this.#theme.viewport;
    ctx.lineWidth = 1.5;
    ctx.stroke();
  }

  /** The graph itself, drawn once per scene and theme. */
  #drawPicture(scene: Scene): HTMLCanvasElement {
    const ratio = globalThis.devicePixelRatio || 1;
    const { screen } = this.#camera;
    this.#drawnFor = screen;
    this.#size = mapSize(scene, {
      width: Math.min(this.#most.width, Math.max(LEAST.width, screen.width / 7)),
      height: Math.min(this.#most.height, Math.max(LEAST.height, screen.height / 5)),
    });
    const { width, height } = this.#size;
    this.#view = fitted({ x: 0, y: 0, width: scene.width, height: scene.height }, this.#size, MARGIN, 1);
    this.element.width = Math.round(width * ratio);
    this.element.height = Math.round(height * ratio);
    this.element.style.width = `${width}px`;
    this.element.style.height = `${height}px`;
    const picture = document.createElement('canvas');
    picture.width = this.element.width;
    picture.height = this.element.height;
    const ctx = picture.getContext('2d')!;
    paintOverview(
      frameOf({
        ctx,
        scene,
        index: this.#renderer.index,
        theme: this.#theme,
        paint: { ...noPaint(), fill: this.#renderer.paint.fill },
        marks: new Uint8Array(0),
        fitter: new Fitter(scene),
        pixels: new Pixels(),
        screen: this.#size,
        ratio,
        still: true,
        view: this.#view,
      }),
    );
    markChanges(ctx, scene, this.#renderer.paint.change, this.#theme, (x, y) => toScreen(this.#view, this.#size, x, y));
    return picture;
  }

  #listen(): void {
    let grip: { dx: number; dy: number } | null = null;
    const at = (event: PointerEvent): { x: number; y: number } => {
      const box = this.element.getBoundingClientRect();
      return toWorld(this.#view, this.#size, event.clientX - box.left, event.clientY - box.top);
    };
    const move = (event: PointerEvent): void => {
      if (grip === null) return;
      const here = at(event);
      this.#camera.set({ x: here.x + grip.dx, y: here.y + grip.dy, zoom: this.#camera.view.zoom });
    };
    this.element.addEventListener('pointerdown', (event) => {
      this.element.setPointerCapture(event.pointerId);
      const here = at(event);
      const seen = this.#camera.visible();
      const inside = here.x >= seen.x && here.x <= seen.x + seen.width && here.y >= seen.y && here.y <= seen.y + seen.height;
      // Taken by the rectangle it follows the pointer; beside it, it jumps there.
      const { x, y } = this.#camera.view;
      grip = inside ? { dx: x - here.x, dy: y - here.y } : { dx: 0, dy: 0 };
      event.preventDefault();
      move(event);
    });
    this.element.addEventListener('pointermove', move);
    for (const end of ['pointerup', 'pointercancel'] as const) this.element.addEventListener(end, () => (grip = null));
  }
}
