// Bundles the page into ../src/opscope/_viewer. The same source gives the same bytes,
// so a test can tell when the committed bundle is stale.
import { build } from 'esbuild';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const outdir = process.argv[2] ?? join(here, '..', 'src', 'opscope', '_viewer');
const common = {
  absWorkingDir: here,
  bundle: true,
  minify: !process.env.PLAIN,
  charset: 'utf8',
  target: 'es2022',
  legalComments: 'none',
  logLevel: 'warning',
};
await build({ ...common, entryPoints: ['src/main.ts'], format: 'iife', outfile: join(outdir, 'viewer.js') });
// In the page's worker, and in a bare V8 for `opscope export -o picture.svg`.
await build({ ...common, entryPoints: ['src/worker.ts'], format: 'iife', outfile: join(outdir, 'engine.js') });
if (existsSync(join(here, 'src/main.css'))) {
  await build({ ...common, entryPoints: ['src/main.css'], outfile: join(outdir, 'viewer.css') });
}
