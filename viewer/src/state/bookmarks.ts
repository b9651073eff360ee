// Bookmarks as text: in the URL, and where the browser keeps them.

export interface Bookmark {
  name: string;
  address: string; // as state/hash.ts writes it
}

export function writeMarks(marks: readonly Bookmark[]): string {
  return marks.length ? JSON.stringify(marks.map(({ name, address }) => [name, address])) : '';
}

/** What is no list of bookmarks is none. */
export function readMarks(text: string): Bookmark[] {
  try {
    const rows: unknown = JSON.parse(text);
    if (!Array.isArray(rows)) return [];
    return rows.flatMap((row: unknown) =>
      Array.isArray(row) && typeof row[0] === 'string' && typeof row[1] === 'string' ? [{ name: row[0], address: row[1] }] : [],
    );
  } catch {
    return [];
  }
}
