// What every operator costs, from the facts of an annotated capture.

import type { Capture } from '../wire/capture.ts';
import { FACTS, HOW, type How } from '../wire/facts.ts';
import type { Table } from '../wire/table.ts';
import { Gaps } from './gaps.ts';

const UNKNOWN = HOW.indexOf('unknown');
const { costs: COSTS, lifetimes: LIFETIMES, parameters: PARAMETERS } = FACTS;

/** Figures that add up: by operator, and by module. */
export type CostFigure = 'macs' | 'causal' | 'other' | 'read' | 'written' | 'bytes' | 'wire' | 'parameters' | 'activations';

/** What the map shows: what operators cost, and what was measured. */
export type Figure = CostFigure | 'time';

export interface Storages {
  value: Int32Array; // that owns it
  bytes: Float64Array;
  cls: Float64Array; // a place in MEMORY_CLASSES
  born: Float64Array; // operators
  dies: Float64Array;
}

export class Costs {
  readonly nodes: number; // of the graph itself: graphs inside operators are counted at those
  private made = new Map<string, Float64Array>();

  private constructor(
    private table: Table,
    private memory: Table,
    private held: Table,
    readonly gaps: Gaps,
  ) {
    this.nodes = table.rows;
  }

  /** Those of a stage, or null where the file has none. */
  static async read(capture: Capture, stage: number): Promise<Costs | null> {
    const found = await Promise.all([COSTS, LIFETIMES, PARAMETERS].map((fact) => capture.fact(fact.name, stage)));
    const [table, memory, held] = found;
    if (!table || !memory || !held) return null;
    return new Costs(table, memory, held, await Gaps.read(capture, stage));
  }

  static has(capture: Capture): boolean {
    return capture.manifest.tables.some((table) => table.fact === COSTS.name);
  }

  /** True where attention may be causal: MACs without what the masks hide have a column of their own. */
  static hasCausal(capture: Capture): boolean {
    return capture.manifest.tables.some((table) => table.fact === COSTS.name && 'causal' in table.units);
  }

  /** True where operators send bytes to other ranks. */
  static hasWire(capture: Capture): boolean {
    return capture.manifest.tables.some((table) => table.fact === COSTS.name && 'wire' in table.units);
  }

  /** By operator; NaN where it is not known. */
  of(figure: CostFigure): Float64Array {
    const known = this.made.get(figure);
    if (known) return known;
    let column: Float64Array;
    if (figure === 'bytes') {
      const [read, written] = [this.of('read'), this.of('written')];
      column = read.map((bytes, node) => bytes + written[node]!);
    } else if (figure === 'parameters') {
      column = new Float64Array(this.nodes);
      const [elements, node] = [this.held.numbers(PARAMETERS.columns.elements), this.held.numbers(PARAMETERS.columns.node)];
      for (let i = 0; i < elements.length; i++) if (node[i]! >= 0) column[node[i]!]! += elements[i]!;
    } else if (figure === 'causal' && !this.table.has(COSTS.columns.causal))
      column = this.of('macs'); // nothing is causal here
    else if (figure === 'wire' && !this.table.has(COSTS.columns.wire)) column = new Float64Array(this.nodes);
    else column = this.table.numbers(`column ${figure}`);
    this.made.set(figure, column);
    return column;
  }

  get hasParameters(): boolean {
    return this.held.rows > 0;
  }

  /** Numbers in parameters that no operator reads. */
  get unused(): number {
    const [elements, node] = [this.held.numbers(PARAMETERS.columns.elements), this.held.numbers(PARAMETERS.columns.node)];
    let total = 0;
    for (let i = 0; i < elements.length; i++) if (node[i]! < 0 && elements[i]! >= 0) total += elements[i]!;
    return total;
  }

  how(node: number): How {
    return HOW[this.column('how')[node]!] ?? 'unknown';
  }

  /** True where a figure is the least that it can be: something inside is not known. */
  atLeast(node: number): boolean {
    return this.column('at least')[node] === 1;
  }

  isUnknown(node: number): boolean {
    return this.column('how')[node] === UNKNOWN;
  }

  /** FLOPs for each byte; null where it is not known or nothing is moved. */
  intensity(node: number): number | null {
    return ratio(this.of('macs')[node]!, this.of('other')[node]!, this.of('bytes')[node]!);
  }

  get storages(): Storages {
    return (this.stored ??= {
      value: this.memory.int32('index'),
      bytes: this.memory.numbers(LIFETIMES.columns.bytes),
      cls: this.memory.numbers(LIFETIMES.columns.class),
      born: this.memory.numbers(LIFETIMES.columns.born),
      dies: this.memory.numbers(LIFETIMES.columns.dies),
    });
  }

  private stored: Storages | undefined;

  private column(name: string): Float64Array {
    let column = this.made.get(name);
    if (!column) this.made.set(name, (column = this.table.numbers(`column ${name}`)));
    return column;
  }
}

export function ratio(macs: number, other: number, bytes: number): number | null {
  return bytes > 0 && !Number.isNaN(macs) && !Number.isNaN(other) ? (2 * macs + other) / bytes : null;
}
