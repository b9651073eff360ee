// Arrow tables as typed arrays and lazy text.

import { tableFromIPC, type Table as ArrowTable } from '@uwdata/flechette';

/** A column of strings, decoded when they are looked at. */
export class Texts {
  private made: (string | undefined)[] = [];

  constructor(
    readonly length: number,
    private read: (index: number) => string,
  ) {}

  at(index: number): string {
    return (this.made[index] ??= this.read(index));
  }

  static of(values: string[]): Texts {
    return new Texts(values.length, (i) => values[i] ?? '');
  }
}

export class Table {
  private table: ArrowTable;

  constructor(
    readonly name: string,
    bytes: Uint8Array,
  ) {
    this.table = tableFromIPC(bytes, { useBigInt: false, useProxy: false });
  }

  has(column: string): boolean {
    return this.table.getChild(column) !== null && this.table.getChild(column) !== undefined;
  }

  get rows(): number {
    return this.table.numRows;
  }

  int32(column: string): Int32Array {
    const values = this.column(column).toArray();
    return values instanceof Int32Array ? values : Int32Array.from(values as ArrayLike<number>);
  }

  int8(column: string): Int8Array {
    const values = this.column(column).toArray();
    return values instanceof Int8Array ? values : Int8Array.from(values as ArrayLike<number>);
  }

  texts(column: string): Texts {
    const values = this.column(column);
    return new Texts(values.length, (i) => String(values.at(i) ?? ''));
  }

  /** A column of numbers, NaN where not known: null, or not marked in the column of what is known. */
  numbers(column: string): Float64Array {
    const values = this.column(column).toArray() as ArrayLike<number | boolean | null>;
    const mask = column.replace('column ', 'known ');
    const known = mask !== column && this.has(mask) ? (this.column(mask).toArray() as ArrayLike<boolean>) : null;
    if (!known)
      return values instanceof Float64Array ? values : Float64Array.from(values, (value) => (value === null ? NaN : Number(value)));
    return Float64Array.from(values, (value, i) => (known[i] ? Number(value) : NaN));
  }

  /** The same for who must tell NaN, which was measured, from what is not known: that is null. */
  figures(column: string): (number | null)[] {
    const mask = column.replace('column ', 'known ');
    const known = this.has(mask) ? (this.column(mask).toArray() as ArrayLike<boolean>) : null;
    const values = this.column(column).toArray() as ArrayLike<number | null>;
    return Array.from(values, (value, i) => (value === null || (known && !known[i]) ? null : Number(value)));
  }

  /** A column of lists of integers. */
  lists(column: string): number[][] {
    const values = this.column(column);
    return Array.from({ length: values.length }, (_, i) => Array.from((values.at(i) ?? []) as ArrayLike<number>, Number));
  }

  /** Any column, null where not known. */
  values(column: string): unknown[] {
    const values = this.column(column);
    return Array.from({ length: values.length }, (_, i) => values.at(i) as unknown);
  }

  private column(name: string) {
    const column = this.table.getChild(name);
    if (!column) throw new Error(`member ${this.name}: column ${name} is missing`);
    return column;
  }
}
