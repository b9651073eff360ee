// What is lit, how boxes are coloured, and the legend: changes without a new layout.

import { tint } from '../draw/ribbons.ts';
import type { Theme } from '../draw/theme.ts';
import type { Picture } from '../engine/messages.ts';
import { UNKNOWN } from '../engine/shades.ts';
import { badge } from '../panels/fates.ts';
import { CHANGES, GHOST } from '../picture/changes.ts';
import { BoxKind, type Fill } from '../scene.ts';
import { kernelColours, RAMP_CSS, shadeColours } from '../state/colours.ts';
import { metricName, metricText } from '../state/figures.ts';
import type { Words } from '../state/words.ts';
import { h, replace } from '../widgets/dom.ts';
import type { Page } from './page.ts';

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
      const links = !picture || item === undefined ? null : await page.client.pairs(item);
      if (picture === state.picture.get()) renderer.setPaint({ links });
    },
  );
  views.add(
    'colours',
    () => [state.picture.get(), state.colour.get(), state.theme.get(), page.words(), state.info.get()] as const,
    async ([picture, colour, theme, words]) => {
      if (!picture) return;
      const { fill, legend } = await colouring(page, picture, colour, theme, words);
      if (picture !== state.picture.get()) return;
      replace(page.places.legend, ...legend);
      renderer.setPaint({ fill });
    },
  );
}

async function light({ client, renderer, state }: Page, picture: Picture, ...items: [number[], number[], number[]]): Promise<void> {
  // Nothing lit is the commonest case, and then there is nothing to ask.
  const boxes = (of: number[]) => (of.length ? client.boxes(of.slice(0, MOST_FOUND)) : []);
  const [selected, related, found] = await Promise.all(items.map(boxes));
  if (picture !== state.picture.get()) return;
  const isTraced = state.traced.get() !== null && related!.length > 0;
  renderer.setPaint({
    selected: new Set(selected),
    related: new Set(related),
    found: new Set(found),
    dim: isTraced || (found!.length > 0 && !selected!.length),
  });
}

interface Colouring {
  fill: Fill | null;
  legend: (HTMLElement | string | false)[];
}

/** Colours by change, by kernel or by a figure, with their legend. */
async function colouring({ client }: Page, picture: Picture, colour: string, theme: Theme, words: Words): Promise<Colouring> {
  if (colour === 'phase') return { fill: changeFill(picture, theme), legend: changeLegend(picture, words) };
  if (colour === 'kernel') return { fill: { colours: kernelColours(theme.name === 'dark'), of: await client.kernelOf() }, legend: [] };
  const { shades, min, max } = await client.metric(colour);
  const name = metricName(colour, words);
  if (!Number.isFinite(min)) return { fill: null, legend: [`${name}: ${words.unknown}`] };
  const { kind } = picture.scene.boxes;
  const legend = [
    h('b', {}, name),
    h('span', {}, metricText(colour, min, words)),
    h('i', { style: `background:${RAMP_CSS}` }),
    h('span', {}, metricText(colour, max, words)),
    shades.some((shade, box) => shade === UNKNOWN && kind[box] !== BoxKind.Open) && h('span', { class: 'dim' }, words.notColoured),
  ];
  return { fill: { colours: shadeColours(theme.panels[2]!), of: shades }, legend };
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
