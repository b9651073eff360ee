// Commands: what they leave in the state.

import { beforeAll, describe, expect, it, vi } from 'vitest';
import { expandAll, expandTo, setOptions, toggle } from '../../src/page/expanding.ts';
import { find, pickLine, select, stepResult, traceWay } from '../../src/page/selecting.ts';
import { redo, undo } from '../../src/page/history.ts';
import { goToStage, setCompare, show, stepStage } from '../../src/page/staging.ts';
import { BoxKind } from '../../src/scene.ts';
import { barePage, type Bare } from './bare.ts';

beforeAll(() => {
  // A frame, as a browser has it: the drawing waits for one.
  vi.stubGlobal('document', { hidden: true });
});

async function step(): Promise<Bare> {
  const bare = await barePage('step.opscope');
  await show(bare.page, 0, 0);
  bare.page.state.ready.set(true);
  return bare;
}

const boxesOf = ({ page }: Bare) => page.state.picture.get()!.scene.boxes;

describe('selecting', () => {
  it('brings into view what is hidden, and remembers the way', async () => {
    const bare = await step();
    const { page } = bare;
    const { state } = page;
    await expandTo(page, 1);
    const [node] = await find(page, 'op:mm phase:backward');
    expect(boxesOf(bare).item.includes(node!)).toBe(false);
    await select(page, [node!], true);
    expect(boxesOf(bare).item.includes(node!)).toBe(true);
    expect([state.selection.get(), state.opened.get()]).toEqual([[node], '']);
    await select(page, [], false);
    await undo(page);
    expect(state.selection.get()).toEqual([node]);
    await undo(page);
    expect(state.selection.get()).toEqual([]);
    expect(boxesOf(bare).item.includes(node!)).toBe(false); // and what was opened for it is closed
    await redo(page);
    expect(state.selection.get()).toEqual([node]);
    expect(boxesOf(bare).item.includes(node!)).toBe(true);
  });

  it('ends what was traced', async () => {
    const { page } = await step();
    const [node] = await find(page, 'op:sigmoid phase:forward');
    await select(page, [node!], false);
    await traceWay(page, 'up');
    const traced = page.state.traced.get()!;
    expect(traced.length).toBeGreaterThan(0);
    expect(page.state.related.get()).toEqual(traced);
    expect(page.state.tracing.get()).toEqual({ way: 'before', count: traced.length - 1 });
    await select(page, [], false);
    expect(page.state.traced.get()).toBeNull();
    expect(page.state.related.get()).toEqual([]);
  });

  it('related are those of the details, but only of what is selected now', async () => {
    const { page, engine } = await step();
    const { state } = page;
    const [node] = await find(page, 'op:sigmoid phase:forward');
    await select(page, [node!], false);
    state.details.set(engine.ask.details(node!));
    expect(state.related.get()).toEqual(engine.ask.details(node!).backward.map(({ item }) => item));
    expect(state.related.get()).not.toEqual([]);
    await select(page, [0], false);
    expect(state.related.get()).toEqual([]);
  });

  it('a line of source lights its operators', async () => {
    const { page, engine } = await step();
    const { file } = engine.ask.files()[0]!;
    const [line, count] = engine.ask.lines(file)[0]!;
    await pickLine(page, file, line);
    expect(page.state.low.get()).toBe('source');
    expect(page.state.source.get()).toEqual({ file, line, byHand: true });
    expect(page.state.related.get()).toHaveLength(count);
  });
});

describe('searching', () => {
  it('opens the results, steps around them, and goes back to the modules', async () => {
    const { page } = await step();
    const { state } = page;
    const nodes = await find(page, 'op:addmm');
    expect(nodes.length).toBeGreaterThan(1);
    expect(state.left.get()).toBe('results');
    await stepResult(page, -1);
    expect([state.result.get(), state.selection.get()]).toEqual([nodes.length - 1, [nodes.at(-1)]]);
    await stepResult(page, 1);
    expect([state.result.get(), state.selection.get()]).toEqual([0, [nodes[0]]]);
    await find(page, 'colour:red');
    expect(state.search.get().error).toContain('colour');
    await find(page, ' ');
    expect([state.left.get(), state.found.get()]).toEqual(['modules', []]);
  });

  it('goes on in another stage', async () => {
    const { page } = await barePage('passes.opscope');
    await show(page, 0, 0);
    const before = await find(page, 'op:Matmul');
    await stepStage(page, 1);
    const now = page.state.search.get();
    expect(now.query).toBe('op:Matmul');
    expect([before.length > 0, now.nodes.length > 0, now.error]).toEqual([true, true, '']);
  });
});

describe('what is open', () => {
  it('is said by one word where a command opened it', async () => {
    const bare = await step();
    const { page } = bare;
    await expandAll(page);
    expect(page.state.opened.get()).toBe('*');
    await expandTo(page, 0);
    expect([page.state.opened.get(), page.state.level.get()]).toEqual(['*1', 1]);
    const closed = boxesOf(bare).kind.indexOf(BoxKind.Closed);
    const before = boxesOf(bare).count;
    await toggle(page, boxesOf(bare).item[closed]!);
    expect(page.state.opened.get()).toBe('');
    expect(boxesOf(bare).count).toBeGreaterThan(before);
  });

  it('keeps the selection when it is laid out otherwise', async () => {
    const { page, engine } = await step();
    const item = engine.ask.children(-1).rows.find(({ isGroup }) => isGroup)?.item;
    const name = engine.ask.paths([item!]);
    expect(name[0]).toContain(':');
    await select(page, [item!], false);
    await setOptions(page, { split: true, constants: true });
    expect(engine.ask.paths(page.state.selection.get())).toEqual(name);
    expect(page.state.options.get().constants).toBe(true);
  });
});

describe('stages', () => {
  it('keep what is selected where it goes on, and forget the rest', async () => {
    const { page } = await barePage('passes.opscope');
    const { state } = page;
    await show(page, 0, 0);
    const [node] = await find(page, 'op:Matmul');
    await select(page, [node!], false);
    await goToStage(page, 1);
    expect(state.shown.get()!.name).toBe(state.info.get()!.stages[1]!.name);
    expect(state.selection.get()).toHaveLength(1);
    await goToStage(page, 'no such stage');
    expect(state.stage.get()).toBe(1);
    state.hideUnchanged.set(true);
    await stepStage(page, 1);
    expect(state.stage.get()).toBe(2);
  });

  it('are laid over each other by one command, and apart again', async () => {
    const { page } = await barePage('passes.opscope');
    const { state } = page;
    await show(page, 0, 2);
    const alone = state.picture.get()!.scene.boxes.count;
    await setCompare(page, 'overlay');
    expect([state.overlaid.get(), state.options.get().overlay]).toEqual([true, true]);
    expect(state.picture.get()!.scene.boxes.count).toBeGreaterThan(alone);
    await setCompare(page, 'after');
    expect([state.overlaid.get(), state.options.get().overlay]).toEqual([false, undefined]);
    expect(state.picture.get()!.scene.boxes.count).toBe(alone);
  });

  it('that only make parameters are hidden, until the user says otherwise', async () => {
    const { page } = await step();
    const { state } = page;
    expect(state.options.get().hidden).toEqual([]);
    state.phasesByHand.set(true);
    await setOptions(page, { hidden: [2] });
    await show(page, 0, 0);
    expect(state.options.get().hidden).toEqual([2]);
  });
});
