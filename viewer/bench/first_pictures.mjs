// The first picture of captures, as the page makes it, without a browser.
// usage: node bench/first_pictures.mjs [--src FOLDER] [--stage N] [--all] FILE.opscope…
//   --src: the page's source (default ../src), --all: everything opened
// One JSON line per file: boxes, back edges, crossings, length of all lines, rows, how far from zero the paired lines are.
import { build } from 'esbuild';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const args = process.argv.slice(2);
const option = (name, otherwise) => {
  const i = args.indexOf('--' + name);
  return i < 0 ? otherwise : args.splice(i, 2)[1];
};
const all = args.includes('--all') && args.splice(args.indexOf('--all'), 1).length > 0;
const src = resolve(option('src', join(here, '..', 'src')));
const stage = Number(option('stage', '0'));

/** The engine and the measures of a drawing, bundled from source into a temporary file. */
async function load() {
  const folder = mkdtempSync(join(tmpdir(), 'opscope-pictures-'));
  const outfile = join(folder, 'engine.mjs');
  const contents = `export * from '${src}/engine/engine.ts'; export * from '${join(here, '../src/picture/quality.ts')}';`;
  await build({ stdin: { contents, resolveDir: src }, bundle: true, format: 'esm', outfile, logLevel: 'error' });
  const module = await import(pathToFileURL(outfile));
  rmSync(folder, { recursive: true });
  return module;
}

const { Engine, crossings, lineLength, segments } = await load();
const OPTIONS = { direction: 'down', split: true, side: true, hidden: [0], constants: false };

for (const file of args) {
  try {
    const engine = new Engine();
    await engine.load(new Uint8Array(readFileSync(file)), basename(file));
    const began = process.cpuUsage();
    let picture = await engine.stage(0, stage, OPTIONS);
    if (all) picture = engine.openAll();
    const took = process.cpuUsage(began);
    const { boxes, edges, rows, layout, width, height } = picture.scene;
    const pieces = segments({ pointStart: edges.start, points: edges.points });
    const back = edges.kind.reduce((n, kind, e) => n + (kind === 2 && edges.source[e] !== edges.target[e] ? 1 : 0), 0);
    console.log(
      JSON.stringify({
        name: basename(file).replace(/\.opscope$/, ''),
        layout,
        boxes: boxes.count,
        leaves: boxes.kind.reduce((n, kind) => n + (kind === 2 ? 0 : 1), 0),
        edges: edges.count,
        back,
        crossings: crossings(pieces),
        length: Math.round(lineLength(pieces)),
        rows,
        width: Math.round(width),
        height: Math.round(height),
        ms: Math.round((took.user + took.system) / 1000),
      }),
    );
  } catch (error) {
    console.log(JSON.stringify({ name: basename(file), error: String(error).slice(0, 100) }));
  }
}
