// Bookmarks of views: click to go there, double-click or F2 to name it, × to remove it.

import { h, replace } from '../widgets/dom.ts';
import { register } from './panel.ts';

register({
  name: 'bookmarks',
  place: 'left',
  title: (words) => words.habits.bookmarks,
  isThere: (state) => state.bookmarks.get().length > 0,
  make({ state, act, words, follow }) {
    const element = h('div', { class: 'list-panel scrolls' });
    let naming = -1;
    const draw = (): void => {
      const { habits } = words();
      const name = (i: number, text: string): void => {
        naming = -1;
        state.bookmarks.set(state.bookmarks.get().map((mark, n) => (n === i && text.trim() ? { ...mark, name: text.trim() } : mark)));
        draw();
      };
      const rename = (i: number): void => {
        naming = i;
        draw();
        const input = element.querySelector('input')!;
        input.focus();
        input.select();
      };
      replace(
        element,
        ...state.bookmarks.get().map((mark, i) => {
          if (i === naming) {
            const input: HTMLInputElement = h('input', {
              class: 'search',
              'data-key': `mark ${i}`,
              'aria-label': habits.nameBookmark,
              value: mark.name,
            });
            input.addEventListener('blur', () => naming === i && name(i, input.value));
            input.addEventListener('keydown', (event) => {
              if (event.key === 'Enter') name(i, input.value);
              else if (event.key === 'Escape') name(i, '');
              event.stopPropagation();
            });
            return h('div', { class: 'mark-row' }, input);
          }
          const drop = habits.dropBookmark(mark.name);
          return h(
            'div',
            { class: 'mark-row' },
            h(
              'button',
              {
                class: 'link row',
                'data-key': `mark ${i}`,
                title: habits.renameHint,
                onclick: () => act.bookmark(mark),
                ondblclick: () => rename(i),
                onkeydown: (event: KeyboardEvent) => event.key === 'F2' && rename(i),
              },
              mark.name,
            ),
            h(
              'button',
              {
                class: 'tab-close',
                title: drop,
                'aria-label': drop,
                onclick: () => state.bookmarks.set(state.bookmarks.get().filter((one) => one !== mark)),
              },
              '×',
            ),
          );
        }),
      );
    };
    follow(() => [state.bookmarks.get(), words()] as const, draw);
    return { element };
  },
});
