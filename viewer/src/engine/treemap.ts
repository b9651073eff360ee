// A map of what costs how much: modules inside modules, each as large as its share.

/** Rectangles (x, y, width, height …) with areas as the figures, which are positive and come largest first: rows along the
 * shorter side, each as long as it makes its cells more like squares. */
export function squarify(figures: number[], x: number, y: number, width: number, height: number): Float64Array {
  const out = new Float64Array(4 * figures.length);
  let left = figures.reduce((a, b) => a + b, 0);
  let first = 0;
  while (first < figures.length) {
    const side = Math.min(width, height);
    const scale = (width * height) / left; // pixels for each unit
    let sum = 0;
    let worst = Infinity;
    let last = first;
    for (; last < figures.length; last++) {
      const more = sum + figures[last]!;
      const deep = (more * scale) / side;
      const ratio = Math.max(deep ** 2 / (figures[last]! * scale), (figures[first]! * scale) / deep ** 2);
      if (ratio > worst) break;
      worst = ratio;
      sum = more;
    }
    last = Math.max(last, first + 1);
    if (!sum) sum = figures[first]!;
    const deep = last === figures.length ? (width < height ? height : width) : (sum * scale) / side;
    let along = 0;
    for (let i = first; i < last; i++) {
      const length = (figures[i]! / sum) * side;
      out.set(width < height ? [x + along, y, length, deep] : [x, y + along, deep, length], 4 * i);
      along += length;
    }
    if (width < height) [y, height] = [y + deep, Math.max(0, height - deep)];
    else [x, width] = [x + deep, Math.max(0, width - deep)];
    left -= sum;
    first = last;
  }
  return out;
}

/** A tree to be mapped. Items are any numbers; a leaf has no children. */
export interface Branches {
  figure(item: number): number;
  children(item: number): number[];
}

export interface Cell {
  item: number;
  kind: 'group' | 'leaf' | 'rest'; // the rest: what is too small to be drawn, of `item`
  around: number; // cell, or -1
  also: number[]; // items that hold nothing else than this one
  figure: number;
  x: number;
  y: number;
  width: number;
  height: number;
  count: number; // of a rest: how many
}

export const HEADER = 17;
const PADDING = 3;
const LEAST = 24; // square pixels of a cell
const MOST = 4000; // cells

export function layTreemap(tree: Branches, root: number, width: number, height: number): Cell[] {
  const cells: Cell[] = [];
  const place = (item: number, around: number, x: number, y: number, w: number, h: number): void => {
    const also: number[] = [];
    let children = inside(tree, item);
    // One in one in one: the innermost stands for all of them.
    while (item !== root && children.length === 1 && tree.children(children[0]!).length) {
      if (tree.figure(children[0]!) < tree.figure(item)) break;
      also.push(item);
      item = children[0]!;
      children = inside(tree, item);
    }
    const kind = tree.children(item).length ? 'group' : 'leaf';
    const cell = cells.push({ item, kind, around, also, figure: tree.figure(item), x, y, width: w, height: h, count: 1 }) - 1;
    if (!children.length || cells.length > MOST) return;
    const pad = item === root ? 0 : Math.min(PADDING, w / 12, h / 12);
    // Where a title has no room above what is inside, the module is drawn closed.
    if (item !== root && (h < 2.4 * HEADER || w < 44)) return;
    const head = item === root ? 0 : HEADER;
    const [ix, iy, iw, ih] = [x + pad, y + head, w - 2 * pad, h - head - pad];
    if (iw < 6 || ih < 6) return;
    const total = tree.figure(item);
    const scale = (iw * ih) / total;
    let drawn = children.findIndex((child) => tree.figure(child) * scale < LEAST);
    if (drawn < 0) drawn = children.length;
    const figures = children.slice(0, drawn).map((child) => tree.figure(child));
    const rest = total - figures.reduce((a, b) => a + b, 0);
    const hasRest = rest > 0 && rest * scale >= LEAST / 4;
    // Largest first: the rest may be larger than some that are drawn.
    const at = hasRest ? figures.findIndex((figure) => figure < rest) : -1;
    const order = children.slice(0, drawn) as (number | null)[];
    if (hasRest) {
      order.splice(at < 0 ? drawn : at, 0, null);
      figures.splice(at < 0 ? drawn : at, 0, rest);
    }
    const boxes = squarify(figures, ix, iy, iw, ih);
    order.forEach((child, i) => {
      const [bx, by, bw, bh] = boxes.subarray(4 * i, 4 * i + 4) as unknown as [number, number, number, number];
      if (child !== null) place(child, cell, bx, by, bw, bh);
      else
        cells.push({
          item,
          kind: 'rest',
          around: cell,
          also: [],
          figure: rest,
          x: bx,
          y: by,
          width: bw,
          height: bh,
          count: children.length - drawn,
        });
    });
  };
  if (tree.figure(root) > 0 && width > 0 && height > 0) place(root, -1, 0, 0, width, height);
  return cells;
}

/** Children with a figure, the largest first. */
function inside(tree: Branches, item: number): number[] {
  return tree
    .children(item)
    .filter((child) => tree.figure(child) > 0)
    .sort((a, b) => tree.figure(b) - tree.figure(a) || a - b);
}

/** The cell at a point: the innermost one. */
export function cellAt(cells: Cell[], x: number, y: number): number {
  for (let i = cells.length - 1; i >= 0; i--) {
    const cell = cells[i]!;
    if (x >= cell.x && y >= cell.y && x < cell.x + cell.width && y < cell.y + cell.height) return i;
  }
  return -1;
}
