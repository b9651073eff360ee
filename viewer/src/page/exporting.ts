// Taking something away: a picture of all, of the view or of the selection, the page as one file, a link, a run to watch.

import { light, type Theme } from '../draw/theme.ts';
import { pictureOf } from '../draw/png.ts';
import type { Rect } from '../draw/viewport.ts';
import { CHANGES, GHOST } from '../picture/changes.ts';
import { PHASES } from '../scene.ts';
import { phaseLegend, type LegendRow } from '../svg/around.ts';
import { playOver } from '../svg/play.ts';
import { writeSvg } from '../svg/write.ts';
import { h } from '../widgets/dom.ts';
import { about, around } from './drawing.ts';
import { record } from './playing.ts';
import type { Page } from './page.ts';
import { colouring } from './painting.ts';
import { copyLink, savePage, saveFile, titleOf } from './sharing.ts';

const AROUND = 24; // units of the drawing

interface Wanted {
  part: 'all' | 'view' | 'selection';
  legend: boolean;
  title: boolean;
  background: boolean;
  scale: number;
}

const wanted: Wanted = { part: 'all', legend: true, title: true, background: true, scale: 2 };

async function regionOf({ state, renderer, client }: Page, part: Wanted['part']): Promise<Rect> {
  const { scene } = state.picture.get()!;
  const all = { x: 0, y: 0, width: scene.width, height: scene.height };
  const boxes = part === 'selection' ? (about(state.picture.get(), await client.boxes(state.selection.get())) ?? []) : [];
  const rect = part === 'view' ? renderer.camera.visible() : boxes.length ? around(scene, boxes) : all;
  if (part === 'view') return rect;
  return { x: rect.x - AROUND, y: rect.y - AROUND, width: rect.width + 2 * AROUND, height: rect.height + 2 * AROUND };
}

/** What the colours of the drawing mean. */
async function legendOf(page: Page, theme: Theme): Promise<LegendRow[]> {
  const { state } = page;
  const w = page.words();
  const { scene, change } = state.picture.get()!;
  const colour = state.colour.get();
  if (change) {
    const seen = new Set(Array.from(change, (kind) => kind & ~GHOST));
    return CHANGES.flatMap((kind, i) => (seen.has(i + 1) ? [{ colour: theme.changes[i]!.accent, text: w.changes[kind] }] : []));
  }
  const colours = await colouring(page, state.picture.get()!, colour, theme, w);
  if (!colours) return legendOf(page, theme); // another picture is on its way
  if (colours.rows?.length) return colours.rows;
  return phaseLegend(
    scene,
    theme,
    PHASES.map((name) => w.phases[name]),
  );
}

async function svgOf(page: Page, { part, legend, title, background }: Omit<Wanted, 'scale'>, play = false): Promise<string> {
  const { state, renderer, client } = page;
  const { scene, paint: marks } = renderer;
  const theme = background ? state.theme.get() : light;
  const region = await regionOf(page, part);
  const head = title ? titleOf(page) : '';
  const rows = legend ? await legendOf(page, theme) : [];
  const run = play ? about(state.picture.get(), await client.playback()) : undefined;
  if (run === null || scene !== renderer.scene) return svgOf(page, { part, legend, title, background }, play); // another picture is on its way
  const over = run && playOver(scene, run, theme, region, page.words().peakMemory);
  // What is only lit while one works is not part of the picture.
  const paint = { ...marks, hovered: -1, hoveredEdge: -1, dim: false, found: new Set<number>() };
  return writeSvg(scene, theme, paint, { region, background, title: head, around: { head, legend: rows }, ...(over ? { over } : {}) });
}

/** The picture in pixels, less large where browsers could not make it. */
async function pngOf(page: Page, want: Wanted): Promise<Blob> {
  const svg = await svgOf(page, want);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const { size } = pictureOf({ x: 0, y: 0, width: image.naturalWidth, height: image.naturalHeight }, want.scale);
  const canvas = h('canvas', { ...size });
  canvas.getContext('2d')!.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done, failed) =>
    canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error(page.words().tooLarge(canvas.width, canvas.height)))), 'image/png'),
  );
}

async function copyPicture(page: Page, want: Wanted): Promise<void> {
  await navigator.clipboard.write([new ClipboardItem({ 'image/png': pngOf(page, want) })]);
  page.say(page.words().copied);
}

function fileName({ state }: Page, ending: string): string {
  return `${state.info.get()?.name ?? 'graph'}.${ending}`;
}

/** As the sheet says; a run is shown as a whole. */
export async function saveSvg(page: Page, play = false): Promise<void> {
  const text = await svgOf(page, play ? { ...wanted, part: 'all' } : wanted, play);
  saveFile(new Blob([text], { type: 'image/svg+xml' }), fileName(page, play ? 'play.svg' : 'svg'));
}

export async function savePng(page: Page): Promise<void> {
  saveFile(await pngOf(page, wanted), fileName(page, 'png'));
}

export function exportSheet(page: Page, close: () => void): HTMLElement {
  const { state } = page;
  const w = page.words();
  if (!state.selection.get().length && wanted.part === 'selection') wanted.part = 'all';
  const act = (key: string, text: string, work: () => Promise<void>, on = false) => {
    const go = () => {
      close();
      page.run(work());
    };
    return h('button', { 'data-key': key, class: on ? 'chip on' : 'chip', type: 'button', onclick: go }, text);
  };
  return h(
    'form',
    { class: 'sheet-form', onsubmit: (event: Event) => event.preventDefault() },
    h('h2', {}, w.exportTitle),
    choice(
      w.exportPart,
      'part',
      w.exportParts,
      wanted.part,
      (part) => (wanted.part = part),
      state.selection.get().length ? [] : ['selection'],
    ),
    h(
      'fieldset',
      {},
      h('legend', {}, w.exportWith),
      ...(['legend', 'title', 'background'] as const).map((name) =>
        h(
          'label',
          {},
          h('input', {
            type: 'checkbox',
            'data-key': name,
            checked: wanted[name],
            onchange: (event: Event) => (wanted[name] = (event.target as HTMLInputElement).checked),
          }),
          w.exportAround[name],
        ),
      ),
    ),
    choice(w.exportScale, 'scale', { 1: '1×', 2: '2×', 3: '3×', 4: '4×' }, String(wanted.scale), (scale) => (wanted.scale = Number(scale))),
    h(
      'div',
      { class: 'actions' },
      act('svg', w.exportSvg, () => saveSvg(page), true),
      act('png', w.exportPng, () => savePng(page), true),
      act('copy-png', w.copyPng, () => copyPicture(page, wanted)),
    ),
    h('h3', {}, w.play),
    h('p', { class: 'hint' }, w.playHint),
    h(
      'div',
      { class: 'actions' },
      act('play-svg', w.playSvg, () => saveSvg(page, true)),
      act('play-webm', w.playWebm, () => record(page, fileName(page, 'webm'))),
    ),
    h('h3', {}, w.shareTitle),
    h(
      'div',
      { class: 'actions' },
      act('save-page', w.savePage, () => savePage(page)),
      act('copy-link', w.copyLink, () => copyLink(page)),
    ),
  );
}

/** One of a few. */
function choice<K extends string>(
  title: string,
  name: string,
  texts: Record<K, string>,
  now: string,
  set: (value: K) => void,
  off: readonly string[] = [],
): HTMLElement {
  return h(
    'fieldset',
    {},
    h('legend', {}, title),
    ...Object.entries<string>(texts).map(([value, text]) =>
      h(
        'label',
        {},
        h('input', {
          type: 'radio',
          name,
          value,
          'data-key': `${name}-${value}`,
          checked: value === now,
          disabled: off.includes(value),
          onchange: () => set(value as K),
        }),
        text,
      ),
    ),
  );
}
