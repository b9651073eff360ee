// What a panel is. A panel is one module that registers itself; the page gives it the state to follow and the acts that it may
// ask for, and puts it where it belongs. CONTRIBUTING has the recipe.

import type { ChangeRow } from '../engine/messages.ts';
import type { Device } from '../engine/roofs.ts';
import type { Bookmark } from '../state/bookmarks.ts';
import type { Client } from '../state/client.ts';
import type { State } from '../state/page.ts';
import type { Words } from '../state/words.ts';

/** What the page does for a panel. */
export interface Acts {
  /** Select items, and bring them into view. */
  select(items: number[]): void;
  /** The same for operators of a stage, by number. */
  nodes(stage: number, nodes: number[]): void;
  /** Expand or collapse a group. */
  toggle(item: number): void;
  /** The menu of an item, at a place of the window. */
  menu(item: number, at: { x: number; y: number }): void;
  /** To the next result of the search, or the one before. */
  stepResult(by: number): void;
  /** Pick a kernel; `beside`: what is selected stays so. */
  kernel(index: number, beside?: boolean): void;
  /** Show a place in the source, and light its operators. */
  line(file: string, line: number): void;
  /** Select what a change made. */
  change(row: ChangeRow): void;
  bookmark(mark: Bookmark): void;
  /** Draw the first of these as if the pointer were over it. */
  outline(items: number[]): void;
}

/** What a panel is given. */
export interface Site {
  state: State;
  client: Client;
  act: Acts;
  devices: Device[];
  /** Text of a source file that is not in the capture, where a server can read it. */
  sourceText(capture: number, file: string): Promise<string | null>;
  /** Link to open a file in an editor, with {file} and {line}. */
  editor: string;
  words(): Words;
  /** Work under way counts for `idle`; a failure is shown, not lost. */
  run(work: Promise<unknown>): void;
  /** As Views.add (state/store.ts), while the panel is open and a stage is shown. */
  follow<T>(read: () => T, show: (now: T) => void | Promise<void>): void;
}

export interface Panel {
  element: HTMLElement;
  /** Called each time when it has been put into the page. */
  opened?(): void;
  /** What of it the URL holds. */
  address?: { get(): string; set(text: string): void };
  /** For scripts: more of `opscope.state()`. */
  describe?(isOpen: boolean): Record<string, unknown>;
}

export interface PanelKind {
  /** In the URL, and for scripts. */
  name: string;
  place: 'left' | 'low';
  title(words: Words): string;
  help?(words: Words): string;
  /** Whether it has something to show for the stage in view; without this, it always has. */
  isThere?(state: State): boolean;
  /** It takes more of the height. */
  isTall?: boolean;
  make(site: Site): Panel;
}

const kinds: PanelKind[] = [];

/** Panels stand in the order in which they are registered (all.ts). */
export function register(kind: PanelKind): void {
  if (kinds.some(({ name }) => name === kind.name)) throw new Error(`there are two panels called ${kind.name}`);
  kinds.push(kind);
}

export function registered(): readonly PanelKind[] {
  return kinds;
}

/** Those of one place that have something to show. */
export function panelsThere(state: State, place: PanelKind['place']): PanelKind[] {
  return kinds.filter((kind) => kind.place === place && (kind.isThere?.(state) ?? true));
}
