// Two pictures with counterparts in one row: each is only pulled apart along its direction, never pushed together, so what
// was drawn well stays so. Where the other has more, this one has a gap.

import { BoxKind, type Scene } from '../scene.ts';
import { rising } from './rising.ts';

/** A gap opens this far above the box that waits for its counterpart, so that all of its row moves with it. */
const ABOVE = 12;

/** Where a picture is pulled apart, and by how much all that follows has moved then. */
interface Pulls {
  at: number[];
  by: number[];
}

/** Both pictures as high as each other, and each pair of boxes (`pairs`: of the first, of the second, …) level where that can be. */
export function aligned(one: Scene, other: Scene, pairs: Int32Array): [Scene, Scene] {
  const down = one.direction === 'down';
  const start = (scene: Scene) => (down ? scene.boxes.y : scene.boxes.x);
  const [from, to] = [start(one), start(other)];
  const [first, second]: [Pulls, Pulls] = [
    { at: [], by: [] },
    { at: [], by: [] },
  ];
  const order = Array.from({ length: pairs.length / 2 }, (_, i) => [from[pairs[2 * i]!]!, to[pairs[2 * i + 1]!]!] as const);
  order.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let [moved, movedOther] = [0, 0];
  for (const i of rising(order.map((places) => places[1]))) {
    const [here, there] = order[i]!;
    const behind = there + movedOther - (here + moved);
    if (behind > 0) pull(first, here - ABOVE, (moved += behind));
    else if (behind < 0) pull(second, there - ABOVE, (movedOther -= behind));
  }
  const [a, b] = [pulled(one, first), pulled(other, second)];
  const most = down ? Math.max(a.height, b.height) : Math.max(a.width, b.width);
  for (const scene of [a, b]) scene[down ? 'height' : 'width'] = most;
  return [a, b];
}

function pull({ at, by }: Pulls, place: number, moved: number): void {
  at.push(Math.max(place, at.at(-1) ?? 0));
  by.push(moved);
}

/** How far what was at a place has moved. */
function shift({ at, by }: Pulls, place: number): number {
  let [low, high] = [0, at.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at[middle]! <= place) low = middle + 1;
    else high = middle;
  }
  return low ? by[low - 1]! : 0;
}

function pulled(scene: Scene, pulls: Pulls): Scene {
  const down = scene.direction === 'down';
  const { boxes, edges } = scene;
  const start = (down ? boxes.y : boxes.x).slice();
  const size = (down ? boxes.height : boxes.width).slice();
  const moved = new Float32Array(boxes.count);
  for (let box = 0; box < boxes.count; box++) {
    const [top, length] = [start[box]!, size[box]!];
    moved[box] = shift(pulls, top);
    start[box] = top + moved[box]!;
    // What is around others grows with them.
    if (boxes.kind[box] === BoxKind.Open) size[box] = top + length + shift(pulls, top + length) - start[box]!;
  }
  const points = edges.points.slice();
  for (let edge = 0; edge < edges.count; edge++) {
    const [begin, end] = [edges.start[edge]!, edges.start[edge + 1]! - 1];
    for (let i = begin; i <= end; i++) {
      const at = 2 * i + (down ? 1 : 0);
      // A line stays fixed to its boxes.
      const by = i === begin ? moved[edges.source[edge]!]! : i === end ? moved[edges.target[edge]!]! : shift(pulls, points[at]!);
      points[at] = points[at]! + by;
    }
  }
  const along = { ...boxes, ...(down ? { y: start, height: size } : { x: start, width: size }) };
  const total = (down ? scene.height : scene.width) + (pulls.by.at(-1) ?? 0);
  return { ...scene, boxes: along, edges: { ...edges, points }, ...(down ? { height: total } : { width: total }) };
}
