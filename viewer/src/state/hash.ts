// The state of the page in the URL, so that a view can be shared.

export interface Saved {
  capture: number;
  stage: number;
  open: string[] | null; // paths of open groups; null where there are too many to write down
  unfolded: string[]; // paths of groups whose repeats are drawn one by one
  all: string; // '*': all is open, '*3': three levels
  selection: string[];
  query: string;
  view: { x: number; y: number; zoom: number } | null;
  direction: 'down' | 'right';
  hidden: number[];
  tab: string; // of the panel below
  kind: string; // of the framework's own texts
  compare: 'after' | 'overlay' | 'split'; // with the stage before
  colour: string; // of boxes: by phase where empty
  flags: string; // of the View menu
  kernel: number; // picked, or -1
  without: string[]; // paths of what the user hid
  alone: readonly string[]; // paths of the modules that stand in a tab of their own
  marks: string; // bookmarks, as state/bookmarks.ts writes them
}

const MOST_OPEN = 60;

export function write(saved: Saved): string {
  const out = new URLSearchParams();
  if (saved.capture) out.set('c', String(saved.capture));
  if (saved.stage) out.set('s', String(saved.stage));
  if (saved.all) out.set('o', saved.all);
  else if (saved.open && saved.open.length <= MOST_OPEN) out.set('o', saved.open.join('~'));
  if (!saved.all && saved.unfolded.length && saved.unfolded.length <= MOST_OPEN) out.set('u', saved.unfolded.join('~'));
  if (saved.selection.length && saved.selection.length <= MOST_OPEN) out.set('sel', saved.selection.join('~'));
  if (saved.query) out.set('q', saved.query);
  if (saved.view) out.set('v', [saved.view.x.toFixed(0), saved.view.y.toFixed(0), saved.view.zoom.toPrecision(4)].join(','));
  if (saved.direction === 'right') out.set('d', 'right');
  if (saved.hidden.length) out.set('h', saved.hidden.join(','));
  if (saved.tab) out.set('t', saved.tab);
  if (saved.tab && saved.kind) out.set('k', saved.kind);
  if (saved.compare !== 'after') out.set('m', saved.compare);
  if (saved.colour !== 'phase') out.set('f', saved.colour);
  if (saved.flags) out.set('w', saved.flags);
  if (saved.kernel >= 0) out.set('n', String(saved.kernel));
  if (saved.without.length && saved.without.length <= MOST_OPEN) out.set('x', saved.without.join('~'));
  if (saved.alone.length) out.set('i', saved.alone.join('~'));
  if (saved.marks) out.set('b', saved.marks);
  // As plain as a URL may be: it is read by people too.
  return out.toString().replace(/%(3A|2F|7E|2C)/g, decodeURIComponent);
}

export function read(hash: string): Saved {
  const from = new URLSearchParams(hash.replace(/^#/, ''));
  const numbers = (text: string | null) => (text ? text.split(',').map(Number).filter(Number.isFinite) : []);
  const view = numbers(from.get('v'));
  return {
    capture: numbers(from.get('c'))[0] ?? 0,
    stage: numbers(from.get('s'))[0] ?? 0,
    open: from.has('o') ? from.get('o')!.split('~').filter(Boolean) : null,
    unfolded: from.get('u')?.split('~').filter(Boolean) ?? [],
    all: /^\*\d*$/.test(from.get('o') ?? '') ? from.get('o')! : '',
    selection: from.get('sel')?.split('~').filter(Boolean) ?? [],
    query: from.get('q') ?? '',
    view: view.length === 3 && view[2]! > 0 ? { x: view[0]!, y: view[1]!, zoom: view[2]! } : null,
    direction: from.get('d') === 'right' ? 'right' : 'down',
    hidden: numbers(from.get('h')),
    tab: from.get('t') ?? '',
    kind: from.get('k') ?? '',
    compare: (['overlay', 'split'] as const).find((name) => name === from.get('m')) ?? 'after',
    colour: from.get('f') ?? '',
    flags: from.get('w') ?? '',
    kernel: numbers(from.get('n'))[0] ?? -1,
    without: from.get('x')?.split('~').filter(Boolean) ?? [],
    alone: from.get('i')?.split('~').filter(Boolean) ?? [],
    marks: from.get('b') ?? '',
  };
}

/** What the View menu sets. */
export interface Flags {
  split: boolean;
  side: boolean;
  constants: boolean;
  saved?: boolean;
  columns?: boolean;
  views?: boolean;
  plumbing?: boolean;
  edgeLabels: 'hover' | 'always';
  edgeWidth: 'plain' | 'bytes';
  allPairs: boolean;
}

/** A letter for each thing that is not as it is at first. */
export function pack(flags: Flags): string {
  const set = {
    m: !flags.split,
    b: !flags.side,
    c: flags.constants,
    d: flags.saved === true,
    u: flags.columns === true,
    v: flags.views === true,
    i: flags.plumbing === true,
    l: flags.edgeLabels === 'always',
    w: flags.edgeWidth === 'bytes',
    p: flags.allPairs,
  };
  return Object.entries(set)
    .map(([letter, on]) => (on ? letter : ''))
    .join('');
}

export function unpack(letters: string): Flags {
  const on = (letter: string) => letters.includes(letter);
  return {
    split: !on('m'),
    side: !on('b'),
    constants: on('c'),
    ...(on('d') ? { saved: true } : {}),
    ...(on('u') ? { columns: true } : {}),
    ...(on('v') ? { views: true } : {}),
    ...(on('i') ? { plumbing: true } : {}),
    edgeLabels: on('l') ? 'always' : 'hover',
    edgeWidth: on('w') ? 'bytes' : 'plain',
    allPairs: on('p'),
  };
}
