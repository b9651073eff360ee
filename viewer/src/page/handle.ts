// The state of the page: in the URL, and for scripts. docs/page.md describes the handle.

import { CHANGES, GHOST } from '../engine/diff.ts';
import { LEAST_TEXT } from '../draw/cards.ts';
import { clean, fitBox } from '../draw/label.ts';
import { TITLE_SIZE } from '../draw/metrics.ts';
import { crossings, segments } from '../layout/quality.ts';
import { EdgeKind, PHASES } from '../scene.ts';
import * as hash from '../state/hash.ts';
import type { App } from './app.ts';
import { COMPARE, setCompare, type Compare } from './stages.ts';

export function state(app: App): Record<string, unknown> {
  const boxes = app.picture?.scene.boxes;
  const texts = app.picture?.scene.texts ?? [];
  return {
    captures: app.captures.map(({ id, name, framework }) => ({ id, name, framework })),
    capture: app.capture,
    stage: app.captures[app.capture]?.stages[app.stage]?.name ?? null,
    stages: (app.captures[app.capture]?.stages ?? []).map(({ name, nodes, seconds, changes }) => ({
      name,
      nodes,
      seconds,
      changes: changes && Object.fromEntries(CHANGES.flatMap((kind, i) => (changes.counts[i] ? [[kind, changes.counts[i]]] : []))),
    })),
    compare: app.compare,
    before: app.split.state(),
    boxes: boxes
      ? Array.from({ length: Math.min(boxes.count, 5000) }, (_, i) => ({
          item: boxes.item[i],
          title: texts[boxes.title[i]!],
          kind: boxes.kind[i],
          x: boxes.x[i],
          y: boxes.y[i],
          width: boxes.width[i],
          height: boxes.height[i],
          change: changeName(app.picture!.change?.[i] ?? 0),
        }))
      : [],
    boxCount: boxes?.count ?? 0,
    edgeCount: app.picture?.scene.edges.count ?? 0,
    ...drawing(app),
    selection: app.selection,
    related: app.related.slice(0, 5000),
    found: app.found.length,
    kernel: app.pickedKernel,
    view: app.renderer.camera.view,
    theme: app.theme.name,
    language: app.language,
    colour: app.colour,
    hidden: app.viewOptions.hidden.map((i) => PHASES[i]),
    tab: app.lowTab,
    listing: app.lowTab === 'ir' ? app.kind : null,
    cost: app.lowTab === 'cost' ? app.cost.describe() : null,
    totals: app.totals,
    frames: app.renderer.frames.slice(-300),
  };
}

/** How good the drawing is: what goes against the data, lines that cross, rows, titles on the screen. */
function drawing(app: App): Record<string, unknown> {
  const scene = app.picture?.scene;
  if (!scene) return {};
  const { boxes, edges, texts } = scene;
  const { camera } = app.renderer;
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

const MOST_MEASURED = 3000;

/** `fused`, or `before: fused` for what is only in the stage before; null for what has not changed. */
function changeName(kind: number): string | null {
  const name = CHANGES[(kind & ~GHOST) - 1];
  return name ? `${kind & GHOST ? 'before: ' : ''}${name}` : null;
}

/** The handle for scripts and tests; docs/page.md describes it. */
export function handle(app: App): Record<string, unknown> {
  const after = async <T>(work: Promise<T>): Promise<T> => {
    const result = await work;
    await app.idle();
    return result;
  };
  const item = async (what: number | string) => (typeof what === 'number' ? what : ((await app.client.items([what]))[0] ?? -1));
  return {
    idle: () => app.idle(),
    state: () => state(app),
    find: (query: string) => after(app.find(query)),
    select: (ids: (number | string)[] | number | string) =>
      after(
        Promise.all((Array.isArray(ids) ? ids : [ids]).map(item)).then((items) =>
          app.select(
            items.filter((i) => i >= 0),
            true,
          ),
        ),
      ),
    expand: (scope: number | string) => after(item(scope).then((i) => app.expand(i, true))),
    collapse: (scope: number | string) => after(item(scope).then((i) => app.expand(i, false))),
    expandAll: () => after(app.expandAll()),
    view: (x: number, y: number, zoom: number) => (app.renderer.camera.set({ x, y, zoom }), app.idle()),
    stage: (stage: number | string) => after(app.goToStage(stage)),
    compare: (how: Compare) => after(COMPARE.includes(how) ? setCompare(app, how) : Promise.resolve()),
    kernel: (index: number) => after(app.pickKernel(index)),
    open: (bytes: Uint8Array, name: string) => after(app.add(bytes, name)),
  };
}

export async function writeHash(app: App): Promise<void> {
  const open = app.picture?.open ?? [];
  const unfolded = app.picture?.unfolded ?? [];
  const text = hash.write({
    capture: app.capture,
    stage: app.stage,
    open: open.length <= 60 ? await app.client.paths(open) : null,
    unfolded: unfolded.length <= 60 ? await app.client.paths(unfolded) : [],
    all: app.opened,
    selection: await app.client.paths(app.selection),
    query: app.query,
    view: app.renderer.camera.view,
    direction: app.viewOptions.direction,
    hidden: app.viewOptions.hidden,
    tab: app.lowTab,
    kind: app.lowTab === 'ir' ? app.kind : app.lowTab === 'cost' ? app.cost.state : '',
    compare: app.compare,
    colour: app.colour,
    flags: hash.pack(app),
    kernel: app.pickedKernel,
  });
  try {
    history.replaceState(null, '', `#${text}`);
  } catch {
    // A page inside a notebook has no URL of its own.
  }
}
