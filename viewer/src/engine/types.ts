// Tensor types as text and as sizes.

import type { Pools } from '../wire/capture.ts';
import { DTYPE_BITS, DTYPE_PATTERNS, MOST_LANES } from '../wire/facts.ts';

/** Bits of one element; undefined for a dtype that is not known or has no fixed size. The rule of opscope.ir.dtypes. */
export function bitsOf(dtype: string): number | undefined {
  const text = dtype.trim().toLowerCase();
  const name = (DTYPE_PATTERNS.around.exec(text)?.[1] ?? text).replace(DTYPE_PATTERNS.prefix, '');
  if (Object.hasOwn(DTYPE_BITS, name)) return DTYPE_BITS[name];
  const [, lane, count] = DTYPE_PATTERNS.vector.exec(name) ?? [];
  const lanes = Number(count);
  return lane && Object.hasOwn(DTYPE_BITS, lane) && lanes > 0 && lanes <= MOST_LANES ? DTYPE_BITS[lane]! * lanes : undefined;
}

export type Dim = number | string | null;

/** What is known of each type, worked out once. */
export class Types {
  private shapes: (Dim[] | null | undefined)[] = [];
  private sizes: number[] = [];
  private texts: string[] = [];

  constructor(private pools: Pools) {}

  shape(type: number): Dim[] | null {
    const known = this.shapes[type];
    if (known !== undefined) return known;
    const parsed = JSON.parse(this.pools.types.shape.at(type) || 'null') as Dim[] | null;
    return (this.shapes[type] = Array.isArray(parsed) ? parsed : null);
  }

  dtypes = (type: number): string => this.pools.types.dtype.at(type);

  /** `2×64×112×112`; empty where it is not known. */
  dims(type: number): string {
    const shape = this.shape(type);
    return shape ? (shape.length ? shape.map((d) => (d === null ? '?' : String(d))).join('×') : 'scalar') : '';
  }

  /** `2×64×112×112 float32`; empty where nothing is known. */
  text(type: number): string {
    return (this.texts[type] ??= this.write(type));
  }

  private write(type: number): string {
    const dims = this.dims(type);
    const dtype = this.dtypes(type);
    if (!dims) return dtype;
    return dtype ? `${dims} ${dtype}` : dims;
  }

  /** Bytes, or -1 where a size is not known. */
  bytes(type: number): number {
    const known = this.sizes[type];
    if (known !== undefined) return known;
    const shape = this.shape(type);
    const bits = bitsOf(this.pools.types.dtype.at(type));
    const count = shape?.every((d) => typeof d === 'number') ? (shape as number[]).reduce((a, b) => a * b, 1) : NaN;
    return (this.sizes[type] = bits === undefined || Number.isNaN(count) ? -1 : Math.ceil((count * bits) / 8));
  }
}
