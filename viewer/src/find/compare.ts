// Terms on figures: `time:>1ms`, `nan:>0`, `max:-1..1`. src/opscope/analysis/search/comparisons.py reads the same.

import { TIME_UNITS } from '../wire/facts.ts';
import { BadQuery, termText, type Term } from './parse.ts';

const NUMBER = /^([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)(\D*)$/i;
const SUFFIXES: Readonly<Record<string, number>> = { '': 1, k: 1e3, m: 1e6, g: 1e9 };
const TIMES: Readonly<Record<string, number>> = { ...TIME_UNITS, µs: TIME_UNITS.us!, μs: TIME_UNITS.us! };

/** What a term says of a figure. `*` is any figure that is known. */
export function comparison(term: Term): (figure: number) => boolean {
  const found = term.kind === 'word' ? /^(>=|<=|>|<)?([^]+)$/.exec(term.text) : null;
  if (!found) throw unreadable(term);
  const [, sign, rest] = found as unknown as [string, string | undefined, string];
  if (!sign && rest === '*') return () => true;
  const dots = sign ? -1 : rest.indexOf('..');
  if (dots >= 0) {
    const [low, high] = [number(rest.slice(0, dots), term), number(rest.slice(dots + 2), term)];
    return (figure) => low <= figure && figure <= high;
  }
  const bound = number(rest, term);
  switch (sign) {
    case '>':
      return (figure) => figure > bound;
    case '>=':
      return (figure) => figure >= bound;
    case '<':
      return (figure) => figure < bound;
    case '<=':
      return (figure) => figure <= bound;
    default:
      return (figure) => figure === bound;
  }
}

/** A plain number with k, M or G behind it; of a time, with its unit. In seconds. */
function number(text: string, term: Term): number {
  const units = term.field === 'time' ? TIMES : SUFFIXES;
  const found = NUMBER.exec(text);
  const unit = found?.[2]!.toLowerCase() ?? '';
  if (!found || !Object.hasOwn(units, unit)) throw unreadable(term);
  // Divided by a whole number: 5us are then exactly the 5e-6 that a file may say.
  const size = units[unit]!;
  return size >= 1 ? Number(found[1]) * size : Number(found[1]) / Math.round(1 / size);
}

function unreadable(term: Term): BadQuery {
  const text = termText(term);
  if (term.field === 'time') {
    return new BadQuery(`${text}: a time has a unit, as in time:>1ms, time:10us..1ms, or time:* for any known time`);
  }
  return new BadQuery(`${text}: ${term.field} is compared with a number, as in ${term.field}:>0, ${term.field}:-1..1 or :*`);
}
