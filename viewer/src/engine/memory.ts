// What is in memory along the execution, and which of it at one operator.

import { MEMORY_CLASSES } from '../wire/facts.ts';
import type { Storages } from './cost.ts';

export class MemoryUse {
  /** Bytes by operator, for each class that is ever there. */
  readonly classes: number[] = [];
  readonly live: Float64Array[] = [];
  readonly total: Float64Array;
  readonly peak: number; // operator

  constructor(
    private storages: Storages,
    readonly steps: number,
  ) {
    const { bytes, cls, born, dies } = storages;
    const changes = MEMORY_CLASSES.map((): Float64Array | null => null);
    for (let i = 0; i < bytes.length; i++) {
      if (!(bytes[i]! > 0) || !steps) continue;
      const change = (changes[cls[i]!] ??= new Float64Array(steps + 1));
      change[born[i]!]! += bytes[i]!;
      change[Math.min(dies[i]!, steps - 1) + 1]! -= bytes[i]!;
    }
    this.total = new Float64Array(steps);
    changes.forEach((change, place) => {
      if (!change) return;
      for (let step = 0; step < steps; step++) {
        if (step) change[step]! += change[step - 1]!;
        this.total[step]! += change[step]!;
      }
      this.classes.push(place);
      this.live.push(change.subarray(0, steps));
    });
    this.peak = this.total.reduce((best, bytes, step) => (bytes > this.total[best]! ? step : best), 0);
  }

  /** `count` columns of the operators from `first` up to `last`: of each, the operator at which most is alive. */
  columns(first: number, last: number, count: number): Int32Array {
    const span = Math.max(0, last - first);
    const columns = Math.min(count, span);
    const at = new Int32Array(columns);
    for (let c = 0; c < columns; c++) {
      const end = first + Math.floor(((c + 1) * span) / columns);
      let best = first + Math.floor((c * span) / columns);
      for (let step = best + 1; step < end; step++) if (this.total[step]! > this.total[best]!) best = step;
      at[c] = best;
    }
    return at;
  }

  /** Places in `storages` that are alive at an operator, the largest first; and how many and how much there are in all. */
  alive(step: number, most: number): { places: number[]; count: number; bytes: number } {
    const { bytes, born, dies } = this.storages;
    let places: number[] = [];
    let [all, count, least] = [0, 0, 0];
    const cut = () => {
      places.sort((a, b) => bytes[b]! - bytes[a]! || a - b);
      places = places.slice(0, most);
      least = places.length === most ? bytes[places[most - 1]!]! : 0;
    };
    for (let i = 0; i < bytes.length; i++) {
      if (born[i]! > step || dies[i]! < step || !(bytes[i]! > 0)) continue;
      count++;
      all += bytes[i]!;
      if (bytes[i]! > least && places.push(i) > 4 * most + 64) cut(); // so that few are ever sorted
    }
    cut();
    return { places, count, bytes: all };
  }
}

/** Numbers in order as runs: first, last, first, last … */
export function runs(sorted: ArrayLike<number>): number[] {
  const out: number[] = [];
  for (let i = 0; i < sorted.length; i++) {
    if (out.length && sorted[i]! <= out.at(-1)! + 1) out[out.length - 1] = sorted[i]!;
    else out.push(sorted[i]!, sorted[i]!);
  }
  return out;
}
