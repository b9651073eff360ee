// The same operators in other stages: where they are, what became of them, what a stage changed.

import { drawnItem, isOperator, outerNodes } from './diffview.ts';
import type { ChangeRow, FateRow } from './messages.ts';
import { paths } from './names.ts';
import type { Graph, Pools } from '../wire/capture.ts';
import { scopePath } from '../wire/scopes.ts';
import type { View } from './view.ts';

const MOST_LABELS = 12;

/** The same operators in another stage of this capture, by the links between stages; modules by their path. */
export async function across(view: View, items: number[], from: number, to: number): Promise<string[]> {
  const map = await view.diffs.map(from, to);
  const ghosts = view.tree.nodes - view.ghosts.length;
  const found = new Set<string>();
  for (const item of items) {
    const input = item - view.tree.nodes - view.tree.groups;
    if (input >= 0) {
      // An input is the one of the same name.
      const { capture, graph } = view;
      const other = await capture.graph(capture.manifest.stages[to]!.graph);
      const name = capture.pools.strings.at(graph.valueName[input]!);
      for (const value of other.inputs) if (capture.pools.strings.at(other.valueName[value]!) === name) found.add(`%${value}`);
      continue;
    }
    if (!isOperator(view, item)) {
      for (const path of paths(view, [item])) found.add(path);
      continue;
    }
    for (const node of outerNodes(view, item)) {
      // A ghost is an operator of the stage before this one.
      if (node >= ghosts) for (const other of await ofGhost(view, node - ghosts, to)) found.add(`#${other}`);
      else for (const other of map.get(node) ?? []) found.add(`#${other}`);
    }
  }
  return [...found];
}

async function ofGhost({ diffs, stage, ghosts }: View, index: number, to: number): Promise<number[]> {
  const { before } = diffs.of(stage)!;
  const node = ghosts[index]!;
  return to === before ? [node] : ((await diffs.map(before, to)).get(node) ?? []);
}

/** What the stage in view changed. Operators before are ghosts where those are drawn, else -1 and those of the other stage. */
export async function changes(view: View): Promise<ChangeRow[]> {
  const { diffs, stage, tree, ghosts, capture } = view;
  const found = diffs.of(stage);
  if (!found) return [];
  const [then, now] = await Promise.all([found.before, stage].map((at) => capture.graph(capture.manifest.stages[at]!.graph)));
  const ghost = new Map(ghosts.map((node, i) => [node, tree.nodes - ghosts.length + i]));
  return found.changes.map((change, index) => ({
    index,
    ...change,
    where: whereIs(capture.pools, change.after.length ? now! : then!, change.after.length ? change.after : change.before),
    items: change.after.map((node) => drawnItem(view, node)),
    ghosts: change.before.flatMap((node) => ghost.get(node) ?? []),
  }));
}

/** `layer2/1/relu`: the module of an operator, with its name where that module has several; of several operators what they share. */
function whereIs(pools: Pools, graph: Graph, nodes: number[]): string {
  const parts = (node: number) => scopePath(pools, graph.scope[node]!).split('/');
  const [first, ...rest] = nodes.map(parts);
  let shared = first!.length;
  for (const other of rest) while (shared && other.slice(0, shared).join('/') !== first!.slice(0, shared).join('/')) shared--;
  const path = first!.slice(0, shared).join('/');
  if (nodes.length > 1) return path;
  const name = pools.strings.at(graph.name[nodes[0]!]!);
  const last = first!.at(-1)!;
  return !name || !path || isAlone(graph, nodes[0]!) ? path || name : name.endsWith(last) ? path : `${path}/${name}`;
}

/** The only operator of its module. */
function isAlone({ scope, nodes }: Graph, node: number): boolean {
  return (node === 0 || scope[node - 1] !== scope[node]) && (node + 1 === nodes || scope[node + 1] !== scope[node]);
}

/** What becomes of an operator in every stage. */
export async function follow(view: View, item: number): Promise<FateRow[]> {
  const { diffs, stage, capture, ghosts, tree } = view;
  if (!isOperator(view, item)) return [];
  const nodes = outerNodes(view, item);
  const first = tree.nodes - ghosts.length;
  const isGhost = nodes.length > 0 && nodes[0]! >= first;
  const fates = isGhost
    ? await diffs.follow(
        nodes.map((node) => ghosts[node - first]!),
        diffs.of(stage)!.before,
      )
    : await diffs.follow(nodes, stage);
  const rows: FateRow[] = [];
  for (const fate of fates) {
    const graph = await capture.graph(capture.manifest.stages[fate.stage]!.graph);
    rows.push({ ...fate, labels: fate.nodes.slice(0, MOST_LABELS).map((node) => capture.pools.strings.at(graph.op[node]!)) });
  }
  return rows;
}

/** Operators as they are drawn. */
export function drawn(view: View, nodes: number[]): number[] {
  return nodes.map((node) => (node < view.tree.nodes ? drawnItem(view, node) : node));
}
