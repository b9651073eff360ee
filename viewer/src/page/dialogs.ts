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
    // What is pressed in it is not for the page. The browser says that it has closed a moment later, when the next one may be
    // open already: so Escape closes it here, at once.
    onkeydown: (event: KeyboardEvent) => {
      event.stopPropagation();
      if (event.key !== 'Escape') return;
      event.preventDefault();
      close();
      page.views.run();
    },
    onclick: (event: Event) => event.target === dialog && close(),
    onclose: () => dialog.open || close(),
  });
  root.append(dialog);
  views.add(
    'sheet',
    () => [state.sheet.get(), page.words()] as const,
    ([sheet, words]) => {
      if (!sheet) {
        if (dialog.open) dialog.close();
        return;
      }
      const form = SHEETS[sheet](page, close);
      replace(dialog, form, h('button', { class: 'chip', 'data-key': 'close-sheet', onclick: close }, words.close));
      dialog.setAttribute('aria-label', form.querySelector('h2')!.textContent);
      if (!dialog.open) dialog.showModal();
    },
  );
}
