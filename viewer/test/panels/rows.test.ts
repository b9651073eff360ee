import { describe, expect, it } from 'vitest';
import type { TreePage, TreeRow } from '../../src/engine/messages.ts';
import { TreeRows } from '../../src/panels/rows.ts';

const INSIDE: Record<number, number[]> = { [-1]: [1, 2, 3, 4, 5], 1: [10, 11], 2: [20], 10: [100] };

function row(item: number): TreeRow {
  return { item, title: `m${item}`, isGroup: item in INSIDE, children: INSIDE[item]?.length ?? 0, phase: 1, size: 1 } as unknown as TreeRow;
}

const whole = (items: number[]): TreePage => ({ first: 0, total: items.length, rows: items.map(row) });

/** A module 1 with a hundred children, 1000 to 1099, of which an answer has ten. */
async function many(): Promise<TreeRows> {
  const inside = Array.from({ length: 100 }, (_, i) => 1000 + i);
  const tree = new TreeRows(async (item, first = 0, around = -1) => {
    if (item < 0) return whole([1]);
    const from = around < 0 ? first : Math.max(0, inside.indexOf(around) - 5);
    return { first: from, total: 100, rows: inside.slice(from, from + 10).map(row) };
  });
  await tree.reset();
  return tree;
}

/** Answers that arrive when the test says so. */
function slowly() {
  const waiting: (() => void)[] = [];
  const children = (item: number) => new Promise<TreePage>((resolve) => waiting.push(() => resolve(whole(INSIDE[item] ?? []))));
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

  it('come by the page where there are many', async () => {
    const tree = await many();
    const rests = () => tree.rows.filter(({ rest }) => rest).map(({ rest, title }) => [rest!.ahead, title]);
    const inner = () => shown(tree).filter((item) => item >= 1000);
    await tree.reveal([1, 1050]);
    expect(inner()).toEqual(Array.from({ length: 10 }, (_, i) => 1045 + i));
    expect(rests()).toEqual([
      [true, '45'],
      [false, '45'],
    ]);
    for (const ahead of [true, false]) await tree.toggle(tree.rows.find(({ rest }) => rest?.ahead === ahead)!);
    expect(inner()).toEqual(Array.from({ length: 30 }, (_, i) => 1035 + i));
    for (let i = 0; i < 10; i++) for (const row of tree.rows.filter(({ rest }) => rest)) await tree.toggle(row);
    expect(inner()).toEqual(Array.from({ length: 100 }, (_, i) => 1000 + i));
    expect(rests()).toEqual([]);
    await tree.toggle(tree.rows.find(({ item }) => item === 1)!);
    expect(inner()).toEqual([]);
  });
});
