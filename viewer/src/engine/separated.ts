// A dropped table as columns: separated values, or Model Explorer's data by node. As src/opscope/tables.py reads them.

/** By header; null and undefined: not known. */
export type Columns = Map<string, unknown[]>;

/** Whether a text is a table and not a graph. */
export function isTable(name: string, text: string): boolean {
  if (/\.(csv|tsv)$/i.test(name)) return true;
  return /\.json$/i.test(name) && /"results"\s*:/.test(text) && !/"(graphs|nodes)"\s*:/.test(text.slice(0, 100_000));
}

export function columnsOf(name: string, text: string): Columns {
  return /^\s*[{[]/.test(text) ? nodeData(name, text) : separated(name, text);
}

export function separated(name: string, text: string): Columns {
  const plain = text.replace(/^\ufeff/, '');
  const first = plain.split('\n', 1)[0]!;
  const [delimiter] = [',', ';', '\t'].sort((a, b) => first.split(b).length - first.split(a).length);
  const [headers, ...rows] = fields(plain, delimiter!).filter((row) => row.some(Boolean));
  if (!headers || headers.length < 2 || !rows.length)
    throw new Error(
      `${name}: a table has a line of headers, at least two columns and a row (found: ${JSON.stringify(first.slice(0, 80))})`,
    );
  const twice = headers.find((header, i) => headers.indexOf(header) < i);
  if (twice !== undefined) throw new Error(`${name}: two columns are called ${twice}`);
  const long = rows.findIndex((row) => row.length > headers.length);
  if (long >= 0) throw new Error(`${name}: row ${long + 2} has ${rows[long]!.length} fields, the headers ${headers.length}`);
  return new Map(headers.map((header, i) => [header, rows.map((row) => row[i] ?? null)]));
}

/** Quotes may hold delimiters and lines; two quotes are one. */
function fields(text: string, delimiter: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  const one = /(?:"((?:[^"]|"")*)"|([^]*?))(\r?\n|$|[,;\t])/y;
  let [at, cell] = [0, ''];
  while (at <= text.length) {
    one.lastIndex = at;
    const found = one.exec(text);
    if (!found) break;
    at = one.lastIndex;
    cell += found[1]?.replaceAll('""', '"') ?? found[2] ?? '';
    const end = found[3]!;
    if (/[,;\t]/.test(end) && end !== delimiter) {
      cell += end; // another mark than the one that separates
      continue;
    }
    row.push(cell);
    cell = '';
    if (end === delimiter) continue;
    rows.push(row);
    row = [];
    if (end === '') break;
  }
  return rows;
}

function nodeData(name: string, text: string): Columns {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch (error) {
    throw new Error(`${name}: not JSON (${error instanceof Error ? error.message : ''})`);
  }
  const rows = new Map<string, Map<string, unknown>>();
  const headers = new Set<string>();
  for (const [title, results] of resultsIn(given, 'value')) {
    headers.add(title);
    for (const [node, said] of Object.entries(results)) {
      const entry = (said && typeof said === 'object' ? said : { value: said }) as Record<string, unknown>;
      if (!rows.has(node)) rows.set(node, new Map());
      rows.get(node)!.set(title, entry.value ?? entry.strValue);
    }
  }
  if (!rows.size) throw new Error(`${name}: no data by node: Model Explorer writes {"results": {node: {"value": …}}}`);
  const columns: Columns = new Map([['key', [...rows.keys()]]]);
  for (const title of headers)
    columns.set(
      title,
      [...rows.values()].map((row) => row.get(title)),
    );
  return columns;
}

function resultsIn(given: unknown, title: string): [string, Record<string, unknown>][] {
  if (Array.isArray(given)) return given.flatMap((entry, i) => resultsIn(entry, i ? `${title}_${i + 1}` : title));
  if (!given || typeof given !== 'object') return [];
  const entry = given as Record<string, unknown>;
  if (entry.results && typeof entry.results === 'object')
    return [[typeof entry.name === 'string' && entry.name ? entry.name : title, entry.results as Record<string, unknown>]];
  return Object.values(entry).flatMap((inner) => resultsIn(inner, title));
}
