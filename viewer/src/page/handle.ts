// The page for scripts and tests: `window.opscope`. docs/page.md describes it.

import type { Picture, StageInfo } from '../engine/messages.ts';
import { CHANGES, GHOST } from '../picture/changes.ts';
import { LEAST_TEXT } from '../draw/cards.ts';
import type { Camera } from '../draw/camera.ts';
import { dark, light } from '../draw/theme.ts';
import { clean, fitBox } from '../draw/label.ts';
import { TITLE_SIZE } from '../picture/sizes.ts';
import { crossings, segments } from '../picture/quality.ts';
import { EdgeKind, PHASES, type Scene } from '../scene.ts';
import { COMPARE, type Compare } from '../state/page.ts';
import { expand, expandAll } from './expanding.ts';
import { addFile } from './files.ts';
import type { Page } from './page.ts';
import { video } from './playing.ts';
import { find, pickKernel, select } from './selecting.ts';
import type { SplitPane } from './split.ts';
import { addTable } from './tables.ts';
import { goToStage, setCompare } from './staging.ts';

const MOST_BOXES = 5000;
const MOST_MEASURED = 3000; // edges
const MOST_FRAMES = 300;

function describe({ state, panels, renderer }: Page, split: SplitPane): Record<string, unknown> {
  const picture = state.picture.get();
  const stages = state.info.get()?.stages ?? [];
  const tab = state.low.get();
  return {
    captures: state.captures.get().map(({ id, name, framework }) => ({ id, name, framework })),
    capture: Math.max(0, state.capture.get()),
    stage: state.shown.get()?.name ?? null,
    stages: stages.map(({ name, nodes, seconds, changes }) => ({ name, nodes, seconds, changes: countsOf(changes) })),
    compare: state.compare.get(),
    before: split.describe(),
    boxes: picture ? boxesOf(picture) : [],
    boxCount: picture?.scene.boxes.count ?? 0,
    edgeCount: picture?.scene.edges.count ?? 0,
    ...(picture ? drawing(picture.scene, renderer.camera) : {}),
    selection: state.selection.get(),
    related: state.related.get().slice(0, MOST_BOXES),
    found: state.found.get().length,
    kernel: state.kernel.get(),
    view: renderer.camera.view,
    theme: state.theme.get().name,
    language: state.language.get(),
    colour: state.colour.get(),
    hidden: state.options.get().hidden.map((i) => PHASES[i]),
    tab,
    totals: plain(state.totals.get()),
    frames: renderer.frames.slice(-MOST_FRAMES),
    ...Object.assign({}, ...[...panels].map(([name, panel]) => panel.describe?.(name === tab) ?? {})),
  };
}

/** How good the drawing is: what goes against the data, lines that cross, rows, titles on the screen. */
function drawing(scene: Scene, camera: Camera): Record<string, unknown> {
  const { boxes, edges, texts } = scene;
  const seen = camera.visible();
  let cut = 0;
  for (let box = 0; box < boxes.count; box++) {
    const out = boxes.x[box]! > seen.x + seen.width || boxes.x[box]! + boxes.width[box]! < seen.x;
    if (out || boxes.y[box]! > seen.y + seen.height || boxes.y[box]! + boxes.height[box]! < seen.y) continue;
    if (fitBox(scene, box).title !== clean(texts[boxes.title[box]!] ?? '')) cut++;
  }
  return {
    backEdgeCount: edges.kind.reduce((n, kind, e) => n + (kind === EdgeKind.Loop && edges.source[e] !== edges.target[e] ? 1 : 0), 0),
    crossings: edges.count <= MOST_MEASURED ? crossings(segments({ pointStart: edges.start, points: edges.points })) : null,
    rows: scene.rows,
    titlePx: TITLE_SIZE * camera.view.zoom,
    cutTitles: TITLE_SIZE * camera.view.zoom < LEAST_TEXT ? null : cut,
    layout: scene.layout,
  };
}

function countsOf(changes: StageInfo['changes']): Record<string, number> | null {
  return changes && Object.fromEntries(CHANGES.flatMap((kind, i) => (changes.counts[i] ? [[kind, changes.counts[i]]] : [])));
}

function boxesOf({ scene: { boxes, texts }, change }: Picture): Record<string, unknown>[] {
  return Array.from({ length: Math.min(boxes.count, MOST_BOXES) }, (_, i) => ({
    item: boxes.item[i],
    title: texts[boxes.title[i]!],
    kind: boxes.kind[i],
    x: boxes.x[i],
    y: boxes.y[i],
    width: boxes.width[i],
    height: boxes.height[i],
    change: changeName(change?.[i] ?? 0),
  }));
}

/** `fused`, or `before: fused` for what is only in the stage before; null for what has not changed. */
function changeName(kind: number): string | null {
  const name = CHANGES[(kind & ~GHOST) - 1];
  return name ? `${kind & GHOST ? 'before: ' : ''}${name}` : null;
}

export function handle(page: Page, split: SplitPane): Record<string, unknown> {
  const after = async <T>(work: Promise<T>): Promise<T> => {
    const result = await work;
    await page.idle();
    return result;
  };
  const itemOf = async (what: number | string) => (typeof what === 'number' ? what : ((await page.client.items([what]))[0] ?? -1));
  const selectAll = async (ids: (number | string)[]) => {
    const items = await Promise.all(ids.map(itemOf));
    await select(
      page,
      items.filter((item) => item >= 0),
      true,
    );
  };
  return {
    idle: () => page.idle(),
    state: () => describe(page, split),
    find: (query: string) => after(find(page, query)),
    select: (ids: (number | string)[] | number | string) => after(selectAll(Array.isArray(ids) ? ids : [ids])),
    expand: (scope: number | string) => after(itemOf(scope).then((item) => expand(page, item, true))),
    collapse: (scope: number | string) => after(itemOf(scope).then((item) => expand(page, item, false))),
    expandAll: () => after(expandAll(page)),
    view: (x: number, y: number, zoom: number) => (page.renderer.camera.set({ x, y, zoom }), page.idle()),
    stage: (stage: number | string) => after(goToStage(page, stage)),
    compare: (how: Compare) => after(COMPARE.includes(how) ? setCompare(page, how) : Promise.resolve()),
    kernel: (index: number) => after(pickKernel(page, index)),
    addTable: (name: string, text: string) => after(addTable(page, name, text)),
    video: (theme = '') => video(page, { light, dark }[theme] ?? page.state.theme.get()),
    open: (bytes: Uint8Array, name: string) => after(addFile(page, bytes, name)),
  };
}

/** What is not known is null: JSON has no NaN. */
function plain(totals: object | null): Record<string, unknown> | null {
  return totals && Object.fromEntries(Object.entries(totals).map(([name, value]) => [name, Number.isNaN(value) ? null : value]));
}
