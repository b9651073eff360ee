// Figures of the user's own, joined to operators and modules. The rules are those of src/opscope/analysis/own.py, and
// tests/own_cases.json tests both.

import { FIELDS } from '../find/parse.ts';
import type { Capture, Graph, Pools } from '../wire/capture.ts';
import { FACTS, OWN_KEYS, OWN_LABELS, PHASES, VALUE_FIGURES } from '../wire/facts.ts';
import { scopePath } from '../wire/scopes.ts';
import { figuresOf } from './measured.ts';
import type { Columns } from './separated.ts';

type Cell = string | number;

/** A column: by operator, and by scope for whole modules. */
export interface OwnColumn {
  name: string;
  unit: string;
  isText: boolean;
  node: Map<number, Cell>;
  scope: Map<number, Cell>;
  roll?: 'max'; // of what is inside, where nothing else is asked for; else the sum
}

/** What became of a table. */
export interface Placement {
  name: string;
  columns: string[];
  rows: number;
  unmatched: [row: number, text: string][];
}

const kept = new WeakMap<Capture, Map<number, Promise<OwnColumn[]>>>();

/** The columns about a stage: those of the file, and what was dropped on the page. */
export function ownOf(capture: Capture, stage: number): Promise<OwnColumn[]> {
  let stages = kept.get(capture);
  if (!stages) kept.set(capture, (stages = new Map()));
  let columns = stages.get(stage);
  if (!columns) stages.set(stage, (columns = stored(capture, stage)));
  return columns;
}

async function stored(capture: Capture, stage: number): Promise<OwnColumn[]> {
  const found = new Map<string, OwnColumn>();
  for (const index of capture.facts(FACTS.own.name, stage)) {
    const { by, units } = capture.manifest.tables[index]!;
    const table = await capture.stored(index);
    const at = table.int32('index');
    for (const [name, unit] of Object.entries(units)) {
      const values = table.values(`column ${name}`);
      const known = table.has(`known ${name}`) ? table.values(`known ${name}`) : null;
      const isText = values.some((value) => typeof value === 'string');
      const column = found.get(name) ?? {
        name,
        unit,
        isText,
        node: new Map<number, Cell>(),
        scope: new Map<number, Cell>(),
        ...(unit === 'relative' && { roll: 'max' as const }), // such figures do not add up
      };
      found.set(name, column);
      values.forEach((value, row) => {
        if (value !== null && (!known || known[row]))
          column[by === 'node' ? 'node' : 'scope'].set(at[row]!, isText ? String(value) : Number(value));
      });
    }
  }
  return [...found.values(), ...(await statistics(capture, stage))];
}

/** Statistics of what operators make, where they were recorded: figures like any others. */
async function statistics(capture: Capture, stage: number): Promise<OwnColumn[]> {
  if (!capture.facts(FACTS.values.name, stage).length) return [];
  const figures = await figuresOf(capture, stage);
  const { producer } = await capture.graph(capture.manifest.stages[stage]!.graph);
  const columns: OwnColumn[] = [];
  for (const of of VALUE_FIGURES) {
    const isCount = COUNTED.includes(of);
    const node = new Map<number, Cell>();
    let isThere = false;
    producer.forEach((maker, value) => {
      const figure = maker < 0 ? null : figures(of, value);
      if (figure === null) return;
      isThere ||= !isCount || figure > 0;
      const before = node.get(maker);
      if (before === undefined) node.set(maker, figure);
      else if (isCount) node.set(maker, Number(before) + figure);
      else if (of === 'min' || of === 'max') node.set(maker, Math[of](Number(before), figure));
    });
    if (isThere) columns.push({ name: `tensor ${of}`, unit: '', isText: false, node, scope: new Map(), ...(!isCount && { roll: 'max' }) });
  }
  return columns;
}

const COUNTED: readonly string[] = ['nan', 'inf', 'neginf', 'zeros', 'subnormal'];

/** Join a table to the stage in which most of its rows find their place. */
export async function join(capture: Capture, name: string, columns: Columns): Promise<Placement> {
  const headers = [...columns.keys()];
  let keys = keyColumns(headers);
  let figures = headers.filter((header) => !keys.has(header) && !(keys.size && OWN_LABELS.includes(plain(header))));
  if (!keys.size && headers.length) {
    keys = new Map([[headers[0]!, 'any']]);
    figures = headers.slice(1);
  }
  const rows = Math.max(0, ...[...columns.values()].map((values) => values.length));
  if (!figures.length || !rows)
    throw new Error(`${name}: no figures: a column says which operators (node, path or name), others hold figures`);
  let best = { stage: 0, places: [] as (Place | null)[], matched: 0 };
  for (const [stage, { graph }] of capture.manifest.stages.entries()) {
    const places = placesOf(await capture.graph(graph), capture.pools, columns, keys, rows);
    const matched = places.filter((place) => place !== null).length;
    if (matched > best.matched) best = { stage, places, matched };
  }
  if (!best.matched) {
    throw new Error(
      `${name}: none of its ${rows.toLocaleString('en')} rows is an operator or module here: a column node (a number), path ` +
        `(layer1/0/conv1) or name says which it is about (found: ${headers.join(', ')})`,
    );
  }
  const own = await ownOf(capture, best.stage);
  const names = columnNames(
    figures,
    own.map((column) => column.name),
  );
  for (const header of figures) own.push(columnOf(names.get(header)!, header, columns.get(header)!, best.places));
  const key = columns.get([...keys.keys()][0]!)!;
  const unmatched = best.places.flatMap((place, row): Placement['unmatched'] => (place ? [] : [[row + 1, textOf(key[row])]]));
  return { name, columns: [...names.values()], rows, unmatched };
}

const plain = (header: string) => header.trim().toLowerCase();

/** Headers that say which operator or module a row is about, and how. */
export function keyColumns(headers: readonly string[]): Map<string, Kind> {
  const found = new Map<string, Kind>();
  for (const [kind, spelled] of Object.entries(OWN_KEYS)) {
    for (const header of headers) if ((spelled as readonly string[]).includes(plain(header))) found.set(header, kind as Kind);
  }
  return found;
}

type Kind = keyof typeof OWN_KEYS | 'any';
type Place = ['node' | 'scope', number];

const UNIT = /^(.*?)\s*[([]([^()[\]]*)[)\]]\s*$/s;

/** What columns are called: letters, digits and `_`, and no name that means something else. */
export function columnNames(headers: readonly string[], taken: readonly string[] = []): Map<string, string> {
  const used = new Set<string>([...taken.map((name) => name.toLowerCase()), ...FIELDS]);
  const names = new Map<string, string>();
  for (const header of headers) {
    const [, before] = UNIT.exec(header) ?? [];
    let bare =
      (before?.trim() ? before : header)
        .trim()
        .replace(/[^\p{L}\p{N}_]+/gu, '_')
        .replace(/^_+|_+$/g, '') || 'column';
    if (/^\d/.test(bare)) bare = `c${bare}`;
    let name = (FIELDS as readonly string[]).includes(bare.toLowerCase()) ? `my_${bare}` : bare;
    for (let n = 2; used.has(name.toLowerCase()); n++) name = `${bare}_${n}`;
    used.add(name.toLowerCase());
    names.set(header, name);
  }
  return names;
}

function placesOf(graph: Graph, pools: Pools, columns: Columns, keys: Map<string, Kind>, rows: number): (Place | null)[] {
  const find = finder(graph, pools);
  const places: (Place | null)[] = Array.from({ length: rows }, () => null);
  for (const [header, kind] of keys) {
    const values = columns.get(header)!;
    for (let row = 0; row < rows; row++) if (!places[row] && values[row] != null) places[row] = find(textOf(values[row]), kind);
  }
  return places;
}

/** From what a row says to an operator or a scope. */
function finder(graph: Graph, pools: Pools): (text: string, kind: Kind) => Place | null {
  const used = new Uint8Array(pools.scopes.parent.length);
  for (const scope of graph.scope) used[scope] = 1;
  for (let i = used.length - 1; i > 0; i--) if (used[i]) used[pools.scopes.parent[i]!] = 1;
  const scopes = new Map<string, number>();
  const tails = new Map<string, number>(); // -1: of several modules
  for (let i = 1; i < used.length; i++) {
    if (!used[i]) continue;
    const path = dotted(scopePath(pools, i));
    if (!scopes.has(path)) scopes.set(path, i);
    for (let at = path.indexOf('.'); at >= 0; at = path.indexOf('.', at + 1)) {
      const tail = path.slice(at + 1);
      tails.set(tail, tails.has(tail) ? -1 : i);
    }
  }
  const names = new Map<string, number>();
  const name = (string: number, node: number) => {
    const text = pools.strings.at(string);
    if (text) names.set(text, (names.get(text) ?? node) === node ? node : -1);
  };
  graph.name.forEach(name);
  for (let value = 0; value < graph.values; value++) if (graph.producer[value]! >= 0) name(graph.valueName[value]!, graph.producer[value]!);

  const byNumber = (text: string): Place | null => {
    const number = Number(/^#?(\d{1,10})(?:\.0*)?$/.exec(text)?.[1] ?? NaN);
    return number < graph.nodes ? ['node', number] : null;
  };
  const byPath = (text: string): Place | null => {
    let path = dotted(text);
    const [phase, ...rest] = path.split(':');
    if (rest.length && (PHASES as readonly string[]).includes(phase!)) path = rest.join(':');
    const scope = scopes.get(path) ?? tails.get(path) ?? -1;
    return scope > 0 ? ['scope', scope] : null;
  };
  const byName = (text: string): Place | null => ((names.get(text) ?? -1) >= 0 ? ['node', names.get(text)!] : null);
  const ways = { node: [byNumber], path: [byPath, byName], name: [byName, byPath], any: [byName, byPath, byNumber] };
  return (text, kind) => {
    for (const way of ways[kind]) {
      const found = way(text);
      if (found) return found;
    }
    return null;
  };
}

/** `layer1.0.conv1` and `layer1/0/conv1` are the same path. */
function dotted(path: string): string {
  return path
    .trim()
    .replace(/^\/+|\/+$/g, '')
    .replaceAll('/', '.');
}

function textOf(said: unknown): string {
  return String(said ?? '').trim();
}

const UNKNOWN = new Set(['', '-', '?', 'nan', 'na', 'n/a', 'null', 'none']);
const isUnknown = (value: unknown) => UNKNOWN.has(textOf(value).toLowerCase());

function numberOf(value: unknown): number {
  if (typeof value === 'number') return value;
  const text = textOf(value).replace(/%$/, '');
  return /^[+-]?(inf|infinity)$/i.test(text)
    ? text.startsWith('-')
      ? -Infinity
      : Infinity
    : /^0[xob]/i.test(text)
      ? NaN
      : Number(text || NaN);
}

/** Numbers, of several rows about one thing their mean; text where a column holds any that is no number. */
function columnOf(name: string, header: string, values: readonly unknown[], places: readonly (Place | null)[]): OwnColumn {
  const isText = values.some((value) => !isUnknown(value) && Number.isNaN(numberOf(value)));
  const [, before, unit] = UNIT.exec(header) ?? [];
  const column: OwnColumn = { name, unit: before?.trim() ? unit!.trim() : '', isText, node: new Map(), scope: new Map() };
  const counts = new Map<string, number>();
  places.forEach((place, row) => {
    if (!place || isUnknown(values[row])) return;
    const [by, at] = place;
    const before = column[by].get(at);
    if (isText) {
      if (before === undefined) column[by].set(at, textOf(values[row]));
      return;
    }
    const count = (counts.get(place.join()) ?? 0) + 1;
    counts.set(place.join(), count);
    column[by].set(at, ((Number(before) || 0) * (count - 1) + numberOf(values[row])) / count);
  });
  return column;
}
