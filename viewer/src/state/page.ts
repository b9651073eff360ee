// What the page knows. Everything on it follows from these values; only commands (page/) set them.

import type { Theme } from '../draw/theme.ts';
import type { CaptureInfo, Details, Picture, StageInfo, Totals, ViewOptions } from '../engine/messages.ts';
import type { Found } from '../engine/searching.ts';
import type { Bookmark } from './bookmarks.ts';
import { Derived, Value } from './store.ts';
import { LANGUAGES, type Language } from './words.ts';

/** How a stage is shown beside the one before: alone, with what is gone, or next to it. */
export const COMPARE = ['after', 'overlay', 'split'] as const;
export type Compare = (typeof COMPARE)[number];

/** Where the user was. */
export interface Moment {
  capture: number;
  stage: number;
  compare: Compare;
  overlaid: boolean;
  options: ViewOptions;
  opened: string;
  level: number;
  kept: Promise<number>; // what was open and hidden, which the engine keeps
  selection: number[];
  traced: number[] | null;
  tracing: Tracing;
  kernel: number;
  view: { x: number; y: number; zoom: number };
  isCamera: boolean; // only the camera moved then
}

/** What is beside the drawing. */
export type Side = 'left' | 'right' | 'low';

/** What is traced: what comes before or after, between two, from a line of source. */
export interface Tracing {
  way: '' | 'before' | 'after' | 'onPaths' | 'onLine';
  count: number; // of operators
}

/** The search, and what it found. */
export interface Search extends Found {
  query: string;
}

export type State = ReturnType<typeof newState>;

/** What lies over the page for a while. */
function newSheets() {
  return {
    menuOpen: new Value('menuOpen', false),
    helpOpen: new Value('helpOpen', false),
    sheet: new Value<'' | 'compare' | 'export'>('sheet', ''),
    /** The run is played. */
    playing: new Value('playing', false),
  };
}

/** `atFirst`: what the browser asks for. */
export function newState(atFirst: { language: Language; theme: Theme }) {
  // What is shown.
  const captures = new Value<CaptureInfo[]>('captures', []);
  const capture = new Value('capture', -1); // none yet
  const stage = new Value('stage', 0);
  const picture = new Value<Picture | null>('picture', null);
  const info = new Derived('info', () => captures.get()[capture.get()]);
  const shown = new Derived<StageInfo | undefined>('shown', () => info.get()?.stages[stage.get()]);

  // What is lit.
  const selection = new Value<number[]>('selection', []);
  /** Of what was selected last; null while nothing is, or until the engine has answered. */
  const details = new Value<Details | null>('details', null);
  const kernel = new Value('kernel', -1);
  /** Operators on a path, in a kernel, on a line; the rest is dimmed. Null: those that belong to the selection. */
  const traced = new Value<number[] | null>('traced', null);
  const tracing = new Value<Tracing>('tracing', { way: '', count: 0 });
  const related = new Derived('related', () => {
    const of = details.get();
    const isNow = of?.item === selection.get().at(-1);
    if (traced.get() || !of || !isNow) return traced.get() ?? [];
    const ends = of.kind === 'tensor' || of.kind === 'input' ? [of.maker ?? [], of.outputs[0]?.to ?? []].flat() : [];
    return [...of.backward, ...of.forward, ...ends].map((ref) => ref.item);
  });
  const search = new Value<Search>('search', { query: '', nodes: [], modules: [], error: '' });

  // How it is drawn.
  const options = new Value<ViewOptions>('options', { direction: 'down', split: true, side: true, hidden: [], constants: false });
  const language = new Value<Language>('language', atFirst.language);

  return {
    captures,
    capture,
    /** Tabs that were closed, by number. */
    closed: new Value<readonly number[]>('closed', []),
    stage,
    picture,
    info,
    shown,
    /** What all of the stage costs, where that is counted. */
    totals: new Value<Totals | null>('totals', null),
    /** Captures whose costs are being counted. */
    counting: new Value<readonly number[]>('counting', []),
    /** The first capture is there, and as the URL says. */
    ready: new Value('ready', false),

    selection,
    details,
    kernel,
    traced,
    tracing,
    related,
    search,
    found: new Derived('found', () => search.get().nodes),
    /** The result that was stepped to. */
    result: new Value('result', -1),
    /** Where the pointer rests on the drawing. */
    pointer: new Value<{ x: number; y: number } | null>('pointer', null),

    options,
    /** The user hid or showed a phase. */
    phasesByHand: new Value('phasesByHand', false),
    /** `*`: all is open; `*3`: three levels are; empty where boxes were opened one by one. */
    opened: new Value('opened', ''),
    level: new Value('level', 0),
    colour: new Value('colour', 'phase'),
    edgeLabels: new Value<'hover' | 'always'>('edgeLabels', 'hover'),
    edgeWidth: new Value<'plain' | 'bytes'>('edgeWidth', 'plain'),
    /** Gradient links of all boxes, not only of the selected one. */
    allPairs: new Value('allPairs', false),
    theme: new Value<Theme>('theme', atFirst.theme),
    language,
    words: new Derived('words', () => LANGUAGES[language.get()]),

    compare: new Value<Compare>('compare', 'after'),
    /** The picture has ghosts of the stage before. */
    overlaid: new Value('overlaid', false),
    hideUnchanged: new Value('hideUnchanged', false),

    /** The panels that are open, by name; below the drawing there may be none. */
    left: new Value('left', 'modules'),
    low: new Value('low', ''),
    /** Pixels, 0: as the style sheet has it; and what is folded away. */
    panes: new Value<Record<Side, number> & { folded: readonly Side[] }>('panes', { left: 0, right: 0, low: 0, folded: [] }),
    /** The drawing alone. */
    full: new Value('full', false),
    paletteOpen: new Value('paletteOpen', false),
    bookmarks: new Value<readonly Bookmark[]>('bookmarks', []),
    ...newSheets(),
    /** The place in a source file that is shown; `byHand`: chosen there, until something else is selected. */
    source: new Value<{ file: string; line: number; byHand: boolean }>('source', { file: '', line: 0, byHand: false }),
    /** The kind of the framework's own text that is shown. */
    listing: new Value('listing', ''),

    past: new Value<readonly Moment[]>('past', []),
    future: new Value<readonly Moment[]>('future', []),
  };
}
