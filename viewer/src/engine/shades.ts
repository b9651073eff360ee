// Figures of boxes as shades of one ramp: what the page colours them by.

/** Of what is open: its inside has shades. */
export const NONE = 0;
/** Nothing is not little: it has a shade of its own. */
export const NOTHING = 1;
export const LEAST = 2;
export const MOST = 254;
export const UNKNOWN = 255;

/** Kernels beyond these have the colours of earlier ones. */
export const KERNEL_COLOURS = 1024;

/** The shade of each figure (NaN: none), and the least and the most of them; no figure at all: Infinity and -Infinity. */
export function shadesOf(figures: Float64Array, isLog = false, fromZero = false): { shades: Uint8Array; min: number; max: number } {
  let min = Infinity;
  let max = -Infinity;
  for (const figure of figures) {
    if (figure < min) min = figure;
    if (figure > max) max = figure;
  }
  if (fromZero && !isLog && min > 0) min = 0;
  const place = scale(min, max, isLog);
  const shades = new Uint8Array(figures.length);
  for (let box = 0; box < shades.length; box++) {
    const figure = figures[box]!;
    if (Number.isNaN(figure)) continue;
    shades[box] = figure === 0 && max > 0 ? NOTHING : LEAST + Math.round(place(figure) * (MOST - LEAST));
  }
  return { shades, min, max };
}

/** By its share of the range; logarithmic where that is asked for, because figures often differ a thousandfold. */
export function scale(min: number, max: number, isLog: boolean): (value: number) => number {
  if (!(max > min)) return () => 0.5;
  if (isLog && min >= 0) {
    const low = Math.log(Math.max(min, max / 1e6));
    const high = Math.log(max);
    return (value) => (Math.log(Math.max(value, max / 1e6)) - low) / (high - low);
  }
  return (value) => (value - min) / (max - min);
}
