// A menu beside the pointer, or under a button: worked by mouse and keys, and gone when one does something else.

import { h } from './dom.ts';

export interface MenuItem {
  text: string;
  key?: string; // the key that does the same
  run(): void;
}

/** `null` is a line between the others. The focus goes back to where it was. */
export function openMenu(root: HTMLElement, at: { x: number; y: number }, label: string, items: (MenuItem | null)[]): void {
  const before = document.activeElement as HTMLElement | null;
  const stop = new AbortController();
  const close = (): void => {
    stop.abort();
    const held = element.contains(document.activeElement);
    element.remove();
    if (held) before?.focus({ preventScroll: true });
  };
  const element = h(
    'div',
    { class: 'popup', role: 'menu', 'aria-label': label },
    ...items.map((item) =>
      item
        ? h(
            'button',
            { role: 'menuitem', tabindex: -1, onclick: () => (close(), item.run()) },
            h('span', {}, item.text),
            item.key ? h('kbd', {}, item.key) : null,
          )
        : h('hr'),
    ),
  );
  (root.querySelector('main') ?? root).append(element);
  const all = [...element.querySelectorAll<HTMLElement>('[role=menuitem]')];
  element.addEventListener('keydown', (event) => {
    const now = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: -1 }[event.key];
    if (to !== undefined) all.at(to % all.length)?.focus();
    else if (event.key === 'Escape' || event.key === 'Tab') close();
    else if (event.key !== 'Enter' && event.key !== ' ') {
      // By its first letter, as menus are.
      const begins = (one: HTMLElement) => one.textContent!.toLowerCase().startsWith(event.key.toLowerCase());
      [...all.slice(now + 1), ...all.slice(0, now + 1)].find(begins)?.focus();
    }
    event.stopPropagation();
    if (event.key !== 'Enter' && event.key !== ' ') event.preventDefault();
  });
  document.addEventListener('pointerdown', (event) => !element.contains(event.target as Node) && close(), {
    signal: stop.signal,
    capture: true,
  });
  window.addEventListener('blur', close, { signal: stop.signal });
  window.addEventListener('resize', close, { signal: stop.signal });
  place(root, element, at);
  all[0]?.focus({ preventScroll: true });
}

/** Wholly on the page. */
function place(root: HTMLElement, element: HTMLElement, { x, y }: { x: number; y: number }): void {
  const page = root.getBoundingClientRect();
  const left = Math.max(4, Math.min(x - page.left, page.width - element.offsetWidth - 4));
  const top = Math.max(4, Math.min(y - page.top, page.height - element.offsetHeight - 4));
  element.style.left = `${left}px`;
  element.style.top = `${top}px`;
}
