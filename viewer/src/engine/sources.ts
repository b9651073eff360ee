// Source lines: of an operator, and the other way, the operators of a line.

import type { Capture, Graph } from '../wire/capture.ts';

export class Sources {
  private byStack: number[][] = []; // stack -> its frames, outermost first
  private byFrame: Map<number, number[]> | undefined;

  constructor(
    private capture: Capture,
    private graph: Graph,
  ) {}

  private framesOf(stack: number): number[] {
    const known = this.byStack[stack];
    if (known) return known;
    const { parent, frame } = this.capture.pools.stacks;
    const frames = stack > 0 ? [...this.framesOf(parent[stack]!), frame[stack]!] : [];
    return (this.byStack[stack] = frames);
  }

  frames(node: number): { file: string; line: number; fn: string }[] {
    const { frames } = this.capture.pools;
    return this.framesOf(this.graph.stack[node]!).map((f) => ({ file: frames.file.at(f), line: frames.line[f]!, fn: frames.fn.at(f) }));
  }

  /** Operators by frame; a line called from many places has several frames. */
  private index(): Map<number, number[]> {
    if (this.byFrame) return this.byFrame;
    this.byFrame = new Map();
    for (let node = 0; node < this.graph.nodes; node++) {
      for (const frame of this.framesOf(this.graph.stack[node]!)) {
        let nodes = this.byFrame.get(frame);
        if (!nodes) this.byFrame.set(frame, (nodes = []));
        if (nodes.at(-1) !== node) nodes.push(node);
      }
    }
    return this.byFrame;
  }

  nodesAt(file: string, line: number): number[] {
    const { frames } = this.capture.pools;
    const found = new Set<number>();
    for (const [frame, nodes] of this.index()) {
      if (frames.line[frame] === line && frames.file.at(frame) === file) for (const node of nodes) found.add(node);
    }
    return [...found].sort((a, b) => a - b);
  }

  lines(file: string): [number, number][] {
    const { frames } = this.capture.pools;
    const counts = new Map<number, number>();
    for (const [frame, nodes] of this.index()) {
      if (frames.file.at(frame) === file) counts.set(frames.line[frame]!, (counts.get(frames.line[frame]!) ?? 0) + nodes.length);
    }
    return [...counts].sort((a, b) => a[0] - b[0]);
  }

  files(): { file: string; lines: number }[] {
    const counts = new Map<string, number>();
    const { frames } = this.capture.pools;
    for (const frame of this.index().keys()) counts.set(frames.file.at(frame), (counts.get(frames.file.at(frame)) ?? 0) + 1);
    // Those whose text is here come first.
    const { path } = this.capture.sources;
    const here = new Set(Array.from({ length: path.length }, (_, i) => path.at(i)));
    return [...counts]
      .map(([file, lines]) => ({ file, lines }))
      .sort((a, b) => Number(here.has(b.file)) - Number(here.has(a.file)) || a.file.localeCompare(b.file));
  }

  text(file: string): string | null {
    const { path, text } = this.capture.sources;
    for (let i = 0; i < path.length; i++) if (path.at(i) === file) return text.at(i);
    return null;
  }
}
