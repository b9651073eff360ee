// Below the drawing: source files, the code of kernels, the table of operators.

import { showCode } from '../widgets/code.ts';
import { h, pairs, replace, short } from '../widgets/dom.ts';
import { openingFrame } from '../panels/frames.ts';
import type { App } from './app.ts';
import { showCosts } from './costs.ts';

export async function showLow(app: App, line = 0): Promise<void> {
  if (app.lowTab === 'source' && !line) line = openAtSelection(app);
  app.lowPanel.classList.toggle('closed', app.lowTab === '');
  app.lowPanel.classList.toggle('tall', app.lowTab === 'cost');
  if (app.lowTab === 'table') {
    replace(app.low, app.table.element);
    await app.table.show(
      app.captures[app.capture]?.metrics ?? [],
      app.captures[app.capture]?.costs === true,
      app.query.trim() ? app.found : null,
      app.shown?.nodes ?? 0,
    );
    app.table.select(app.selection);
  } else if (app.lowTab === 'cost') {
    await showCosts(app);
  } else if (app.lowTab === 'ir') {
    await showListing(app);
  } else if (app.lowTab === 'code') {
    await showKernelCode(app);
  } else if (app.lowTab === 'source') {
    await showSource(app, line);
  }
}

/** The line that called what is selected, in the file of which `shownFile` then is the name. */
export function openAtSelection(app: App): number {
  const sources = app.captures[app.capture]?.sources ?? [];
  const frame = openingFrame(app.details?.frames ?? [], (file) => sources.includes(file));
  if (!frame || (app.chosenFile && app.chosenFile !== frame.file)) return 0;
  app.shownFile = frame.file;
  return frame.line;
}

/** The framework's own texts of this stage, with the lines of what is selected. */
export async function showListing(app: App): Promise<void> {
  const kinds = app.shown?.listings ?? [];
  if (!kinds.length) {
    replace(app.low);
    return;
  }
  if (!kinds.includes(app.kind)) app.kind = ['code', 'native', 'table'].find((kind) => app.shown!.linked.includes(kind)) ?? kinds[0]!;
  if (app.low.firstChild !== app.listing.element) replace(app.low, app.listing.element);
  await app.listing.show(`${app.capture}/${app.stage}`, kinds, app.kind);
  await app.listing.mark(app.selection.length ? app.selection : app.related, app.query.trim() ? app.found : []);
}

export async function showKernelCode(app: App): Promise<void> {
  const index = app.pickedKernel >= 0 ? app.pickedKernel : app.details?.kernels[0]?.index;
  if (index === undefined) {
    replace(app.low, h('p', { class: 'hint' }, app.shown?.kernels ? app.words.pickKernel : app.words.noKernels));
    return;
  }
  const kernel = await app.client.kernel(index);
  const body = h('div', { class: 'code-body' });
  replace(app.low, h('p', { class: 'code-head' }, h('b', {}, `#${index}`), ` ${short(kernel.name, 140)}`), body);
  if (kernel.code) showCode(body, kernel.code, { language: 'cpp', top: firstStatement(kernel.code) });
  else replace(body, h('p', { class: 'hint' }, app.words.noCode), h('dl', {}, ...pairs(kernel.attrs)));
}

/** The line where generated code begins after what it includes: that is all anyone wants to read. */
function firstStatement(code: string): number {
  const lines = code.split('\n');
  const at = lines.findIndex((line) => !/^\s*($|#|\/\/|using\b|namespace\b|extern\b|typedef\b)/.test(line));
  return at < 0 ? 1 : at + 1;
}

export async function showSource(app: App, line: number): Promise<void> {
  const files = await app.client.files();
  if (!files.length) {
    replace(app.low, h('p', { class: 'hint' }, app.words.noFiles));
    return;
  }
  const sources = app.captures[app.capture]?.sources ?? [];
  if (!files.some((entry) => entry.file === app.shownFile)) {
    // A file without operators (a graph break names its place) can be shown if its text is here.
    if (sources.includes(app.shownFile)) files.unshift({ file: app.shownFile, lines: 0 });
    else {
      app.shownFile = (files.find((entry) => sources.includes(entry.file)) ?? files[0]!).file;
      line = 0;
    }
  }
  const file = app.shownFile;
  const picker = h(
    'select',
    {
      'aria-label': 'file',
      onchange: (event: Event) => ((app.shownFile = app.chosenFile = (event.target as HTMLSelectElement).value), app.run(showLow(app))),
    },
    ...files.map((entry) => h('option', { value: entry.file, selected: entry.file === file }, short(entry.file, 110))),
  );
  const link = app.services.editor.replace('{file}', encodeURI(file)).replace('{line}', String(line || 1));
  const body = h('div', { class: 'code-body' });
  replace(
    app.low,
    h('p', { class: 'code-head' }, picker, h('a', { class: 'link', href: link, title: link }, app.words.openInEditor)),
    body,
  );
  const text = (await app.client.source(file)) ?? (await app.services.source(app.capture, file));
  if (text === null) {
    replace(body, h('p', { class: 'hint' }, app.words.noSource));
    return;
  }
  showCode(body, text, {
    language: 'python',
    marked: new Map((await app.client.lines(file)).map(([at, n]) => [at, String(n)])),
    current: new Set(line ? [line] : []),
    onLine: (at) => app.run(app.pickLine(file, at)),
  });
}
