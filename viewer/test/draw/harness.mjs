// Looks at the drawing, and measures it, in a real Chromium. From viewer/:
//   node test/draw/harness.mjs shot OUT.png 'theme=dark&n=2000'      a screenshot
//   node test/draw/harness.mjs motion OUT                            pictures of one layout turning into another
//   node test/draw/harness.mjs frames 2000 100000 1000000            CPU of the main thread per frame
// ASK=heat or ASK=lit=dim before the last one measures with colours, or with boxes lit.
import { build } from 'esbuild';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = mkdtempSync(join(tmpdir(), 'opscope-draw-'));
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

async function page() {
  await build({
    entryPoints: ['test/draw/harness.ts'],
    bundle: true,
    outfile: join(folder, 'harness.js'),
    format: 'iife',
    target: 'es2022',
    logLevel: 'warning',
  });
  writeFileSync(
    join(folder, 'harness.html'),
    '<!doctype html><meta charset="utf-8"><title>drawing</title><body><script src="harness.js"></script>',
  );
  return `file://${join(folder, 'harness.html')}`;
}

/** Chromium at the other end of a pipe: no port, no library. */
class Browser {
  static last;
  #next = 1;
  #waiting = new Map();
  #events = [];
  constructor(size = '1600,1000', more = []) {
    this.process = spawn(
      'chromium',
      [...FLAGS, ...more, `--window-size=${size}`, `--user-data-dir=${join(folder, 'profile')}`, '--remote-debugging-pipe', 'about:blank'],
      { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] },
    );
    Browser.last = this;
    let rest = '';
    this.process.stdio[4].on('data', (data) => {
      const parts = (rest + data).split('\0');
      rest = parts.pop();
      for (const part of parts) this.#take(JSON.parse(part));
    });
  }
  #take(message) {
    const waiting = this.#waiting.get(message.id);
    if (waiting) {
      this.#waiting.delete(message.id);
      message.error ? waiting[1](new Error(JSON.stringify(message.error))) : waiting[0](message.result);
    } else for (const listener of this.#events) listener(message);
  }
  on(listener) {
    this.#events.push(listener);
  }
  call(method, params = {}, sessionId = this.session) {
    const id = this.#next++;
    this.process.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + '\0');
    return new Promise((yes, no) => this.#waiting.set(id, [yes, no]));
  }
  async open(url) {
    const { targetId } = await this.call('Target.createTarget', { url: 'about:blank' }, undefined);
    this.session = (await this.call('Target.attachToTarget', { targetId, flatten: true }, undefined)).sessionId;
    this.on((m) => m.method === 'Runtime.exceptionThrown' && console.error(m.params.exceptionDetails.exception?.description));
    await this.call('Runtime.enable');
    await this.call('Page.enable');
    const loaded = new Promise((yes) => this.on((m) => m.method === 'Page.loadEventFired' && yes()));
    await this.call('Page.navigate', { url });
    await loaded;
  }
  async run(expression) {
    const { result, exceptionDetails } = await this.call('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }
  /** CPU milliseconds of the main thread between frames while `expression` runs. */
  async trace(expression) {
    const events = [];
    const take = (m) => m.method === 'Tracing.dataCollected' && events.push(...m.params.value);
    this.on(take);
    const done = new Promise((yes) => this.on((m) => m.method === 'Tracing.tracingComplete' && yes()));
    await this.call('Tracing.start', {
      categories: '-*,devtools.timeline,toplevel,disabled-by-default-devtools.timeline',
      transferMode: 'ReportEvents',
    });
    await this.run(expression);
    await this.call('Tracing.end');
    await done;
    this.#events.splice(this.#events.indexOf(take), 1);
    const main = events.find(
      (e) =>
        e.name === 'thread_name' &&
        e.args.name === 'CrRendererMain' &&
        events.some((f) => f.name === 'FireAnimationFrame' && f.tid === e.tid && f.pid === e.pid),
    );
    const mine = events.filter((e) => e.pid === main.pid && e.tid === main.tid && e.ph === 'X').sort((a, b) => a.ts - b.ts);
    const fired = mine.filter((e) => e.name === 'FireAnimationFrame').map((e) => e.ts);
    const tasks = mine.filter((e) => e.name === 'ThreadControllerImpl::RunTask');
    // A frame begins with a task that runs animation callbacks, and ends where the next begins.
    const sums = [];
    let f = 0;
    for (const task of tasks) {
      let begins = false;
      for (; f < fired.length && fired[f] < task.ts + task.dur; f++) begins ||= fired[f] >= task.ts;
      if (begins) sums.push(0);
      if (sums.length > 0) sums[sums.length - 1] += (task.tdur ?? task.dur) / 1000;
    }
    if (process.env.DETAIL) {
      const by = new Map();
      for (const e of mine) if (e.name !== 'RunTask') by.set(e.name, (by.get(e.name) ?? 0) + (e.tdur ?? e.dur ?? 0) / 1000 / sums.length);
      console.log(
        [...by]
          .sort((a, b) => b[1] - a[1])
          .slice(0, 14)
          .map(([k, v]) => `${k} ${v.toFixed(2)}`)
          .join(', '),
      );
    }
    return sums.slice(2, -2);
  }
  close() {
    this.process.kill();
  }
}

const at = (list, q) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * q))];

process.on('exit', () => Browser.last?.close());

const [what, ...rest] = process.argv.slice(2);
const url = await page();
if (what === 'shot') {
  const [out, ask = '', size = '1600,1000', ratio = '1'] = rest;
  const browser = new Browser(size, [`--force-device-scale-factor=${ratio}`]);
  await browser.open(`${url}#${ask}`);
  const [width, height] = size.split(',').map(Number);
  await browser.call('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: Number(ratio), mobile: false });
  await browser.run('new Promise((done) => setTimeout(done, 500))');
  const { data } = await browser.call('Page.captureScreenshot', { format: 'png' });
  writeFileSync(out, Buffer.from(data, 'base64'));
  browser.close();
} else if (what === 'motion') {
  const browser = new Browser('1000,800');
  await browser.open(`${url}#theme=light`);
  await browser.call('Emulation.setDeviceMetricsOverride', { width: 1000, height: 800, deviceScaleFactor: 1, mobile: false });
  // The clock of the page stands still between pictures.
  await browser.run(`
    globalThis.clock = 0; globalThis.queue = [];
    globalThis.requestAnimationFrame = (run) => queue.push(run);
    globalThis.step = (ms) => { clock += ms; for (const run of queue.splice(0)) run(clock); };
    globalThis.shut = smallScene("down", false);
    renderer.resize(); renderer.setScene(shut, buildIndex(shut)); renderer.camera.set({ x: 300, y: 600, zoom: 0.8 });
    step(1); step(16);
    const opened = smallScene("down", true);
    const place = (s) => { const b = 10; return { x: s.boxes.x[b], y: s.boxes.y[b] }; };
    renderer.setScene(opened, buildIndex(opened), shut);
    renderer.camera.keep(place(shut), place(opened));`);
  for (let i = 0; i < 4; i++) {
    await browser.run(`step(${i === 0 ? 1 : 60})`);
    const { data } = await browser.call('Page.captureScreenshot', { format: 'png' });
    writeFileSync(`${rest[0]}${i}.png`, Buffer.from(data, 'base64'));
  }
  await browser.run('step(100); step(16)');
  console.log('at rest:', await browser.run('!renderer.busy() || queue.length'));
  browser.close();
} else if (what === 'frames') {
  console.log('boxes\tview\tmove\tmedian ms\tp95 ms\tscript median\tindex ms');
  for (const n of rest) {
    const browser = new Browser();
    await browser.open(`${url}#n=${n}&${process.env.ASK ?? ''}`);
    await browser.call('Emulation.setDeviceMetricsOverride', { width: 1600, height: 1000, deviceScaleFactor: 1, mobile: false });
    await browser.run('renderer.resize(); renderer.camera.fit({x: 0, y: 0, width: scene.width, height: scene.height})');
    const fit = await browser.run('renderer.camera.view.zoom');
    const views = [
      ['whole', fit],
      ['0.1', 0.1],
      ['0.2', 0.2],
      ['0.26', 0.26],
      ['0.35', 0.35],
      ['0.5', 0.5],
      ['1', 1],
    ].filter(([, zoom]) => zoom >= fit);
    for (const [name, zoom] of views) {
      await browser.run(`renderer.camera.set({x: scene.width / 2, y: scene.height / 2, zoom: ${zoom}})`);
      for (const move of ['pan', 'zoom']) {
        const cost = await browser.trace(`move("${move}", 60)`);
        const script = await browser.run('renderer.frames.slice()');
        console.log(
          [
            n,
            name,
            move,
            at(cost, 0.5).toFixed(1),
            at(cost, 0.95).toFixed(1),
            at(script, 0.5).toFixed(1),
            (await browser.run('built')).toFixed(0),
          ].join('\t'),
        );
      }
    }
    browser.close();
  }
}
await new Promise((done) => setTimeout(done, 300));
rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
