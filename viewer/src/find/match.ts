// What a term says of one text, shape, frame or set of attributes. Nothing here knows of graphs.

import { BadQuery, strip, termText, type Term } from './parse.ts';
import { regex } from './regex.ts';
import { jsonItems, jsonMembers } from './json.ts';

export type Test = (text: string) => boolean;

/** A regex, or a word with `*`. */
export function isPattern(term: Term): boolean {
  return term.kind === 'regex' || (term.kind === 'word' && term.text.includes('*'));
}

/** Contains the text, in any case; `*` in a word stands for any characters; or the regex is found. */
export function textTest(term: Term): Test {
  if (term.kind === 'regex') {
    const pattern = regex(term.text);
    return (text) => pattern.test(text);
  }
  const wanted = term.text.toLowerCase();
  if (term.kind !== 'word' || !wanted.includes('*')) return (text) => text.toLowerCase().includes(wanted);
  const parts = wanted.split('*').filter(Boolean);
  return (text) => endOfParts(text.toLowerCase(), parts, 0) >= 0;
}

/** Equal, in any case; `*` stands for any characters. */
export function wholeTest(pattern: string): Test {
  const parts = pattern.toLowerCase().split('*');
  const [first, last] = [parts[0]!, parts.at(-1)!];
  if (parts.length === 1) return (text) => text.toLowerCase() === first;
  const between = parts.slice(1, -1).filter(Boolean);
  return (text) => {
    const lower = text.toLowerCase();
    if (!lower.startsWith(first) || !lower.endsWith(last)) return false;
    const end = endOfParts(lower, between, first.length);
    return end >= 0 && end <= lower.length - last.length;
  };
}

/** Where the last of the parts ends, when each is taken as early as it comes; -1: one is missing. */
function endOfParts(text: string, parts: readonly string[], from: number): number {
  for (const part of parts) {
    const found = text.indexOf(part, from);
    if (found < 0) return -1;
    from = found + part.length;
  }
  return from;
}

/** Which of the names (of phases, of roles) begin with the text. */
export function chosen(names: readonly string[], term: Term): boolean[] {
  if (term.kind === 'regex') return names.map(textTest(term));
  const begin = term.text.toLowerCase();
  const found = names.map((name) => name.startsWith(begin));
  if (!found.includes(true)) throw new BadQuery(`no ${term.field} ${term.text} (there are: ${names.join(', ')})`);
  return found;
}

/**
 * `64x*` or `[64,*]`: one pattern for each dimension; `**` stands for any number of dimensions. The test takes a shape
 * as the file has it: JSON.
 */
export function shapeTest(term: Term): Test {
  if (term.kind === 'regex') {
    const pattern = regex(term.text);
    return (shape) => {
      const dims = dimsOf(shape);
      return dims !== null && pattern.test(dims.join('x'));
    };
  }
  const inner = term.text.replace(/^[[\]]+|[[\]]+$/g, '');
  const parts = inner ? inner.split(inner.includes(',') ? ',' : /[x×]/).map(strip) : [];
  if (parts.includes('')) {
    throw new BadQuery(`${termText(term)}: a dimension is empty; a shape looks like 64x*x3, [64,*,3], or [] for a single number`);
  }
  const tests = parts.map((part) => (part === '**' ? null : wholeTest(part)));
  return (shape) => {
    const dims = dimsOf(shape);
    return dims !== null && dimsMatch(dims, tests);
  };
}

/** null among the tests: any number of dimensions. */
function dimsMatch(dims: readonly string[], tests: readonly (Test | null)[]): boolean {
  let [dim, test] = [0, 0];
  let [backDim, backTest] = [-1, -1]; // the last `**`, and up to where it reaches so far
  while (dim < dims.length) {
    const here = tests[test];
    if (here === null) {
      [backDim, backTest] = [dim, test++];
    } else if (here?.(dims[dim]!)) {
      dim++;
      test++;
    } else if (backTest >= 0) {
      dim = ++backDim;
      test = backTest + 1;
    } else {
      return false;
    }
  }
  while (tests[test] === null) test++;
  return test === tests.length;
}

/** The dimensions as text; null where the shape is not known. */
function dimsOf(shape: string): string[] | null {
  return shape.startsWith('[') ? jsonItems(shape).map((dim) => (dim === 'null' ? '?' : dim)) : null;
}

export function frameTest(term: Term): (file: string, line: number) => boolean {
  if (term.field === 'file') {
    const test = textTest(term);
    return (file) => file !== '' && test(file);
  }
  const found = term.kind === 'word' ? /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(term.text) : null;
  if (!found) {
    throw new BadQuery(`${termText(term)}: a line is a number, such as line:12, or a range, such as line:10-20`);
  }
  const first = Number(found[1]);
  const last = Number(found[2] ?? found[1]);
  return (_, line) => first <= line && line <= last;
}

/** A key or a value contains the text; `key=value` is both in full; a regex is tried on the JSON text. */
export function attrTest(term: Term): Test {
  if (term.kind === 'regex') return textTest(term);
  const equals = term.kind === 'word' ? term.text.indexOf('=') : -1;
  if (equals < 0) {
    const test = textTest(term);
    return (json) => jsonMembers(json).some(([key, value]) => test(key) || test(value));
  }
  const [key, value] = [term.text.slice(0, equals), term.text.slice(equals + 1)];
  if (!key || !value) {
    throw new BadQuery(`${termText(term)}: both sides of = are needed, as in attr:stride=2`);
  }
  const [isKey, isValue] = [wholeTest(key), wholeTest(value)];
  return (json) => jsonMembers(json).some(([k, v]) => isKey(k) && isValue(v));
}
