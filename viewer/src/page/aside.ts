// At the right: what is selected, or the kernel that is picked, or what the capture is.

import type { CaptureInfo, Details, StageInfo, Totals } from '../engine/messages.ts';
import { showDetails, showKernel, tensorSections, together } from '../panels/details.ts';
import { throughStages } from '../panels/fates.ts';
import type { Words } from '../state/words.ts';
import { bytesText, figureText, secondsText, shortNumber } from '../text/figures.ts';
import { h, pairs } from '../widgets/dom.ts';
import { toggle } from './expanding.ts';
import { keyList } from './help.ts';
import type { Page } from './page.ts';
import { warningList } from './warnings.ts';
import { pickKernel, pickLine, select, traceBetween, traceWay } from './selecting.ts';
import { goToNodes } from './staging.ts';

const MOST_MEMBERS = 200; // operators of a kernel

export function showAside(page: Page): void {
  const { state, views } = page;
  views.add(
    'details at the right',
    () =>
      [
        state.details.get(),
        state.kernel.get(),
        state.selection.get(),
        state.totals.get(),
        page.words(),
        state.info.get(),
        state.shown.get(),
      ] as const,
    async ([details, kernel, selection, totals, words, info, shown]) => {
      if (details && selection.length) {
        drawDetails(page, details, selection.length > 1);
        await Promise.all([drawFates(page, selection.at(-1)!), drawMore(page, details, selection)]);
      } else if (selection.length)
        return; // its details are on their way
      else if (kernel >= 0) await drawKernel(page, kernel);
      else {
        showDetails(page.places.right, null, false, words, detailActs(page));
        if (!info || !shown) return;
        // Of a tab of its own: what is in it, and not what the capture has.
        const own = info.of === undefined ? null : await page.client.summed([]);
        if (state.info.get() !== info || state.selection.get().length) return;
        const part = own && together(1, own.count, own.measured, words, info.name);
        page.places.right.append(...(part ? [part] : about(page, info, shown, totals, words)));
      }
    },
  );
}

function detailActs(page: Page): Parameters<typeof showDetails>[4] {
  return {
    select: (items) => page.run(select(page, items, true)),
    toggle: (item) => page.run(toggle(page, item)),
    kernel: (index) => page.run(pickKernel(page, index, true)),
    line: (file, line) => page.run(pickLine(page, file, line)),
    trace: (way) => page.run(traceWay(page, way)),
    between: () => page.run(traceBetween(page)),
  };
}

function drawDetails(page: Page, details: Details, several: boolean): void {
  showDetails(page.places.right, details, several, page.words(), detailActs(page));
}

/** What several are together; what is known of a tensor beside its type. */
async function drawMore(page: Page, details: Details, selection: number[]): Promise<void> {
  const { state, client, places } = page;
  const isNow = () => state.selection.get() === selection && state.details.get() === details;
  if (selection.length > 1) {
    const { count, measured } = await client.summed(selection);
    const section = together(selection.length, count, measured, page.words());
    if (isNow() && section) places.right.prepend(section);
  }
  if (details.kind !== 'tensor' && details.kind !== 'input') return;
  const facts = await client.tensorFacts(details.item);
  if (isNow()) places.right.append(...tensorSections(facts, page.words(), detailActs(page)));
}

/** Where the selected operator is in each stage. */
async function drawFates(page: Page, item: number): Promise<void> {
  const { state, client, places } = page;
  const stages = state.info.get()?.stages ?? [];
  if (stages.length < 2) return;
  const fates = await client.follow(item);
  if (state.selection.get().at(-1) !== item) return;
  const go = (stage: number, nodes: number[]) => page.run(goToNodes(page, stage, nodes));
  const section = throughStages(fates, stages, state.stage.get(), page.words(), go);
  const below = places.right.querySelector('.actions');
  if (section) below ? below.after(section) : places.right.append(section);
}

async function drawKernel(page: Page, index: number): Promise<void> {
  const { client, places } = page;
  const { name, runs, nodes, attrs } = await client.kernel(index);
  const refs = (await client.labels(nodes.slice(0, MOST_MEMBERS))).map(({ item, label }) => ({ item, label }));
  showKernel(places.right, { index, name, runs, refs, attrs }, page.words(), { select: (items) => page.run(select(page, items, true)) });
}

/** What the capture is, and what it lacks: shown while nothing is selected. */
function about(page: Page, info: CaptureInfo, stage: StageInfo, totals: Totals | null, words: Words): HTMLElement[] {
  const warnings = [...info.warnings, ...stage.warnings];
  const facts: [string, string][] = [
    [words.facts.nodes, stage.nodes.toLocaleString()],
    [words.facts.values, stage.values.toLocaleString()],
    [words.facts.edges, stage.edges.toLocaleString()],
  ];
  if (stage.kernels) facts.push([words.facts.kernels, stage.kernels.toLocaleString()]);
  for (const [kind, n] of Object.entries(stage.links))
    facts.push([kind === 'grad' ? words.facts.pairs : words.linksOf(kind), n.toLocaleString()]);
  const origin = [`${info.framework} ${info.version}`, info.how].filter(Boolean).join(' · ');
  return [
    h('section', {}, h('h2', { class: 'origin' }, origin), h('dl', {}, ...pairs(facts))),
    ...(totals ? [h('section', {}, h('h3', {}, words.cost), h('dl', {}, ...pairs(totalRows(words, totals))))] : []),
    ...(warnings.length ? [h('section', {}, h('h3', {}, words.warnings), ...warningList(page, warnings))] : []),
    // What to do first; for one who has never seen the page.
    h('section', { class: 'first-steps' }, h('h3', {}, words.firstSteps), keyList(words.steps)),
  ];
}

function totalRows({ costs: { figures, peakMemory }, unknown }: Words, totals: Totals): [string, string][] {
  const least = totals.atLeast ? '≥ ' : '';
  return [
    ...(totals.time > 0 ? ([[figures.time, secondsText(totals.time)]] as [string, string][]) : []),
    [
      figures.parameters,
      Number.isNaN(totals.parameters) ? unknown : `${totals.parametersAtLeast ? '≥ ' : ''}${shortNumber(totals.parameters)}`,
    ],
    [figures.macs, `${least}${figureText('MACs', totals.macs)}`],
    [figures.other, `${least}${figureText('other FLOPs', totals.other)}`],
    [peakMemory, `≥ ${bytesText(totals.peak)}`],
  ];
}
