import { describe, expect, it } from 'vitest';
import type { TreeRow } from '../../src/engine/messages.ts';
import { TreeRows } from '../../src/panels/rows.ts';

const INSIDE: Record<number, number[]> = { [-1]: [1, 2, 3, 4, 5], 1: [10, 11], 2: [20], 10: [100] };

function row(item: number): TreeRow {
  return { item, title: `m${item}`, isGroup: item in INSIDE, children: INSIDE[item]?.length ?? 0, phase: 1, size: 1 } as unknown as TreeRow;
}

/** Answers that arrive when the test says so. */
function slowly() {
  const waiting: (() => void)[] = [];
  const children = (item: number) => new Promise<TreeRow[]>((resolve) => waiting.push(() => resolve((INSIDE[item] ?? []).map(row))));
  const arrive = async () => {
    while (waiting.length) {
      waiting.shift()!();
      await new Promise((done) => setTimeout(done));
    }
  };
  return { tree: new TreeRows(children), arrive };
}

const shown = (tree: TreeRows) => tree.rows.map((one) => one.item);

describe('the rows of the tree of modules', () => {
  it('survive a reset while a row is being opened', async () => {
    const { tree, arrive } = slowly();
    const first = tree.reset();
    await arrive();
    await first;
    const before = shown(tree);
    const all = [tree.reveal([1, 10]), tree.reset(), tree.reset()];
    await arrive();
    await Promise.all(all);
    expect(shown(tree)).toEqual(before);
  });

  it('stand once, however often a row is opened and closed before the answer is there', async () => {
    const { tree, arrive } = slowly();
    const first = tree.reset();
    await arrive();
    await first;
    const closed = tree.rows.find((one) => one.children && !tree.isOpen(one));
    const one = closed ?? tree.rows[0]!;
    if (!closed) await tree.toggle(one);
    const all = [tree.toggle(one), tree.toggle(one), tree.toggle(one), tree.reveal([one.item])];
    await arrive();
    await Promise.all(all);
    expect(new Set(shown(tree)).size).toBe(tree.rows.length);
    expect(shown(tree)).toContain(INSIDE[one.item]![0]);
  });
});
