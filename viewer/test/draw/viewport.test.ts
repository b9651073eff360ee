import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Camera } from '../../src/draw/camera.ts';
import { WheelReader } from '../../src/draw/gestures.ts';
import { allInView, mapSize } from '../../src/draw/minimap.ts';
import { MOST_PIXELS, MOST_SIDE, pictureOf } from '../../src/draw/png.ts';
import { between, ease, fitted, panned, toScreen, toWorld, visible, zoomedAt } from '../../src/draw/viewport.ts';

const place = fc.double({ min: -1e5, max: 1e5, noNaN: true });
const zoom = fc.double({ min: 0.01, max: 4, noNaN: true });
const view = fc.record({ x: place, y: place, zoom });
const screen = { width: 1600, height: 1000 };
const pixel = fc.double({ min: 0, max: 1600, noNaN: true });

describe('views', () => {
  it('go to the world and back', () => {
    fc.assert(
      fc.property(view, pixel, pixel, (v, x, y) => {
        const world = toWorld(v, screen, x, y);
        const back = toScreen(v, screen, world.x, world.y);
        expect(back.x).toBeCloseTo(x, 4);
        expect(back.y).toBeCloseTo(y, 4);
      }),
    );
  });

  it('zoom at the pointer: what is under it stays', () => {
    fc.assert(
      fc.property(view, pixel, pixel, zoom, (v, x, y, z) => {
        const before = toWorld(v, screen, x, y);
        const after = toWorld(zoomedAt(v, screen, x, y, z), screen, x, y);
        expect(after.x).toBeCloseTo(before.x, 3);
        expect(after.y).toBeCloseTo(before.y, 3);
      }),
    );
  });

  it('pan by pixels', () => {
    const at = toScreen(panned({ x: 5, y: 6, zoom: 0.5 }, 30, -40), screen, 5, 6);
    expect(at).toEqual({ x: 830, y: 460 });
  });

  it('fit a rectangle, with its margin, in the middle', () => {
    fc.assert(
      fc.property(
        place,
        place,
        fc.double({ min: 1, max: 1e6, noNaN: true }),
        fc.double({ min: 1, max: 1e6, noNaN: true }),
        (x, y, width, height) => {
          const seen = visible(fitted({ x, y, width, height }, screen, 40, 10), screen);
          const slack = 1e-6 * Math.max(1e5, width, height);
          expect(seen.x).toBeLessThanOrEqual(x + slack);
          expect(seen.y).toBeLessThanOrEqual(y + slack);
          expect(seen.x + seen.width).toBeGreaterThanOrEqual(x + width - slack);
          expect(seen.y + seen.height).toBeGreaterThanOrEqual(y + height - slack);
        },
      ),
    );
  });

  it('move between two views along a straight line of the screen', () => {
    const [a, b] = [
      { x: 0, y: 0, zoom: 1 },
      { x: 300, y: 100, zoom: 0.25 },
    ];
    expect(between(a, b, 0)).toEqual(a);
    expect(between(a, b, 1)).toEqual(b);
    const half = between(a, b, 0.5);
    expect(half.zoom).toBeCloseTo(0.5);
    // One world point does not move at all: the fixed point of the zoom.
    const fixed = { x: (b.x * b.zoom - a.x * a.zoom) / (b.zoom - a.zoom), y: (b.y * b.zoom - a.y * a.zoom) / (b.zoom - a.zoom) };
    expect(toScreen(half, screen, fixed.x, fixed.y).x).toBeCloseTo(toScreen(a, screen, fixed.x, fixed.y).x);
    expect(between({ x: 0, y: 0, zoom: 1 }, { x: 10, y: 0, zoom: 1 }, 0.5).x).toBeCloseTo(5);
    expect([ease(0), ease(0.5), ease(1)]).toEqual([0, 0.5, 1]);
  });
});

describe('Camera', () => {
  it('keeps what the eye holds in place when things move', () => {
    const camera = new Camera();
    camera.resize(1600, 1000);
    camera.set({ x: 50, y: 60, zoom: 0.7 });
    const before = camera.toScreen(10, 20);
    camera.keep({ x: 10, y: 20 }, { x: 400, y: -30 });
    expect(camera.toScreen(400, -30).x).toBeCloseTo(before.x);
    expect(camera.toScreen(400, -30).y).toBeCloseTo(before.y);
  });

  it('keeps the top where it is when a panel opens below, and the middle when one opens beside', () => {
    const camera = new Camera();
    camera.resize(1600, 1000);
    camera.set({ x: 50, y: 60, zoom: 0.7 });
    const before = camera.toScreen(10, 20);
    camera.resize(1600, 600);
    expect(camera.toScreen(10, 20)).toEqual(before);
    camera.resize(800, 600);
    expect(camera.toScreen(camera.view.x, 20).x).toBeCloseTo(400);
    expect(camera.view.x).toBe(50);
  });

  it('draws in what is half in view, and goes no further', () => {
    const camera = new Camera();
    camera.resize(1000, 800);
    camera.set({ x: 0, y: 0, zoom: 1 });
    void camera.reveal({ x: 450, y: 0, width: 100, height: 40 }, 60, 0);
    expect(camera.view).toEqual({ x: 110, y: 0, zoom: 1 });
  });

  it('stays within its zooms, and survives numbers that are none', () => {
    const camera = new Camera();
    camera.resize(800, 600);
    camera.zoomAt(0, 0, 1e9);
    expect(camera.view.zoom).toBe(camera.maxZoom);
    camera.set({ x: NaN, y: Infinity, zoom: NaN });
    expect(camera.view).toEqual({ x: 0, y: 0, zoom: 1 });
  });

  it('moves over time, tells its listeners, and can be interrupted', async () => {
    const camera = new Camera();
    camera.resize(800, 600);
    let told = 0;
    const stop = camera.listen(() => told++);
    let done = false;
    const flight = camera.animateTo({ x: 100, y: 0, zoom: 2 }, 100).then(() => (done = true));
    expect(camera.tick(1000)).toBe(true);
    expect(camera.view.zoom).toBeCloseTo(1);
    expect(camera.tick(1050)).toBe(true);
    expect(camera.view.zoom).toBeGreaterThan(1);
    expect(camera.tick(1100)).toBe(false);
    await flight;
    expect(done).toBe(true);
    expect(camera.view).toEqual({ x: 100, y: 0, zoom: 2 });
    expect(told).toBeGreaterThan(3);
    const second = camera.animateTo({ x: 0, y: 0, zoom: 1 }, 100);
    camera.pan(1, 1);
    await second;
    expect(camera.moving).toBe(false);
    stop();
  });

  it('leaves a rectangle alone that is seen well, and goes to one that is not', () => {
    const camera = new Camera();
    camera.resize(1000, 800);
    camera.set({ x: 0, y: 0, zoom: 1 });
    void camera.reveal({ x: -50, y: -20, width: 100, height: 40 }, 60, 0);
    expect(camera.view).toEqual({ x: 0, y: 0, zoom: 1 });
    void camera.reveal({ x: 5000, y: 100, width: 100, height: 40 }, 60, 0);
    expect(camera.view).toEqual({ x: 5050, y: 120, zoom: 1 });
  });
});

describe('wheels', () => {
  const event = { deltaX: 0, deltaY: 0, deltaMode: 0, ctrlKey: false, timeStamp: 0 };
  it('a mouse zooms', () => {
    expect(new WheelReader().read({ ...event, deltaY: -120 })).toHaveProperty('zoom');
    expect(new WheelReader().read({ ...event, deltaY: 3, deltaMode: 1 })).toHaveProperty('zoom');
  });
  it('two fingers pan, and keep on panning when they are fast', () => {
    const reader = new WheelReader();
    expect(reader.read({ ...event, deltaY: 4 })).toEqual({ pan: [-0, -4] });
    expect(reader.read({ ...event, deltaY: 160, timeStamp: 16 })).toEqual({ pan: [-0, -160] });
    expect(reader.read({ ...event, deltaY: 120, timeStamp: 900 })).toHaveProperty('zoom');
  });
  it('a pinch zooms', () => {
    const meaning = new WheelReader().read({ ...event, deltaY: -5, ctrlKey: true });
    expect('zoom' in meaning && meaning.zoom).toBeGreaterThan(1);
  });
});

describe('small pictures', () => {
  it('the map has the shape of the graph, within its limits', () => {
    expect(mapSize({ width: 1000, height: 500 }, { width: 200, height: 170 })).toEqual({ width: 200, height: 100 });
    expect(mapSize({ width: 100, height: 1e6 }, { width: 200, height: 170 })).toEqual({ width: 72, height: 170 });
  });
  it('the map is for what is not in view', () => {
    expect(allInView({ width: 100, height: 50 }, { x: -1, y: -1, width: 200, height: 100 })).toBe(true);
    expect(allInView({ width: 100, height: 50 }, { x: 1, y: -1, width: 200, height: 100 })).toBe(false);
  });
  it('a PNG is never larger than a browser can make', () => {
    fc.assert(
      fc.property(fc.double({ min: 1, max: 3e6, noNaN: true }), fc.double({ min: 1, max: 3e6, noNaN: true }), (width, height) => {
        const { size } = pictureOf({ x: 0, y: 0, width, height }, 2);
        expect(Math.max(size.width, size.height)).toBeLessThanOrEqual(MOST_SIDE);
        expect(size.width * size.height).toBeLessThanOrEqual(MOST_PIXELS);
      }),
    );
  });
});
