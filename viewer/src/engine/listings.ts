// The framework's own texts of a stage, and which line of them belongs to which operator.

/** Kinds in the order they are offered; others come after, by name. */
const ORDER = ['table', 'code', 'native', 'signature', 'symbols', 'breaks'];

export class Listings {
  readonly kinds: string[];
  private links = new Map<string, Int32Array>();

  constructor(
    private texts: Map<string, () => string>,
    private nodes: number,
  ) {
    const place = (kind: string) => (ORDER.includes(kind) ? ORDER.indexOf(kind) : ORDER.length);
    this.kinds = [...texts.keys()]
      .filter((kind) => !kind.endsWith('.nodes') && kind !== 'changes') // what a stage changed has a list of its own
      .sort((a, b) => place(a) - place(b) || (a < b ? -1 : a > b ? 1 : 0));
  }

  /** Kinds whose lines are joined to operators. */
  get linked(): string[] {
    return this.kinds.filter((kind) => this.texts.has(`${kind}.nodes`));
  }

  text(kind: string): string {
    return this.kinds.includes(kind) ? this.texts.get(kind)!() : '';
  }

  /** Line, operator, line, operator …, by line. What is no such pair is left out: the text is there without it. */
  pairs(kind: string): Int32Array {
    const known = this.links.get(kind);
    if (known) return known;
    const found: [number, number][] = [];
    for (const pair of parsed(this.texts.get(`${kind}.nodes`)?.() ?? '[]')) {
      if (!Array.isArray(pair) || !pair.every(Number.isInteger)) continue;
      const [line, node] = pair as [number, number];
      if (line >= 1 && node >= 0 && node < this.nodes) found.push([line, node]);
    }
    const pairs = Int32Array.from(found.sort((a, b) => a[0] - b[0] || a[1] - b[1]).flat());
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

function parsed(json: string): unknown[] {
  try {
    const value = JSON.parse(json) as unknown;
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
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
