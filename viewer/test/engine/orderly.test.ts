// A drawing never lies about order: whatever is open, data that goes out of a box does not come back to it, unless the
// program itself goes round.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { convexParts } from '../../src/engine/convex.ts';
import { row } from '../../src/wire/csr.ts';
import { Repeats } from '../../src/engine/repeats.ts';
import { buildTree, groupTitle, type Tree } from '../../src/engine/tree.ts';
import { visible, type Visible } from '../../src/engine/visible.ts';
import { PHASES } from '../../src/scene.ts';
import type { Graph, Pools } from '../../src/wire/capture.ts';
import { build, type Described } from '../find/build.ts';

/** Whether boxes that are joined by these edges form a loop. */
function loops(n: number, source: ArrayLike<number>, target: ArrayLike<number>): boolean {
  const waiting = new Int32Array(n);
  const out: number[][] = Array.from({ length: n }, () => []);
  for (let e = 0; e < source.length; e++) {
    if (source[e] === target[e]) continue;
    out[source[e]!]!.push(target[e]!);
    waiting[target[e]!]!++;
  }
  const todo = Array.from(waiting.keys()).filter((v) => !waiting[v]);
  let done = 0;
  for (let v = todo.pop(); v !== undefined; v = todo.pop()) {
    done++;
    for (const w of out[v]!) if (--waiting[w]! === 0) todo.push(w);
  }
  return done < n;
}

function treeOf(graph: Graph, pools: Pools, split = true): Tree {
  const bodies = { owner: new Int32Array(0), label: [], bodyOf: new Int32Array(graph.nodes).fill(-1), results: [] };
  return buildTree(graph, pools, { split, hidden: new Set(), inlined: new Uint8Array(graph.nodes), bodies, opTitle: () => '' });
}

function shown(graph: Graph, tree: Tree, open: ArrayLike<number>, unfolded: ArrayLike<number>): Visible {
  return visible(graph, tree, {
    open: Uint8Array.from({ length: tree.groups }, (_, g) => (g ? open[g % open.length]! : 1)),
    unfolded: Uint8Array.from({ length: tree.groups }, (_, g) => unfolded[g % unfolded.length]!),
    repeats: new Repeats(graph, tree),
    inputs: graph.inputs,
    weight: () => 0,
  });
}

const NAMES = ['a', 'b', 'c', '0', '1'];
const CLASSES: Record<string, string> = { a: 'ModuleList', b: 'Block', c: '' };

/** Modules that are called in turns, in any phase, and read anything that was made before. */
const anyProgram: fc.Arbitrary<Described> = fc
  .array(
    fc.record({
      scope: fc.array(fc.constantFrom(...NAMES), { maxLength: 3 }),
      phase: fc.constantFrom('forward', 'forward', 'forward', 'backward', 'optimizer'),
      reads: fc.array(fc.nat(40), { maxLength: 3 }),
      op: fc.constantFrom('relu', 'add'),
      width: fc.constantFrom(4, 4, 8),
    }),
    { maxLength: 40 },
  )
  .map((ops) => ({
    inputs: [{ name: 'x', dtype: 'float32', shape: [4] }],
    nodes: ops.map(({ scope, phase, reads, op, width }, i) => ({
      op,
      phase,
      scope,
      class: CLASSES[scope.at(-1) ?? ''] ?? 'Linear',
      inputs: reads.map((back) => Math.max(0, i - (back % 12))),
      outputs: [{ dtype: 'float32', shape: [width] }],
    })),
  }));

describe('boxes', () => {
  it('never form a loop that the program does not have', () => {
    fc.assert(
      fc.property(
        anyProgram,
        fc.boolean(),
        fc.array(fc.nat(1), { minLength: 7, maxLength: 7 }),
        fc.array(fc.nat(1), { minLength: 5, maxLength: 5 }),
        (program, split, open, unfolded) => {
          const { graph, pools } = build(program);
          const tree = treeOf(graph, pools, split);
          for (const state of [open, [0], [1]]) {
            const v = shown(graph, tree, state, unfolded);
            expect(loops(v.count, v.source, v.target)).toBe(false);
            // Every operator is in one box, and counted by a group of its own module.
            for (let node = 0; node < graph.nodes; node++) {
              expect(v.nodeBox[node]).toBeGreaterThanOrEqual(0);
              const scope = tree.scope[tree.home[node]!]!;
              let s = graph.scope[node]!;
              while (s !== scope && s > 0) s = pools.scopes.parent[s]!;
              expect(s).toBe(scope);
            }
          }
        },
      ),
      { numRuns: 400 },
    );
  });

  it('are cut no finer than they must be: what can run in one go stays whole', () => {
    // 0 and 2 are of one cluster; 1 stands between them, 3 beside.
    const between = convexParts(Int32Array.of(0, 1), Int32Array.of(1, 2), Int32Array.of(0, -1, 0, -1));
    expect(new Set(between).size).toBe(4);
    const beside = convexParts(Int32Array.of(0), Int32Array.of(2), Int32Array.of(0, -1, 0, -1));
    expect(beside[0]).toBe(beside[2]);
    // A constant that is made early makes no part of its own.
    const early = convexParts(Int32Array.of(1, 2, 3, 0, 2), Int32Array.of(2, 3, 4, 4, 4), Int32Array.of(1, 0, 1, 0, 1));
    expect(new Set(early).size).toBe(4);
  });

  it('keep loops that are there, and lose no operator', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(14), fc.nat(14)), { maxLength: 40 }),
        fc.array(fc.integer({ min: -1, max: 3 }), { minLength: 15, maxLength: 15 }),
        (edges, cluster) => {
          const [source, target] = [Int32Array.from(edges, (e) => e[0]), Int32Array.from(edges, (e) => e[1])];
          const part = convexParts(source, target, Int32Array.from(cluster));
          for (let a = 0; a < 15; a++) {
            expect(part[a]).toBeGreaterThanOrEqual(0);
            for (let b = 0; b < a; b++) if (part[a] === part[b]) expect([cluster[a], cluster[a]! >= 0]).toEqual([cluster[b], true]);
          }
          if (!loops(15, source, target))
            expect(
              loops(
                15,
                source.map((v) => part[v]!),
                target.map((v) => part[v]!),
              ),
            ).toBe(false);
        },
      ),
      { numRuns: 500 },
    );
  });
});

/** Operators in a row, each reading the one before; `path` is `module/inner:Class`. */
function chain(paths: string[], widths: number[] = []): Described {
  return {
    inputs: [{ name: 'x', dtype: 'float32', shape: [4] }],
    nodes: paths.map((path, i) => {
      const [scope, cls] = path.split(':');
      const outputs = [{ dtype: 'float32', shape: [widths[i] ?? 4] }];
      return { op: 'relu', scope: scope ? scope.split('/') : [], class: cls ?? '', inputs: [i], outputs };
    }),
  };
}

function boxes(program: Described): string[] {
  const { graph, pools } = build(program);
  const tree = treeOf(graph, pools);
  const v = shown(graph, tree, [0], [0]);
  const title = (item: number) => (item < tree.nodes ? 'op' : groupTitle(tree, pools, item - tree.nodes));
  return Array.from(v.item, (item, box) => [item, box] as const)
    .filter(([item]) => item < tree.nodes + tree.groups)
    .sort((a, b) => v.order[a[1]]! - v.order[b[1]]!)
    .map(([item, box]) => title(item) + (v.repeat[box]! > 1 ? ` ×${v.repeat[box]}` : ''));
}

describe('a module', () => {
  it('between whose operators others run is several boxes of its name', () => {
    expect(boxes(chain(['block', '', 'block', 'other']))).toEqual(['block', 'op', 'block', 'other']);
  });

  it('that only holds modules gives way to them where they run in turns', () => {
    expect(boxes(chain(['up/0/a', '', 'up/0/b', 'up/1/a', '', 'up/1/b']))).toEqual(['up.0.a', 'op', 'up.0.b', 'up.1.a', 'op', 'up.1.b']);
    expect(boxes(chain(['layer1/0', 'layer1/1', 'layer2/0']))).toEqual(['layer1', 'layer2']);
  });

  it('takes in what its own module does between its parts, where that is little', () => {
    const parts = Array.from({ length: 12 }, (_, i) => `up/0/${i < 6 ? 'a' : 'b'}`);
    parts.splice(6, 0, '');
    const { graph, pools } = build(chain([...parts, 'end']));
    const tree = treeOf(graph, pools);
    const names = [...row(tree.childGroups, 0)].map((g) => groupTitle(tree, pools, g));
    expect(names).toEqual(['up', 'end']);
    // It is drawn there, and counted where it is.
    expect([tree.home[6], tree.nodeGroup[6] === 0]).toEqual([0, false]);
    expect(tree.count[tree.nodeGroup[6]!]).toBe(12);
    expect(tree.count[0]).toBe(14);
  });

  it('that is a list is a name before those of its modules', () => {
    const { graph, pools } = build(chain(['h/0/ln', 'h/0/mlp', 'h/1/ln', 'h/1/mlp', 'h/2/ln', 'h/2/mlp']));
    const list = pools.scopes.cls;
    const as = (i: number) => (pools.scopes.name.at(i) === 'h' ? 'ModuleList' : list.at(i));
    const tree = treeOf(graph, { ...pools, scopes: { ...pools.scopes, cls: { ...list, at: as } as typeof list } });
    expect([...row(tree.childGroups, 0)].map((g) => groupTitle(tree, pools, g))).toEqual(['h.0', 'h.1', 'h.2']);
  });
});

describe('a fold', () => {
  it('is made of equal neighbours', () => {
    expect(boxes(chain(['0', '1', '2', '3']))).toEqual(['0 ×4']);
  });

  it('never hides different widths', () => {
    expect(boxes(chain(['0', '1', '2', '3', '4', '5'], [4, 4, 4, 8, 8, 8]))).toEqual(['0 ×3', '3 ×3']);
    expect(boxes(chain(['0', '1', '2'], [4, 8, 16]))).toEqual(['0', '1', '2']);
  });

  it('never goes round what runs between its blocks', () => {
    expect(boxes(chain(['0', '', '1', '', '2']))).toEqual(['0', 'op', '1', 'op', '2']);
  });

  it('may stand among what only reads or feeds its blocks', () => {
    const program = chain(['0', '1', '2']);
    program.nodes.splice(1, 0, { op: 'add', scope: [], inputs: [1], outputs: [{ dtype: 'float32', shape: [4] }] });
    program.nodes[2]!.inputs = [1];
    program.nodes[3]!.inputs = [3];
    expect(boxes(program)).toEqual(['0 ×3', 'op']);
  });
});

it('phases that take turns are parts too', () => {
  const { graph, pools } = build({
    nodes: ['forward', 'backward', 'optimizer', 'forward', 'backward'].map((phase, i) => ({
      op: 'add',
      phase,
      scope: [],
      inputs: i ? [i - 1] : [],
      outputs: [{ dtype: 'float32', shape: [4] }],
    })),
  });
  const tree = treeOf(graph, pools);
  const titles = [...row(tree.childGroups, 0)].map((g) => groupTitle(tree, pools, g));
  expect(titles).toEqual(['forward 1', 'backward 1', 'optimizer', 'forward 2', 'backward 2']);
  expect(PHASES[tree.phase[1]!]).toBe('forward');
});
