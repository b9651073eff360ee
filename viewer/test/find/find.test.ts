// What holds for every query, and what a search costs.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BadQuery, find } from '../../src/find/find.ts';
import { jsonItems, jsonMembers } from '../../src/find/json.ts';
import { wholeTest } from '../../src/find/match.ts';
import { FIELDS, parse, termText } from '../../src/find/parse.ts';
import { regex } from '../../src/find/regex.ts';
import { starts, type Graph, type Pools } from '../../src/wire/capture.ts';
import { Texts } from '../../src/wire/table.ts';
import { build, cases } from './build.ts';

const words = [
  ...FIELDS.map((field) => `${field}:`),
  ...['->', '*', '**', ' ', '-', '"', '/', 'x', '1', '[', ']', '(', '\\', '\n', '=', '#'],
  ...['conv', 'forward', '层', '🙂'],
];
const query = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.array(fc.constantFrom(...words), { maxLength: 10 }).map((parts) => parts.join('')),
);

describe('any query', () => {
  const graphs = [...new Set(cases().map((entry) => entry.graph))].map(build);

  test('answers in order or explains', () => {
    const property = fc.property(query, fc.constantFrom(...graphs), (text, { graph, pools }) => {
      try {
        const rows = find(graph, pools, text);
        expect(rows.every((row, i) => row < graph.nodes && (i === 0 || rows[i - 1]! < row))).toBe(true);
      } catch (error) {
        expect(error).toBeInstanceOf(BadQuery);
        expect((error as Error).message).not.toBe('');
      }
    });
    fc.assert(property, { numRuns: 2000 });
  });

  test('is read to its end, however long', () => {
    for (const piece of ['"', '/', '\\', '-', '->', 'a', ' ', 'op:', '*', '"\\', '::', 'a:b"', '🙂']) {
      for (const start of ['', '"', '/', 'op:']) {
        try {
          expect(parse(start + piece.repeat(20_000)).length).toBeGreaterThan(0);
        } catch (error) {
          expect(error).toBeInstanceOf(BadQuery);
        }
      }
    }
  });

  test('says itself again', () => {
    const property = fc.property(query, (text) => {
      let steps;
      try {
        steps = parse(text);
      } catch {
        return;
      }
      for (const term of steps.flatMap((step) => step.terms)) {
        if (term.kind === 'quoted' && /["\\]/.test(term.text)) continue;
        expect(parse(termText(term))[0]!.terms).toEqual([term]);
      }
    });
    fc.assert(property, { numRuns: 2000 });
  });

  test('holds or does not, with - in front', () => {
    const { graph, pools } = graphs[0]!;
    for (const entry of cases().filter(({ nodes, query }) => nodes && !/ |->|^-|^\*+$/.test(query))) {
      const rows = [...find(graph, pools, entry.query), ...find(graph, pools, `-${entry.query}`)];
      expect(rows.sort((a, b) => a - b)).toEqual(Array.from({ length: graph.nodes }, (_, i) => i));
    }
  });
});

describe('paths', () => {
  const edges = fc.array(fc.tuple(fc.nat(7), fc.nat(7)), { maxLength: 14 });
  const names = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 8, maxLength: 8 });
  const step = fc.constantFrom('op:a', 'op:b', '-op:a', '*', '**');
  const holds = (written: string, op: string) =>
    written === '*' || (written.startsWith('-') ? !written.endsWith(op) : written.endsWith(op));

  /** Every way to write the path without `**`. */
  const spelled = (path: string[]): string[][] => {
    const at = path.indexOf('**');
    if (at < 0) return path.length ? [path] : [];
    const counts = Array.from({ length: 11 }, (_, count) => count);
    return counts.flatMap((count) => spelled([...path.slice(0, at), ...Array<string>(count).fill('*'), ...path.slice(at + 1)]));
  };

  test('are walks, as counted by hand', () => {
    const property = fc.property(names, edges, fc.array(step, { minLength: 2, maxLength: 4 }), (ops, pairs, path) => {
      fc.pre(path.filter((written) => written === '**').length <= 2);
      const next = ops.map((_, node) => pairs.filter(([source]) => source === node).map(([, target]) => target));
      const expected = new Set<number>();
      for (const places of spelled(path)) {
        const ends = new Map<string, boolean>();
        const walk = (node: number, place: number): boolean => {
          const key = `${node} ${place}`;
          let known = ends.get(key);
          if (known === undefined) {
            known = holds(places[place]!, ops[node]!);
            if (known && place + 1 < places.length) {
              known = next[node]!.map((target) => walk(target, place + 1)).includes(true);
            }
            ends.set(key, known);
          }
          if (known) expected.add(node);
          return known;
        };
        for (let node = 0; node < ops.length; node++) walk(node, 0);
      }
      const { graph, pools } = build({
        nodes: ops.map((op, node) => ({
          op,
          inputs: pairs.filter(([, target]) => target === node).map(([source]) => source),
          outputs: [{}],
        })),
      });
      expect(Array.from(find(graph, pools, path.join(' -> ')))).toEqual([...expected].sort((a, b) => a - b));
    });
    fc.assert(property, { numRuns: 300 });
  });
});

describe('patterns', () => {
  test('* stands for any characters', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'A', '.', '\n'), maxLength: 8 });
    const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '*', '.'), maxLength: 6 });
    const property = fc.property(text, pattern, (t, p) => {
      const same = p.replaceAll('.', '\\.').replaceAll('*', '[^]*');
      expect(wholeTest(p)(t)).toBe(new RegExp(`^${same}$`, 'i').test(t));
    });
    fc.assert(property, { numRuns: 2000 });
  });

  test.each([
    ['\\bconv\\b', 'my conv', true],
    ['\\bconv\\b', '卷conv', false],
    ['^\\w+$', '层_一', true],
    ['^[\\w.]+$', '层.1', true],
    ['^[^\\W\\d]+$', '层', true],
    ['[\\W]', '层_1', false],
    ['^\\d$', '٣', true],
    ['(?P<a>x)(?P=a)', 'XX', true],
    ['(?i)relu', 'ReLU', true],
    ['\\Aconv\\Z', 'conv', true],
    ['\\Aconv\\Z', 'conv\n', false],
    ['conv$', 'conv\n', true],
    ['a.b', 'a\rb', true],
    ['a.b', 'a\nb', false],
    ['[]]', 'a]', true],
    ['a]b}', 'a]b}', true],
    ['{"a":1}', '{"a":1}', true],
    ['^a{,2}$', 'aaa', false],
    ['\\"\\-\\_\\/', '"-_/', true],
    ['^.$', '🙂', true],
  ])('/%s/ on %j is as in Python', (pattern, text, expected) => {
    expect(regex(pattern).test(text)).toBe(expected);
  });

  test.each(['(', '[', '[]', '*a', '{2}', '\\q', 'a**', '(?P<1>a)', '[z-a]'])('/%s/ is not a regex', (pattern) => {
    expect(() => regex(pattern)).toThrow(/^\/.*\/ is not a regex \(.+\)$/);
  });
});

describe('JSON one level deep', () => {
  test('is what JSON.parse makes of it', () => {
    const property = fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.constantFrom(0, 1), (data, indent) => {
      const read = (written: string, value: unknown) => (typeof value === 'string' ? written : JSON.parse(written));
      const entries = Object.entries(JSON.parse(JSON.stringify(data)) as Record<string, unknown>);
      const members = jsonMembers(JSON.stringify(data, null, indent));
      expect(members.map(([key, value], i) => [key, read(value, entries[i]![1])])).toEqual(entries);
    });
    fc.assert(property);
  });

  test('keeps numbers as they are written', () => {
    expect(jsonMembers('{"a": 1.0, "b": -1e+3}')).toEqual([
      ['a', '1.0'],
      ['b', '-1e+3'],
    ]);
    expect(jsonItems('[64, "s0", null, 12345678901234567890]')).toEqual(['64', 's0', 'null', '12345678901234567890']);
  });

  test('reads as far as it can, whatever it is given', () => {
    const piece = fc.constantFrom('{', '}', '[', ']', '"', ',', ':', '\\', '1', 'null', ' ', 'a', '"a"');
    const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''));
    fc.assert(
      fc.property(text, (json) => {
        expect(jsonMembers(`{${json}`).length + jsonItems(`[${json}`).length).toBeLessThanOrEqual(26);
      }),
      { numRuns: 2000 },
    );
    expect(jsonMembers('{"a":1,"b":')).toEqual([['a', '1']]);
  });
});

describe('a large graph', () => {
  const count = 300_000;
  const { graph, pools } = large(count);

  const cpu = (run: () => number): number => {
    const start = process.cpuUsage();
    expect(run()).toBeGreaterThan(0);
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1000;
  };
  const oneLook = () => {
    let length = 0;
    for (let i = 0; i < pools.strings.length; i++) length += pools.strings.at(i).toLowerCase().length;
    return length;
  };

  /** As a ratio: a search takes no longer than thirty times one look at all names. */
  test.each(['n99', 'op:op3 phase:backward', 'scope:block7 -> ** -> op:op5', 'shape:64x** -/n[0-4]+$/', 'role:act'])(
    '%s is answered at once',
    (text) => {
      oneLook();
      const most = 30 * cpu(oneLook) + 200;
      expect(cpu(() => find(graph, pools, text).length)).toBeLessThan(most);
    },
  );
});

/** A chain with short cuts, where every node has a name of its own. */
function large(count: number): { graph: Graph; pools: Pools } {
  const { graph, pools } = build({ nodes: [] });
  const column = (length: number, of: (i: number) => number) => Int32Array.from({ length }, (_, i) => of(i));
  const useNode = column(2 * count, (i) => i >> 1);
  return {
    graph: {
      ...graph,
      nodes: count,
      op: column(count, (i) => 1 + ((i * 7919) % 40)),
      name: column(count, (i) => 41 + i),
      scope: column(count, (i) => 1 + Math.floor((i * 10_000) / count)),
      stack: new Int32Array(count),
      attrs: new Int32Array(count),
      phase: Int8Array.from({ length: count }, (_, i) => (i < count / 2 ? 1 : 2)),
      useStart: starts(useNode, count),
      useNode,
      useValue: column(2 * count, (i) => (i & 1 ? Math.max(0, (i >> 1) - 7) : (i >> 1) - 1)),
      useArg: new Int32Array(2 * count),
      values: count,
      producer: column(count, (i) => i),
      slot: new Int32Array(count),
      type: column(count, (i) => 1 + (i % 3)),
      valueName: new Int32Array(count),
      storage: column(count, (i) => i),
      role: new Int8Array(count).fill(4),
    },
    pools: {
      ...pools,
      strings: new Texts(41 + count, (i) => (i === 0 ? '' : i <= 40 ? `op${i - 1}` : `n${i - 41}`)),
      types: { dtype: Texts.of(['', 'f32', 'f32', 'f32']), shape: Texts.of(['null', '[64,1]', '[7]', '[]']) },
      scopes: {
        parent: new Int32Array(10_001),
        name: new Texts(10_001, (i) => `block${i}`),
        cls: new Texts(10_001, (i) => (i ? 'Block' : '')),
        call: new Int32Array(10_001),
      },
    },
  };
}
