// The numbers that tensors had: their least and greatest, their mean, how many are NaN. Those of what is selected are marked.

import { STATISTICS, type ValueRow } from '../engine/values.ts';
import { Value } from '../state/store.ts';
import { LANGUAGES, type Language, type Words } from '../state/words.ts';
import { FACTS } from '../wire/facts.ts';
import { h, replace, short } from '../widgets/dom.ts';
import { VirtualList } from '../widgets/list.ts';
import { register, type Panel, type Site } from './panel.ts';

const WORDS: Record<Language, { title: string; help: string; columns: string[]; count: (n: number) => string }> = {
  en: {
    title: 'Values',
    help: 'Statistics of the tensors that were recorded',
    columns: ['operator', 'name', 'type', 'min', 'max', 'mean', 'std', 'NaN', 'Inf'],
    count: (n) => `${n.toLocaleString()} tensor${n === 1 ? '' : 's'}`,
  },
  zh: {
    title: '数值',
    help: '已记录张量的统计信息',
    columns: ['算子', '名称', '类型', '最小', '最大', '均值', '标准差', 'NaN', 'Inf'],
    count: (n) => `${n.toLocaleString()} 个张量`,
  },
};

const own = (words: Words) => WORDS[words === LANGUAGES.zh ? 'zh' : 'en'];
const COUNTS = STATISTICS.indexOf('nan'); // from here on, figures are whole numbers

register({
  name: 'values',
  place: 'low',
  title: (words) => own(words).title,
  help: (words) => own(words).help,
  isThere: (state) => state.info.get()?.facts.includes(FACTS.values.name) === true,
  make,
});

function make({ state, client, act, words, follow }: Site): Panel {
  const rows = new Value<ValueRow[]>('values', []);
  const head = h('div', { class: 'table-row head', role: 'row' });
  const list = new VirtualList(24, (i) => rowOf(rows.get()[i], state.selection.get(), act.select), { role: 'rowgroup' });
  const note = h('span', { class: 'hint' });
  const wide = h('div', { class: 'table-wide', role: 'grid', style: 'min-width:980px' }, head, list.element);
  const element = h('div', { class: 'table-panel' }, h('div', { class: 'table-scroll' }, wide), h('div', { class: 'table-tools' }, note));
  list.onStep((by) => {
    const all = rows.get();
    const at = all.findIndex(({ item }) => state.selection.get().includes(item));
    const next = all[Math.max(0, Math.min(all.length - 1, at + by))];
    if (next) act.select([next.item]);
  });

  follow(
    () => state.shown.get(),
    async () => rows.set(await client.values()),
  );
  follow(
    () => [rows.get(), words()] as const,
    ([now, w]) => {
      const { columns, count, help } = own(w);
      replace(head, ...columns.map((name, i) => h('span', { class: `cell ${column(i)}`, role: 'columnheader' }, name)));
      note.textContent = count(now.length);
      wide.setAttribute('aria-label', help);
      wide.classList.toggle(
        'no-names',
        now.every(({ name }) => !name),
      );
      list.set(now.length);
    },
  );
  follow(
    () => [state.selection.get(), rows.get()] as const,
    ([selection, now]) => {
      list.draw();
      const first = now.findIndex(({ item }) => selection.includes(item));
      if (first >= 0) list.scrollTo(first);
    },
  );
  return { element };
}

const column = (i: number) => (i === 1 ? 'c4' : i < 3 ? 'c1' : 'c6');

function rowOf(row: ValueRow | undefined, selection: number[], select: (items: number[]) => void): HTMLElement | null {
  if (!row) return null;
  const texts = [row.op, row.name, row.type].map((text) => short(text, 60));
  const figures = row.figures.map((figure, i) => (figure === null ? '?' : i >= COUNTS ? figure.toLocaleString() : figure.toPrecision(4)));
  return h(
    'div',
    {
      class: selection.includes(row.item) ? 'table-row selected' : 'table-row',
      role: 'row',
      onclick: () => select([row.item]),
    },
    ...[...texts, ...figures].map((text, i) => h('span', { class: `cell ${column(i)}`, role: 'gridcell', title: text }, text)),
  );
}
