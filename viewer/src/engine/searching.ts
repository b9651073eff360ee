// What a search leads to: operators, and the modules that it names. Where nothing has all the words, what most of them lead
// to; and how a field that is being typed may go on.

import { find } from '../find/find.ts';
import { Conditions } from '../find/conditions.ts';
import { textTest } from '../find/match.ts';
import { FIELDS, parse, termText, type Term } from '../find/parse.ts';
import { PHASES, ROLES } from '../scene.ts';
import { scopeLabel, scopePath } from '../wire/scopes.ts';
import { kindsOf } from './kinds.ts';
import { figuresOf, idsOf } from './measured.ts';
import { TIME } from './metrics.ts';
import { ownOf } from './own.ts';
import type { View } from './view.ts';

const MOST_WORDS = 6; // of a query that is relaxed
const MOST_MODULES = 200;
const MOST_OFFERED = 8;

export interface Found {
  nodes: number[];
  modules: number[];
  error: string;
  /** Nothing has all the words: those that were left out, and those that were found; a number as a part of a path. */
  relaxed?: { left: string[]; kept: string[] };
}

async function known({ capture, stage, metrics }: View) {
  const [kinds, figure, id, own] = await Promise.all([
    kindsOf(capture, stage),
    figuresOf(capture, stage),
    idsOf(capture, stage),
    ownOf(capture, stage),
    metrics.measured,
  ]);
  return { kinds, measured: { time: (node: number) => metrics.value(TIME, node), figure, id, own } };
}

export async function found(view: View, query: string, gently = false): Promise<Found> {
  const { capture, graph } = view;
  const { kinds, measured } = await known(view);
  try {
    const nodes = [...find(graph, capture.pools, query, kinds, measured)];
    const steps = parse(
      query,
      measured.own.map(({ name }) => name),
    );
    const terms = steps.length === 1 ? steps[0]!.terms : [];
    const words = terms.every(({ field, kind, negated }) => !field && kind === 'word' && !negated);
    if (nodes.length || !gently || !words || terms.length > MOST_WORDS) return { nodes, modules: modules(view, terms), error: '' };
    return relax(terms, new Conditions(graph, capture.pools, kinds, measured), view);
  } catch (error) {
    return { nodes: [], modules: [], error: error instanceof Error ? error.message : String(error) };
  }
}

/** A number is a part of a path: `softmax 7` is the softmax in `h/7`. */
function asPath(term: Term): Term {
  return /^\d+$/.test(term.text) ? { field: 'scope', kind: 'regex', text: `(^|[/.])${term.text}($|[/.#])`, negated: false } : term;
}

/** As many of the words as lead anywhere together, the first ones rather than the last. */
function relax(words: readonly Term[], conditions: Conditions, view: View): Found {
  const terms = words.map(asPath);
  const masks = terms.map((term) => conditions.allOf([term]));
  const size = (set: number) => terms.filter((_, i) => set & (1 << i)).length;
  const sets = Array.from({ length: 2 ** terms.length - 1 }, (_, i) => i + 1).sort((a, b) => size(b) - size(a) || a - b);
  for (const set of sets) {
    const of = masks.filter((_, i) => set & (1 << i));
    const nodes: number[] = [];
    for (let node = 0; node < view.graph.nodes; node++) if (of.every((mask) => mask[node])) nodes.push(node);
    if (!nodes.length) continue;
    const kept = terms.filter((_, i) => set & (1 << i));
    const left = words.filter((_, i) => !(set & (1 << i))).map(termText);
    const said = kept.map((term) => (term.field ? `…/${words[terms.indexOf(term)]!.text}` : termText(term)));
    return { nodes, modules: modules(view, kept), error: '', relaxed: { left, kept: said } };
  }
  return { nodes: [], modules: [], error: '' };
}

/** Modules whose path and class have all the words, and whose own name or class has one: each once, by its first phase. */
function modules({ tree, capture: { pools } }: View, terms: readonly Term[]): number[] {
  if (!terms.length || terms.some(({ field, negated }) => negated || (field && field !== 'scope' && field !== 'class'))) return [];
  const tests = terms.map((term) => ({ field: term.field, test: textTest(term) }));
  const seen = new Set<number>();
  const all: [group: number, rank: number][] = [];
  const plain = terms.map(({ text }) => text.toLowerCase());
  for (let g = 1; g < tree.groups && all.length < 50 * MOST_MODULES; g++) {
    const scope = tree.scope[g]!;
    if (scope <= 0 || tree.isPhase[g] || tree.purpose[g]! >= 0 || tree.labels.has(g) || seen.has(scope)) continue;
    const [path, cls, own] = [scopePath(pools, scope), pools.scopes.cls.at(scope), scopeLabel(pools, scope)];
    const has = ({ field, test }: (typeof tests)[number], name: string) =>
      (field !== 'class' && test(name)) || (field !== 'scope' && test(cls));
    if (!tests.every((one) => has(one, path)) || !tests.some((one) => has(one, own))) continue;
    seen.add(scope);
    all.push([g, plain.includes(own.toLowerCase()) ? 0 : plain.includes(cls.toLowerCase()) ? 1 : 2]);
  }
  return all
    .sort(([a, rank], [b, other]) => rank - other || tree.first[a]! - tree.first[b]!)
    .slice(0, MOST_MODULES)
    .map(([g]) => tree.nodes + g);
}

/** How a word may go on: with the name of a field, or after one with a value of this graph, the commonest first. */
export async function completions(view: View, word: string): Promise<string[]> {
  const minus = word.startsWith('-') ? '-' : '';
  const [field, part] = word.slice(minus.length).split(/:(.*)/s) as [string, string | undefined];
  const { kinds, measured } = await known(view);
  const fits = (list: string[], text: string) => {
    const wanted = text.toLowerCase();
    const rank = (one: string) => (one.toLowerCase().startsWith(wanted) ? 0 : one.toLowerCase().includes(wanted) ? 1 : 2);
    return list.filter((one) => rank(one) < 2).sort((a, b) => rank(a) - rank(b));
  };
  if (part === undefined) {
    const names = [...FIELDS, ...measured.own.map(({ name }) => name)].filter((name) => name.toLowerCase().startsWith(field.toLowerCase()));
    return field ? names.slice(0, MOST_OFFERED).map((name) => `${minus}${name}:`) : [];
  }
  const values = fits(valuesOf(view, field.toLowerCase(), kinds), part).slice(0, MOST_OFFERED);
  const quoted = (text: string) => (/[\s"]|^\//.test(text) ? `"${text.replace(/(["\\])/g, '\\$1')}"` : text);
  return values.length === 1 && values[0] === part ? [] : values.map((one) => `${minus}${field}:${quoted(one)}`);
}

function valuesOf({ graph, capture: { pools }, tree }: View, field: string, kinds: Awaited<ReturnType<typeof known>>['kinds']): string[] {
  const counts = new Map<string, number>();
  const count = (of: ArrayLike<number>, text: (i: number) => string): string[] => {
    const times = new Map<number, number>();
    for (let i = 0; i < of.length; i++) times.set(of[i]!, (times.get(of[i]!) ?? 0) + 1);
    for (const [i, n] of times) if (i >= 0 && text(i)) counts.set(text(i), (counts.get(text(i)) ?? 0) + n);
    return [...counts].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  };
  switch (field) {
    case 'op':
      return count(graph.op, (i) => pools.strings.at(i));
    case 'kind':
      return count(graph.op, (i) => (i > 0 ? kinds.ofOp(i) : ''));
    case 'phase':
      return count(graph.phase, (i) => PHASES[i]!);
    case 'role':
      return [...ROLES];
    case 'dtype':
      return count(graph.type, (i) => pools.types.dtype.at(i));
    case 'class':
      return count(tree.scope, (i) => pools.scopes.cls.at(i));
    case 'scope':
      return count(tree.scope.subarray(0, 5000), (i) => (i > 0 ? scopePath(pools, i) : ''));
    default:
      return [];
  }
}
