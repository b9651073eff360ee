// What ran and is not in the graph: it makes the figures that it touches lower bounds.

import type { Capture } from '../wire/capture.ts';
import { FACTS, GAP_TOUCHES } from '../wire/facts.ts';
import type { CostFigure } from './cost.ts';

const { gaps: GAPS } = FACTS;
type Touch = (typeof GAP_TOUCHES)[number];

const TOUCHES: Record<CostFigure, Touch> = {
  macs: 'compute',
  causal: 'compute',
  other: 'compute',
  read: 'traffic',
  written: 'traffic',
  bytes: 'traffic',
  wire: 'traffic',
  parameters: 'parameters',
  activations: 'memory',
};

interface Gap {
  scope: number;
  inside: boolean; // it may have run in any module inside, too
  phase: number; // -1: not known
  touches: Touch[];
  text: string; // the operator, or why
}

export class Gaps {
  private constructor(
    readonly all: Gap[],
    private parent: Int32Array, // of scopes
  ) {}

  static async read(capture: Capture, stage: number): Promise<Gaps> {
    const table = await capture.fact(GAPS.name, stage);
    if (!table) return new Gaps([], capture.pools.scopes.parent);
    const { inside, phase, op, reason, touches } = GAPS.columns;
    const [scopes, within, phases] = [table.int32('index'), table.numbers(inside), table.numbers(phase)];
    const [ops, reasons, touched] = [table.texts(op), table.texts(reason), table.lists(touches)];
    const all = Array.from(scopes, (scope, i): Gap => {
      const names = touched[i]!.map((place) => GAP_TOUCHES[place]).filter((name): name is Touch => name !== undefined);
      const known = phases[i]!;
      return {
        scope,
        inside: within[i] === 1,
        phase: Number.isNaN(known) ? -1 : known,
        touches: names,
        text: ops.at(i) || reasons.at(i),
      };
    });
    return new Gaps(all, capture.pools.scopes.parent);
  }

  /** Those that make a figure of everything too low. */
  of(figure: CostFigure): Gap[] {
    return this.all.filter((gap) => gap.touches.includes(TOUCHES[figure]));
  }

  /** Whether a figure of a scope with all that is inside it is too low; phase -1: of all phases. */
  reach(figure: CostFigure, scope: number, phase: number): boolean {
    return this.of(figure).some(
      (gap) =>
        (phase < 0 || gap.phase < 0 || gap.phase === phase) && (this.isIn(gap.scope, scope) || (gap.inside && this.isIn(scope, gap.scope))),
    );
  }

  private isIn(scope: number, outer: number): boolean {
    while (scope > outer) scope = this.parent[scope]!; // parents come first
    return scope === outer;
  }
}
