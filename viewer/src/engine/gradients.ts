// What was seen of gradients as an autograd engine handed them on: where they lay, and their figures.

import type { Capture } from '../wire/capture.ts';
import { FACTS } from '../wire/facts.ts';
import { shortNumber } from '../text/figures.ts';

const FIGURES = ['norm', 'min', 'max', 'mean'] as const;
const COUNTS = ['nan', 'inf'] as const;

export class Gradients {
  private constructor(
    private places: Map<number, string>,
    private figures: Map<number, string>,
  ) {}

  static async read(capture: Capture, stage: number): Promise<Gradients> {
    const places = new Map<number, string>();
    const figures = new Map<number, string>();
    const { name } = FACTS.gradients;
    const columns: Record<string, string> = FACTS.gradients.columns;
    const table = await capture.fact(name, stage);
    if (table) {
      const index = table.int32('index');
      if (table.has(columns.place!)) {
        const place = table.texts(columns.place!); // empty where it is not known
        index.forEach((value, row) => place.at(row) && places.set(value, place.at(row)));
      }
      const numbers = (names: readonly string[]) =>
        names.filter((of) => table.has(columns[of]!)).map((of) => [of, table.numbers(columns[of]!)] as const);
      const [measured, counted] = [numbers(FIGURES), numbers(COUNTS)];
      index.forEach((value, row) => {
        const found = [...measured, ...counted.filter(([, at]) => at[row]! > 0)].filter(([, at]) => !Number.isNaN(at[row]!));
        if (found.length) figures.set(value, found.map(([of, at]) => `${of} ${shortNumber(at[row]!).trim()}`).join(' · '));
      });
    }
    return new Gradients(places, figures);
  }

  /** Of a value, beside its type: `Place(cpu)`; empty where it is not known. */
  place(value: number): string {
    return this.places.get(value) ?? '';
  }

  /** `norm 0.31 · min −0.2 …`; empty where nothing was measured. */
  measured(value: number): string {
    return this.figures.get(value) ?? '';
  }
}
