// The generated code of a kernel: of the one that is picked, or of the first in which the selected operator ran.

import { showCode } from '../widgets/code.ts';
import { h, pairs, replace, short } from '../widgets/dom.ts';
import { register, type Panel, type Site } from './panel.ts';

const PYTHON = /^\s*(?:@triton|import triton)/m;

register({
  name: 'code',
  place: 'low',
  title: (words) => words.code,
  isThere: (state) => (state.shown.get()?.kernels ?? 0) > 0,
  make,
});

function make({ state, client, words, follow }: Site): Panel {
  const element = h('div', { class: 'fill-body' });
  const body = h('div', { class: 'code-body' });
  let first: HTMLElement | undefined; // the line that was scrolled to
  let last = -1; // the kernel that was shown

  follow(
    () => {
      const picked = state.kernel.get();
      const own = state.details.get()?.kernels[0]?.index;
      return [picked >= 0 ? picked : (own ?? -1), state.selection.get().length, state.shown.get(), words()] as const;
    },
    async ([index, selected, shown]) => {
      // What has no kernel leaves the code of the one before.
      if (index < 0 && selected && last >= 0) return;
      last = index;
      if (index < 0) {
        replace(element, h('p', { class: 'hint' }, shown?.kernels ? words().pickKernel : words().noKernels));
        return;
      }
      const { name, code, attrs } = await client.kernel(index);
      replace(element, h('p', { class: 'code-head' }, h('b', {}, `#${index}`), ` ${short(name, 140)}`), body);
      if (code) first = showCode(body, code, { language: PYTHON.test(code) ? 'python' : 'cpp', top: firstStatement(code) });
      else replace(body, h('p', { class: 'hint' }, words().noCode), h('dl', {}, ...pairs(attrs)));
    },
  );
  return { element, opened: () => first?.scrollIntoView({ block: 'start' }) };
}

/** The line where generated code begins after what it includes: that is all anyone wants to read. */
function firstStatement(code: string): number {
  const lines = code.split('\n');
  const at = lines.findIndex((line) => !/^\s*($|#|\/\/|using\b|namespace\b|extern\b|typedef\b)/.test(line));
  return at < 0 ? 1 : at + 1;
}
