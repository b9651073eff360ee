// Source files, with the lines that called operators.

import type { State } from '../state/page.ts';
import { showCode } from '../widgets/code.ts';
import { h, replace } from '../widgets/dom.ts';
import { openingFrame } from './frames.ts';
import { register, type Panel, type Site } from './panel.ts';

interface Place {
  file: string;
  line: number;
}

register({ name: 'source', place: 'low', title: (words) => words.source, make });

/** The line that called what is selected, unless another file was chosen by hand. */
function wanted({ source, details, info }: State): Place {
  const place = source.get();
  const sources = info.get()?.sources ?? [];
  const frame = place.line ? undefined : openingFrame(details.get()?.frames ?? [], (file) => sources.includes(file));
  return !frame || (place.byHand && place.file !== frame.file) ? place : frame;
}

function make({ state, client, act, editor, sourceText, words, follow }: Site): Panel {
  const element = h('div', { class: 'fill-body' });
  const body = h('div', { class: 'code-body' });
  let first: HTMLElement | undefined; // the line that was scrolled to

  const show = async ({ file, line }: Place): Promise<void> => {
    const files = await client.files();
    if (!files.length) {
      replace(element, h('p', { class: 'hint' }, words().noFiles));
      return;
    }
    const sources = state.info.get()?.sources ?? [];
    if (!files.some((entry) => entry.file === file)) {
      // A file without operators (a graph break names its place) can be shown if its text is here.
      if (sources.includes(file)) files.unshift({ file, lines: 0 });
      else [file, line] = [(files.find((entry) => sources.includes(entry.file)) ?? files[0]!).file, 0];
    }
    const text = (await client.source(file)) ?? (await sourceText(state.capture.get(), file));
    const lines = text === null ? [] : await client.lines(file);
    const choose = (event: Event) => state.source.set({ file: (event.target as HTMLSelectElement).value, line: 0, byHand: true });
    const picker = h(
      'select',
      { 'data-key': 'file', 'aria-label': words().panels.file, onchange: choose },
      ...files.map((entry) =>
        h(
          'option',
          { value: entry.file, selected: entry.file === file },
          entry.file.length > 56 ? `…${entry.file.slice(-56)}` : entry.file,
        ),
      ),
    );
    const link = editor.replace('{file}', encodeURI(file)).replace('{line}', String(line || 1));
    const head = h('p', { class: 'code-head' }, picker, h('a', { class: 'link', href: link, title: link }, words().openInEditor));
    // By the keys, line by line: the new text has the focus that the old one had.
    const reading = document.activeElement?.classList.contains('code') && body.contains(document.activeElement);
    replace(element, head, body);
    if (text === null) {
      replace(body, h('p', { class: 'hint' }, words().noSource));
      return;
    }
    first = showCode(body, text, {
      language: 'python',
      marked: new Map(lines.map(([at, n]) => [at, String(n)])),
      current: new Set(line ? [line] : []),
      onLine: (at) => act.line(file, at),
    });
    if (reading) body.querySelector<HTMLElement>('.code')?.focus();
  };

  follow(
    () => {
      const { file, line } = wanted(state);
      return [file, line, state.shown.get(), state.capture.get(), words()] as const;
    },
    ([file, line]) => show({ file, line }),
  );
  return { element, opened: () => first?.scrollIntoView({ block: 'center' }) };
}
