// The rows of the tree of modules, and which of them are open. Children are asked for when a row is opened, and while the
// answer is on its way anything may happen to the rows: they are known by themselves, never by their place.

import type { TreeRow } from '../engine/messages.ts';

export interface Row extends TreeRow {
  depth: number;
}

export class TreeRows {
  rows: Row[] = [];
  private open = new Set<number>();

  constructor(private children: (item: number) => Promise<TreeRow[]>) {}

  isOpen(row: Row): boolean {
    return this.open.has(row.item);
  }

  async reset(): Promise<void> {
    const found = await this.children(-1);
    this.open.clear();
    this.rows = found.map((row) => ({ ...row, depth: 0 }));
    // What stands alone is opened: nobody wants to see one row.
    for (let guard = 0; guard < 4 && this.rows.filter((row) => row.isGroup).length <= 4; guard++) {
      const closed = this.rows.filter((row) => row.isGroup && !this.isOpen(row) && row.phase !== 0);
      if (closed.length === 0) break;
      for (const row of closed.slice(0, 2)) await this.toggle(row);
      if (this.rows.length > 12) break;
    }
  }

  /** Open the rows around an item: its path, outermost first. */
  async reveal(path: number[]): Promise<void> {
    for (const item of path) {
      const row = this.rows.find((one) => one.item === item);
      if (!row) return;
      if (!this.isOpen(row)) await this.toggle(row);
    }
  }

  async toggle(row: Row): Promise<void> {
    if (!row.children) return;
    if (this.open.delete(row.item)) {
      const index = this.rows.indexOf(row);
      if (index < 0) return;
      let end = index + 1;
      while (end < this.rows.length && this.rows[end]!.depth > row.depth) this.open.delete(this.rows[end++]!.item);
      this.rows.splice(index + 1, end - index - 1);
      return;
    }
    this.open.add(row.item);
    const inner = (await this.children(row.item)).map((child) => ({ ...child, depth: row.depth + 1 }));
    const index = this.rows.indexOf(row);
    const hasInner = index >= 0 && (this.rows[index + 1]?.depth ?? 0) > row.depth;
    if (index >= 0 && this.isOpen(row) && !hasInner) this.rows.splice(index + 1, 0, ...inner);
  }
}
