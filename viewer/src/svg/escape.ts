// Text and numbers as XML allows them.
import { clean } from '../draw/label.ts';

const SIGNS: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** Any string, harmless between tags and in quotes. */
export function escape(text: string): string {
  return clean(text).replace(/[&<>"']/g, (c) => SIGNS[c]!);
}

/** At most two decimals; what is not a number becomes 0. */
export function num(v: number): string {
  return Number.isFinite(v) ? String(Math.round(v * 100) / 100) : '0';
}

/** A colour that came from outside: letters, digits, #, %, commas, dots, brackets and blanks only. */
export function colour(css: string): string {
  return /^[#a-z0-9(),.%\s-]+$/i.test(css) ? css : '#808080';
}
