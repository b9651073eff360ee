// What is lit and how boxes are coloured: changes without a new layout.

import { dark } from '../draw/theme.ts';
import { h, replace } from '../panels/dom.ts';
import { metricText } from '../panels/table.ts';
import { kernelColour, ramp, RAMP_CSS, scale } from '../state/colours.ts';
import type { App } from './app.ts';

export async function repaint(app: App, dim = false): Promise<void> {
  if (!app.picture) return;
  const [selected, related, found] = await Promise.all([
    app.client.boxes(app.selection),
    app.client.boxes(app.related),
    app.client.boxes(app.found.length > 20_000 ? app.found.slice(0, 20_000) : app.found),
  ]);
  app.renderer.setPaint({
    selected: new Set(selected),
    related: new Set(related),
    found: new Set(found),
    dim: (dim && related.length > 0) || (found.length > 0 && selected.length === 0),
    links: await app.client.pairs(app.allPairs ? null : (app.selection.at(-1) ?? -1)),
    fill: await fills(app),
  });
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
