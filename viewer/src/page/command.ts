// What a command is, and how its keys are written.

import type { HABITS_EN } from '../state/habitwords.ts';
import type { Page } from './page.ts';

export interface Command {
  name: keyof typeof HABITS_EN.commands;
  /** As `keyOf` writes them. The first stands in menus. */
  keys?: string[];
  isThere?(page: Page): boolean;
  run(page: Page): void;
}

/** `ctrl+k`, `alt+ArrowLeft`, `E`: the keys of an event, as a command names them. */
export function keyOf(event: KeyboardEvent): string {
  const held = `${event.ctrlKey || event.metaKey ? 'ctrl+' : ''}${event.altKey ? 'alt+' : ''}`;
  const isNamed = event.key.length > 1 || held !== '';
  const shift = event.shiftKey && (held !== '' || event.key === 'F10') ? 'shift+' : '';
  return `${held}${shift}${isNamed && event.key.length === 1 ? event.key.toLowerCase() : event.key}`;
}

/** As people write it. */
export function keyText(key: string): string {
  const parts = key.split('+').filter(Boolean);
  const name = key.endsWith('+') ? '+' : parts.at(-1)!;
  const shown =
    { ArrowLeft: '←', ArrowRight: '→', Escape: 'Esc' }[name] ?? (name.length === 1 && /[a-z]/i.test(name) ? name.toUpperCase() : name);
  const shift = /^[A-Z]$/.test(name) ? ['Shift'] : [];
  return [...parts.slice(0, -1).map((part) => part[0]!.toUpperCase() + part.slice(1)), ...shift, shown].join(' ');
}
