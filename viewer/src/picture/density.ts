// How densely boxes cover the plane, and of which phase: a pyramid of square cells. Seen from afar a million
// boxes cost no more than the cells on the screen, in even rows without a pattern of their own.
import type { Boxes } from '../scene.ts';
import { PHASES } from '../scene.ts';

/** Cells of one level lie row by row from `start[level]`; the next level's cells are twice as large. */
export interface Density {
  /** Side of a cell of level 0, in units of the world; the grid begins at (0, 0). */
  cell: number;
  columns: Int32Array;
  rows: Int32Array;
  start: Int32Array;
  /** How much of a cell is covered, 0–255, and the commonest phase in it. */
  cover: Uint8Array;
  phase: Uint8Array;
  /** The box that covers most of a cell: its colour stands for the cell when the page colours boxes. -1: none. */
  box: Int32Array;
}

const SMALLEST = 16;

export function buildDensity(boxes: Boxes, ids: Int32Array, width: number, height: number): Density {
  // About two cells to a box: finer ones would be empty or full.
  const cell = Math.max(SMALLEST, Math.sqrt((Math.max(1, width) * Math.max(1, height)) / Math.max(1, 2 * ids.length)));
  const [columns, rows, start] = [[Math.max(1, Math.ceil(width / cell))], [Math.max(1, Math.ceil(height / cell))], [0]];
  while (columns.at(-1)! * rows.at(-1)! > 4) {
    start.push(start.at(-1)! + columns.at(-1)! * rows.at(-1)!);
    columns.push(Math.ceil(columns.at(-1)! / 2));
    rows.push(Math.ceil(rows.at(-1)! / 2));
  }
  const total = start.at(-1)! + columns.at(-1)! * rows.at(-1)!;
  const cover = new Uint8Array(total);
  const phase = new Uint8Array(total);
  const box = new Int32Array(total).fill(-1);
  lowest(boxes, ids, cell, columns[0]!, rows[0]!, cover, phase, box);
  const sums = new Float64Array(PHASES.length);
  for (let l = 1; l < start.length; l++) {
    const [from, to] = [start[l - 1]!, start[l]!];
    const [wide, high, across] = [columns[l - 1]!, rows[l - 1]!, columns[l]!];
    for (let k = 0; k < across * rows[l]!; k++) {
      const cx = 2 * (k % across);
      const cy = 2 * Math.floor(k / across);
      sums.fill(0);
      let sum = 0;
      let most = -1;
      for (let q = 0; q < 4; q++) {
        const x = cx + (q & 1);
        const y = cy + (q >> 1);
        if (x >= wide || y >= high) continue;
        const at = from + y * wide + x;
        sum += cover[at]!;
        sums[phase[at]!]! += cover[at]!;
        if (box[at]! >= 0 && cover[at]! > most) {
          most = cover[at]!;
          box[to + k] = box[at]!;
        }
      }
      cover[to + k] = Math.ceil(sum / 4);
      let best = 0;
      for (let p = 1; p < sums.length; p++) if (sums[p]! > sums[best]!) best = p;
      phase[to + k] = best;
    }
  }
  return { cell, columns: Int32Array.from(columns), rows: Int32Array.from(rows), start: Int32Array.from(start), cover, phase, box };
}

function lowest(
  boxes: Boxes,
  ids: Int32Array,
  cell: number,
  columns: number,
  rows: number,
  cover: Uint8Array,
  phase: Uint8Array,
  box: Int32Array,
): void {
  const area = new Float32Array(columns * rows);
  // The commonest phase by a vote in one pass: another phase's area counts against the leader.
  const lead = new Float32Array(columns * rows);
  const largest = new Float32Array(columns * rows);
  for (let i = 0; i < ids.length; i++) {
    const b = ids[i]!;
    const x0 = boxes.x[b]!;
    const y0 = boxes.y[b]!;
    const x1 = x0 + boxes.width[b]!;
    const y1 = y0 + boxes.height[b]!;
    const p = Math.min(boxes.phase[b]!, PHASES.length - 1);
    const left = Math.max(0, Math.floor(x0 / cell));
    const right = Math.min(columns - 1, Math.floor(x1 / cell));
    const bottom = Math.min(rows - 1, Math.floor(y1 / cell));
    for (let cy = Math.max(0, Math.floor(y0 / cell)); cy <= bottom; cy++) {
      const high = Math.min(y1, (cy + 1) * cell) - Math.max(y0, cy * cell);
      for (let cx = left; cx <= right; cx++) {
        const part = high * (Math.min(x1, (cx + 1) * cell) - Math.max(x0, cx * cell));
        const at = cy * columns + cx;
        area[at]! += part;
        if (part > largest[at]!) {
          largest[at] = part;
          box[at] = b;
        }
        if (phase[at] === p) {
          lead[at]! += part;
        } else if (lead[at]! >= part) {
          lead[at]! -= part;
        } else {
          phase[at] = p;
          lead[at] = part - lead[at]!;
        }
      }
    }
  }
  const whole = 255 / (cell * cell);
  for (let k = 0; k < area.length; k++) cover[k] = area[k]! > 0 ? Math.max(1, Math.min(255, Math.round(area[k]! * whole))) : 0;
}

/** The level whose cells are at least `least` pixels at a zoom. */
export function levelFor(density: Density, zoom: number, least: number): number {
  let level = 0;
  while (level + 1 < density.start.length && density.cell * 2 ** level * zoom < least) level++;
  return level;
}
