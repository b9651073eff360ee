// Figures by operator: what boxes can be coloured by, and the columns of the table. Unknown is null, never zero.

import type { Capture, Graph } from '../wire/capture.ts';
import type { Table } from '../wire/table.ts';
import { csr, row, type Csr } from './csr.ts';
import { bytesText, type Types } from './types.ts';

const OUTPUT = 'output size';
const KERNELS = 'kernels';
const TIME = 'kernel time';

export class Metrics {
  readonly columns: string[];
  private made: Csr | undefined;
  private times: (number | null)[] = [];

  constructor(
    private capture: Capture,
    private stage: number,
    private graph: Graph,
    private types: Types,
    private outputs: () => Csr,
  ) {
    this.columns = Metrics.names(capture);
    void this.loadTimes();
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
    const timed = capture.manifest.tables.some((table) => table.by === 'group:kernel' && 'time' in table.units);
    const fused = capture.manifest.graphs.some((graph) => graph.groups.includes('kernel'));
    return [OUTPUT, ...(fused ? [KERNELS] : []), ...(timed ? [TIME] : [])];
  }

  private async loadTimes(): Promise<void> {
    const index = this.capture.manifest.tables.findIndex(
      (table) => table.stage === this.stage && table.by === 'group:kernel' && 'time' in table.units,
    );
    if (index < 0) return;
    const table: Table = await this.capture.stored(index);
    const rows = table.int32('index');
    const values = table.values('column time') as (number | null)[];
    rows.forEach((kernel, i) => (this.times[kernel] = values[i] ?? null));
  }

  firstKernel(node: number): number {
    return this.kernelsOf ? (row(this.kernelsOf, node)[0] ?? -1) : -1;
  }

  kernelTime(kernel: number): number | null {
    return this.times[kernel] ?? null;
  }

  unit(name: string): string {
    return { [OUTPUT]: 'B', [TIME]: 'ns' }[name] ?? '';
  }

  value(name: string, node: number): number | null {
    if (name === OUTPUT) {
      let total = 0;
      for (const value of row(this.outputs(), node)) {
        const bytes = this.types.bytes(this.graph.type[value]!);
        if (bytes < 0) return null;
        total += bytes;
      }
      return total;
    }
    if (!this.kernelsOf) return null;
    const kernels = row(this.kernelsOf, node);
    if (name === KERNELS) return kernels.length;
    // A kernel's time belongs to all its operators alike: shared out evenly, so that sums stay right.
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

  describe(node: number): [string, string][] {
    return this.columns.map((name) => [name, this.text(name, this.value(name, node))]);
  }

  describeGroup(nodes: number[]): [string, string][] {
    return this.columns.map((name) => [name, this.text(name, this.rollUp(name, nodes, 1))]);
  }

  text(name: string, value: number | null): string {
    if (value === null) return 'not known';
    if (name === OUTPUT) return bytesText(value);
    if (name === TIME) return value >= 1e6 ? `${(value / 1e6).toPrecision(3)} ms` : `${(value / 1e3).toPrecision(3)} µs`;
    return value.toLocaleString('en');
  }
}
