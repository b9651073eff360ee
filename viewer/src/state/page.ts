// What the page knows. Everything on it follows from these values; only commands (page/) set them.

import type { Theme } from '../draw/theme.ts';
import type { CaptureInfo, Details, Picture, StageInfo, Totals, ViewOptions } from '../engine/messages.ts';
import { Derived, Value } from './store.ts';
import { LANGUAGES, type Language } from './words.ts';

/** How a stage is shown beside the one before: alone, with what is gone, or next to it. */
export const COMPARE = ['after', 'overlay', 'split'] as const;
export type Compare = (typeof COMPARE)[number];

/** Where the user was. */
export interface Moment {
  capture: number;
  stage: number;
  items: number[];
}

/** The search, and what it found. */
export interface Search {
  query: string;
  nodes: number[];
  error: string;
}

export type State = ReturnType<typeof newState>;

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
  const related = new Derived('related', () => {
    const of = details.get();
    const isNow = of?.item === selection.get().at(-1);
    return traced.get() ?? (of && isNow ? [...of.backward, ...of.forward].map((ref) => ref.item) : []);
  });
  const search = new Value<Search>('search', { query: '', nodes: [], error: '' });

  // How it is drawn.
  const options = new Value<ViewOptions>('options', { direction: 'down', split: true, side: true, hidden: [], constants: false });
  const language = new Value<Language>('language', atFirst.language);

  return {
    captures,
    capture,
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
    menuOpen: new Value('menuOpen', false),
    helpOpen: new Value('helpOpen', false),
    /** The sheet over the page, or none. */
    sheet: new Value<'' | 'compare' | 'export'>('sheet', ''),
    /** The run is played. */
    playing: new Value('playing', false),
    /** The place in a source file that is shown; `byHand`: chosen there, until something else is selected. */
    source: new Value<{ file: string; line: number; byHand: boolean }>('source', { file: '', line: 0, byHand: false }),
    /** The kind of the framework's own text that is shown. */
    listing: new Value('listing', ''),

    past: new Value<Moment[]>('past', []),
    future: new Value<Moment[]>('future', []),
  };
}
