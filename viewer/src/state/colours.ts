// Colours for figures and for kernels.

/** Dark blue to yellow, even to the eye and safe for colour-blind readers (points of the viridis family). */
const RAMP = ['#440154', '#46327e', '#365c8d', '#277f8e', '#1fa187', '#4ac16d', '#a0da39', '#fde725'];

export function ramp(t: number): string {
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

/** Figures often differ a thousandfold: the scale is logarithmic where they do. */
export function scale(min: number, max: number): (value: number) => number {
  if (!(max > min)) return () => 0.5;
  if (min >= 0 && max / Math.max(min, max / 1e6) > 100) {
    const low = Math.log(Math.max(min, max / 1e6));
    const high = Math.log(max);
    return (value) => (Math.log(Math.max(value, max / 1e6)) - low) / (high - low);
  }
  return (value) => (value - min) / (max - min);
}

/** Neighbouring kernels get colours far apart. */
export function kernelColour(index: number, dark: boolean): string {
  const hue = (index * 137.508) % 360;
  return dark ? `hsl(${hue.toFixed(0)} 45% 34%)` : `hsl(${hue.toFixed(0)} 70% 84%)`;
}
