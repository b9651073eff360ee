// Commands that take something of the selection elsewhere: to the clipboard, the search, the source, an editor.

import { openingFrame } from '../panels/frames.ts';
import { h } from '../widgets/dom.ts';
import type { Page } from './page.ts';
import { find, pickLine } from './selecting.ts';

export async function copy(page: Page, text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without a secure context, or in a frame that may not: the old way.
    const area = h('textarea', { style: 'position:fixed;opacity:0', 'aria-hidden': 'true' });
    const before = document.activeElement as HTMLElement | null;
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
    before?.focus({ preventScroll: true });
  }
  page.say(`${page.words().copied}: ${text.length > 80 ? `${text.slice(0, 80)}…` : text}`);
}

/** Of a module its path, of an operator that of its module and its number. */
export async function copyPath(page: Page): Promise<void> {
  const { state, client } = page;
  const paths = await Promise.all(state.selection.get().map((item) => client.scopeOf(item)));
  await copy(page, paths.join('\n'));
}

export async function copyName(page: Page): Promise<void> {
  const { state, client } = page;
  const names = await client.labels(state.selection.get());
  await copy(page, names.map(({ label }) => label).join('\n'));
}

/** Modules of the same class, or operators of the same name. */
export async function findSame(page: Page): Promise<void> {
  const { state, places } = page;
  const details = state.details.get();
  if (!details) return;
  const quoted = (text: string) => `"${text.replace(/(["\\])/g, '\\$1')}"`;
  const query = details.kind === 'group' ? `class:${quoted(details.cls)}` : `op:${quoted(details.op)}`;
  places.search.value = query;
  await find(page, query);
}

/** The user's own line that called it. */
function frameOf({ state }: Page): { file: string; line: number } | undefined {
  const frames = state.details.get()?.frames ?? [];
  const sources = state.info.get()?.sources ?? [];
  return openingFrame(frames, (file) => sources.includes(file)) ?? frames.at(0);
}

export function showSource(page: Page): void {
  const frame = frameOf(page);
  if (frame) page.run(pickLine(page, frame.file, frame.line));
}

export function openInEditor(page: Page): void {
  const frame = frameOf(page);
  if (frame) h('a', { href: editorLink(page.services.editor, frame.file, frame.line) }).click();
}

function editorLink(editor: string, file: string, line: number): string {
  return editor.replace('{file}', encodeURI(file)).replace('{line}', String(line || 1));
}
