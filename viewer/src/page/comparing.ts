// Comparing two graphs that are open: they become the two stages of a capture of their own, in a tab of its own.

import type { Chosen } from '../engine/messages.ts';
import { h } from '../widgets/dom.ts';
import { addFile, enter } from './files.ts';
import type { Page } from './page.ts';

/** The server compares what it knows, as `opscope diff` does; everything else the engine here, by structure. */
export async function compareGraphs(page: Page, before: Chosen, after: Chosen): Promise<void> {
  const { state, client, services } = page;
  page.say(page.words().comparing);
  state.compare.set('split');
  state.options.set({ ...state.options.get(), overlay: undefined, aligned: true });
  const [one, other] = [page.served.get(before.capture), page.served.get(after.capture)];
  const served = one && other ? await services.compare({ url: one, stage: before.stage }, { url: other, stage: after.stage }) : null;
  if (served) await addFile(page, served.content, served.name);
  else {
    const info = await client.compare(before, after);
    page.joined.set(info.id, [before, after]);
    await enter(page, info);
  }
  page.say('');
}

/** What is in view, and the other capture that one looked at last. */
function proposal({ state }: Page): [Chosen, Chosen] {
  const now = { capture: state.capture.get(), stage: state.stage.get() };
  const captures = state.captures.get();
  const other = captures.filter(({ id, how }) => id !== now.capture && how !== 'compared').at(-1)?.id;
  if (other === undefined) return [{ ...now, stage: Math.max(0, now.stage - 1) }, now];
  const pair: [Chosen, Chosen] = [{ capture: other, stage: 0 }, now];
  return other < now.capture ? pair : [pair[1], pair[0]];
}

/** Which graph with which: every stage of every file that is open. */
export function compareSheet(page: Page, close: () => void): HTMLElement {
  const { state } = page;
  const w = page.words();
  const choices = state.captures
    .get()
    .flatMap(({ id, name, how, stages }) =>
      how === 'compared' && stages.length === 2
        ? []
        : stages.map((stage, i) => ({ value: `${id}.${i}`, text: stages.length > 1 ? `${name} · ${stage.name}` : name })),
    );
  const select = (key: string, { capture, stage }: Chosen) =>
    h(
      'select',
      { 'data-key': key },
      ...choices.map(({ value, text }) => h('option', { value, selected: value === `${capture}.${stage}` }, text)),
    );
  const [before, after] = proposal(page);
  const [one, other] = [select('compare-before', before), select('compare-after', after)];
  const chosen = ({ value }: HTMLSelectElement): Chosen => {
    const [capture, stage] = value.split('.').map(Number);
    return { capture: capture!, stage: stage! };
  };
  const go = (event: Event) => {
    event.preventDefault();
    close();
    page.run(compareGraphs(page, chosen(one), chosen(other)));
  };
  return h(
    'form',
    { class: 'sheet-form', onsubmit: go },
    h('h2', {}, w.compareTitle),
    h('label', {}, h('span', {}, w.compareBefore), one),
    h('label', {}, h('span', {}, w.compareAfter), other),
    h('p', { class: 'hint' }, w.compareHint),
    h(
      'div',
      { class: 'actions' },
      h('button', { class: 'chip', type: 'button', onclick: () => ([one.value, other.value] = [other.value, one.value]) }, w.exchange),
      h('button', { class: 'chip on', type: 'submit', disabled: choices.length < 2 }, w.compareNow),
    ),
  );
}
