// Figures of the user's own find the same operators as in Python: the cases of tests/own_cases.json.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Engine } from '../../src/engine/engine.ts';
import { ownOf } from '../../src/engine/own.ts';
import { isTable } from '../../src/engine/separated.ts';
import { Capture } from '../../src/wire/capture.ts';
import { scopePath } from '../../src/wire/scopes.ts';
import { columnsOf } from '../../src/engine/separated.ts';
import { join } from '../../src/engine/own.ts';

const TESTS = new URL('../../../tests/', import.meta.url);
const step = () => new Uint8Array(readFileSync(new URL('data/page/step.opscope', TESTS)));

interface Case {
  file: string;
  text: string;
  columns?: Record<string, { unit: string; node?: Record<string, unknown>; scope?: Record<string, unknown> }>;
  unmatched?: [number, string][];
  error?: string;
}

describe('tests/own_cases.json', () => {
  const cases = JSON.parse(readFileSync(new URL('own_cases.json', TESTS), 'utf8')) as Case[];
  it.each(cases.map((one, i) => [`${i} ${one.text.slice(0, 24)}`, one] as const))('%s', async (_, one) => {
    const capture = await Capture.open(step());
    const work = async () => join(capture, one.file, columnsOf(one.file, one.text));
    if (one.error !== undefined) {
      await expect(work()).rejects.toThrow(one.error);
      return;
    }
    const { unmatched, columns } = await work();
    expect(unmatched).toEqual(one.unmatched);
    expect(columns).toEqual(Object.keys(one.columns!));
    const found = (await ownOf(capture, 0)).map(({ name, unit, node, scope }) => {
      const scopes = [...scope].map(([at, value]) => [scopePath(capture.pools, at), value] as const);
      return [name, { unit, node: Object.fromEntries(node), scope: Object.fromEntries(scopes) }];
    });
    const wanted = Object.entries(one.columns!).map(([name, { unit, node = {}, scope = {} }]) => [name, { unit, node, scope }]);
    expect(found).toEqual(wanted);
  });

  it('a graph is no table', () => {
    expect(isTable('a.json', '{"graphs": [{"nodes": []}], "results": 1}')).toBe(false);
    expect(isTable('a.json', '{"results": {}}')).toBe(true);
    expect(isTable('a.pkl', '"results":')).toBe(false);
  });
});

describe('a table that is added', () => {
  it('is searched, shown and rolled up', async () => {
    const engine = new Engine();
    await engine.load(step(), 'step');
    await engine.stage(0, 0, { direction: 'down', split: true, side: true, hidden: [], constants: false });
    const { info } = await engine.addTable('t.csv', 'node,ms,who\n0,1,a\n1,2,a\n5,4,b\n');
    await engine.count();
    expect(info.metrics.slice(-2)).toEqual(['ms', 'who']);
    expect((await engine.ask.find('ms:>1')).nodes).toEqual([1, 5]);
    expect((await engine.ask.find('who:b')).nodes).toEqual([5]);
    const [net] = engine.ask.items(['forward:net']);
    const told = Object.fromEntries(engine.ask.details(net!).measured.map(([name, text]) => [name, text]));
    expect(told.ms).toBe('7');
    engine.openDepth(1);
    const of = (colour: string) => engine.ask.metric(colour).of.notes?.filter(Boolean);
    expect(of('ms')).toContain('7');
    expect(of('ms:mean')).toContain('2.33');
    expect(of('ms:max')).toContain('4');
  });
});
