// What is lit, how boxes are coloured, and the legend: changes without a new layout.

import { tint } from '../draw/ribbons.ts';
import type { Theme } from '../draw/theme.ts';
import type { Picture } from '../engine/messages.ts';
import { badge } from '../panels/fates.ts';
import { CHANGES, GHOST } from '../picture/changes.ts';
import type { Fill } from '../scene.ts';
import type { LegendRow } from '../svg/around.ts';
import { classColours, colourParts, colourText, kernelColours, RAMP, RAMP_CSS, shadeColours } from '../state/colours.ts';
import { percent } from '../text/figures.ts';
import { metricName, metricText } from '../state/figures.ts';
import type { Words } from '../state/words.ts';
import { h, replace } from '../widgets/dom.ts';
import { about } from './drawing.ts';
import type { Page } from './page.ts';

const MOST_CLASSES = 12; // in a legend
const MOST_FOUND = 20_000; // results that are drawn as found

export function showPaint(page: Page): void {
  const { state, views, renderer } = page;
  views.add(
    'edges',
    () => [state.edgeLabels.get(), state.edgeWidth.get()] as const,
    ([edgeLabels, edgeWidth]) => renderer.setPaint({ edgeLabels, edgeWidth }),
  );
  views.add(
    'lit',
    () => [state.picture.get(), state.selection.get(), state.related.get(), state.found.get(), state.traced.get()] as const,
    ([picture, selection, related, found]) => (picture ? light(page, picture, selection, related, found) : undefined),
  );
  views.add(
    'gradient links',
    () => [state.picture.get(), state.allPairs.get() ? null : state.selection.get().at(-1)] as const,
    async ([picture, item]) => {
      const links = !picture || item === undefined ? null : about(picture, await page.client.pairs(item));
      if (picture) renderer.setMarks(picture.scene, { links });
    },
  );
  views.add(
    'colours',
    () => [state.picture.get(), state.colour.get(), state.theme.get(), page.words(), state.info.get()] as const,
    async ([picture, colour, theme, words]) => {
      if (!picture) return;
      const colours = await colouring(page, picture, colour, theme, words);
      if (!colours || picture !== state.picture.get()) return; // shown with the picture that is on its way
      const { fill, legend, notes = null } = colours;
      replace(page.places.legend, ...legend);
      renderer.setMarks(picture.scene, { fill, notes });
      page.minimap.draw();
    },
  );
}

async function light({ client, renderer, state }: Page, picture: Picture, ...items: [number[], number[], number[]]): Promise<void> {
  // Nothing lit is the commonest case, and then there is nothing to ask.
  const boxes = async (of: number[]) => (of.length ? (about(picture, await client.boxes(of.slice(0, MOST_FOUND))) ?? []) : []);
  const [selected, related, found] = await Promise.all(items.map(boxes));
  if (picture !== state.picture.get()) return;
  const { kind } = state.details.get() ?? {};
  const isTensor = state.traced.get() === null && selected!.length === 0 && (kind === 'tensor' || kind === 'input') && related!.length > 0;
  const isTraced = state.traced.get() !== null && related!.length > 0;
  const { edges } = picture.scene;
  const on = new Set([...(isTraced || isTensor ? related! : []), ...(isTraced ? selected! : [])]);
  const from = isTensor ? await boxes([state.details.get()!.maker?.item ?? state.details.get()!.item]) : null;
  const litEdges = on.size
    ? Uint8Array.from(edges.source, (box, e) => (on.has(box) && on.has(edges.target[e]!) && (!from || from.includes(box)) ? 1 : 0))
    : null;
  if (picture !== state.picture.get()) return;
  renderer.setPaint({ dim: isTraced || (found!.length > 0 && !selected!.length) });
  renderer.setMarks(picture.scene, { litEdges, selected: new Set(selected), related: new Set(related), found: new Set(found) });
}

interface Colouring {
  fill: Fill | null;
  legend: (HTMLElement | string | false)[];
  notes?: string[] | null;
  rows?: LegendRow[]; // the same, for a picture
}

/** Colours by change, by kernel, by kind or by a figure, with their legend; null where the engine has drawn another picture by then. */
export async function colouring(page: Page, picture: Picture, colour: string, theme: Theme, words: Words): Promise<Colouring | null> {
  const { client, state } = page;
  if (colour === 'phase') return { fill: changeFill(picture, theme), legend: changeLegend(picture, words) };
  if (colour === 'kernel') {
    const of = about(picture, await client.kernelOf());
    return of && { fill: { colours: kernelColours(theme.name === 'dark'), of }, legend: [] };
  }
  if (colour === 'family') {
    const of = about(picture, await client.families());
    return of && byClass(of, Object.values(words.families), theme);
  }
  const { base } = colourParts(colour);
  const own = state.info.get()?.own.find(({ name }) => name === base);
  if (own?.isText) {
    const said = about(picture, await client.saidOf(base));
    return said && byClass(said.of, said.names, theme);
  }
  const shaded = about(picture, await client.metric(colour));
  if (!shaded) return null;
  const name = metricName(base, words);
  if (!Number.isFinite(shaded.min)) return { fill: null, legend: [`${name}: ${words.unknown}`] };
  const figure = (value: number) => [metricText(base, value, words), own?.unit].filter(Boolean).join(' ');
  const [least, most] = [shaded.total ? percent(shaded.min, shaded.total) : figure(shaded.min), figure(shaded.max)];
  const legend = [
    h('b', {}, name),
    h('span', {}, least),
    h('i', { style: `background:${RAMP_CSS}` }),
    h('span', {}, shaded.total ? `${percent(shaded.max, shaded.total)} · ${most}` : most),
    ...colourControls(page, colour, own && (own.roll ?? 'sum')),
    shaded.unknown > 0 &&
      h('span', { class: 'legend-class dim' }, h('i', { style: `background:${theme.panels[0]}` }), words.notColoured(shaded.unknown)),
  ];
  return {
    fill: { colours: shadeColours(theme.panels[2]!, theme.panels[0]!), of: shaded.shades },
    legend,
    notes: shaded.notes,
    rows: [{ ramp: RAMP, from: least, to: most, text: name }],
  };
}

/** By a class of each box (counted from 1), with those in the legend that are in the picture. */
function byClass(of: Uint8Array, names: readonly string[], theme: Theme): Colouring {
  const colours = classColours(names.length, theme.name === 'dark');
  const seen = [...new Set(of)].filter((place) => place > 0).sort((a, b) => a - b);
  const legend = seen
    .slice(0, MOST_CLASSES)
    .map((place) => h('span', { class: 'legend-class' }, h('i', { style: `background:${colours[place]}` }), names[place - 1]!));
  const rows = seen.slice(0, MOST_CLASSES).map((place) => ({ colour: colours[place]!, text: names[place - 1]! }));
  return { fill: { colours, of }, rows, legend: [...legend, seen.length > MOST_CLASSES && `+${seen.length - MOST_CLASSES}`] };
}

/** How a figure is coloured: linear or logarithmic; figures of the user's own also: what of what is inside. */
function colourControls({ state }: Page, colour: string, usual: string | undefined): HTMLElement[] {
  const words = state.words.get();
  const { base, roll, isLog } = colourParts(colour);
  const set = (to: Partial<ReturnType<typeof colourParts>>) => state.colour.set(colourText({ base, roll, isLog, ...to }));
  const log = h(
    'button',
    { 'data-key': 'log', class: 'chip', 'aria-pressed': String(isLog), title: words.logHelp, onclick: () => set({ isLog: !isLog }) },
    words.log,
  );
  if (usual === undefined) return [log];
  const pick = (event: Event) => set({ roll: (event.target as HTMLSelectElement).value });
  const rolls = Object.entries(words.rolls).map(([value, text]) => h('option', { value, selected: value === (roll || usual) }, text));
  return [h('select', { 'data-key': 'roll', 'aria-label': words.rollHelp, title: words.rollHelp, onchange: pick }, ...rolls), log];
}

/** What has changed since the stage before is tinted by its class; ghosts are as pale as what is behind them. */
export function changeFill({ change, numbers, seams, scene }: Picture, theme: Theme): Fill | null {
  // Breaks between graphs are seams: no operators of the model.
  if (seams.length) {
    const of = new Uint8Array(scene.boxes.count);
    for (const box of seams) of[box] = 1;
    return { colours: [null, theme.changes[CHANGES.indexOf('removed')]!.tint], of };
  }
  if (!change) return null;
  const plain = [null, ...theme.changes.map((kind) => kind.tint)];
  const colours = Array.from({ length: 2 * GHOST }, (_, kind) => (kind & GHOST ? theme.background : (plain[kind] ?? null)));
  if (!numbers) return { colours, of: change };
  // What has a number of its own has a tint of its own, the same on both sides.
  const most = numbers.reduce((a, b) => Math.max(a, b), 0);
  const tints = Array.from({ length: most }, (_, i) => tint(i + 1, theme.name === 'dark'));
  return {
    colours: [...colours, ...tints],
    of: Uint16Array.from(change, (kind, box) => (numbers[box] ? 2 * GHOST + numbers[box]! - 1 : kind)),
  };
}

/** What the colours and signs on boxes mean: those that are in the picture. */
function changeLegend({ change }: Picture, words: Words): HTMLElement[] {
  if (!change) return [];
  const seen = new Set<number>();
  let ghosts = 0;
  for (const kind of change) {
    seen.add(kind & ~GHOST);
    ghosts |= kind & GHOST;
  }
  return [
    ...CHANGES.flatMap((kind, k) =>
      seen.has(k + 1) ? [h('span', { class: 'legend-change' }, badge(kind, words), words.changes[kind])] : [],
    ),
    ...(ghosts ? [h('span', { class: 'legend-change' }, h('span', { class: 'ghost-sign' }), words.onlyBefore)] : []),
  ];
}
