// What stands around the drawing: the bar at the top, the chips over it, the tabs of the panels, the help.

import { dark, light } from '../draw/theme.ts';
import { savePng } from '../draw/png.ts';
import { figureText, shortNumber } from '../engine/figures.ts';
import type { CaptureInfo, Totals } from '../engine/messages.ts';
import { bytesText } from '../engine/types.ts';
import { h, pairs, replace, short } from '../panels/dom.ts';
import { icon, ICONS, type Icon } from '../panels/icons.ts';
import { later } from '../panels/later.ts';
import { PHASES, type Phase } from '../scene.ts';
import type { App, LeftTab, LowTab } from './app.ts';
import { showLow } from './lower.ts';
import { repaint } from './painting.ts';
import { metricName } from '../panels/table.ts';
import { redrawStages } from './stages.ts';

export function redrawChrome(app: App): void {
  later(app.toolbar, () => drawChrome(app));
}

function drawChrome(app: App): void {
  const w = app.words;
  document.documentElement.lang = app.language;
  app.root.dataset.theme = app.theme.name;
  app.search.placeholder = w.search;
  app.search.title = w.searchHelp;
  app.search.setAttribute('aria-label', w.search);
  const named: [Element, string][] = [
    [app.right, w.details],
    [app.leftPanel, w.panels.left],
    [app.leftHead, w.panels.left],
    [app.lowPanel, w.panels.low],
    [app.lowHead, w.panels.low],
    [app.toolbar, w.panels.tools],
    [app.tabs, w.panels.files],
    [app.tree.element, w.modules],
  ];
  for (const [element, name] of named) element.setAttribute('aria-label', name);
  replace(
    app.tabs,
    ...app.captures.map((info, i) =>
      h(
        'button',
        { class: i === app.capture ? 'tab on' : 'tab', title: info.name, onclick: () => app.run(app.show(i, 0)) },
        short(info.name.split(/[\\/]/).at(-1)!, 32),
      ),
    ),
  );
  const info = app.captures[app.capture];
  redrawStages(app, info);
  redrawChips(app, info);
  const tool = (image: Icon | string, title: string, run: () => void) =>
    h('button', { class: 'tool', title, 'aria-label': title, onclick: run }, image in ICONS ? icon(image as Icon) : image);
  replace(
    app.toolbar,
    tool('back', w.back, () => app.run(app.step(app.past, app.future))),
    tool('forward', w.forward, () => app.run(app.step(app.future, app.past))),
    h('span', { class: 'gap' }),
    tool('less', w.shallower, () => app.run(app.expandTo(app.level - 1))),
    tool('more', w.deeper, () => app.run(app.expandTo(app.level + 1))),
    tool('all', w.expandAll, () => app.run(app.expandAll())),
    tool('fit', w.fit, () => app.fit()),
    tool(app.viewOptions.direction === 'down' ? 'down' : 'right', w.direction, () => app.flip()),
    colourPicker(app, info),
    h('span', { class: 'gap' }),
    tool('SVG', w.exportSvg, () => app.saveSvg()),
    tool('PNG', w.exportPng, () => app.run(savePng(app.renderer, `${info?.name ?? 'graph'}.png`))),
    tool(app.theme === dark ? 'sun' : 'moon', w.theme, () => app.setTheme(app.theme === dark ? light : dark)),
    tool(w.language, w.language, () => app.setLanguage(app.language === 'en' ? 'zh' : 'en')),
    tool('?', w.help, () => help(app)),
  );
  const tab = (on: boolean, text: string, run: () => void, title?: string) =>
    h('button', { class: on ? 'on' : '', role: 'tab', title, 'aria-selected': String(on), onclick: run }, text);
  const goLeft = (name: LeftTab) => () => {
    app.leftTab = name;
    redrawChrome(app);
  };
  replace(
    app.leftHead,
    tab(app.leftTab === 'modules', w.modules, goLeft('modules')),
    app.shown?.kernels ? tab(app.leftTab === 'kernels', w.kernels, goLeft('kernels')) : null,
    app.shown?.changes ? tab(app.leftTab === 'changes', w.changesTab, goLeft('changes'), w.changesHelp) : null,
    tab(app.leftTab === 'results', w.results, goLeft('results')),
  );
  const lists = { modules: app.tree, kernels: app.kernels, changes: app.changes, results: app.results };
  // Taken out and put back, a list would lose its place.
  const list = lists[app.leftTab].element;
  if (app.left.firstChild !== list) replace(app.left, list);
  const goLow = (name: LowTab) => () => {
    app.lowTab = app.lowTab === name ? '' : name;
    redrawChrome(app);
    // What is selected must not lie under the panel.
    app.run(showLow(app).then(() => (app.selection.length ? app.goTo(app.selection) : undefined)));
    app.remember();
  };
  const lowNames = { source: w.source, ir: w.ir, code: w.code, cost: w.cost, table: w.table, '': '' };
  replace(
    app.lowHead,
    ...app.lowTabs().map((name) => tab(app.lowTab === name, lowNames[name], goLow(name), name === 'ir' ? w.irHelp : undefined)),
  );
  app.lowPanel.classList.toggle('closed', app.lowTab === '');
}

export function redrawChips(app: App, info: CaptureInfo | undefined): void {
  const copies = app.picture?.saved ?? [];
  const saved = copies.reduce((a, b) => a + b, 0);
  const phases = info?.stages[app.stage]?.phases ?? [];
  const present = phases.flatMap((n, i) => (n ? [i] : []));
  // A menu alone is not worth a row of its own.
  app.chips.classList.toggle('alone', present.length < 2);
  replace(
    app.chips,
    ...(present.length > 1
      ? present.map((i) => {
          const on = !app.viewOptions.hidden.includes(i);
          const name: Phase = PHASES[i]!;
          const flip = () => {
            app.phasesByHand = true;
            app.run(app.setOptions({ hidden: on ? [...app.viewOptions.hidden, i] : app.viewOptions.hidden.filter((x) => x !== i) }));
          };
          return h(
            'button',
            {
              class: on ? 'chip phase on' : 'chip phase',
              'aria-pressed': String(on),
              title: app.words.phaseHelp(app.words.phases[name], on),
              onclick: flip,
            },
            h('span', { class: `dot phase-${name}` }),
            `${app.words.phases[name]} ${phases[i]!.toLocaleString()}`,
          );
        })
      : []),
    h(
      'details',
      { class: 'menu', open: app.menuOpen, ontoggle: (event: Event) => (app.menuOpen = (event.target as HTMLDetailsElement).open) },
      h('summary', { class: 'chip' }, app.words.viewMenu),
      h(
        'div',
        { class: 'menu-body' },
        present.length > 1
          ? option(app.words.split, app.viewOptions.split, () => app.run(app.setOptions({ split: !app.viewOptions.split })))
          : null,
        present.length > 1 && app.viewOptions.split
          ? option(app.words.side, app.viewOptions.side, () => app.run(app.setOptions({ side: !app.viewOptions.side })))
          : null,
        present.length > 1 && app.viewOptions.split && app.viewOptions.side && app.captures[app.capture]?.stages[app.stage]?.links.grad
          ? option(app.words.uturn, !app.viewOptions.columns, () => app.run(app.setOptions({ columns: !app.viewOptions.columns })))
          : null,
        app.picture?.plumbing
          ? option(app.words.plumbing(app.picture.plumbing), app.viewOptions.plumbing === true, () =>
              app.run(app.setOptions({ plumbing: !app.viewOptions.plumbing })),
            )
          : null,
        app.picture?.views
          ? option(app.words.views(app.picture.views), app.viewOptions.views === true, () =>
              app.run(app.setOptions({ views: !app.viewOptions.views })),
            )
          : null,
        option(app.words.constants, app.viewOptions.constants, () => app.run(app.setOptions({ constants: !app.viewOptions.constants }))),
        saved
          ? option(app.words.saved(saved), app.viewOptions.saved === true, () => app.run(app.setOptions({ saved: !app.viewOptions.saved })))
          : null,
        app.captures[app.capture]?.stages[app.stage]?.links.grad
          ? option(app.words.pairs, app.allPairs, () => {
              app.allPairs = !app.allPairs;
              app.run(repaint(app));
              app.remember();
            })
          : null,
        option(app.words.edgeLabels, app.edgeLabels === 'always', () => {
          app.edgeLabels = app.edgeLabels === 'always' ? 'hover' : 'always';
          app.renderer.setPaint({ edgeLabels: app.edgeLabels });
          app.remember();
        }),
        option(app.words.edgeWidth, app.edgeWidth === 'bytes', () => {
          app.edgeWidth = app.edgeWidth === 'bytes' ? 'plain' : 'bytes';
          app.renderer.setPaint({ edgeWidth: app.edgeWidth });
          app.remember();
        }),
      ),
    ),
  );
}

export function option(text: string, on: boolean, run: () => void): HTMLElement {
  return h('label', {}, h('input', { type: 'checkbox', checked: on, onchange: run }), text);
}

export function colourPicker(app: App, info: CaptureInfo | undefined): HTMLElement {
  const w = app.words;
  const names: [string, string][] = [
    ['phase', w.byPhase],
    ...(info?.stages[app.stage]?.kernels ? [['kernel', w.byKernel] as [string, string]] : []),
    ...(info?.metrics ?? []).map((name): [string, string] => [name, metricName(name, w)]),
  ];
  return h(
    'select',
    {
      class: 'tool',
      title: w.colour,
      'aria-label': w.colour,
      onchange: (event: Event) => ((app.colour = (event.target as HTMLSelectElement).value), app.run(repaint(app)), app.remember()),
    },
    ...names.map(([value, text]) => h('option', { value, selected: value === app.colour }, `${w.colour}: ${text}`)),
  );
}

/** And the focus goes back to the drawing. */
export function closeHelp(app: App): void {
  app.root.querySelector('.dialog')?.remove();
  app.canvas.focus();
}

export function help(app: App): void {
  const close = () => closeHelp(app);
  const dialog = h(
    'div',
    {
      class: 'dialog',
      role: 'dialog',
      'aria-modal': 'true',
      'aria-label': app.words.help,
      onclick: (e: Event) => e.target === dialog && close(),
    },
    h(
      'div',
      { class: 'sheet' },
      h('h2', {}, app.words.keysTitle),
      h('dl', { class: 'keys-list' }, ...app.words.keys.flatMap(([keys, text]) => [h('dt', {}, ...caps(keys)), h('dd', {}, text)])),
      h('h3', {}, app.words.searchTitle),
      h(
        'dl',
        { class: 'keys-list' },
        ...app.words.queries.flatMap(([query, text]) => [h('dt', {}, h('code', {}, query)), h('dd', {}, text)]),
      ),
      h('button', { class: 'chip', onclick: close }, app.words.close),
    ),
  );
  app.root.append(dialog);
  dialog.querySelector('button')?.focus();
}

const WORDS = /^(click|double-click|drag|wheel|arrow|keys|\p{Script=Han}+)$/u;

/** `Alt ← →` as keys; words that are no keys (`click`) stay words. */
function caps(text: string): (HTMLElement | string)[] {
  return text.split(' ').flatMap((part, i) => {
    const comma = part.length > 1 && part.endsWith(',') ? ',' : '';
    const name = comma ? part.slice(0, -1) : part;
    return [i ? ' ' : '', WORDS.test(name) ? name : h('kbd', {}, name), comma];
  });
}

/** What to do first; for one who has never seen the page. */
function firstSteps(app: App): HTMLElement {
  return h(
    'section',
    { class: 'first-steps' },
    h('h3', {}, app.words.firstSteps),
    h('dl', { class: 'keys-list' }, ...app.words.steps.flatMap(([keys, text]) => [h('dt', {}, ...caps(keys)), h('dd', {}, text)])),
  );
}

/** What the capture is, and what it lacks: shown while nothing is selected. */
export function about(app: App): HTMLElement[] {
  const info = app.captures[app.capture];
  const stage = info?.stages[app.stage];
  if (!info || !stage) return [];
  const warnings = [...info.warnings, ...stage.warnings];
  return [
    h(
      'section',
      {},
      h('h3', { class: 'origin' }, [`${info.framework} ${info.version}`, info.how].filter(Boolean).join(' · ')),
      h(
        'dl',
        {},
        ...pairs([
          [app.words.facts.nodes, stage.nodes.toLocaleString()],
          [app.words.facts.values, stage.values.toLocaleString()],
          [app.words.facts.edges, stage.edges.toLocaleString()],
          ...(stage.kernels ? [[app.words.facts.kernels, stage.kernels.toLocaleString()] as [string, string]] : []),
          ...Object.entries(stage.links).map(([kind, n]): [string, string] => [
            kind === 'grad' ? app.words.facts.pairs : `${kind} links`,
            n.toLocaleString(),
          ]),
        ]),
      ),
    ),
    ...(app.totals ? [h('section', {}, h('h3', {}, app.words.cost), h('dl', {}, ...pairs(totalRows(app, app.totals))))] : []),
    ...(warnings.length
      ? [h('section', {}, h('h3', {}, app.words.warnings), ...warnings.map((text) => h('p', { class: 'warning' }, text)))]
      : []),
    firstSteps(app),
  ];
}

function totalRows({ words }: App, totals: Totals): [string, string][] {
  const { figures } = words.costs;
  const least = totals.atLeast ? '≥ ' : '';
  return [
    [figures.parameters, shortNumber(totals.parameters)],
    [figures.macs, `${least}${figureText('MACs', totals.macs)}`],
    [figures.other, `${least}${figureText('other FLOPs', totals.other)}`],
    [words.costs.peakMemory, `≥ ${bytesText(totals.peak)}`],
  ];
}
