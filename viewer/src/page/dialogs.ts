// Sheets over the page: one at a time. The browser keeps the focus in them, and gives it back.

import { h, replace } from '../widgets/dom.ts';
import { compareSheet } from './comparing.ts';
import { exportSheet } from './exporting.ts';
import type { Page } from './page.ts';

const SHEETS = { compare: compareSheet, export: exportSheet };

export function showDialogs(page: Page): void {
  const { state, views, root } = page;
  const close = () => state.sheet.set('');
  const dialog: HTMLDialogElement = h('dialog', {
    class: 'sheet',
    // What is pressed in it is not for the page.
    onkeydown: (event: KeyboardEvent) => {
      event.stopPropagation();
      if (event.key !== 'Escape') return;
      event.preventDefault();
      close();
      page.views.run();
    },
    onclick: (event: Event) => event.target === dialog && close(),
    onclose: () => {
      // The browser says so a moment later, when the next sheet may have been asked for already.
      if (closed) closed -= 1;
      else close();
    },
  });
  let closed = 0; // how often it was closed here, and the browser has not said so yet
  root.append(dialog);
  views.add(
    'sheet',
    () => [state.sheet.get(), page.words()] as const,
    ([sheet, words]) => {
      if (!sheet) {
        if (dialog.open) {
          closed += 1;
          dialog.close();
        }
        return;
      }
      const form = SHEETS[sheet](page, close);
      replace(dialog, form, h('button', { class: 'chip', 'data-key': 'close-sheet', onclick: close }, words.close));
      dialog.setAttribute('aria-label', form.querySelector('h2')!.textContent);
      if (!dialog.open) dialog.showModal();
    },
  );
}
