// The cases that hold this and the search in Python to docs/find.md.

import { describe, expect, test } from 'vitest';
import { BadQuery, find } from '../../src/find/find.ts';
import { FIELDS } from '../../src/find/parse.ts';
import { build, cases, measured } from './build.ts';

function outcome(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    return error;
  }
}

describe('tests/find_cases.json', () => {
  for (const [number, { graph: described, query, nodes, error }] of cases().entries()) {
    test(`${number} ${query.slice(0, 40)}`, () => {
      const { graph, pools } = build(described);
      const ofOp = (op: number): string => {
        const name = pools.strings.at(op);
        return described.kinds?.[name] ?? name;
      };
      const kinds = { ofOp, byNode: new Map<number, string>() };
      const found = outcome(() => Array.from(find(graph, pools, query, kinds, measured(described))));
      if (error === undefined) {
        expect(found).toEqual(nodes);
      } else {
        expect(found).toBeInstanceOf(BadQuery);
        expect((found as BadQuery).message).toContain(error);
        expect((found as BadQuery).message).not.toContain('\n');
      }
    });
  }

  test('where no kind is known, none is found', () => {
    const { graph, pools } = build({ nodes: [{ op: 'matmul' }] });
    expect([...find(graph, pools, 'kind:matmul')]).toEqual([]);
    expect([...find(graph, pools, '-kind:matmul')]).toEqual([0]);
  });

  test('try every field', () => {
    const queries = cases().map((entry) => entry.query);
    expect(FIELDS.filter((field) => !queries.some((query) => query.includes(`${field}:`)))).toEqual([]);
  });
});
