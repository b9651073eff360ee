// The search language, parsed. docs/find.md says it in words; src/opscope/analysis/search/query.py reads the same language.

import { VALUE_FIGURES } from '../wire/facts.ts';

export const FIELDS = [
  'op',
  'kind',
  'name',
  'scope',
  'class',
  'phase',
  'role',
  'dtype',
  'shape',
  'attr',
  'file',
  'line',
  'kernel',
  'id',
  'time',
  ...VALUE_FIGURES,
] as const;
/** '': a plain word; others may be columns of the user's own. */
export type Field = string;
export const MOST_STEPS = 16;

/** One condition on a node. */
export interface Term {
  field: Field;
  text: string;
  kind: 'word' | 'quoted' | 'regex';
  negated: boolean;
}

/** One node of a path, which all terms must hold for; with `anyNumber`, 0 to 10 nodes of any kind. */
export interface Step {
  terms: Term[];
  anyNumber: boolean;
}

/** A query that cannot be read; says where. */
export class BadQuery extends Error {
  override name = 'BadQuery';
}

// What Python takes for white space; \s of JavaScript is not quite the same.
const SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;
const EDGES = new RegExp(`^${SPACE.source}+|${SPACE.source}+$`, 'g');

export function strip(text: string): string {
  return text.replace(EDGES, '');
}

/** The steps of a query: one, unless it is a path. */
export function parse(query: string, own: readonly string[] = []): Step[] {
  if (!strip(query)) {
    throw new BadQuery('the query is empty: type a word, such as conv, or a field, such as op:conv');
  }
  const parts: Term[][] = [[]];
  let at = 0;
  while (at < query.length) {
    if (SPACE.test(query[at]!)) {
      at++;
    } else if (query.startsWith('->', at)) {
      parts.push([]);
      at += 2;
    } else {
      const [term, end] = readTerm(query, at, own);
      parts.at(-1)!.push(term);
      at = end;
    }
  }
  if (parts.length > MOST_STEPS) throw new BadQuery(`the path has ${parts.length} steps; ${MOST_STEPS} are the most`);
  return parts.map(toStep);
}

/** A term as it could have been typed. */
export function termText({ field, text, kind, negated }: Term): string {
  const value = kind === 'word' ? text : kind === 'quoted' ? `"${text}"` : `/${text}/`;
  return `${negated ? '-' : ''}${field && `${field}:`}${value}`;
}

function toStep(terms: Term[]): Step {
  if (!terms.length) throw new BadQuery('a step of the path is empty: there must be something on both sides of ->');
  const star = terms.find(({ kind, field, text }) => kind === 'word' && !field && (text === '*' || text === '**'));
  if (!star) return { terms, anyNumber: false };
  const several = star.text === '**';
  if (terms.length > 1 || star.negated) {
    throw new BadQuery(`${star.text} cannot be combined: it means any node${several ? 's' : ''}`);
  }
  return { terms: [], anyNumber: several };
}

function readTerm(query: string, start: number, own: readonly string[]): [Term, number] {
  const negated = query[start] === '-';
  let at = start + (negated ? 1 : 0);
  let field: Field = '';
  const wide = /([\p{L}_][\p{L}\p{N}_]*):(?!:)/uy;
  wide.lastIndex = at;
  const written = wide.exec(query)?.[1]?.toLowerCase();
  const mine = own.find((one) => one.toLowerCase() === written);
  const name = /[A-Za-z]+:(?!:)/y;
  name.lastIndex = at;
  if (mine !== undefined) {
    field = mine;
    at = wide.lastIndex;
  } else if (name.test(query)) {
    const written = query.slice(at, name.lastIndex - 1);
    const known = FIELDS.find((f) => f === written.toLowerCase());
    if (!known) {
      throw new BadQuery(
        `no field ${written} (there are: ${[...FIELDS, ...own].join(', ')}); to look for the text itself, put it in quotes`,
      );
    }
    field = known;
    at = name.lastIndex;
  }
  const [text, kind, end] = readText(query, at);
  if (!text) throw new BadQuery(`${query.slice(start, end)} has nothing to look for`);
  if (kind !== 'word' && end < query.length && !SPACE.test(query[end]!) && !query.startsWith('->', end)) {
    throw new BadQuery(
      `${excerpt(query, end)} comes right after a closing ${kind === 'regex' ? '/' : '"'}: ` +
        'put a space between, or all of it in quotes',
    );
  }
  return [{ field, text, kind, negated }, end];
}

/** A word, "quoted text" or /regex/ that starts at `at`, and where it ends. */
function readText(query: string, at: number): [string, Term['kind'], number] {
  if (query[at] === '"') {
    const end = closing(query, at);
    if (end < 0) throw new BadQuery(`the quote at ${excerpt(query, at)} is not closed`);
    return [query.slice(at + 1, end).replace(/\\(["\\])/g, '$1'), 'quoted', end + 1];
  }
  if (query[at] === '/') {
    const end = closing(query, at);
    if (end < 0) throw new BadQuery(`the regex at ${excerpt(query, at)} has no closing /; a path goes in quotes`);
    return [query.slice(at + 1, end), 'regex', end + 1];
  }
  let end = at;
  while (end < query.length && !SPACE.test(query[end]!) && !query.startsWith('->', end)) end++;
  return [query.slice(at, end), 'word', end];
}

/** Where the mark at `at` comes again, not after a backslash; -1: nowhere. */
function closing(query: string, at: number): number {
  for (let i = at + 1; i < query.length; i++) {
    if (query[i] === query[at]) return i;
    if (query[i] === '\\') i++;
  }
  return -1;
}

function excerpt(query: string, at: number): string {
  return [...query.slice(at, at + 40)].slice(0, 20).join('');
}
