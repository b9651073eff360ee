// A page to look at and to measure the drawing with; see harness.mjs.
import { Minimap } from '../../src/draw/minimap.ts';
import { Renderer } from '../../src/draw/renderer.ts';
import { buildIndex } from '../../src/picture/spatial.ts';
import { dark, light } from '../../src/draw/theme.ts';
import { bindGestures } from '../../src/draw/gestures.ts';
import type { Scene } from '../../src/scene.ts';
import { writeSvg } from '../../src/svg/write.ts';
import { bigScene, smallScene } from './synthetic.ts';

const ask = new URLSearchParams(location.hash.slice(1));
const size = Number(ask.get('n') ?? 0);
const scene: Scene = size > 0 ? bigScene(size) : smallScene(ask.get('direction') === 'right' ? 'right' : 'down');
const began = performance.now();
const index = buildIndex(scene);
const built = performance.now() - began;
const theme = ask.get('theme') === 'dark' ? dark : light;
document.body.style.cssText = `margin:0;overflow:hidden;background:${theme.background}`;
if (ask.has('svg')) {
  document.body.innerHTML = writeSvg(scene, theme, { selected: new Set([6]), edgeLabels: 'always' });
} else {
  const canvas = document.createElement('canvas');
  canvas.style.cssText = 'position:absolute;inset:0;width:100vw;height:100vh';
  document.body.append(canvas);
  const renderer = new Renderer(canvas, theme);
  const map = new Minimap(renderer);
  map.element.style.cssText += `;position:absolute;right:12px;bottom:12px;border:1px solid ${theme.panelBorder};border-radius:8px`;
  document.body.append(map.element);
  const draw = (): void => {
    renderer.setScene(scene, index);
    if (ask.has('lit')) renderer.setMarks(scene, { selected: new Set([6]), related: new Set([7, 9]), found: new Set([10, 3]), hovered: 8 });
    if (ask.has('lit')) renderer.setPaint({ dim: ask.get('lit') === 'dim' });
    if (ask.has('labels')) renderer.setPaint({ edgeLabels: 'always', edgeWidth: 'bytes' });
    if (ask.has('heat'))
      renderer.setMarks(scene, {
        fill: {
          colours: Array.from({ length: 240 }, (_, k) =>
            k % 5 === 0 ? null : `hsl(${240 - ((k * 37) % 240)} 70% ${45 + ((k * 13) % 30)}%)`,
          ),
          of: Uint8Array.from({ length: scene.boxes.count }, (_, b) => b % 240),
        },
      });
    if (ask.has('edge')) renderer.setPaint({ hoveredEdge: Number(ask.get('edge')) });
  };
  renderer.resize();
  draw();
  void renderer.camera.fit({ x: 0, y: 0, width: scene.width, height: scene.height });
  if (ask.has('zoom'))
    renderer.camera.set({
      x: Number(ask.get('x') ?? scene.width / 2),
      y: Number(ask.get('y') ?? scene.height / 2),
      zoom: Number(ask.get('zoom')),
    });
  bindGestures(canvas, renderer.camera, {
    hover: (x, y) => renderer.setPaint({ hovered: x < 0 ? -1 : renderer.hitBox(x, y), hoveredEdge: x < 0 ? -1 : renderer.hitEdge(x, y) }),
    tap: (x, y) => renderer.setMarks(scene, { selected: new Set([renderer.hitBox(x, y)]) }),
  });
  addEventListener('resize', () => renderer.resize());
  Object.assign(globalThis, {
    renderer,
    scene,
    built,
    smallScene,
    buildIndex,
    /** Moves for `count` frames: pans in circles, or zooms in and out. */
    async move(kind: 'pan' | 'zoom', count: number): Promise<number[]> {
      const start = renderer.camera.view;
      renderer.frames.length = 0;
      for (let i = 0; i < count; i++) {
        const wave = Math.sin((i / 20) * Math.PI);
        renderer.camera.set(
          kind === 'pan'
            ? { ...start, x: start.x + (wave * 200) / start.zoom, y: start.y + (i * 4) / start.zoom }
            : { ...start, zoom: start.zoom * (1 + 0.2 * wave) },
        );
        await new Promise(requestAnimationFrame);
      }
      renderer.camera.set(start);
      return renderer.frames.slice();
    },
  });
}
