// The page. Its engine is a script of its own (worker.ts), so that each thread reads only the code that it runs.

import { bytesOf, type Address, type Content } from './engine/content.ts';
import type { Chosen } from './engine/messages.ts';
import type { Device } from './engine/roofs.ts';
import { openPage } from './page/app.ts';
import { addFile } from './page/files.ts';
import { compareGraphs } from './page/comparing.ts';
import type { Served, Services } from './page/page.ts';
import { breath } from './state/later.ts';
import { connect } from './state/client.ts';

interface Config {
  mode: 'server' | 'file' | 'notebook';
  engine?: string; // the address of its script; a one-file page carries it
  token?: string;
  captures: { name: string; url?: string; data?: string; costs?: string }[];
  devices?: Device[];
  compared?: [Chosen, Chosen][]; // what was compared in the page that this one was saved from
  view?: string; // what the URL says where it says nothing
  title?: string;
  height?: number;
  editor?: string;
}

start();

function start(): void {
  const root = document.getElementById('opscope');
  const config = JSON.parse(document.getElementById('opscope-config')?.textContent ?? '{"mode":"file","captures":[]}') as Config;
  if (!root) return;
  if (config.view && !location.hash) location.hash = config.view;
  const { page, handle } = openPage(root, connect(engine(config)), services(config));
  Object.assign(window, { opscope: handle });
  page.run(
    (async () => {
      for (const capture of config.captures) {
        await breath(); // the empty page is there at once
        const costs = capture.costs ? costsOf(capture.costs, config) : undefined;
        await addFile(page, content(capture, config), capture.name, costs, config.captures.length);
      }
      for (const pair of config.compared ?? []) await compareGraphs(page, ...pair);
    })(),
  );
}

/** The engine's worker. A one-file page carries the script packed, as Python's zlib does it. */
async function engine(config: Config): Promise<Worker> {
  if (config.engine) return new Worker(config.engine);
  const packed = await bytesOf(document.getElementById('opscope-engine')?.textContent ?? '');
  const script = new Blob([packed as BlobPart]).stream().pipeThrough(new DecompressionStream('deflate'));
  const text = await new Response(script, { headers: { 'Content-Type': 'text/javascript' } }).blob();
  return new Worker(URL.createObjectURL(text));
}

function content(capture: Config['captures'][number], config: Config): Content {
  if (capture.url) return address(capture.url, config);
  return document.getElementById(capture.data ?? '')?.textContent ?? '';
}

function costsOf(place: string, config: Config): Content {
  return document.getElementById(place)?.textContent ?? address(place, config);
}

function address(url: string, config: Config): Address {
  return { url: new URL(url, location.href).href, headers: authorization(config) };
}

function authorization(config: Config): Record<string, string> {
  return config.token ? { Authorization: `Bearer ${config.token}` } : {};
}

function services(config: Config): Services {
  return {
    devices: config.devices ?? [],
    editor: config.editor ?? 'vscode://file/{file}:{line}',
    async source(capture, file) {
      if (config.mode !== 'server') return null;
      const answer = await fetch(`api/source?capture=${capture}&path=${encodeURIComponent(file)}`, { headers: authorization(config) });
      return answer.ok ? answer.text() : null;
    },
    async compare(before, after) {
      if (config.mode !== 'server') return null;
      const place = ({ url, stage }: Served) => `${url.split('/').at(-1)}:${stage}`;
      const query = new URLSearchParams({ before: place(before), after: place(after) });
      const request = { method: 'POST', body: '', headers: authorization(config) };
      const answer = await fetch(`api/compare?${query}`, request).catch(() => null); // the server has ended: the page can do it
      const entry = (await answer?.json()) as { url?: string; name?: string; error?: string } | undefined;
      if (entry?.error) throw new Error(entry.error);
      return entry?.url ? { content: address(entry.url, config), name: entry.name ?? '' } : null;
    },
    async wholePage() {
      if (config.mode !== 'server') return null;
      const answer = await fetch('api/page', { headers: authorization(config) });
      if (!answer.ok) throw new Error(`the server answered ${answer.status} ${answer.statusText}`);
      return answer.text();
    },
    async table(file) {
      if (config.mode !== 'server') return null;
      const request = { method: 'POST', body: await file.arrayBuffer(), headers: authorization(config) };
      const answer = await fetch(`api/table?name=${encodeURIComponent(file.name)}`, request);
      if (!answer.ok) throw new Error(((await answer.json()) as { error: string }).error);
      return answer.text();
    },
    async convert(file) {
      const data = new Uint8Array(await file.arrayBuffer());
      const own = data[0] === 0x50 && data[1] === 0x4b && new TextDecoder().decode(data.subarray(30, 43)) === 'manifest.json';
      if (own && config.mode !== 'server') return { content: data, name: file.name };
      if (config.mode !== 'server') throw new Error(`${file.name}: this page opens .opscope files; \`opscope view\` opens every format`);
      // The server computes what a file does not say, so that its figures are those of any other capture.
      const request = { method: 'POST', body: data, headers: authorization(config) };
      const answer = await fetch(`api/open?name=${encodeURIComponent(file.name)}`, request).catch((error: unknown) => {
        if (own) return null; // the server has ended: the page can still show the file as it is
        throw error;
      });
      if (!answer || (own && answer.status === 413)) return { content: data, name: file.name };
      const entry = (await answer.json()) as { error?: string; url?: string; name?: string; costs?: string };
      if (!answer.ok || !entry.url) throw new Error(entry.error ?? `the server answered ${answer.status}`);
      const { costs } = entry;
      return {
        content: address(entry.url, config),
        name: entry.name ?? file.name,
        ...(costs ? { costs: address(costs, config) } : {}),
      };
    },
  };
}
