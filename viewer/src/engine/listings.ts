// The framework's own texts of a stage, and which line of them belongs to which operator.

import type { Listing, Place } from '../wire/capture.ts';
import { FACTS } from '../wire/facts.ts';

/** Kinds in the order they are offered; others come after, by name. */
const ORDER: string[] = ['table', 'code', 'native', 'signature', 'symbols', FACTS.breaks.name];

export class Listings {
  readonly kinds: string[];
  private links = new Map<string, Int32Array>();

  constructor(
    private texts: Map<string, Listing>,
    private nodes: number,
  ) {
    const place = (kind: string) => (ORDER.includes(kind) ? ORDER.indexOf(kind) : ORDER.length);
    this.kinds = [...texts.keys()].sort((a, b) => place(a) - place(b) || (a < b ? -1 : a > b ? 1 : 0));
  }

  /** Kinds whose lines are joined to operators. */
  get linked(): string[] {
    return this.kinds.filter((kind) => this.texts.get(kind)!.line.length);
  }

  text(kind: string): string {
    return this.texts.get(kind)?.text() ?? '';
  }

  /** The places of its lines in the user's code, where they have any. */
  places(kind: string): Place[] {
    return this.texts.get(kind)?.places ?? [];
  }

  /** Line, operator, line, operator …, by line. */
  pairs(kind: string): Int32Array {
    const known = this.links.get(kind);
    if (known) return known;
    const { line, node } = this.texts.get(kind) ?? { line: [], node: [] };
    const rows = [...line.keys()].filter((i) => line[i]! >= 1 && node[i]! >= 0 && node[i]! < this.nodes);
    rows.sort((a, b) => line[a]! - line[b]! || node[a]! - node[b]!);
    const pairs = Int32Array.from(rows.flatMap((i) => [line[i]!, node[i]!]));
    this.links.set(kind, pairs);
    return pairs;
  }

  /** The lines of operators, each once, in order. */
  lines(kind: string, nodes: Iterable<number>): number[] {
    const wanted = new Set(nodes);
    const pairs = this.pairs(kind);
    const lines: number[] = [];
    for (let i = 0; i < pairs.length; i += 2) if (wanted.has(pairs[i + 1]!) && lines.at(-1) !== pairs[i]) lines.push(pairs[i]!);
    return lines;
  }
}

/** The operators of a line. */
export function nodesAt(pairs: Int32Array, line: number): number[] {
  let [low, high] = [0, pairs.length / 2];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (pairs[2 * middle]! < line) low = middle + 1;
    else high = middle;
  }
  const nodes: number[] = [];
  for (; pairs[2 * low] === line; low++) nodes.push(pairs[2 * low + 1]!);
  return nodes;
}

/** Lines as Python's `splitlines` counts them, because the pairs were made with it. */
export function splitLines(text: string): string[] {
  const lines = text.split(/\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/);
  if (lines.at(-1) === '') lines.pop();
  return lines;
}
