// Areas of a drawing that are taken, in cells: thousands of them are asked about without looking at all.

/** A rectangle by its middle. */
export interface Area {
  x: number;
  y: number;
  w: number;
  h: number;
}

const CELL = 160;

export class Taken {
  #cells = new Map<string, Area[]>();

  constructor(areas: readonly Area[]) {
    for (const { x, y, w, h } of areas) this.add(x, y, w, h);
  }

  add(x: number, y: number, w: number, h: number): void {
    const area = { x, y, w, h };
    for (const key of cells(area)) {
      const known = this.#cells.get(key);
      if (known) known.push(area);
      else this.#cells.set(key, [area]);
    }
  }

  isFree(x: number, y: number, w: number, h: number): boolean {
    for (const key of cells({ x, y, w, h }))
      for (const other of this.#cells.get(key) ?? [])
        if (Math.abs(other.x - x) < (other.w + w) / 2 && Math.abs(other.y - y) < (other.h + h) / 2) return false;
    return true;
  }
}

function* cells({ x, y, w, h }: Area): Generator<string> {
  for (let i = Math.floor((x - w / 2) / CELL); i <= Math.floor((x + w / 2) / CELL); i++)
    for (let j = Math.floor((y - h / 2) / CELL); j <= Math.floor((y + h / 2) / CELL); j++) yield `${i},${j}`;
}
