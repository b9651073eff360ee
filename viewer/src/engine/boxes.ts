// Boxes of the picture in view: which of them show an item, which belong together, and the figure of each.

import { figureText, percent } from '../text/figures.ts';
import { inside } from './answers.ts';
import { KERNEL_COLOURS, shadesOf, UNKNOWN } from './shades.ts';
import type { View } from './view.ts';

/** The boxes of the picture that show these items. */
export function boxes({ tree, visible: v }: View, items: number[]): number[] {
  const found = new Set<number>();
  for (const item of items) {
    let box = -1;
    if (item < tree.nodes) box = v.nodeBox[item]!;
    else if (item < tree.nodes + tree.groups) box = v.groupBox[item - tree.nodes]!;
    else box = v.item.indexOf(item);
    if (box >= 0) found.add(box);
  }
  return [...found];
}

/** Of some items: the operators that have no box, because their phase is hidden (which ones) or because they were hidden. */
export function hiddenOf(view: View, items: number[]): { count: number; phases: number[]; byHand: boolean } {
  const { graph, tree, visible: v, cut, options } = view;
  const lost = new Set(items.flatMap((item) => inside(view, item)).filter((node) => node < tree.nodes && v.nodeBox[node]! < 0));
  const phases = new Set<number>();
  let byHand = false;
  for (const node of lost) {
    if (options.hidden.includes(graph.phase[node]!)) phases.add(graph.phase[node]!);
    else if (cut?.gone[node]) byHand = true;
    else lost.delete(node);
  }
  return { count: lost.size, phases: [...phases], byHand };
}

/** Boxes of forward operators and of their gradients, in pairs, each once: of one item, or all. */
export function pairs(view: View, item: number | null): Int32Array {
  const { graph, visible: v, rows, inlined } = view;
  const links = graph.links.get('grad');
  if (!links) return new Int32Array(0);
  const members = item === null ? null : new Set(inside(view, item));
  const seen = new Set<number>();
  const out: number[] = [];
  for (let i = 0; i < links.source.length; i++) {
    if (members && !members.has(links.source[i]!) && !members.has(links.target[i]!)) continue;
    const [a, b] = [v.nodeBox[links.source[i]!]!, v.nodeBox[links.target[i]!]!];
    if (a < 0 || b < 0 || a === b || seen.has(a * v.count + b)) continue;
    // Where the two stand in one row anyway, an arc says nothing more; nor for what is passed over.
    if (members && rows && ((rows[a]! >= 0 && rows[a] === rows[b]) || inlined[links.source[i]!] || inlined[links.target[i]!])) continue;
    seen.add(a * v.count + b);
    out.push(a, b);
  }
  return Int32Array.from(out);
}

/** A figure of each box; NaN where it is not known. */
export function figures(view: View, name: string): Float64Array {
  const { visible: v, metrics, tree } = view;
  return Float64Array.from(v.item, (item, box) => metrics.ofItem(name, item, tree, v.repeat[box]!, () => inside(view, item)) ?? NaN);
}

const MOST_NOTES = 5000;

/** Boxes by a figure: how a colour says it (state/colours.ts writes `name`, how it is rolled up, and `log`). */
export interface Shaded {
  shades: Uint8Array; // shades.ts
  min: number;
  max: number;
  total: number | null; // of the whole stage, where parts add up
  unknown: number; // boxes of operators of which it is not known
  notes: string[] | null; // by box: its share or its figure
}

/** The shade of each box by a figure, the least and the most of them. Open boxes have none, but a note. */
export function metric(view: View, colour: string): Shaded {
  const { visible: v, metrics, tree } = view;
  const [name, ...how] = colour.split(',');
  const all = figures(view, name!);
  const total = metrics.total(name!);
  const notes =
    v.count > MOST_NOTES
      ? null
      : Array.from(all, (figure) => (Number.isNaN(figure) ? '' : total ? percent(figure, total) : (figureText(name!, figure) ?? '')));
  for (let box = 0; box < v.count; box++) if (v.open[box]) all[box] = NaN;
  const shaded = shadesOf(all, how.includes('log'), total !== null);
  let unknown = 0;
  for (let box = 0; box < v.count; box++) {
    if (v.open[box] || v.item[box]! >= tree.nodes + tree.groups || !Number.isNaN(all[box]!)) continue;
    shaded.shades[box] = UNKNOWN;
    unknown++;
  }
  return { ...shaded, total, unknown, notes };
}

/** By box: the first kernel of an operator, counted from 1 and around; 0: none. */
export function kernelOf({ visible: v, metrics, tree }: View): Uint16Array {
  return Uint16Array.from(v.item, (item) => {
    const kernel = item < tree.nodes ? metrics.firstKernel(item) : -1;
    return kernel < 0 ? 0 : 1 + (kernel % KERNEL_COLOURS);
  });
}
