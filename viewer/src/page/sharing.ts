// What one gives to others: files that the page makes, a link to the view, the page itself with all that is in it.

import { h } from '../widgets/dom.ts';
import { writeAddress } from './address.ts';
import type { Page } from './page.ts';

const LATER_MS = 10_000;

/** As a download. */
export function saveFile(blob: Blob, name: string): void {
  const link = h('a', { href: URL.createObjectURL(blob), download: name.split(/[\\/]/).at(-1) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), LATER_MS);
}

/** What is in view, in words. */
export function titleOf({ state }: Page): string {
  const info = state.info.get();
  const stage = state.shown.get()?.name ?? '';
  return (
    [info?.name.split(/[\\/]/).at(-1), (info?.stages.length ?? 0) > 1 && info?.how !== 'compared' ? stage : '']
      .filter(Boolean)
      .join(' · ') || 'opscope'
  );
}

export async function copyLink(page: Page): Promise<void> {
  await writeAddress(page);
  await navigator.clipboard.writeText(location.href);
  page.say(location.protocol === 'file:' ? page.words().linkCopied : page.words().linkHere);
}

/** This page, as it is looked at now, in one file that needs nothing else. */
export async function savePage(page: Page): Promise<void> {
  await writeAddress(page);
  const served = await page.services.wholePage();
  const whole = served ? new DOMParser().parseFromString(served, 'text/html') : await ownPage(page);
  const config = whole.getElementById('opscope-config')!;
  const settings = { ...(JSON.parse(config.textContent) as object), view: location.hash.slice(1) };
  // No character of it means anything to HTML.
  config.textContent = JSON.stringify(settings).replace(/[&<>]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`);
  const html = `<!doctype html>\n${whole.documentElement.outerHTML}\n`;
  saveFile(new Blob([html], { type: 'text/html' }), `${titleOf(page)}.html`);
}

/** A one-file page once more, with what has been opened since. */
async function ownPage({ state, client, joined }: Page): Promise<Document> {
  const whole = document.cloneNode(true) as Document;
  whole.getElementById('opscope')!.replaceWith(h('div', { id: 'opscope' }));
  const config = whole.getElementById('opscope-config')!;
  for (const old of whole.querySelectorAll('script[type^="application/octet-stream"]')) old.remove();
  const captures: Record<string, string>[] = [];
  const compared: unknown[] = [];
  for (const { id, name } of state.captures.get()) {
    const pair = joined.get(id);
    if (pair) {
      compared.push(pair);
      continue;
    }
    const texts = await Promise.all((await client.bytes(id)).map(base64));
    const names = texts.map((text, i) => {
      const place = `capture-${id}-${i}`;
      config.after(h('script', { id: place, type: 'application/octet-stream+base64' }, text));
      return place;
    });
    captures.push({ name, data: names[0]!, ...(names[1] ? { costs: names[1] } : {}) });
  }
  const settings = JSON.parse(config.textContent) as object;
  config.textContent = JSON.stringify({ ...settings, captures, compared });
  return whole;
}

function base64(bytes: Uint8Array): Promise<string> {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result).split(',')[1] ?? '');
    reader.onerror = () => failed(reader.error!);
    reader.readAsDataURL(new Blob([bytes as BlobPart]));
  });
}
