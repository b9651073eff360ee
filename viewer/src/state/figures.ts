// Figures of operators in the language of the page.

import { figureText } from '../text/figures.ts';
import type { Words } from './words.ts';

export function metricText(metric: string, value: number | null, words: Words): string {
  return figureText(metric, value) ?? words.unknown;
}

export function metricName(metric: string, words: Words): string {
  return (words.costs.columns as Record<string, string>)[metric] ?? metric;
}

/** `exact`, `estimated, at least`, in words. */
export function howText(how: string, words: Words): string {
  return how
    .split(', ')
    .map((part) => (words.costs.hows as Record<string, string>)[part] ?? part)
    .join(', ');
}
