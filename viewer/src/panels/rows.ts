// The rows of the tree of modules, and which of them are open. Children are asked for when a row is opened, and while the
// answer is on its way anything may happen to the rows: they are known by themselves, never by their place. Of a module
// with very many children there is a part, with a row before and behind it for the rest.

import type { TreePage, TreeRow } from '../engine/messages.ts';

export interface Row extends TreeRow {
  depth: number;
  rest?: Rest; // it stands for rows that are not there
}

interface Rest {
  of: number; // the module
  ahead: boolean; // before the rows that are there
  first: number; // of the page next to these
  count: number; // how many are not there
}

export type Ask = (item: number, first?: number, around?: number) => Promise<TreePage>;

const ROOT = -1;
const REST = -2;

export class TreeRows {
  rows: Row[] = [];
  private open = new Set<number>();

  constructor(private children: Ask) {}

  isOpen(row: Row): boolean {
    return this.open.has(row.item);
  }

  async reset(): Promise<void> {
    const found = await this.children(ROOT);
    this.open.clear();
    this.rows = page(ROOT, found, 0);
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
    let above: Row | undefined;
    for (const item of path) {
      let row = this.rows.find((one) => one.item === item);
      if (!row) {
        await this.show(above, item);
        row = this.rows.find((one) => one.item === item);
      }
      if (!row) return;
      if (!this.isOpen(row)) await this.toggle(row);
      above = row;
    }
  }

  async toggle(row: Row): Promise<void> {
    if (row.rest) return this.more(row, row.rest);
    if (!row.children) return;
    if (this.open.delete(row.item)) {
      this.close(row);
      return;
    }
    this.open.add(row.item);
    const inner = page(row.item, await this.children(row.item), row.depth + 1);
    const index = this.rows.indexOf(row);
    const hasInner = index >= 0 && (this.rows[index + 1]?.depth ?? 0) > row.depth;
    if (index >= 0 && this.isOpen(row) && !hasInner) this.rows.splice(index + 1, 0, ...inner);
  }

  /** The next rows of those that are not there, in place of the row that stands for them. */
  private async more(row: Row, { of, ahead, first, count }: Rest): Promise<void> {
    const found = await this.children(of, first);
    const index = this.rows.indexOf(row);
    if (index < 0) return;
    const inner = page(of, { ...found, rows: ahead ? found.rows.slice(0, count - first) : found.rows }, row.depth);
    this.rows.splice(index, 1, ...inner.filter((one) => !one.rest || one.rest.ahead === ahead));
  }

  /** The part of an open module in which an item is, if there is one. */
  private async show(above: Row | undefined, item: number): Promise<void> {
    const of = above?.item ?? ROOT;
    const hasRest = this.rows.some(({ rest }) => rest?.of === of);
    if (!hasRest) return;
    const found = page(of, await this.children(of, 0, item), above ? above.depth + 1 : 0);
    const index = above ? this.rows.indexOf(above) : ROOT;
    if (above && index < 0) return;
    if (above) this.close(above);
    else this.rows = [];
    this.rows.splice(index + 1, 0, ...found);
  }

  /** Without the rows inside of this one. */
  private close(row: Row): void {
    const index = this.rows.indexOf(row);
    if (index < 0) return;
    let end = index + 1;
    while (end < this.rows.length && this.rows[end]!.depth > row.depth) this.open.delete(this.rows[end++]!.item);
    this.rows.splice(index + 1, end - index - 1);
  }
}

/** Rows, with those that stand for the rest. */
function page(of: number, { first, total, rows }: TreePage, depth: number): Row[] {
  const rest = (ahead: boolean, from: number, count: number): Row[] =>
    count > 0 ? [{ ...NOTHING, title: count.toLocaleString(), depth, rest: { of, ahead, first: from, count } }] : [];
  const behind = first + rows.length;
  return [
    ...rest(true, Math.max(0, first - (rows.length || 1)), first),
    ...rows.map((row) => ({ ...row, depth })),
    ...rest(false, behind, total - behind),
  ];
}

const NOTHING: TreeRow = { item: REST, title: '', cls: '', size: 0, phase: 0, children: 0, isGroup: false };
