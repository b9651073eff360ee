// What is lit and how boxes are coloured: changes without a new layout.

import { dark } from '../draw/theme.ts';
import { h, replace } from '../panels/dom.ts';
import { metricText } from '../panels/table.ts';
import { kernelColour, ramp, RAMP_CSS, scale } from '../state/colours.ts';
import type { App } from './app.ts';

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
export async function fills(app: App): Promise<(string | null)[] | null> {
  if (app.colour === 'phase') {
    replace(app.legend);
    return null;
  }
  if (app.colour === 'kernel') {
    replace(app.legend);
    return (await app.client.kernelOf()).map((kernel) => (kernel < 0 ? null : kernelColour(kernel, app.theme === dark)));
  }
  const { values, min, max } = await app.client.metric(app.colour);
  if (!Number.isFinite(min)) {
    replace(app.legend, `${app.colour}: ${app.words.unknown}`);
    return null;
  }
  const place = scale(min, max);
  replace(
    app.legend,
    h('b', {}, app.colour),
    h('span', {}, metricText(app.colour, min, app.words)),
    h('i', { style: `background:${RAMP_CSS}` }),
    h('span', {}, metricText(app.colour, max, app.words)),
  );
  return values.map((value) => (value === null ? null : ramp(place(value))));
}
