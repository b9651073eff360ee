// Around a drawing: its title above, and below it what its colours mean.

import { fitText } from '../draw/label.ts';
import type { Rect } from '../draw/viewport.ts';
import type { Theme } from '../draw/theme.ts';
import { DETAIL_SIZE, TITLE_SIZE } from '../picture/sizes.ts';
import { BoxKind, type Scene } from '../scene.ts';
import { textWidth } from '../text/widths.ts';
import { colour, escape, num } from './escape.ts';

/** A colour and what it means, or a scale from one figure to another. */
export type LegendRow = { colour: string; text: string } | { ramp: readonly string[]; from: string; to: string; text: string };

/** The phases of what is drawn, by their names. */
export function phaseLegend({ boxes }: Scene, theme: Theme, names: readonly string[]): LegendRow[] {
  const seen = new Set(boxes.phase.filter((_, box) => boxes.kind[box] !== BoxKind.Input && boxes.kind[box] !== BoxKind.Loss));
  return names.flatMap((text, i) => (seen.has(i) ? [{ colour: theme.phases[i]!.accent, text }] : []));
}

const TITLE_ROOM = 34;
const ROW = 22;
const GAP = 18;
const SWATCH = 12;
const RAMP = 90;
const MARGIN = 16;

export interface Around {
  head: string;
  legend: readonly LegendRow[];
}

interface Laid {
  row: LegendRow;
  x: number;
  y: number;
}

/** Where each entry of the legend is, in lines no longer than `width`. */
function lay(rows: readonly LegendRow[], width: number): { laid: Laid[]; height: number } {
  const laid: Laid[] = [];
  let [x, y] = [MARGIN, 0];
  for (const row of rows) {
    const wide = widthOf(row);
    if (x > MARGIN && x + wide > width - MARGIN) [x, y] = [MARGIN, y + ROW];
    laid.push({ row, x, y });
    x += wide + GAP;
  }
  return { laid, height: rows.length ? y + ROW + MARGIN / 2 : 0 };
}

function widthOf(row: LegendRow): number {
  const text = textWidth(row.text, DETAIL_SIZE);
  return 'ramp' in row ? text + RAMP + textWidth(row.from + row.to, DETAIL_SIZE) + 30 : SWATCH + 6 + text;
}

/** The region with room for what stands around it. */
export function withRoom(region: Rect, { head, legend }: Around): Rect {
  const above = head ? TITLE_ROOM : 0;
  return { ...region, y: region.y - above, height: region.height + above + lay(legend, region.width).height };
}

/** `region`: without the room. */
export function writeAround(region: Rect, { head, legend }: Around, theme: Theme): string[] {
  const out: string[] = [];
  if (head) {
    const text = fitText(head, region.width - 2 * MARGIN, TITLE_SIZE + 2, true);
    out.push(
      `<text class="g" style="font-size:${TITLE_SIZE + 2}px" x="${num(region.x + MARGIN)}" y="${num(region.y - 10)}">${escape(text)}</text>`,
    );
  }
  const bottom = region.y + region.height;
  lay(legend, region.width).laid.forEach(({ row, x, y }, i) => {
    const [left, top] = [region.x + x, bottom + y];
    const say = (text: string, at: number) => out.push(`<text class="d" x="${num(at)}" y="${num(top + 10)}">${escape(text)}</text>`);
    if (!('ramp' in row)) {
      out.push(
        `<rect x="${num(left)}" y="${num(top)}" width="${SWATCH}" height="${SWATCH}" rx="3" fill="${colour(row.colour)}" stroke="${theme.panelBorder}"/>`,
      );
      say(row.text, left + SWATCH + 6);
      return;
    }
    const stops = row.ramp.map((at, k) => `<stop offset="${num(k / (row.ramp.length - 1))}" stop-color="${colour(at)}"/>`);
    const text = textWidth(row.text, DETAIL_SIZE) + 8;
    const from = text + textWidth(row.from, DETAIL_SIZE) + 6;
    out.push(`<linearGradient id="ramp${i}">${stops.join('')}</linearGradient>`);
    say(row.text, left);
    say(row.from, left + text);
    out.push(`<rect x="${num(left + from)}" y="${num(top)}" width="${RAMP}" height="${SWATCH}" rx="3" fill="url(#ramp${i})"/>`);
    say(row.to, left + from + RAMP + 6);
  });
  return out;
}
