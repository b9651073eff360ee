// Text with line numbers: source files and generated kernels.

import { h, replace } from './dom.ts';
import { highlight } from './highlight.ts';

export interface CodeOptions {
  language: 'python' | 'cpp';
  marked?: Map<number, string>; // line -> a note in the margin
  current?: Set<number>;
  onLine?: (line: number) => void;
}

export function showCode(container: HTMLElement, text: string, options: CodeOptions): void {
  const body = h('div', { class: 'code', tabindex: 0, role: 'list' });
  const rows = highlight(text, options.language).map((tokens, i) => {
    const line = i + 1;
    const note = options.marked?.get(line);
    const classes = ['code-line', note === undefined ? '' : 'has-ops', options.current?.has(line) ? 'current' : ''].join(' ');
    return h(
      'div',
      { class: classes, role: 'listitem', 'data-line': line, onclick: note !== undefined && (() => options.onLine?.(line)) },
      h('span', { class: 'line-number' }, String(line)),
      h('span', { class: 'line-note' }, note ?? ''),
      h('code', {}, ...tokens),
    );
  });
  body.append(...rows);
  replace(container, body);
  const first = options.current?.size ? Math.min(...options.current) : 0;
  if (first) rows[first - 1]?.scrollIntoView({ block: 'center' });
}
