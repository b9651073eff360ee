// Colours as numbers 0xRRGGBB, for mixing, for contrast and for writing pixels.

const cache = new Map<string, number>();
const UNKNOWN = 0x808080;

/** Reads #rgb, #rrggbb, rgb() and hsl(); anything else is a middle grey. */
export function parseColour(css: string): number {
  let rgb = cache.get(css);
  if (rgb === undefined) {
    rgb = read(css.trim().toLowerCase());
    if (cache.size > 4096) cache.clear();
    cache.set(css, rgb);
  }
  return rgb;
}

function read(css: string): number {
  const hex = /^#([0-9a-f]{3,8})$/.exec(css)?.[1];
  if (hex !== undefined && hex.length >= 6) return parseInt(hex.slice(0, 6), 16);
  if (hex !== undefined) {
    const [r, g, b] = hex;
    return parseInt(`${r}${r}${g}${g}${b}${b}`, 16);
  }
  const call = /^(rgb|hsl)a?\(\s*([\d.+-]+)(?:deg)?[\s,]+([\d.+-]+)%?[\s,]+([\d.+-]+)%?/.exec(css);
  if (call === null) return UNKNOWN;
  const [a, b, c] = [Number(call[2]), Number(call[3]), Number(call[4])];
  return call[1] === 'rgb' ? pack(a, b, c) : fromHsl(a, b / 100, c / 100);
}

function fromHsl(h: number, s: number, l: number): number {
  const channel = (n: number): number => {
    const k = (((n + h / 30) % 12) + 12) % 12;
    return 255 * (l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1)));
  };
  return pack(channel(0), channel(8), channel(4));
}

function byte(v: number): number {
  return v < 0 ? 0 : v > 255 ? 255 : Math.round(v) || 0;
}

export function pack(r: number, g: number, b: number): number {
  return (byte(r) << 16) | (byte(g) << 8) | byte(b);
}

/** `a` at 0, `b` at 1. */
export function mix(a: number, b: number, t: number): number {
  return pack(
    (a >> 16) + ((b >> 16) - (a >> 16)) * t,
    ((a >> 8) & 255) + (((b >> 8) & 255) - ((a >> 8) & 255)) * t,
    (a & 255) + ((b & 255) - (a & 255)) * t,
  );
}

export function mixCss(a: string, b: string, t: number): string {
  return toCss(mix(parseColour(a), parseColour(b), t));
}

export function toCss(rgb: number): string {
  return `#${rgb.toString(16).padStart(6, '0')}`;
}

/** Relative luminance, as WCAG defines it. */
function luminance(rgb: number): number {
  const line = (v: number): number => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * line((rgb >> 16) / 255) + 0.7152 * line(((rgb >> 8) & 255) / 255) + 0.0722 * line((rgb & 255) / 255);
}

/** 1 (the same) to 21 (black on white). */
export function contrast(a: number, b: number): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}
