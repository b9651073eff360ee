// Our layout, dagre, elkjs and Graphviz's dot on the same graphs: same boxes, same gaps, measured on the drawn lines.
// usage: node bench/layout_bench.mjs [--with ours,dagre,elk,dot] [--quality good|fast] [--repeat 5] [--limit 120] [--no-measure] GRAPH.json…
//   GRAPH.json, also .json.gz: {"name", "nodes": [[label, scope, shape], …], "edges": [[source, target], …]}
// One JSON line per graph and engine: seconds of CPU (best of --repeat), crossings, through, length, width, height.
// benchmarks/bench_viewer.py runs it, one engine and graph at a time, and stops what takes too long.
import { build } from 'esbuild';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { flatten, readSvg, writeDot } from './graphviz.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const GAP_X = 20,
  GAP_Y = 30,
  HEIGHT = 28;
const args = process.argv.slice(2);
const option = (name, otherwise) => {
  const i = args.indexOf('--' + name);
  return i < 0 ? otherwise : args.splice(i, 2)[1];
};
const flag = (name) => {
  const i = args.indexOf('--' + name);
  if (i >= 0) args.splice(i, 1);
  return i >= 0;
};
const engines = option('with', 'ours').split(',');
const quality = option('quality', 'good');
const repeat = Number(option('repeat', '5'));
const limit = Number(option('limit', '120'));
const measured = !flag('no-measure');

const MODULES = ['flat', 'nested', 'cache', 'quality'];

/** The layout modules, bundled from source into a temporary file. */
async function load() {
  const folder = mkdtempSync(join(tmpdir(), 'opscope-layout-'));
  const outfile = join(folder, 'layout.mjs');
  await build({
    absWorkingDir: join(here, '..'),
    stdin: { contents: MODULES.map((name) => `export * from './src/layout/${name}.ts';`).join('\n'), resolveDir: join(here, '..') },
    bundle: true,
    format: 'esm',
    outfile,
    logLevel: 'error',
  });
  const module = await import(pathToFileURL(outfile));
  rmSync(folder, { recursive: true });
  return module;
}

const layout = await load();
const cpu = () => {
  const u = process.cpuUsage();
  return (u.user + u.system) / 1e6;
};

function flatGraph(g) {
  const n = g.nodes.length,
    m = g.edges.length;
  const out = {
    n,
    width: new Float32Array(n),
    height: new Float32Array(n).fill(HEIGHT),
    source: new Int32Array(m),
    target: new Int32Array(m),
  };
  for (let i = 0; i < n; i++) out.width[i] = 20 + 7 * g.nodes[i][0].length;
  for (let e = 0; e < m; e++) [out.source[e], out.target[e]] = g.edges[e];
  return out;
}

function nestedGraph(g) {
  const parent = [],
    open = [],
    width = [],
    height = [],
    order = [],
    groups = new Map();
  const group = (scope) => {
    if (!scope) return -1;
    let id = groups.get(scope);
    if (id !== undefined) return id;
    const cut = scope.lastIndexOf('/');
    const above = group(cut < 0 ? '' : scope.slice(0, cut));
    groups.set(scope, (id = parent.length));
    parent.push(above);
    open.push(1);
    width.push(0);
    height.push(0);
    order.push(0);
    return id;
  };
  const leaf = new Int32Array(g.nodes.length);
  g.nodes.forEach(([label, scope], i) => {
    const above = group(scope);
    leaf[i] = parent.length;
    parent.push(above);
    open.push(0);
    width.push(20 + 7 * label.length);
    height.push(HEIGHT);
    order.push(i);
  });
  for (let v = parent.length - 1; v >= 0; v--) if (open[v]) order[v] = 1e9;
  for (let v = parent.length - 1; v >= 0; v--) if (parent[v] >= 0) order[parent[v]] = Math.min(order[parent[v]], order[v]);
  const m = g.edges.length,
    source = new Int32Array(m),
    target = new Int32Array(m);
  g.edges.forEach(([s, t], e) => {
    source[e] = leaf[s];
    target[e] = leaf[t];
  });
  return {
    n: parent.length,
    parent: Int32Array.from(parent),
    open: Uint8Array.from(open),
    width: Float32Array.from(width),
    height: Float32Array.from(height),
    header: 24,
    padding: 12,
    source,
    target,
    order: Int32Array.from(order),
  };
}

function lines(all) {
  const pointStart = new Int32Array(all.length + 1);
  all.forEach((l, e) => (pointStart[e + 1] = pointStart[e] + l.length));
  return { pointStart, points: Float64Array.from(all.flat().flatMap((p) => [p.x, p.y])) };
}

const run = {
  ours(g) {
    const flat = flatGraph(g);
    const options = { direction: 'down', gapX: GAP_X, gapY: GAP_Y, quality };
    const c = cpu();
    const out = layout.layoutFlat(flat, options);
    return {
      seconds: cpu() - c,
      boxes: { n: flat.n, x: out.x, y: out.y, width: flat.width, height: flat.height },
      lines: out,
      width: out.width,
      height: out.height,
    };
  },
  nested(g, cache, key) {
    const nested = { ...nestedGraph(g), key };
    const options = { direction: 'down', gapX: GAP_X, gapY: GAP_Y, quality };
    const c = cpu();
    const out = layout.layoutNested(nested, options, cache);
    return { seconds: cpu() - c, nested, boxes: { n: nested.n, ...out }, lines: out, width: out.totalWidth, height: out.totalHeight };
  },
  dagre(g) {
    const lib = createRequire(import.meta.url)('@dagrejs/dagre');
    const dagre = lib.default ?? lib;
    const flat = flatGraph(g);
    const c = cpu();
    const G = new dagre.graphlib.Graph();
    G.setGraph({ rankdir: 'TB', nodesep: GAP_X, ranksep: GAP_Y });
    G.setDefaultEdgeLabel(() => ({}));
    for (let i = 0; i < flat.n; i++) G.setNode(String(i), { width: flat.width[i], height: HEIGHT });
    for (const [s, t] of g.edges) G.setEdge(String(s), String(t));
    dagre.layout(G);
    const seconds = cpu() - c;
    const x = [],
      y = [];
    for (let i = 0; i < flat.n; i++) {
      const node = G.node(String(i));
      x.push(node.x - node.width / 2);
      y.push(node.y - node.height / 2);
    }
    return {
      seconds,
      boxes: { n: flat.n, x, y, width: flat.width, height: flat.height },
      lines: lines(g.edges.map(([s, t]) => G.edge(String(s), String(t)).points)),
      width: G.graph().width,
      height: G.graph().height,
    };
  },
  async elk(g) {
    const ELK = createRequire(import.meta.url)('elkjs/lib/elk.bundled.js');
    const flat = flatGraph(g);
    const elk = new ELK();
    const c = cpu();
    const r = await elk.layout({
      id: 'root',
      layoutOptions: {
        'elk.algorithm': 'layered',
        'elk.direction': 'DOWN',
        'elk.spacing.nodeNode': String(GAP_X),
        'elk.layered.spacing.nodeNodeBetweenLayers': String(GAP_Y),
      },
      children: Array.from({ length: flat.n }, (_, i) => ({ id: 'n' + i, width: flat.width[i], height: HEIGHT })),
      edges: g.edges.map(([s, t], i) => ({ id: 'e' + i, sources: ['n' + s], targets: ['n' + t] })),
    });
    const seconds = cpu() - c;
    const at = new Map(r.children.map((n) => [n.id, n]));
    const x = [],
      y = [];
    for (let i = 0; i < flat.n; i++) {
      x.push(at.get('n' + i).x);
      y.push(at.get('n' + i).y);
    }
    const all = r.edges.map((e) => e.sections.flatMap((s) => [s.startPoint, ...(s.bendPoints ?? []), s.endPoint]));
    return {
      seconds,
      boxes: { n: flat.n, x, y, width: flat.width, height: flat.height },
      lines: lines(all),
      width: r.width,
      height: r.height,
    };
  },
  dot(g) {
    const flat = flatGraph(g);
    // bash measures the program and stops it: CPU seconds of user and system on the last line of stderr
    const script = `ulimit -s unlimited; ulimit -t ${Math.ceil(limit)}; TIMEFORMAT='%U %S'; time dot -Tsvg`;
    const answer = spawnSync('bash', ['-c', script], {
      input: writeDot(flat, g.edges, GAP_X, GAP_Y),
      maxBuffer: 2 ** 30,
    });
    if (answer.error) throw answer.error;
    const told = answer.stderr.toString().trim().split('\n');
    const [user, system] = told.at(-1).split(' ').map(Number);
    if (answer.status !== 0) return { failed: user + system >= limit - 1 ? `no result in ${limit} s` : told[0] };
    const drawn = readSvg(answer.stdout.toString(), flat.n, g.edges);
    return {
      seconds: user + system,
      boxes: { n: flat.n, ...drawn.boxes },
      lines: lines(drawn.curves.map((c) => flatten(c))),
      width: drawn.width,
      height: drawn.height,
    };
  },
};

for (const file of args) {
  const bytes = readFileSync(file);
  const g = JSON.parse((file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString());
  for (const engine of engines) {
    let best, cached;
    const times = [];
    const quick = engine === 'ours' || engine === 'nested' || engine === 'cached' || engine === 'unshared';
    const cache = engine === 'cached' ? new layout.LayoutCache() : undefined;
    for (let i = 0; i < (quick ? repeat : 1); i++) {
      best =
        engine === 'cached' ? run.nested(g, cache) : engine === 'unshared' ? run.nested(g, undefined, () => null) : await run[engine](g);
      if (best.failed) break;
      times.push(best.seconds);
    }
    if (best.failed) {
      console.log(JSON.stringify({ engine, graph: g.name, n: g.nodes.length, edges: g.edges.length, failed: best.failed }));
      continue;
    }
    const out = {
      engine,
      graph: g.name,
      n: g.nodes.length,
      edges: g.edges.length,
      seconds: +Math.min(...times).toFixed(4),
      first: +times[0].toFixed(4),
      width: Math.round(best.width),
      height: Math.round(best.height),
      points: best.lines.points.length / 2,
    };
    if (measured) {
      const nested = best.nested;
      const source = nested ? nested.source : g.edges.map((e) => e[0]),
        target = nested ? nested.target : g.edges.map((e) => e[1]);
      if (nested) {
        const pieces = layout.segments(best.lines);
        out.crossings = layout.crossings(pieces);
        out.length = Math.round(layout.lineLength(pieces));
      } else {
        const q = layout.measure(best.boxes, best.lines, source, target);
        Object.assign(out, q, { length: Math.round(q.length) });
      }
    }
    console.log(JSON.stringify(out));
  }
}
