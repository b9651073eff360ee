// Figures that were measured of tensors: min, max, how many are NaN …

import type { Capture } from '../wire/capture.ts';
import type { Measured } from '../find/conditions.ts';
import { FACTS, VALUE_FIGURES } from '../wire/facts.ts';

const read = new WeakMap<Capture, Map<number, Promise<Measured['figure']>>>();

/** The figures of a stage's values, read once. */
export function figuresOf(capture: Capture, stage: number): Promise<Measured['figure']> {
  let stages = read.get(capture);
  if (!stages) read.set(capture, (stages = new Map()));
  let figures = stages.get(stage);
  if (!figures) stages.set(stage, (figures = readFigures(capture, stage)));
  return figures;
}

/** The framework's own numbers of operators and tensors. */
export async function idsOf(capture: Capture, stage: number): Promise<NonNullable<Measured['id']>> {
  const known = { node: new Map<number, number>(), value: new Map<number, number>() };
  for (const index of capture.facts(FACTS.ids.name, stage)) {
    const table = await capture.stored(index);
    const ids = table.numbers(FACTS.ids.columns.id);
    const found = known[capture.manifest.tables[index]!.by === 'node' ? 'node' : 'value'];
    table.int32('index').forEach((at, row) => found.set(at, ids[row]!));
  }
  return (by, index) => known[by].get(index) ?? null;
}

async function readFigures(capture: Capture, stage: number): Promise<Measured['figure']> {
  const tables = await Promise.all(capture.facts(FACTS.values.name, stage).map((index) => capture.stored(index)));
  const known = new Map<string, Map<number, number>>(VALUE_FIGURES.map((name) => [name, new Map()]));
  for (const table of tables) {
    const values = table.int32('index');
    for (const [name, figures] of known) {
      const column = `column ${name}`;
      if (!table.has(column)) continue;
      const numbers = table.numbers(column); // NaN: not known
      values.forEach((value, row) => {
        if (!Number.isNaN(numbers[row]!) && !figures.has(value)) figures.set(value, numbers[row]!);
      });
    }
  }
  return (name, value) => known.get(name)?.get(value) ?? null;
}
