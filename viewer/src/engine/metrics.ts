// Figures by operator: what boxes can be coloured by, and the columns of the table. Unknown is null, never zero.

import type { Capture, Graph } from '../wire/capture.ts';
import { FACTS, TIME_UNITS } from '../wire/facts.ts';
import { Costs, ratio, type CostFigure, type Figure } from './cost.ts';
import { csr, row, type Csr } from '../wire/csr.ts';
import { figureText } from '../text/figures.ts';
import type { Measure } from './messages.ts';
import { ownOf, type OwnColumn } from './own.ts';
import type { Tree } from './tree.ts';
import type { Types } from './types.ts';

const OUTPUT = 'output size';
const WRITTEN = 'written inside';
const KERNELS = 'kernels';
export const TIME = 'time'; // measured
export const CPU_TIME = 'CPU time'; // of operators' calls, where a profile tells it from the time on a device
const INTENSITY = 'intensity';
const COSTS: Record<string, CostFigure> = {
  MACs: 'macs',
  'causal MACs': 'causal',
  'other FLOPs': 'other',
  'bytes read': 'read',
  'bytes written': 'written',
  'bytes sent': 'wire',
  parameters: 'parameters',
};

export class Metrics {
  columns: string[];
  private made: Csr | undefined;
  private times: (number | null)[] = []; // by kernel
  private cpuTimes: (number | null)[] = []; // by operator
  private nodeTimes: (number | null)[] | null = null;
  /** The measured times have been read. */
  readonly measured: Promise<void>;
  costs: Costs | null = null; // of the stage, where the file has them
  private sums = new WeakMap<Tree, Map<CostFigure, Float64Array>>();

  constructor(
    private capture: Capture,
    private stage: number,
    private graph: Graph,
    private types: Types,
    private outputs: () => Csr,
  ) {
    this.columns = Metrics.names(capture);
    this.measured = Promise.all([this.loadTimes(), this.loadOwn()]).then(() => undefined);
    this.measured.catch(() => undefined); // who waits for it is told
  }

  /** Kernels by operator. */
  private get kernelsOf(): Csr | undefined {
    const kernels = this.graph.groups.get('kernel');
    if (!this.made && kernels) {
      const owner = new Int32Array(kernels.member.length);
      for (let k = 0; k < kernels.name.length; k++) owner.fill(k, kernels.start[k]!, kernels.start[k + 1]!);
      this.made = csr(kernels.member, this.graph.nodes, owner);
    }
    return this.made;
  }

  static names(capture: Capture): string[] {
    const timed = capture.manifest.tables.some((table) => table.fact === FACTS.times.name);
    const fused = capture.manifest.graphs.some((graph) => graph.groups.includes('kernel'));
    const causal = Costs.hasCausal(capture) ? ['causal MACs'] : [];
    const wire = Costs.hasWire(capture) ? ['bytes sent'] : [];
    const traffic = ['bytes read', 'bytes written', ...wire, INTENSITY];
    const costs = Costs.has(capture) ? ['MACs', ...causal, 'other FLOPs', ...traffic] : [];
    // What was measured says most.
    const onCpu = fused && capture.manifest.tables.some(({ fact, units }) => fact === FACTS.times.name && 'cpu' in units);
    return [
      ...(timed ? [TIME] : []),
      ...(onCpu ? [CPU_TIME] : []),
      ...costs,
      OUTPUT,
      ...(costs.length ? ['parameters'] : []),
      ...(fused ? [KERNELS] : []),
    ];
  }

  /** What is known of an operator's cost: exact, zero, estimated, unknown; empty where it is counted at another. */
  how(node: number): string {
    if (!this.costs || node >= this.costs.nodes) return '';
    const how = this.costs.how(node);
    return this.costs.atLeast(node) && how !== 'unknown' ? `${how}, at least` : how;
  }

  /** Figures that are counted at the operator around this one. */
  isElsewhere(name: string, node: number): boolean {
    return (name in COSTS || name === INTENSITY) && this.costs !== null && node >= this.costs.nodes;
  }

  /** By group: the sum of all that is inside; NaN where nothing of it is known. */
  subtree(figure: CostFigure, tree: Tree): Float64Array {
    let known = this.sums.get(tree);
    if (!known) this.sums.set(tree, (known = new Map()));
    let sums = known.get(figure);
    if (sums) return sums;
    known.set(figure, (sums = new Float64Array(tree.groups).fill(NaN)));
    const own = this.costs?.of(figure) ?? new Float64Array(0);
    for (let node = 0; node < own.length; node++) {
      const group = tree.home[node]!;
      if (group >= 0 && !Number.isNaN(own[node]!)) sums[group] = (sums[group] || 0) + own[node]!;
    }
    for (let group = tree.groups - 1; group > 0; group--) {
      const around = tree.parent[group]!; // comes before what is inside it
      if (!Number.isNaN(sums[group]!)) sums[around] = (sums[around] || 0) + sums[group]!;
    }
    return sums;
  }

  /** The figure of a box: an operator, or a group with all that is inside, as often as it is repeated. */
  ofItem(name: string, item: number, tree: Tree, times: number, inside: () => number[]): number | null {
    const group = item - tree.nodes;
    if (item < tree.nodes) {
      const value = this.value(name, item);
      return value !== null && name !== INTENSITY ? value * times : value;
    }
    if (group >= tree.groups) return null;
    const [own, asked] = name.split(':');
    const column = this.own.get(own!);
    const how = asked ?? column?.roll ?? 'sum';
    if (column) {
      const found = column.isText ? null : this.rollOwn(column, how, group, tree);
      return found === null || how !== 'sum' ? found : found * times;
    }
    const sum = (figure: CostFigure) => this.subtree(figure, tree)[group]!;
    if (name === INTENSITY) return ratio(sum('macs'), sum('other'), sum('bytes'));
    const figure = COSTS[name];
    if (!figure) return this.rollUp(name, inside(), times);
    return Number.isNaN(sum(figure)) ? null : sum(figure) * times;
  }

  /** Measured times, in seconds: by kernel, and by operator where that was measured. */
  private async loadTimes(): Promise<void> {
    for (const index of this.capture.facts(FACTS.times.name, this.stage)) {
      const { by, units } = this.capture.manifest.tables[index]!;
      const times = by === 'node' ? (this.nodeTimes ??= []) : by === 'group:kernel' ? this.times : null;
      const unit = TIME_UNITS[units.time!];
      if (!times || !unit) continue;
      const table = await this.capture.stored(index);
      const values = table.numbers(FACTS.times.columns.time);
      if (by === 'node' && table.has(FACTS.times.columns.cpu)) {
        const cpu = table.numbers(FACTS.times.columns.cpu);
        const cpuUnit = TIME_UNITS[units.cpu!] ?? 1;
        table.int32('index').forEach((at, i) => (this.cpuTimes[at] = Number.isNaN(cpu[i]!) ? null : cpu[i]! * cpuUnit));
      }
      table.int32('index').forEach((at, i) => (times[at] = Number.isNaN(values[i]!) ? null : values[i]! * unit));
    }
  }

  private own = new Map<string, OwnColumn>();
  private rolled = new WeakMap<Tree, Map<string, Float64Array[]>>();

  /** The user's own columns, after all others. */
  async loadOwn(): Promise<void> {
    const columns = await ownOf(this.capture, this.stage);
    this.own = new Map(columns.map((column) => [column.name, column]));
    this.columns = [...Metrics.names(this.capture), ...this.own.keys()];
    this.rolled = new WeakMap();
    this.forget();
  }

  /** Of a column of text: what it says of an operator, or of the module of a group. */
  text(name: string, item: number, tree: Tree): string | null {
    const column = this.own.get(name);
    if (!column?.isText) return null;
    const found = item < tree.nodes ? column.node.get(item) : column.scope.get(tree.scope[item - tree.nodes] ?? -1);
    return found === undefined ? null : String(found);
  }

  /** `latency`, `latency:mean`, `latency:max` of a group: what is said of its module, else of what is inside. */
  private rollOwn(column: OwnColumn, how: string, group: number, tree: Tree): number | null {
    let trees = this.rolled.get(tree);
    if (!trees) this.rolled.set(tree, (trees = new Map()));
    let arrays = trees.get(column.name);
    if (!arrays) trees.set(column.name, (arrays = rollUp(column, tree)));
    const [total, count, most] = arrays as [Float64Array, Float64Array, Float64Array];
    if (!count[group]) return null;
    return how === 'mean' ? total[group]! / count[group]! : how === 'max' ? most[group]! : total[group]!;
  }

  /** A figure by operator; NaN where it is not known. */
  byNode(figure: Figure, costs: Costs): Float64Array {
    if (figure !== 'time') return costs.of(figure);
    return Float64Array.from({ length: costs.nodes }, (_, node) => this.value(TIME, node) ?? NaN);
  }

  firstKernel(node: number): number {
    return this.kernelsOf ? (row(this.kernelsOf, node)[0] ?? -1) : -1;
  }

  kernelTime(kernel: number): number | null {
    return this.times[kernel] ?? null;
  }

  value(name: string, node: number): number | null {
    const column = this.own.get(name.split(':')[0]!);
    if (column) {
      const found = column.node.get(node);
      return typeof found === 'number' ? found : null;
    }
    if (name === OUTPUT) {
      let total = 0;
      for (const value of row(this.outputs(), node)) {
        const bytes = this.types.bytes(this.graph.type[value]!);
        if (bytes < 0) return null;
        total += bytes;
      }
      return total;
    }
    const figure = COSTS[name];
    if (figure || name === INTENSITY) {
      if (!this.costs || node >= this.costs.nodes) return null;
      if (!figure) return this.costs.intensity(node);
      const value = this.costs.of(figure)[node]!;
      return Number.isNaN(value) ? null : value;
    }
    if (name === CPU_TIME) return this.cpuTimes[node] ?? null;
    if (name === TIME && this.nodeTimes) return this.nodeTimes[node] ?? null;
    if (!this.kernelsOf) return null;
    const kernels = row(this.kernelsOf, node);
    if (name === KERNELS) return kernels.length;
    // A kernel's time belongs to all its operators alike: shared out evenly, so that sums stay right. Without one, there is none.
    if (!kernels.length) return null;
    const groups = this.graph.groups.get('kernel')!;
    let total = 0;
    for (const kernel of kernels) {
      const time = this.kernelTime(kernel);
      if (time === null) return null;
      total += time / (groups.start[kernel + 1]! - groups.start[kernel]!);
    }
    return total;
  }

  /** A group: the sum of what is inside; kernels are counted once each. */
  rollUp(name: string, nodes: number[], times: number): number | null {
    if (name === KERNELS && this.kernelsOf) {
      const kernels = new Set<number>();
      for (const node of nodes) for (const kernel of row(this.kernelsOf, node)) kernels.add(kernel);
      return kernels.size * times;
    }
    let total = 0;
    let known = false;
    for (const node of nodes) {
      const value = this.value(name, node);
      if (value !== null) {
        total += value;
        known = true;
      }
    }
    return known ? total * times : null;
  }

  /** The whole stage's; null where nothing adds up. */
  total(name: string): number | null {
    if (name === OUTPUT || name === INTENSITY || name === KERNELS || this.own.has(name.split(':')[0]!)) return null;
    let known = this.totals.get(name);
    if (known === undefined) {
      known = 0;
      for (let node = 0; node < this.graph.nodes; node++) known += this.value(name, node) ?? 0;
      this.totals.set(name, known);
    }
    return known;
  }

  /** What has been added up goes when figures came. */
  forget(): void {
    this.totals.clear();
  }

  private totals = new Map<string, number>();

  private measure(name: string, value: number | null, least = false): Measure {
    const unit = this.own.get(name)?.unit;
    const text = [figureText(name, value) ?? '?', value !== null && unit].filter(Boolean).join(' ');
    const total = value === null ? null : this.total(name);
    const shown = least && text !== '?' ? `≥ ${text}` : text;
    return total && value !== null ? [name, shown, value / total] : [name, shown];
  }

  describe(node: number): Measure[] {
    const how = this.how(node);
    const shown = this.columns.filter((name) => !this.isElsewhere(name, node));
    const said = (name: string) => this.own.get(name)?.node.get(node);
    return [
      ...shown.map((name): Measure =>
        typeof said(name) === 'string' ? [name, String(said(name))] : this.measure(name, this.value(name, node)),
      ),
      ...known(how),
    ];
  }

  /** `out`: the bytes of what a group hands on; what its operators write for each other is another figure. */
  describeGroup(item: number, tree: Tree, nodes: number[], out: number | null): Measure[] {
    const { costs } = this;
    const least = this.leastOf(nodes);
    return [
      ...this.columns.flatMap((name): Measure[] => {
        const text = this.text(name, item, tree);
        if (text !== null) return [[name, text]];
        const value = this.ofItem(name, item, tree, 1, () => nodes);
        // What views hand on is no work: where the bytes are counted, they are enough.
        if (name === OUTPUT) return [this.measure(OUTPUT, out), ...(costs ? [] : [this.measure(WRITTEN, value)])];
        const figure = COSTS[name];
        const reached = figure && costs?.gaps.reach(figure, tree.scope[item - tree.nodes]!, tree.phase[item - tree.nodes]!);
        return [this.measure(name, value, Boolean(reached) || this.isLeast(name, nodes, least))];
      }),
      ...known(least ? `${least.toLocaleString('en')} unknown` : ''),
    ];
  }

  /** Some operators together. */
  sum(nodes: number[]): Measure[] {
    const least = this.leastOf(nodes);
    return this.columns.flatMap((name): Measure[] => {
      if (name === OUTPUT) return this.costs ? [] : [this.measure(WRITTEN, this.rollUp(OUTPUT, nodes, 1))];
      const [macs, other, read, written] = ['MACs', 'other FLOPs', 'bytes read', 'bytes written'].map(
        (of) => this.rollUp(of, nodes, 1) ?? NaN,
      );
      const value = name === INTENSITY ? ratio(macs!, other!, read! + written!) : this.rollUp(name, nodes, 1);
      return [this.measure(name, value, this.isLeast(name, nodes, least))];
    });
  }

  private leastOf(nodes: number[]): number {
    const { costs } = this;
    return costs ? nodes.filter((node) => node < costs.nodes && costs.atLeast(node)).length : 0;
  }

  private isLeast(name: string, nodes: number[], least: number): boolean {
    return name === TIME ? nodes.some((node) => this.value(TIME, node) === null) : least > 0 && (name === 'MACs' || name === 'other FLOPs');
  }
}

function known(how: string): Measure[] {
  return how ? [['cost is', how]] : [];
}

/** By group: the sum, the number and the greatest of what is inside; what is said of a module itself counts instead. */
function rollUp({ node, scope }: OwnColumn, tree: Tree): Float64Array[] {
  const [total, count, most] = [0, 0, -Infinity].map((first) => new Float64Array(tree.groups).fill(first)) as [
    Float64Array,
    ...Float64Array[],
  ];
  for (const [at, value] of node) {
    const group = tree.home[at] ?? -1;
    if (group < 0) continue;
    total[group]! += Number(value);
    count![group]!++;
    most![group] = Math.max(most![group]!, Number(value));
  }
  // A module in several phases or parts: said of the first, so that nothing counts twice.
  const said = new Map<number, number>();
  for (let g = tree.groups - 1; g > 0; g--)
    if (scope.has(tree.scope[g]!) && !tree.isPhase[g] && !tree.labels.has(g)) said.set(tree.scope[g]!, g);
  for (let g = tree.groups - 1; g >= 0; g--) {
    if (g && said.get(tree.scope[g]!) === g)
      [total[g], count![g], most![g]] = [Number(scope.get(tree.scope[g]!)), 1, Number(scope.get(tree.scope[g]!))];
    if (!g || !count![g]) continue;
    const around = tree.parent[g]!;
    total[around]! += total[g]!;
    count![around]! += count![g]!;
    most![around] = Math.max(most![around]!, most![g]!);
  }
  return [total, count!, most!];
}
