// Colours for figures and for kernels.

import { KERNEL_COLOURS, LEAST, MOST, NONE, NOTHING, UNKNOWN } from '../engine/shades.ts';

/** Dark blue to yellow, even to the eye and safe for colour-blind readers (points of the viridis family). */
export const RAMP = ['#440154', '#46327e', '#365c8d', '#277f8e', '#1fa187', '#4ac16d', '#a0da39', '#fde725'];

function ramp(t: number): string {
  const at = Math.max(0, Math.min(1, t)) * (RAMP.length - 1);
  const low = Math.floor(at);
  const from = parse(RAMP[low]!);
  const to = parse(RAMP[Math.min(low + 1, RAMP.length - 1)]!);
  return `rgb(${from.map((c, i) => Math.round(c + (to[i]! - c) * (at - low))).join(',')})`;
}

export const RAMP_CSS = `linear-gradient(to right, ${RAMP.join(', ')})`;

function parse(hex: string): number[] {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

/** By shade (engine/shades.ts). */
export function shadeColours(nothing: string, unknown: string): (string | null)[] {
  const colours: (string | null)[] = [];
  colours[NONE] = null;
  colours[UNKNOWN] = unknown;
  colours[NOTHING] = nothing;
  for (let shade = LEAST; shade <= MOST; shade++) colours[shade] = ramp((shade - LEAST) / (MOST - LEAST));
  return colours;
}

/** None, then one for each kernel as the engine counts them: neighbours get colours far apart. */
export function kernelColours(dark: boolean): (string | null)[] {
  const hues = Array.from({ length: KERNEL_COLOURS }, (_, kernel) => ((kernel * 137.508) % 360).toFixed(0));
  return [null, ...hues.map((hue) => (dark ? `hsl(${hue} 45% 34%)` : `hsl(${hue} 70% 84%)`))];
}

/** None, then one for each class: hues far apart, the first of them the farthest. */
export function classColours(count: number, dark: boolean): (string | null)[] {
  const hues = [215, 28, 275, 140, 345, 185, 55, 310, 100, 5, 240, 165, 80, 330, 260];
  const of = (i: number) => hues[i] ?? Math.round((i * 137.508) % 360);
  return [null, ...Array.from({ length: count }, (_, i) => (dark ? `hsl(${of(i)} 42% 33%)` : `hsl(${of(i)} 72% 84%)`))];
}

/** `latency:mean,log`: a figure, how what is inside is rolled up, on a logarithmic scale. */
export function colourParts(colour: string): { base: string; roll: string; isLog: boolean } {
  const [figure = '', ...how] = colour.split(',');
  const [base = '', roll = ''] = figure.split(':');
  return { base, roll, isLog: how.includes('log') };
}

export function colourText({ base, roll, isLog }: ReturnType<typeof colourParts>): string {
  return `${base}${roll && `:${roll}`}${isLog ? ',log' : ''}`;
}
