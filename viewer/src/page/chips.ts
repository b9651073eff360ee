// Over the drawing: the phases, and the View menu.

import type { ViewOptions } from '../engine/messages.ts';
import { PHASES } from '../scene.ts';
import type { Words } from '../state/words.ts';
import { h, replace } from '../widgets/dom.ts';
import { setOptions } from './expanding.ts';
import type { Page } from './page.ts';
import { showHidden } from './parts.ts';

/** A line of the menu. */
interface Option {
  text(words: Words): string;
  isThere(): boolean;
  isOn(): boolean;
  flip(): void;
}

export function showChips(page: Page): void {
  const { views, places } = page;
  const phases = h('div', { class: 'phases' });
  places.chips.append(phases, menu(page));
  views.add(
    'phases',
    () =>
      [
        present(page),
        page.state.options.get().hidden,
        page.words(),
        page.state.shown.get(),
        page.state.picture.get()?.hidden.length ?? 0,
        page.state.capture.get(),
      ] as const,
    ([shown, , { habits }, , gone]) => {
      // A menu alone is not worth a row of its own.
      places.chips.classList.toggle('alone', shown.length < 2);
      const back = { 'data-key': 'hidden', class: 'chip', title: habits.commands.showHidden, onclick: () => page.run(showHidden(page)) };
      const chips = shown.length > 1 ? shown.map((phase) => chip(page, phase)) : [];
      replace(phases, ...chips, gone > 0 && h('button', back, `${habits.hiddenByHand(gone)} · ${habits.show}`));
    },
  );
}

/** The phases of the stage in view. */
export function present({ state }: Page): number[] {
  return (state.shown.get()?.phases ?? []).flatMap((n, i) => (n ? [i] : []));
}

function chip(page: Page, phase: number): HTMLElement {
  const { state } = page;
  const w = page.words();
  const { hidden } = state.options.get();
  const on = !hidden.includes(phase);
  const name = PHASES[phase]!;
  return h(
    'button',
    {
      'data-key': name,
      class: on ? 'chip phase on' : 'chip phase',
      'aria-pressed': String(on),
      title: w.phaseHelp(w.phases[name], on),
      onclick: () => flipPhase(page, phase),
    },
    h('span', { class: `dot phase-${name}` }),
    // A tab of its own has a part of them.
    state.info.get()?.of === undefined ? `${w.phases[name]} ${state.shown.get()!.phases[phase]!.toLocaleString()}` : w.phases[name],
  );
}

/** Hide a phase, or show it. */
export function flipPhase(page: Page, phase: number): void {
  const { hidden } = page.state.options.get();
  page.state.phasesByHand.set(true);
  page.run(setOptions(page, { hidden: hidden.includes(phase) ? hidden.filter((other) => other !== phase) : [...hidden, phase] }));
}

/** The menu is made once, so that it neither closes nor loses the focus when something in it changes. */
function menu(page: Page): HTMLElement {
  const { state, views, places } = page;
  const summary = h('summary', {
    class: 'chip',
    onclick: (event: Event) => (event.preventDefault(), setMenu(page, !state.menuOpen.get())),
  });
  const rows = options(page).map((option) => {
    const box = h('input', { type: 'checkbox', onchange: () => option.flip() });
    const text = h('span');
    return { option, box, text, label: h('label', {}, box, text) };
  });
  const element = h('details', { class: 'menu' }, summary, h('div', { class: 'menu-body' }, ...rows.map(({ label }) => label)));
  views.add(
    'menu',
    () => [page.words(), ...rows.flatMap(({ option }) => [option.isThere(), option.isOn(), option.text(page.words())])],
    () => {
      summary.textContent = page.words().viewMenu;
      for (const { option, box, text, label } of rows) {
        label.hidden = !option.isThere();
        box.checked = option.isOn();
        text.textContent = option.text(page.words());
      }
    },
  );
  // A menu closes when one does something else.
  document.addEventListener('pointerdown', (event) => {
    if (state.menuOpen.get() && !element.contains(event.target as Node)) setMenu(page, false);
  });
  places.chips.addEventListener('toggle', () => setMenu(page, element.open), true); // the browser's own way: a search in the page
  return element;
}

/** Open or close the View menu: the state and the element together, so that neither can be behind. */
export function setMenu({ state, places }: Page, open: boolean): void {
  state.menuOpen.set(open);
  const menu = places.chips.querySelector<HTMLDetailsElement>('.menu');
  if (menu && menu.open !== open) menu.open = open;
}

export function options(page: Page): Option[] {
  const { state } = page;
  const severalPhases = () => present(page).length > 1;
  const saved = () => (state.picture.get()?.saved ?? []).reduce((a, b) => a + b, 0);
  const hidden = (what: 'views' | 'plumbing') => state.picture.get()?.[what] ?? 0;
  const drawn = (name: keyof ViewOptions & ('split' | 'side' | 'constants' | 'saved' | 'views' | 'plumbing')) => ({
    isOn: () => state.options.get()[name] === true,
    flip: () => page.run(setOptions(page, { [name]: !state.options.get()[name] })),
  });
  return [
    { text: (w) => w.split, isThere: severalPhases, ...drawn('split') },
    { text: (w) => w.side, isThere: () => severalPhases() && state.options.get().split, ...drawn('side') },
    {
      text: (w) => w.uturn,
      isThere: () => severalPhases() && state.options.get().split && state.options.get().side && Boolean(state.shown.get()?.links.grad),
      isOn: () => !state.options.get().columns,
      flip: () => page.run(setOptions(page, { columns: !state.options.get().columns })),
    },
    { text: (w) => w.plumbing(hidden('plumbing')), isThere: () => hidden('plumbing') > 0, ...drawn('plumbing') },
    { text: (w) => w.views(hidden('views')), isThere: () => hidden('views') > 0, ...drawn('views') },
    { text: (w) => w.constants, isThere: () => true, ...drawn('constants') },
    { text: (w) => w.saved(saved()), isThere: () => saved() > 0, ...drawn('saved') },
    {
      text: (w) => w.pairs,
      isThere: () => Boolean(state.shown.get()?.links.grad),
      isOn: () => state.allPairs.get(),
      flip: () => state.allPairs.set(!state.allPairs.get()),
    },
    {
      text: (w) => w.edgeLabels,
      isThere: () => true,
      isOn: () => state.edgeLabels.get() === 'always',
      flip: () => state.edgeLabels.set(state.edgeLabels.get() === 'always' ? 'hover' : 'always'),
    },
    {
      text: (w) => w.edgeWidth,
      isThere: () => true,
      isOn: () => state.edgeWidth.get() === 'bytes',
      flip: () => state.edgeWidth.set(state.edgeWidth.get() === 'bytes' ? 'plain' : 'bytes'),
    },
  ];
}
