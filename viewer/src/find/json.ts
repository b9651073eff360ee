// JSON one level deep, with what is below as it is written: JSON.parse makes 1.0 a 1 and rounds long numbers.

/** The keys of an object with their values as text: a string as it is, all else as it is written. */
export function jsonMembers(json: string): [string, string][] {
  const found: [string, string][] = [];
  const reader = new Reader(json, '{');
  while (reader.more('}')) {
    const key = reader.value();
    reader.skip(':');
    const value = reader.value();
    if (key === null || value === null) break; // a file may hold anything; what could be read counts
    found.push([key, value]);
    reader.skip(',');
  }
  return found;
}

/** The items of a list in the same way. */
export function jsonItems(json: string): string[] {
  const found: string[] = [];
  const reader = new Reader(json, '[');
  while (reader.more(']')) {
    const item = reader.value();
    if (item === null) break;
    found.push(item);
    reader.skip(',');
  }
  return found;
}

class Reader {
  private at = 0;

  constructor(
    private text: string,
    open: string,
  ) {
    this.skip(open);
  }

  more(close: string): boolean {
    this.blank();
    return this.at < this.text.length && this.text[this.at] !== close;
  }

  skip(mark: string): void {
    this.blank();
    if (this.text[this.at] === mark) this.at++;
  }

  /** The value at this place; null where there is none. */
  value(): string | null {
    this.blank();
    const start = this.at;
    let depth = 0;
    do {
      const char = this.text[this.at];
      if (char === undefined) return null;
      if (char === '"') {
        this.string();
      } else if (char === '{' || char === '[') {
        depth++;
        this.at++;
      } else if (char === '}' || char === ']') {
        depth--;
        this.at++;
      } else if (depth) {
        this.at++;
      } else {
        while (/[-+.\w]/.test(this.text[this.at] ?? '')) this.at++;
      }
    } while (depth > 0);
    if (this.at === start || depth < 0) return null;
    const written = this.text.slice(start, this.at);
    if (written[0] !== '"') return written;
    try {
      return JSON.parse(written) as string;
    } catch {
      return null;
    }
  }

  private string(): void {
    for (this.at++; this.at < this.text.length && this.text[this.at] !== '"'; this.at++) {
      if (this.text[this.at] === '\\') this.at++;
    }
    this.at++;
  }

  private blank(): void {
    while (/[ \t\r\n]/.test(this.text[this.at] ?? '')) this.at++;
  }
}
