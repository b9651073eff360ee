// Layouts of groups that were laid out before: equal groups share one.

import type { FlatLayout, Options, PortedGraph } from './types.ts';

interface Entry {
  graph: PortedGraph;
  layout: FlatLayout;
  round: number;
}

/**
 * Layouts of open groups. What a group looks like from outside its children (sizes, edges, ports) is
 * the whole input of its layout, so two groups with equal content share one layout, wherever they
 * stand. A hash finds candidates; equality is always checked on the columns themselves.
 */
export class LayoutCache {
  hits = 0;
  misses = 0;
  private readonly entries = new Map<number, Entry[]>();
  private options = '';
  private round = 0;
  private held = 0;
  /** `room`: how many boxes and edges to keep, in all. */
  constructor(private readonly room = 4_000_000) {}

  /** Starts a layout: other options make all earlier entries useless, and old ones go when there are too many. */
  begin(options: Options): void {
    const now = JSON.stringify([options.direction, options.gapX, options.gapY, options.maxHeight, options.quality, options.side]);
    if (now !== this.options) this.clear();
    this.options = now;
    this.round++;
    if (this.held <= this.room) return;
    this.held = 0;
    for (const [hash, list] of this.entries) {
      const fresh = list.filter((e) => e.round >= this.round - 1);
      for (const e of fresh) this.held += e.graph.n + e.graph.source.length;
      if (fresh.length) this.entries.set(hash, fresh);
      else this.entries.delete(hash);
    }
  }

  clear(): void {
    this.entries.clear();
    this.held = 0;
  }

  get(graph: PortedGraph, make: () => FlatLayout): FlatLayout {
    const hash = hashGraph(graph);
    let list = this.entries.get(hash);
    if (list) {
      for (const entry of list) {
        if (!sameGraph(entry.graph, graph)) continue;
        this.hits++;
        entry.round = this.round;
        return entry.layout;
      }
    } else this.entries.set(hash, (list = []));
    this.misses++;
    const layout = make();
    list.push({ graph, layout, round: this.round });
    this.held += graph.n + graph.source.length;
    return layout;
  }
}

type Column = Float32Array | Int32Array | undefined;

function columns(g: PortedGraph): Column[] {
  return [g.width, g.height, g.source, g.target, g.tail, g.tailAt, g.headAt, g.weight, g.order, g.before, g.behind];
}

const bits = new Int32Array(1),
  real = new Float32Array(bits.buffer);

function hashGraph(g: PortedGraph): number {
  let h = Math.imul(g.n + 31 * g.inPorts + 961 * g.outPorts, 0x9e3779b1);
  for (const column of columns(g)) {
    if (!column) continue;
    const whole = column instanceof Int32Array;
    for (let i = 0; i < column.length; i++) {
      let k = column[i];
      if (!whole) {
        real[0] = k;
        k = bits[0];
      }
      h = Math.imul(h ^ k, 0x01000193);
      h ^= h >>> 15;
    }
  }
  return h;
}

function sameGraph(a: PortedGraph, b: PortedGraph): boolean {
  if (a.n !== b.n || a.inPorts !== b.inPorts || a.outPorts !== b.outPorts) return false;
  const left = columns(a),
    right = columns(b);
  for (let c = 0; c < left.length; c++) {
    const p = left[c],
      q = right[c];
    if (p === q) continue;
    if (!p || !q || p.length !== q.length) return false;
    for (let i = 0; i < p.length; i++) if (p[i] !== q[i]) return false;
  }
  return true;
}
