// One bundle, two lives: in a worker it is the engine, in a document it is the page.

import type { Device } from './engine/roofs.ts';
import { App, type Services } from './page/app.ts';
import { handle } from './page/handle.ts';
import { serve } from './engine/worker.ts';
import { connect } from './state/client.ts';

interface Config {
  mode: 'server' | 'file' | 'notebook';
  token?: string;
  captures: { name: string; url?: string; data?: string; costs?: string }[];
  devices?: Device[];
  title?: string;
  height?: number;
  editor?: string;
}

if (typeof document === 'undefined') serve(self as unknown as Parameters<typeof serve>[0]);
else start(document.currentScript as HTMLScriptElement | null);

function start(script: HTMLScriptElement | null): void {
  const root = document.getElementById('opscope');
  const config = JSON.parse(document.getElementById('opscope-config')?.textContent ?? '{"mode":"file","captures":[]}') as Config;
  if (!root) return;
  const app = new App(root, connect(worker(script)), services(config));
  (window as unknown as { opscope: unknown }).opscope = handle(app);
  app.run(
    (async () => {
      for (const capture of config.captures) {
        const { costs } = capture;
        const later = costs ? () => download(costs, config) : undefined;
        await app.add(await content(capture, config), capture.name, later, config.captures.length);
      }
    })(),
  );
}

/** The same script once more, as a worker: by its address, or from its own text in a one-file page. */
function worker(script: HTMLScriptElement | null): Worker {
  if (script?.src) return new Worker(script.src);
  return new Worker(URL.createObjectURL(new Blob([script?.textContent ?? ''], { type: 'text/javascript' })));
}

/** The bytes of a capture, or their base64, which the engine unpacks: a large one would stop the page for a while. */
async function content(capture: Config['captures'][number], config: Config): Promise<Uint8Array | string> {
  if (capture.url) return download(capture.url, config);
  return document.getElementById(capture.data ?? '')?.textContent?.trim() ?? '';
}

async function download(url: string, config: Config): Promise<Uint8Array> {
  const answer = await fetch(url, { headers: authorization(config) });
  if (!answer.ok) throw new Error(`the server answered ${answer.status} ${answer.statusText}`);
  return new Uint8Array(await answer.arrayBuffer());
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
    async convert(file) {
      const data = new Uint8Array(await file.arrayBuffer());
      const own = data[0] === 0x50 && data[1] === 0x4b && new TextDecoder().decode(data.subarray(30, 43)) === 'manifest.json';
      if (own) return { bytes: data, name: file.name };
      if (config.mode !== 'server') throw new Error(`${file.name}: this page opens .opscope files; \`opscope view\` opens every format`);
      const answer = await fetch(`api/open?name=${encodeURIComponent(file.name)}`, {
        method: 'POST',
        body: data,
        headers: authorization(config),
      });
      const entry = (await answer.json()) as { error?: string; url?: string; name?: string; costs?: string };
      if (!answer.ok || !entry.url) throw new Error(entry.error ?? `the server answered ${answer.status}`);
      const { costs } = entry;
      return {
        bytes: await download(entry.url, config),
        name: entry.name ?? file.name,
        ...(costs ? { costs: () => download(costs, config) } : {}),
      };
    },
  };
}
