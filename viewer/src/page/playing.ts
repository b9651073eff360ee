// A run to watch: a bead goes from box to box in the order of execution while the curve of what is in memory grows.

import { reducedMotion } from '../draw/camera.ts';
import type { Theme } from '../draw/theme.ts';
import { paintBead, paintMemory } from '../draw/play.ts';
import { PLAY_SECONDS, STRIP, type Run } from '../picture/play.ts';
import { bytesText } from '../text/figures.ts';
import { h } from '../widgets/dom.ts';
import { about, fit } from './drawing.ts';
import type { Page } from './page.ts';
import { saveFile } from './sharing.ts';
import { writeSvg } from '../svg/write.ts';

const STEPS = 1000; // of the slider
const VIDEO = { width: 1280, height: 960, rate: 30 };
const MARGIN = 24;

/** The player over the drawing, while state.playing. */
export function showPlayer(page: Page): void {
  const { state, views, places } = page;
  let stop: (() => void) | null = null;
  let seen: unknown = null;
  views.add(
    'player',
    () => [state.playing.get(), state.picture.get(), state.theme.get(), page.words()] as const,
    async ([playing]) => {
      stop?.();
      stop = null;
      page.root.classList.toggle('playing', playing);
      if (!playing || !state.picture.get()) return;
      const run = about(state.picture.get(), await page.client.playback());
      if (!run) return;
      if (state.picture.get() !== seen) fit(page, 0);
      seen = state.picture.get();
      if (state.playing.get()) stop = player(page, run, places.canvas.parentElement!);
    },
  );
}

function player(page: Page, run: Run, centre: HTMLElement): () => void {
  const { state, renderer } = page;
  const w = page.words();
  const shown = renderer.scene;
  const canvas = h('canvas', { class: 'player-canvas', 'aria-hidden': 'true' });
  const slider = h('input', { type: 'range', min: 0, max: STEPS, value: 0, 'aria-label': w.playTime, 'data-key': 'play-time' });
  let isRunning = !reducedMotion();
  const toggle = h('button', { class: 'chip', 'data-key': 'play-toggle' });
  const close = h('button', { class: 'chip', 'data-key': 'play-close', onclick: () => state.playing.set(false) }, w.close);
  const bar = h('div', { class: 'player', role: 'group', 'aria-label': w.play }, toggle, slider, close);
  centre.append(canvas, bar);
  let [frame, last, time] = [0, 0, 0];
  const paint = (): void => {
    const ratio = devicePixelRatio || 1;
    const size = { width: centre.clientWidth, height: centre.clientHeight };
    [canvas.width, canvas.height] = [size.width * ratio, size.height * ratio];
    const ctx = canvas.getContext('2d')!;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const { scene, camera } = renderer;
    if (scene !== shown) return; // another run is on its way
    paintBead(ctx, scene, run, time, state.theme.get(), (x, y) => camera.toScreen(x, y));
    paintMemory(ctx, { ...size, height: size.height - 44 }, run, time, state.theme.get(), (bytes) => `${w.inMemory} ${bytesText(bytes)}`);
  };
  const show = (): void => {
    slider.value = String(Math.round(time * STEPS));
    slider.setAttribute('aria-valuetext', `${Math.round(time * 100)} %`);
    toggle.textContent = isRunning ? w.pause : w.playNow;
    paint();
  };
  const tick = (now: number): void => {
    if (isRunning) time = (time + (now - last) / 1000 / PLAY_SECONDS) % 1;
    last = now;
    show();
    frame = isRunning ? requestAnimationFrame(tick) : 0;
  };
  const go = (on: boolean): void => {
    isRunning = on;
    last = performance.now();
    cancelAnimationFrame(frame);
    tick(last);
  };
  toggle.addEventListener('click', () => go(!isRunning));
  slider.addEventListener('input', () => {
    time = Number(slider.value) / STEPS;
    go(false);
  });
  const unlisten = renderer.camera.listen(() => isRunning || paint());
  go(isRunning);
  toggle.focus();
  return () => {
    cancelAnimationFrame(frame);
    unlisten();
    canvas.remove();
    bar.remove();
  };
}

/** The run as a file with a video. */
export async function record(page: Page, name: string): Promise<void> {
  saveFile(await video(page, page.state.theme.get()), name);
  page.say(page.words().recorded);
}

/** The run as a video, made in the time that it takes to watch it. */
export async function video(page: Page, theme: Theme): Promise<Blob> {
  const { state, client } = page;
  const w = page.words();
  const kind = ['video/webm;codecs=vp9', 'video/webm'].find(
    (type) => typeof MediaRecorder !== 'undefined' && MediaRecorder.isTypeSupported(type),
  );
  if (!kind) throw new Error(w.noVideo);
  const { scene, paint: marks } = page.renderer;
  const run = about(state.picture.get(), await client.playback());
  if (!run || scene !== page.renderer.scene) return video(page, theme); // another picture is on its way
  page.say(w.recording(PLAY_SECONDS));
  const below = run.live.length ? STRIP : 0;
  const scale = Math.min(VIDEO.width / (scene.width + 2 * MARGIN), (VIDEO.height - below) / (scene.height + 2 * MARGIN), 2);
  // Even: some players take nothing else.
  const even = (length: number) => 2 * Math.ceil(length / 2);
  const size = {
    width: even(Math.max(480, (scene.width + 2 * MARGIN) * scale)),
    height: even((scene.height + 2 * MARGIN) * scale + below),
  };
  const [left, top] = [(size.width - scene.width * scale) / 2, MARGIN * scale];
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(writeSvg(scene, theme, marks, { tooltips: false, margin: 0 }))}`;
  await image.decode();
  const canvas = h('canvas', { width: size.width, height: size.height });
  const ctx = canvas.getContext('2d')!;
  const paint = (time: number): void => {
    ctx.fillStyle = theme.background;
    ctx.fillRect(0, 0, size.width, size.height);
    ctx.drawImage(image, left, top, scene.width * scale, scene.height * scale);
    paintBead(ctx, scene, run, time, theme, (x, y) => ({ x: left + x * scale, y: top + y * scale }));
    paintMemory(ctx, size, run, time, theme, (bytes) => `${w.inMemory} ${bytesText(bytes)}`);
  };
  paint(0);
  const recorder = new MediaRecorder(canvas.captureStream(VIDEO.rate), { mimeType: kind });
  const parts: Blob[] = [];
  recorder.ondataavailable = ({ data }) => parts.push(data);
  const ended = new Promise((done) => (recorder.onstop = done));
  recorder.start();
  const begun = performance.now();
  await new Promise<void>((done) => {
    const step = (now: number): void => {
      const time = (now - begun) / 1000 / PLAY_SECONDS;
      paint(Math.max(0, Math.min(1, time)));
      if (time < 1) requestAnimationFrame(step);
      else done();
    };
    requestAnimationFrame(step);
  });
  recorder.stop();
  await ended;
  return new Blob(parts, { type: 'video/webm' });
}
