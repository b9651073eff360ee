// The stages of a capture in a row: an arrow leads to what was made from the one before.

import type { StageInfo } from '../engine/messages.ts';
import { badge } from '../panels/fates.ts';
import { BREAKS } from '../panels/listing.ts';
import { CHANGES } from '../picture/changes.ts';
import { COMPARE } from '../state/page.ts';
import { secondsText } from '../text/figures.ts';
import { h, replace, short } from '../widgets/dom.ts';
import type { Page } from './page.ts';
import { barStages, goToStage, isUnchanged, setCompare, showBreaks, stepStage } from './staging.ts';

export function showStageBar(page: Page): void {
  const { state, views, places } = page;
  places.stages.append(
    h('span', { class: 'stages-title' }),
    // Between the tabs stand buttons, which a list of tabs may not hold: it owns the tabs alone.
    h('span', { role: 'tablist' }),
    h('div', { class: 'stages-row' }),
    h('div', { class: 'stages-tools' }),
  );
  views.add(
    'stages',
    () => [state.info.get(), state.stage.get(), state.compare.get(), state.hideUnchanged.get(), page.words()],
    () => drawStages(page),
  );
  // In the bar the arrow keys step; everywhere, < and > without Shift do.
  places.stages.addEventListener('keydown', (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || event.altKey || event.ctrlKey || event.metaKey || !(event.target as HTMLElement).classList.contains('stage')) return;
    event.preventDefault();
    event.stopPropagation();
    page.run(stepStage(page, by));
  });
}

function drawStages(page: Page): void {
  const { state, places } = page;
  const words = page.words();
  const stages = state.info.get()?.stages ?? [];
  const known = stages.some((stage) => stage.changes);
  const [title, tabs, row, tools] = [...places.stages.children] as [HTMLElement, HTMLElement, HTMLElement, HTMLElement];
  const focused = row.contains(document.activeElement);
  places.stages.hidden = stages.length < 2;
  places.stages.classList.toggle('compared', known);
  places.stages.setAttribute('aria-label', words.stages);
  tabs.setAttribute('aria-label', words.stages);
  title.textContent = words.stages;
  const listed = barStages(stages, state.stage.get(), state.hideUnchanged.get());
  const most = Math.max(1, ...stages.map(touchedBy));
  tabs.setAttribute('aria-owns', listed.map((i) => `stage-${i}`).join(' '));
  replace(row, ...listed.flatMap((i, place) => [mark(page, stages, i, listed[place - 1]), stageTab(page, stages, i, most)]));
  tools.hidden = !known;
  replace(tools, ...(known ? [quietChip(page, stages), compareChoice(page)] : []));
  const on = row.querySelector<HTMLElement>('.stage.on');
  on?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  if (focused) on?.focus();
}

/** How many operators a stage changed. */
function touchedBy({ changes }: StageInfo): number {
  return changes?.touched.reduce((a, b) => a + b, 0) ?? 0;
}

/** What stands between a stage and the one before it in the bar. */
function mark(page: Page, stages: StageInfo[], i: number, last: number | undefined): HTMLElement | null {
  if (last === undefined) return null;
  const { after } = stages[i]!;
  const words = page.words();
  if (after === null && stages[last]!.listings.includes(BREAKS))
    return h(
      'button',
      { class: 'stage-mark break', 'data-key': `break-${last}`, onclick: () => page.run(showBreaks(page, last)) },
      words.graphBreak,
    );
  const from = after === null ? undefined : stages[after]?.name;
  return h('span', { class: 'stage-mark', title: from === undefined ? undefined : words.madeFrom(from) }, sign(stages, i, last));
}

/** → from the one before, ⋯ with others between, · from the same as the one before, else by name. */
function sign(stages: StageInfo[], i: number, last: number): string {
  const { after } = stages[i]!;
  if (after === null) return '';
  if (after === i - 1) return last < i - 1 ? '⋯' : '→';
  if (after === stages[last]!.after) return '·';
  return stages[after] ? `${stages[after].name} →` : '';
}

function stageTab(page: Page, stages: StageInfo[], i: number, most: number): HTMLElement {
  const words = page.words();
  const stage = stages[i]!;
  const { changes } = stage;
  const isOn = i === page.state.stage.get();
  const from = stage.after === null ? undefined : stages[stage.after]?.name;
  const told = CHANGES.flatMap((kind, k) => (changes?.counts[k] ? [`${changes.counts[k]} ${words.changes[kind]}`] : []));
  const facts = [
    stage.name,
    words.ops(stage.nodes),
    from === undefined ? '' : words.madeFrom(from),
    stage.seconds === null ? '' : secondsText(stage.seconds),
    changes ? told.join(', ') || words.unchanged : '',
  ];
  return h(
    'button',
    {
      class: ['stage', isOn ? 'on' : '', isUnchanged(stage) ? 'unchanged' : ''].filter(Boolean).join(' '),
      role: 'tab',
      id: `stage-${i}`,
      'data-stage': i,
      'aria-selected': String(isOn),
      tabindex: isOn ? 0 : -1,
      title: facts.filter(Boolean).join(' · '),
      onclick: () => page.run(goToStage(page, i)),
    },
    h(
      'span',
      { class: 'stage-name' },
      short(stage.seams ? words.allGraphs(stage.seams + 1) : stage.name, 36),
      h('span', { class: 'count' }, stage.nodes.toLocaleString()),
    ),
    changes || stage.seconds !== null
      ? h(
          'span',
          { class: 'stage-facts' },
          stage.seconds === null ? null : h('span', {}, secondsText(stage.seconds)),
          ...CHANGES.map((kind, k) => (changes?.counts[k] ? badge(kind, words, changes.counts[k]) : null)),
          changes && !told.length ? h('span', {}, words.unchangedShort) : null,
        )
      : null,
    changes ? share(stage, most) : null,
  );
}

/** How much of all changes a stage made: as long as the operators in it. */
function share(stage: StageInfo, most: number): HTMLElement {
  const touched = touchedBy(stage);
  const part = (kind: string, n: number) => h('i', { class: `change-fill ${kind}`, style: `flex:${n}` });
  const parts = CHANGES.flatMap((kind, k) => (stage.changes!.touched[k] ? [part(kind, stage.changes!.touched[k]!)] : []));
  const width = touched ? Math.max(6, (touched / most) * 100) : 0;
  return h('span', { class: 'stage-bar', 'aria-hidden': 'true' }, h('span', { style: `width:${width}%` }, ...parts));
}

function quietChip({ state }: Page, stages: StageInfo[]): HTMLElement | null {
  const quiet = stages.filter(isUnchanged).length;
  if (!quiet) return null;
  const on = state.hideUnchanged.get();
  const flip = () => state.hideUnchanged.set(!on);
  const w = state.words.get();
  return h(
    'button',
    { 'data-key': 'quiet', class: on ? 'chip on' : 'chip', 'aria-pressed': String(on), title: w.hideUnchangedHelp, onclick: flip },
    w.hideUnchanged(quiet),
  );
}

function compareChoice(page: Page): HTMLElement {
  const { state } = page;
  const w = page.words();
  return h(
    'div',
    { class: 'segmented', role: 'radiogroup', 'aria-label': w.compare },
    ...COMPARE.map((name) =>
      h(
        'button',
        {
          'data-key': name,
          'data-compare': name,
          class: state.compare.get() === name ? 'on' : '',
          role: 'radio',
          'aria-checked': String(state.compare.get() === name),
          title: w.compareHelp[name],
          onclick: () => page.run(setCompare(page, name)),
        },
        w.compareModes[name],
      ),
    ),
  );
}
