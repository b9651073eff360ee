// The stages of a capture: the bar, stepping from one to the next, and what each of them changed.

import type { Kinship } from '../draw/motion.ts';
import type { Rect } from '../draw/viewport.ts';
import { CHANGES, GHOST } from '../engine/diff.ts';
import type { Kin } from '../engine/diffview.ts';
import type { CaptureInfo, ChangeRow, Picture, StageInfo } from '../engine/messages.ts';
import { badge, throughStages } from '../panels/changes.ts';
import { h, replace, short } from '../panels/dom.ts';
import type { Scene } from '../scene.ts';
import type { App } from './app.ts';
import { redrawChrome } from './chrome.ts';
import { showLow } from './lower.ts';

export type Compare = 'after' | 'overlay' | 'split';
export const COMPARE: Compare[] = ['after', 'overlay', 'split'];

const MOST_GLIDING = 4000;
const EDGE = 24; // pixels around what is wholly in view

/** Whether a stage is known to have changed nothing. */
export function isUnchanged(stage: StageInfo | undefined): boolean {
  return stage?.changes !== null && stage?.changes !== undefined && stage.changes.counts.every((n) => n === 0);
}

/** The stages of the bar, by number. The one in view is always there. */
export function barStages(stages: StageInfo[], shown: number, hideUnchanged: boolean): number[] {
  return stages.flatMap((stage, i) => (hideUnchanged && i !== shown && isUnchanged(stage) ? [] : [i]));
}

/** The stages of a capture in a row: an arrow leads to what was made from the one before. */
export function redrawStages(app: App, info: CaptureInfo | undefined): void {
  const stages = info?.stages ?? [];
  const focused = app.stages.contains(document.activeElement);
  const known = stages.some((stage) => stage.changes);
  const words = app.words;
  app.stages.hidden = stages.length < 2;
  app.stages.classList.toggle('compared', known);
  app.stages.setAttribute('aria-label', words.stages);
  const listed = barStages(stages, app.stage, app.hideUnchanged);
  const most = Math.max(1, ...stages.map((stage) => stage.changes?.touched.reduce((a, b) => a + b, 0) ?? 0));
  replace(
    app.stages,
    h('span', { class: 'stages-title' }, words.stages),
    h(
      'div',
      { class: 'stages-row', role: 'tablist', 'aria-label': words.stages },
      ...listed.flatMap((i, place) => {
        const stage = stages[i]!;
        const last = listed[place - 1];
        const before = last === undefined ? undefined : stages[last];
        const from = stage.after === null ? undefined : stages[stage.after]?.name;
        const broken = stage.after === null && before?.listings.includes('breaks');
        const skipped = last !== undefined && last < i - 1;
        const mark =
          stage.after === i - 1
            ? skipped
              ? '⋯'
              : '→'
            : before && stage.after !== null && stage.after === before.after
              ? '·'
              : from === undefined
                ? ''
                : `${from} →`;
        return [
          broken
            ? h('button', { class: 'stage-mark break', onclick: () => app.run(showBreaks(app, last!)) }, words.graphBreak)
            : place
              ? h('span', { class: 'stage-mark', title: from === undefined ? undefined : words.madeFrom(from) }, mark)
              : null,
          stageTab(app, stage, i, from, most),
        ];
      }),
    ),
    known ? h('div', { class: 'stages-tools' }, ...tools(app, stages)) : null,
  );
  const on = app.stages.querySelector<HTMLElement>('.stage.on');
  on?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  if (focused) on?.focus();
}

function stageTab(app: App, stage: StageInfo, i: number, from: string | undefined, most: number): HTMLElement {
  const { words } = app;
  const { changes } = stage;
  const told = CHANGES.flatMap((kind, k) => (changes?.counts[k] ? [`${changes.counts[k]} ${words.changes[kind]}`] : []));
  const facts = [
    stage.name,
    words.ops(stage.nodes),
    from === undefined ? '' : words.madeFrom(from),
    stage.seconds === null ? '' : secondsText(stage.seconds),
    changes ? told.join(', ') || words.unchanged : '',
  ];
  const touched = changes?.touched.reduce((a, b) => a + b, 0) ?? 0;
  return h(
    'button',
    {
      class: ['stage', i === app.stage ? 'on' : '', isUnchanged(stage) ? 'unchanged' : ''].filter(Boolean).join(' '),
      role: 'tab',
      'data-stage': i,
      'aria-selected': String(i === app.stage),
      tabindex: i === app.stage ? 0 : -1,
      title: facts.filter(Boolean).join(' · '),
      onclick: () => app.run(app.goToStage(i)),
    },
    h('span', { class: 'stage-name' }, short(stage.name, 36), h('span', { class: 'count' }, stage.nodes.toLocaleString())),
    changes || stage.seconds !== null
      ? h(
          'span',
          { class: 'stage-facts' },
          stage.seconds === null ? null : h('span', {}, secondsText(stage.seconds)),
          ...CHANGES.map((kind, k) => (changes?.counts[k] ? badge(kind, words, changes.counts[k]) : null)),
          changes && !told.length ? h('span', {}, words.unchangedShort) : null,
        )
      : null,
    // How much of all changes this one made: as long as the operators in it.
    changes
      ? h(
          'span',
          { class: 'stage-bar', 'aria-hidden': 'true' },
          h(
            'span',
            { style: `width:${touched ? Math.max(6, (touched / most) * 100) : 0}%` },
            ...CHANGES.map((kind, k) =>
              changes.touched[k] ? h('i', { class: `change-fill ${kind}`, style: `flex:${changes.touched[k]}` }) : null,
            ),
          ),
        )
      : null,
  );
}

function tools(app: App, stages: StageInfo[]): (HTMLElement | null)[] {
  const { words } = app;
  const quiet = stages.filter(isUnchanged).length;
  const flip = () => {
    app.hideUnchanged = !app.hideUnchanged;
    redrawChrome(app);
    app.remember();
  };
  return [
    quiet
      ? h(
          'button',
          {
            class: app.hideUnchanged ? 'chip on' : 'chip',
            'aria-pressed': String(app.hideUnchanged),
            title: words.hideUnchangedHelp,
            onclick: flip,
          },
          words.hideUnchanged(quiet),
        )
      : null,
    h(
      'div',
      { class: 'segmented', role: 'radiogroup', 'aria-label': words.compare },
      ...COMPARE.map((name) =>
        h(
          'button',
          {
            class: app.compare === name ? 'on' : '',
            role: 'radio',
            'aria-checked': String(app.compare === name),
            'data-compare': name,
            title: words.compareHelp[name],
            onclick: () => app.run(setCompare(app, name)),
          },
          words.compareModes[name],
        ),
      ),
    ),
  ];
}

export function secondsText(seconds: number): string {
  if (seconds >= 100) return `${Math.round(seconds)} s`;
  if (seconds >= 1) return `${seconds.toPrecision(3)} s`;
  return seconds >= 0.001 ? `${(seconds * 1000).toPrecision(3).replace(/\.0+$/, '')} ms` : `${(seconds * 1e6).toPrecision(3)} µs`;
}

/** To the stage before or after in the bar. */
export function stepStage(app: App, by: number): void {
  const stages = app.captures[app.capture]?.stages ?? [];
  const listed = barStages(stages, app.stage, app.hideUnchanged);
  const to = listed[listed.indexOf(app.stage) + by];
  if (to !== undefined) app.run(app.goToStage(to));
}

/** Why a graph ended where it did. */
async function showBreaks(app: App, stage: number): Promise<void> {
  await app.goToStage(stage);
  app.lowTab = 'ir';
  app.kind = 'breaks';
  redrawChrome(app);
  await showLow(app);
  app.remember();
}

// -- from one stage to the next ------------------------------------------------------------------------

/** To another stage; what is selected stays selected where the two are linked, and what is in view stays in its place. */
export async function goToStage(app: App, stage: number | string): Promise<void> {
  const { stages } = app.captures[app.capture]!;
  const to = typeof stage === 'number' ? stage : stages.findIndex((other) => other.name === stage);
  if (to === app.stage || !stages[to]) return;
  const kept = app.selection.length ? await app.client.across(app.selection.slice(0, 200), app.stage, to) : [];
  await app.show(app.capture, to, true);
  await selectPaths(app, kept);
}

async function selectPaths(app: App, paths: string[]): Promise<void> {
  const items = paths.length ? await app.client.drawn(await app.client.items(paths)) : [];
  if (items.length) await app.select([...new Set(items)], true, true);
}

/** Only this stage, what is gone too, or the stage before beside it. */
export async function setCompare(app: App, compare: Compare): Promise<void> {
  if (compare === app.compare) return;
  const overlay = compare === 'overlay';
  const redraw = overlay !== (app.compare === 'overlay');
  app.compare = compare;
  if (redraw) {
    // Ghosts are numbered after all others: where they are not drawn, there is no operator with such a number.
    const kept = await app.client.paths(app.selection);
    app.viewOptions = { ...app.viewOptions, overlay: overlay || undefined };
    await app.show(app.capture, app.stage, true);
    await selectPaths(app, kept);
  }
  await app.split.show();
  redrawChrome(app);
  app.remember();
}

/** Draw the picture of another stage: what is in both glides, and what one looks at stays where it is. */
export async function drawStage(app: App, picture: Picture, from: number, overlaid: boolean): Promise<void> {
  const before = app.picture!;
  const found = await app.client.kin(from, overlaid);
  const kin = kinship(found);
  app.picture = picture;
  const gentle = before.scene.boxes.count + picture.scene.boxes.count < MOST_GLIDING;
  app.renderer.setScene(picture.scene, picture.index, gentle ? before.scene : undefined, kin);
  app.renderer.setPaint({ change: picture.change, changed: picture.changed });
  const { camera } = app.renderer;
  const held = anchor(before.scene, picture.scene, kin.same, camera.view);
  if (!held) {
    app.begin();
    return;
  }
  const whole = holds(camera.visible(), before.scene);
  camera.keep(held.before, held.now);
  // Who saw all of the one before sees all of this one, if it fits: moved as little as needed.
  if (whole) camera.set({ ...camera.view, ...nudged(camera.visible(), app.extent(picture.scene), EDGE / camera.view.zoom) });
}

function holds(seen: Rect, { width, height }: Scene): boolean {
  return seen.x <= 0 && seen.y <= 0 && seen.x + seen.width >= width && seen.y + seen.height >= height;
}

/** The middle of what is seen, moved as little as needed so that `wanted` is in it; along a side that is too long, to its start. */
export function nudged(seen: Rect, wanted: Rect, edge: number): { x: number; y: number } {
  const along = (from: number, size: number, low: number, length: number): number => {
    const [least, most] = [low + length + edge - size, low - edge];
    return (least > most ? most : Math.max(least, Math.min(most, from))) + size / 2;
  };
  return { x: along(seen.x, seen.width, wanted.x, wanted.width), y: along(seen.y, seen.height, wanted.y, wanted.height) };
}

export function kinship({ same, from, into }: Kin): Kinship {
  const map = (pairs: Int32Array, swap = false): Map<number, number> => {
    const out = new Map<number, number>();
    for (let i = 0; i < pairs.length; i += 2) out.set(pairs[swap ? i + 1 : i]!, pairs[swap ? i : i + 1]!);
    return out;
  };
  return { same: map(same), back: map(same, true), from: map(from), into: map(into) };
}

/** The middle of the box nearest to the eye that is in both scenes, in each of them. */
export function anchor(
  old: Scene,
  now: Scene,
  same: ReadonlyMap<number, number>,
  eye: { x: number; y: number },
): { before: { x: number; y: number }; now: { x: number; y: number } } | null {
  const places = new Map<number, number>();
  for (let box = 0; box < old.boxes.count; box++) places.set(old.boxes.item[box]!, box);
  const middle = ({ boxes }: Scene, box: number) => ({
    x: boxes.x[box]! + boxes.width[box]! / 2,
    y: boxes.y[box]! + boxes.height[box]! / 2,
  });
  let best: { before: { x: number; y: number }; now: { x: number; y: number } } | null = null;
  let least = Infinity;
  for (let box = 0; box < now.boxes.count; box++) {
    const was = places.get(same.get(now.boxes.item[box]!) ?? -1);
    if (was === undefined) continue;
    const at = middle(old, was);
    const far = Math.hypot(at.x - eye.x, at.y - eye.y);
    if (far >= least) continue;
    least = far;
    best = { before: at, now: middle(now, box) };
  }
  return best;
}

// -- what changed -----------------------------------------------------------------------------------------

/** Fill the list of changes of the stage in view. */
export async function loadChanges(app: App): Promise<void> {
  const stages = app.captures[app.capture]?.stages ?? [];
  const changes = app.shown?.changes;
  const rows = changes ? await app.client.changes() : [];
  app.changes.set(rows, changes ? `${stages[changes.before]!.name} → ${app.shown!.name}` : '');
}

/** Select what a change made; what it took away where it made nothing. */
export async function pickChange(app: App, row: ChangeRow): Promise<void> {
  if (row.items.length) {
    await app.select([...new Set([...row.items, ...row.ghosts])], true);
    return;
  }
  if (app.compare === 'split') {
    await app.split.select(row.before);
    return;
  }
  await setCompare(app, 'overlay');
  const now = (await app.client.changes()).find((other) => other.index === row.index);
  if (now?.ghosts.length) await app.select(now.ghosts, true);
}

/** In the details: where the selected operator is in each stage. */
export async function showFate(app: App): Promise<void> {
  const item = app.selection.at(-1);
  const stages = app.captures[app.capture]?.stages ?? [];
  const items = new Set(app.selection);
  app.changes.mark(items);
  if (item === undefined || stages.length < 2) return;
  const fates = await app.client.follow(item);
  if (app.selection.at(-1) !== item) return;
  const section = throughStages(fates, stages, app.stage, app.words, (stage, nodes) => app.run(goToNodes(app, stage, nodes)));
  app.right.querySelector('.through')?.remove();
  const below = app.right.querySelector('.actions');
  if (section) below ? below.after(section) : app.right.append(section);
}

async function goToNodes(app: App, stage: number, nodes: number[]): Promise<void> {
  if (stage !== app.stage) await app.show(app.capture, stage, true);
  await selectPaths(
    app,
    nodes.slice(0, 200).map((node) => `#${node}`),
  );
}

/** What the colours and signs on boxes mean: those that are in the picture. */
export function changeLegend(app: App): HTMLElement[] {
  const change = app.picture?.change;
  if (!change) return [];
  const seen = new Set<number>();
  let ghosts = 0;
  for (const kind of change) {
    seen.add(kind & ~GHOST);
    ghosts |= kind & GHOST;
  }
  return [
    ...CHANGES.flatMap((kind, k) =>
      seen.has(k + 1) ? [h('span', { class: 'legend-change' }, badge(kind, app.words), app.words.changes[kind])] : [],
    ),
    ...(ghosts ? [h('span', { class: 'legend-change' }, h('span', { class: 'ghost-sign' }), app.words.onlyBefore)] : []),
  ];
}
