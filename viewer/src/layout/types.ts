// What the layout takes and gives. Everything is columns: one entry per box, edge or point.

/** One level: boxes and edges between them. Parallel edges and cycles are allowed. */
export interface FlatGraph {
  n: number;
  width: Float32Array;
  height: Float32Array;
  source: Int32Array;
  target: Int32Array;
  /** Edges of low weight (parameters) pull less. 1 where absent. */
  weight?: Float32Array;
  /** Execution rank of each box: breaks cycles and ties. The index where absent. */
  order?: Int32Array;
  /** How many lines lead level from each box to the side before it, and to the one behind it: what passes there crosses them. */
  before?: Float32Array;
  behind?: Float32Array;
}

/**
 * A level inside an open group. The last `inPorts + outPorts` boxes have no size: they are the
 * places on the group's top and bottom border where edges come in and go out.
 */
export interface PortedGraph extends FlatGraph {
  inPorts: number;
  outPorts: number;
  /** Edges with the same tail start at the same place and share their line. */
  tail: Int32Array;
  /** Where an edge leaves and enters its boxes, from their left side. */
  tailAt: Float32Array;
  headAt: Float32Array;
}

export interface Options {
  direction: 'down' | 'right';
  gapX: number;
  gapY: number;
  /** Fold what is longer than this (along the direction) into columns. */
  maxHeight?: number;
  /** "good" (the default) spends more on small graphs; "fast" never does. */
  quality?: 'fast' | 'good';
  /** Where other lines lead away from boxes, across the direction: 1 behind them (to the right), -1 before them. */
  side?: 1 | -1;
}

/** The weight of an edge without a line, which holds boxes in place. */
export const HELD = 0.05;

export const NORMAL = 0;
/** A long skip, led beside the boxes. */
export const LANE = 1;
/** Against the direction: a loop or a back edge, led around the side. */
export const LOOP = 2;
/** Leads from the end of one column of a folded chain to the top of a later one. */
export const WRAP = 3;
/** Straight between two boxes of one row: what is kept for the backward pass, or a gradient for the optimizer. */
export const RUNG = 4;
/** From phase to phase by another way than a rung. */
export const BETWEEN = 5;
/** Between the places of one parameter. */
export const TIED = 6;

/** The kind of a line that has pieces of both kinds. */
export function strongerKind(a: number, b: number): number {
  return KIND_RANK[a] < KIND_RANK[b] ? b : a;
}
const KIND_RANK = [0, 1, 3, 2, 4, 4, 4];

export interface EdgeLines {
  /** The line of edge e is points[2·pointStart[e] … 2·pointStart[e+1]), x and y in turn. */
  pointStart: Int32Array;
  points: Float32Array;
  /** NORMAL, LANE, LOOP or WRAP. */
  edgeKind: Uint8Array;
}

export interface FlatLayout extends EdgeLines {
  width: number;
  height: number;
  /** Top left corners. */
  x: Float32Array;
  y: Float32Array;
}

/** A tree of boxes: leaves, and open groups around them. */
export interface NestedGraph {
  n: number;
  /** The open group around a box, or -1. Parents come before children. */
  parent: Int32Array;
  /** 1: an expanded group, its size is computed; 0: a leaf of given width and height. */
  open: Uint8Array;
  width: Float32Array;
  height: Float32Array;
  /** Height of an open group's title bar, and the space around its content. */
  header: number;
  padding: number;
  /** Edges between leaves, at any depth. */
  source: Int32Array;
  target: Int32Array;
  weight?: Float32Array;
  order?: Int32Array;
  before?: Float32Array;
  behind?: Float32Array;
  /** Names a group's content for the cache; null: do not cache it. Every group is cached where absent. */
  key?: (group: number) => string | null;
}

export interface NestedLayout extends EdgeLines {
  /** Absolute place and size of every box. */
  x: Float32Array;
  y: Float32Array;
  width: Float32Array;
  height: Float32Array;
  totalWidth: number;
  totalHeight: number;
}
