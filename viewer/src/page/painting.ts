// What is lit and how boxes are coloured: changes without a new layout.

import { GHOST } from '../picture/changes.ts';
import { dark, type Theme } from '../draw/theme.ts';
import type { Picture } from '../engine/messages.ts';
import { UNKNOWN } from '../engine/shades.ts';
import { h, replace } from '../widgets/dom.ts';
import { metricName, metricText } from '../panels/table.ts';
import { BoxKind, type Fill } from '../scene.ts';
import { kernelColours, RAMP_CSS, shadeColours } from '../state/colours.ts';
import type { App } from './app.ts';
import { changeLegend } from './stages.ts';

export async function repaint(app: App, dim = false): Promise<void> {
  if (!app.picture) return;
  // Nothing lit is the commonest case, and then there is nothing to ask.
  const boxes = async (items: number[]) => (items.length ? app.client.boxes(items) : []);
  const picked = app.allPairs ? null : app.selection.at(-1);
  const [selected, related, found, links] = await Promise.all([
    boxes(app.selection),
    boxes(app.related),
    boxes(app.found.length > 20_000 ? app.found.slice(0, 20_000) : app.found),
    picked === undefined ? null : app.client.pairs(picked),
  ]);
  app.renderer.setPaint({
    selected: new Set(selected),
    related: new Set(related),
    found: new Set(found),
    dim: (dim && related.length > 0) || (found.length > 0 && selected.length === 0),
    links,
    fill: await fills(app),
  });
}

/** The first of some operators that is on the screen is drawn as if the mouse were over it. */
export async function outline(app: App, nodes: number[]): Promise<void> {
  const boxes = nodes.length ? await app.client.boxes(nodes) : [];
  app.renderer.setPaint({ hovered: boxes[0] ?? -1 });
}

/** Colours by kernel or by a figure, with their legend. */
export async function fills(app: App): Promise<Fill | null> {
  app.kernels.paint(app.colour === 'kernel' ? kernelColours(app.theme === dark) : []);
  if (app.colour === 'phase') {
    replace(app.legend, ...changeLegend(app));
    return app.picture && fillsOf(app.picture, app.theme);
  }
  if (app.colour === 'kernel') {
    replace(app.legend);
    return { colours: kernelColours(app.theme === dark), of: await app.client.kernelOf() };
  }
  const { kind } = app.picture!.scene.boxes;
  const { shades, min, max } = await app.client.metric(app.colour);
  if (!Number.isFinite(min)) {
    replace(app.legend, `${metricName(app.colour, app.words)}: ${app.words.unknown}`);
    return null;
  }
  replace(
    app.legend,
    h('b', {}, metricName(app.colour, app.words)),
    h('span', {}, metricText(app.colour, min, app.words)),
    h('i', { style: `background:${RAMP_CSS}` }),
    h('span', {}, metricText(app.colour, max, app.words)),
    shades.some((shade, box) => shade === UNKNOWN && kind[box] !== BoxKind.Open) && h('span', { class: 'dim' }, app.words.notColoured),
  );
  return { colours: shadeColours(app.theme.panels[2]!), of: shades };
}

/** What has changed since the stage before is tinted by its class; ghosts are as pale as what is behind them. */
export function fillsOf({ change }: Picture, theme: Theme): Fill | null {
  if (!change) return null;
  const plain = [null, ...theme.changes.map((kind) => kind.tint)];
  const colours = Array.from({ length: 2 * GHOST }, (_, kind) => (kind & GHOST ? theme.background : (plain[kind] ?? null)));
  return { colours, of: change };
}
