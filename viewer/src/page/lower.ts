// Below the drawing: source files, the code of kernels, the table of operators.

import { showCode } from '../panels/code.ts';
import { h, pairs, replace, short } from '../panels/dom.ts';
import type { App } from './app.ts';

export async function showLow(app: App, line = 0): Promise<void> {
  app.lowPanel.classList.toggle('closed', app.lowTab === '');
  if (app.lowTab === 'table') {
    replace(app.low, app.table.element);
    await app.table.show(app.captures[app.capture]?.metrics ?? [], app.query.trim() ? app.found : null);
    app.table.select(app.selection);
  } else if (app.lowTab === 'code') {
    await showKernelCode(app);
  } else if (app.lowTab === 'source') {
    await showSource(app, line);
  }
  app.renderer.resize();
}

export async function showKernelCode(app: App): Promise<void> {
  const index = app.pickedKernel >= 0 ? app.pickedKernel : app.details?.kernels[0]?.index;
  if (index === undefined) {
    replace(app.low, h('p', { class: 'hint' }, app.words.noKernels));
    return;
  }
  const kernel = await app.client.kernel(index);
  const body = h('div', { class: 'code-body' });
  replace(app.low, h('p', { class: 'code-head' }, h('b', {}, `#${index}`), ` ${short(kernel.name, 140)}`), body);
  if (kernel.code) showCode(body, kernel.code, { language: 'cpp' });
  else replace(body, h('p', { class: 'hint' }, app.words.noCode), h('dl', {}, ...pairs(kernel.attrs)));
}

export async function showSource(app: App, line: number): Promise<void> {
  const files = await app.client.files();
  if (!files.length) {
    replace(app.low, h('p', { class: 'hint' }, app.words.noFiles));
    return;
  }
  if (!files.some((entry) => entry.file === app.shownFile)) {
    const embedded = files.find((entry) => app.captures[app.capture]?.sources.includes(entry.file));
    app.shownFile = (embedded ?? files[0]!).file;
  }
  const file = app.shownFile;
  const picker = h(
    'select',
    {
      'aria-label': 'file',
      onchange: (event: Event) => ((app.shownFile = (event.target as HTMLSelectElement).value), app.run(showLow(app))),
    },
    ...files.map((entry) => h('option', { value: entry.file, selected: entry.file === file }, short(entry.file, 110))),
  );
  const link = app.services.editor.replace('{file}', encodeURI(file)).replace('{line}', String(line || 1));
  const body = h('div', { class: 'code-body' });
  replace(app.low, h('p', { class: 'code-head' }, picker, h('a', { class: 'link', href: link }, app.words.openInEditor)), body);
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
