import { describe, expect, it } from 'vitest';
import { frameOf, marksOf, noPaint, type Context } from '../../src/draw/frame.ts';
import { Fitter } from '../../src/draw/label.ts';
import { Motion } from '../../src/draw/motion.ts';
import { Pixels } from '../../src/draw/pixels.ts';
import { light } from '../../src/draw/theme.ts';
import { fitted } from '../../src/draw/viewport.ts';
import { buildIndex } from '../../src/picture/spatial.ts';
import type { Paint, Scene } from '../../src/scene.ts';
import { smallScene } from './synthetic.ts';

/** Everything that may be said of a box or an edge says its number, counted from 1. */
function telling({ boxes, edges }: Scene): Paint {
  const numbers = Array.from({ length: boxes.count }, (_, b) => b + 1);
  return {
    ...noPaint(),
    fill: { colours: [null, ...numbers.map((n) => `#${n}`)], of: Uint8Array.from(numbers) },
    notes: numbers.map(String),
    change: Uint8Array.from(numbers),
    changed: Int32Array.from(numbers),
    numbers: Uint16Array.from(numbers),
    litEdges: Uint8Array.from({ length: edges.count }, (_, e) => e + 1),
  };
}

describe('while boxes move', () => {
  const [old, scene] = [smallScene('down', false), smallScene('down', true)];
  const paint = telling(scene);
  const screen = { width: 1400, height: 900 };
  const view = fitted({ x: 0, y: 0, width: scene.width, height: scene.height }, screen, 20, 1);
  const frame = frameOf({
    ctx: null as unknown as Context,
    scene,
    index: buildIndex(scene),
    theme: light,
    paint,
    marks: marksOf(paint, scene.boxes.count),
    fitter: new Fitter(scene),
    pixels: new Pixels(),
    screen: screen,
    ratio: 1,
    still: true,
    view,
  });

  it('all that is said of a box stays with that box, and of an edge with that edge', () => {
    const motion = Motion.between(old, buildIndex(old), view, frame, view)!;
    motion.at(0, frame);
    const moving = motion.at(1e6, frame); // where they arrive, each is at the place that it has in the new scene
    const at = ({ boxes }: Scene, b: number) => [boxes.x[b], boxes.y[b], boxes.width[b], boxes.height[b]].map((n) => Math.round(n!)).join();
    const byPlace = new Map(Array.from({ length: scene.boxes.count }, (_, b) => [at(scene, b), b]));
    const seen = new Set<number>();
    for (let i = 0; i < moving.scene.boxes.count; i++) {
      const { notes, fill, change, changed, numbers } = moving.paint;
      const said = [Number(notes![i]), fill!.of[i], change![i], changed![i], numbers![i]];
      expect(new Set(said).size).toBe(1);
      if (said[0] === 0) continue; // it goes
      expect(said[0]).toBe(byPlace.get(at(moving.scene, i))! + 1);
      seen.add(said[0]!);
    }
    expect(seen.size).toBe(scene.boxes.count);
    const line = ({ edges }: Scene, e: number) => edges.points.slice(2 * edges.start[e]!, 2 * edges.start[e + 1]!).join();
    for (let e = 0; e < moving.scene.edges.count; e++) expect(line(scene, moving.paint.litEdges![e]! - 1)).toBe(line(moving.scene, e));
  });
});
