// Figures of the user's own: a dropped or chosen table is joined to the capture in view, and boxes are coloured by it.

import type { Placement } from '../engine/own.ts';
import { isTable } from '../engine/separated.ts';
import { h } from '../widgets/dom.ts';
import type { Page } from './page.ts';

const MOST_BYTES = 200_000_000;
const MOST_LISTED = 10;

/** True where the file was a table. */
export async function takeTable(page: Page, file: File): Promise<boolean> {
  if (!page.state.info.get() || file.size > MOST_BYTES) return false;
  if (/\.parquet$/i.test(file.name)) {
    const csv = await page.services.table(file);
    if (csv === null) throw new Error(page.words().habits.parquet(file.name));
    await addTable(page, file.name.replace(/\.parquet$/i, '.csv'), csv);
    return true;
  }
  if (!/\.(csv|tsv|json)$/i.test(file.name)) return false;
  const text = await file.text();
  if (!isTable(file.name, text)) return false;
  await addTable(page, file.name, text);
  return true;
}

/** Join a table, colour by its first column, and say what found no place. */
export async function addTable(page: Page, name: string, text: string): Promise<Placement> {
  const { state, client } = page;
  const { joined, info } = await client.addTable(name, text);
  const lost = joined.unmatched.length;
  const words = page.words().habits;
  const found = words.joined(name, joined.rows - lost, joined.rows, joined.columns.join(', '));
  const listed = joined.unmatched.slice(0, MOST_LISTED).map(([row, said]) => `${said || '—'} (${row})`);
  const more = lost > MOST_LISTED ? ` +${lost - MOST_LISTED}` : '';
  const said = lost ? `${found}${words.unmatched(listed.join(', '))}${more}` : found;
  // Beside the warnings of the capture it can be read as long as one likes.
  const warnings = lost ? [...info.warnings, said] : info.warnings;
  state.captures.set(
    state.captures.get().map((one) => (one.id === info.id ? { ...one, metrics: info.metrics, own: info.own, warnings } : one)),
  );
  state.colour.set(joined.columns[0]!);
  page.say(lost ? `${found}${words.unmatched(listed.slice(0, 3).join(', '))}${lost > 3 ? ' …' : ''}` : found);
  return joined;
}

/** A dialogue of the browser's to choose one. */
export function pickTable(page: Page): void {
  const input = h('input', { type: 'file', accept: '.csv,.tsv,.json,.parquet' });
  input.addEventListener('change', () => {
    for (const file of input.files ?? []) page.run(taken(page, file));
  });
  input.click();
}

async function taken(page: Page, file: File): Promise<void> {
  if (!(await takeTable(page, file))) await addTable(page, file.name, await file.text());
}
