// The parts of one wide band in rows. What comes from above runs down on the left and goes level above a row to its
// parts; what leads on goes level below a row to the right, and down.

import type { Line } from './bandlines.ts';
import { ASPECT } from './bands.ts';
import { bundle, linePitch } from './gaps.ts';
import { rowWidth } from './pack.ts';
import type { Blocks } from './parts.ts';
import type { Options } from './types.ts';

/** Places the parts `from` … `to`-1 of a band and its lines, relative to the band. Answers its size. */
export function arrangeRows(blocks: Blocks, from: number, to: number, ins: Line[], outs: Line[], options: Options) {
  const { gapX, gapY } = options;
  const pitch = linePitch(gapX);
  const rowHeight = breakRows(blocks, from, to, options);
  const left = besideRows(blocks, ins, rowHeight.length, true),
    right = besideRows(blocks, outs, rowHeight.length, false);
  const leftWidth = sideWidth(left, pitch, gapX),
    rightWidth = sideWidth(right, pitch, gapX);

  const { tops, height } = stackRows(rowHeight, left.tracks, right.tracks, gapY);
  let across = 0;
  for (let p = from; p < to; p++) {
    blocks.y[p] = tops[blocks.row[p]];
    blocks.x[p] += leftWidth;
    across = Math.max(across, blocks.x[p] + blocks.width[p]);
  }
  const step = (lines: number) => (lines ? bundle(lines, pitch) / lines : 0);
  const leftStep = step(left.lines.length),
    rightStep = step(right.lines.length);
  left.lines.forEach((line, i) => (line.x = leftWidth - gapX - i * leftStep));
  right.lines.forEach((line, i) => (line.x = across + gapX + i * rightStep));
  for (const line of [...ins, ...outs]) if (line.straight) line.x += leftWidth;
  return { width: across + rightWidth, height };
}

/** Parts one after the other in rows of about the same width. Answers the height of each row. */
function breakRows(blocks: Blocks, from: number, to: number, { gapX, gapY }: Options): number[] {
  const limit = rowWidth(blocks.width.subarray(from, to), blocks.height.subarray(from, to), gapX, 1.5 * gapY, ASPECT);
  let all = 0;
  for (let p = from; p < to; p++) all += blocks.width[p] + gapX;
  const even = (1.001 * all) / Math.max(1, Math.ceil(all / limit));
  const rowHeight: number[] = [0];
  let used = 0;
  for (let p = from; p < to; p++) {
    if (used > 0 && used + blocks.width[p] / 2 > even) {
      rowHeight.push(0);
      used = 0;
    }
    const row = rowHeight.length - 1;
    blocks.row[p] = row;
    blocks.x[p] = used;
    used += blocks.width[p] + gapX;
    rowHeight[row] = Math.max(rowHeight[row], blocks.height[p]);
  }
  return rowHeight;
}

/** The lines on one side of the rows. */
interface Side {
  /** Those that run down beside the rows, the nearest first. */
  lines: Line[];
  /** By row: those that run level there, from the outside in. */
  tracks: Line[][];
}

interface Reach {
  line: Line;
  end: number; // the row where it ends (on the right: begins)
  touch: Map<number, number>; // by row: the farthest that it goes there
}

/** Lines in (on the left) or out (on the right). One that meets only one part in the first (last) row goes straight through the border. */
function besideRows(blocks: Blocks, all: Line[], rows: number, isLeft: boolean): Side {
  const edge = isLeft ? 0 : rows - 1;
  const beside: Reach[] = [];
  for (const line of all) {
    const { parts } = line;
    if (parts.length === 1 && blocks.row[parts[0]] === edge) {
      line.straight = true;
      line.x = blocks.x[parts[0]] + line.at[0];
      continue;
    }
    beside.push({ line, end: blocks.row[parts[isLeft ? parts.length - 1 : 0]], touch: touchedRows(blocks, line, isLeft) });
  }
  // inside: what ends first (begins last), and of these what goes far in its row
  const far = ({ touch, end }: Reach) => touch.get(end)!;
  beside.sort((a, b) => (isLeft ? a.end - b.end || far(b) - far(a) : b.end - a.end || far(a) - far(b)));
  const tracks: { line: Line; far: number }[][] = Array.from({ length: rows }, () => []);
  for (const { line, touch } of beside) for (const [row, far] of touch) tracks[row].push({ line, far });
  return {
    lines: beside.map(({ line }) => line),
    tracks: tracks.map((list) => list.sort((a, b) => b.far - a.far).map(({ line }) => line)),
  };
}

/** By row: how far a line goes in it, seen from its side. */
function touchedRows({ x, row }: Blocks, { parts, at }: Line, isLeft: boolean): Map<number, number> {
  const touch = new Map<number, number>();
  for (let i = 0; i < parts.length; i++) {
    const reach = x[parts[i]] + at[i],
      r = row[parts[i]];
    const far = touch.get(r);
    touch.set(r, far === undefined ? reach : isLeft ? Math.max(far, reach) : Math.min(far, reach));
  }
  return touch;
}

function sideWidth({ lines }: Side, pitch: number, gapX: number): number {
  return lines.length ? bundle(lines.length, pitch) + gapX : 0;
}

/** The top of each row, with the space above and below that lines need to run level; and where they do. */
function stackRows(rowHeight: number[], above: Line[][], below: Line[][], gapY: number): { tops: number[]; height: number } {
  const space = (lines: number) => (lines ? Math.max(0.5 * gapY, Math.min((lines + 1) * 4, 2 * gapY)) : 0);
  const tops: number[] = [];
  let y = 0;
  rowHeight.forEach((high, row) => {
    const [over, under] = [space(above[row].length), space(below[row].length)];
    if (row) y += Math.max(0, gapY - over - space(below[row - 1].length));
    spread(above[row], row, y, over);
    y += over;
    tops.push(y);
    y += high;
    spread(below[row], row, y, under);
    y += under;
  });
  return { tops, height: y };
}

/** Lines at even distances in the space above or below a row. */
function spread(lines: Line[], row: number, y: number, room: number): void {
  lines.forEach((line, i) => line.level.set(row, y + (room * (i + 1)) / (lines.length + 1)));
}
