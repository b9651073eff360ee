// What is said of boxes and edges by their numbers. It is worth nothing in another scene, so there are two ways only from one
// scene to the next: none of it (`noMarks`), or box by box and edge by edge (`marksIn`). Both name every field: one that is
// added to `Marks` and forgotten here does not compile.

import type { Marks } from '../scene.ts';

export function noMarks(): Marks {
  return {
    selected: new Set(),
    related: new Set(),
    found: new Set(),
    hovered: -1,
    hoveredEdge: -1,
    litEdges: null,
    fill: null,
    notes: null,
    links: null,
    change: null,
    changed: null,
    numbers: null,
  };
}

/**
 * The marks of some boxes and edges of a scene, in a scene that holds only these: `boxes` and `edges` say what each was (-1:
 * new there). What is lit by hand (rings, arcs, the pointer) stands still with the scene and is left out.
 */
export function marksIn({ litEdges, fill, notes, change, changed, numbers }: Marks, boxes: Int32Array, edges: Int32Array): Marks {
  const of = (list: ArrayLike<number>) => (b: number) => (b < 0 ? 0 : list[b]!);
  return {
    selected: new Set(),
    related: new Set(),
    found: new Set(),
    hovered: -1,
    hoveredEdge: -1,
    litEdges: litEdges && Uint8Array.from(edges, of(litEdges)),
    fill: fill && { colours: fill.colours, of: Uint16Array.from(boxes, of(fill.of)) },
    notes: notes && Array.from(boxes, (b) => (b < 0 ? '' : notes[b]!)),
    links: null,
    change: change && Uint8Array.from(boxes, of(change)),
    changed: changed && Int32Array.from(boxes, of(changed)),
    numbers: numbers && Uint16Array.from(boxes, of(numbers)),
  };
}
