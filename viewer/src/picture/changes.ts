// What a box of a stage may be marked with: the class of its change since the stage before.

import { CHANGE_CLASSES, type ChangeClass } from '../wire/facts.ts';

/** Classes of changes, in the order that boxes and lists have them. A number by box is a place in it plus one; 0 is "the same". */
export const CHANGES = CHANGE_CLASSES.filter((kind) => kind !== 'same');
export type ChangeKind = Exclude<ChangeClass, 'same'>;

/** What stands on a box beside its colour. */
export const SYMBOLS: Record<ChangeKind, string> = {
  added: '+',
  removed: '−',
  changed: '~',
  fused: 'F',
  split: 'S',
  rewritten: 'R',
  moved: 'M',
};

/** The bit of a box that is only in the stage before. */
export const GHOST = 16;

/** Changes of which each has a tint and a number of its own: other operators do the same work. */
export const STRUCTURAL: ReadonlySet<ChangeKind> = new Set<ChangeKind>(['fused', 'split', 'rewritten']);

/** What became what, between boxes of two pictures. */
export interface Ribbon {
  kind: ChangeKind;
  number: number; // of a change that has its own, from 1; else 0
  count: number; // changes
  before: number[];
  after: number[];
}
