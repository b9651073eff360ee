// What is on the screen, as typed arrays: made by the engine (in a worker), drawn by draw/, written by svg/.

import { PHASES, ROLES, type Phase } from './wire/facts.ts';

/** What a box is. */
export const BoxKind = { Op: 0, Closed: 1, Open: 2, Input: 3, Folded: 4, Loss: 5 } as const;

/** What an edge is; the same numbers as in layout/. */
export const EdgeKind = { Normal: 0, Lane: 1, Loop: 2, Wrap: 3, Rung: 4, Between: 5, Tied: 6 } as const;

export interface Boxes {
  count: number;
  /** The item of the view tree that a box shows; stable while things open and close. */
  item: Int32Array;
  /** The box around it, or -1. Parents come before their children. */
  parent: Int32Array;
  x: Float32Array;
  y: Float32Array;
  width: Float32Array;
  height: Float32Array;
  kind: Uint8Array;
  /** Place in PHASES. */
  phase: Uint8Array;
  /** How deep it is nested: open groups shade by it. */
  depth: Uint8Array;
  /** Title and second line, as numbers into `texts`; 0 is the empty string. */
  title: Int32Array;
  detail: Int32Array;
  /** How many operators are inside (1 for an operator). */
  size: Int32Array;
  /** A group of a hundred equal siblings drawn once shows "×100"; 1 otherwise. */
  repeat: Int32Array;
}

export interface Edges {
  count: number;
  source: Int32Array; // box
  target: Int32Array; // box
  /** Polyline e: points[2 * start[e]] up to points[2 * start[e + 1]], x then y. */
  start: Int32Array;
  points: Float32Array;
  kind: Uint8Array;
  /** How many uses it stands for. */
  uses: Int32Array;
  /** The bytes of the largest tensor on it; -1 where not known. */
  bytes: Float64Array;
  /** Shape and dtype of its tensor (or "3 tensors"), into `texts`. */
  label: Int32Array;
}

export interface Scene {
  width: number;
  height: number;
  boxes: Boxes;
  edges: Edges;
  texts: string[];
  /** A training step as a U, or columns, or one graph. */
  layout: 'u' | 'columns' | 'plain';
  /** Pairs of boxes of the forward and the backward pass that stand in one row. */
  rows: number;
  direction: 'down' | 'right';
}

export { PHASES, ROLES, type Phase };

/** Colours of boxes: `of[box]` is a place in `colours`. The first, null, leaves a box in the colour of its phase. */
export interface Fill {
  colours: readonly (string | null)[];
  of: Uint8Array | Uint16Array;
}

/** What is said of boxes and edges by their numbers in one scene (draw/marks.ts: how it gets into another). */
export interface Marks {
  /** Boxes that are selected, related (gradient, kernel, path), or found. Others are dimmed when `dim`. */
  selected: Set<number>;
  related: Set<number>;
  found: Set<number>;
  hovered: number; // box or -1
  hoveredEdge: number; // edge or -1
  /** By edge: on the path that is followed, or of the tensor that is selected. */
  litEdges: Uint8Array | null;
  /** Or null: all in the colours of their phases. */
  fill: Fill | null;
  /** By box: a figure that stands on it; empty: none. */
  notes: readonly string[] | null;
  /** Pairs of boxes (a, b, a, b …) that are joined by a dotted arc. */
  links: Int32Array | null;
  /** The change of each box since the stage before (engine/diff.ts), and how many operators in it have changed. */
  change: Uint8Array | null;
  changed: Int32Array | null;
  /** Of each box: the number of what became what, where that has one. */
  numbers: Uint16Array | null;
}

/** How any scene is drawn. */
export interface Style {
  dim: boolean;
  /** Edge labels: none, shape on hover only, or always where there is room. */
  edgeLabels: 'hover' | 'always';
  /** Width of edges by the bytes they carry. */
  edgeWidth: 'plain' | 'bytes';
}

/** Colours by box and what is lit: the page sets these without a new layout. */
export type Paint = Marks & Style;
