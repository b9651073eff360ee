// Text with line numbers: source files and generated kernels.

import { h, replace } from './dom.ts';
import { highlight } from './highlight.ts';

export interface CodeOptions {
  language: 'python' | 'cpp';
  marked?: Map<number, string>; // line -> a note in the margin
  current?: Set<number>;
  top?: number; // the line to begin with, where none is current
  onLine?: (line: number) => void;
}

/** Shows it; returns the line that was scrolled to. */
export function showCode(container: HTMLElement, text: string, options: CodeOptions): HTMLElement | undefined {
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
  else if (options.top) container.scrollTop = (rows[options.top - 1]?.offsetTop ?? 0) - (rows[0]?.offsetTop ?? 0);
  // From one line with operators to the next.
  body.addEventListener('keydown', (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by || !options.onLine || !options.marked?.size) return;
    event.preventDefault();
    event.stopPropagation();
    const lines = [...options.marked.keys()].sort((a, b) => a - b);
    const next = by > 0 ? lines.find((line) => line > first) : lines.filter((line) => line < (first || Infinity)).at(-1);
    if (next !== undefined) options.onLine(next);
  });
  return first ? rows[first - 1] : options.top ? rows[options.top - 1] : undefined;
}
