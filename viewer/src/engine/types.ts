// Tensor types as text and as sizes.

import type { Pools } from '../wire/capture.ts';

const BITS: Record<string, number> = {
  bool: 8,
  int8: 8,
  uint8: 8,
  float16: 16,
  bfloat16: 16,
  int16: 16,
  uint16: 16,
  float32: 32,
  int32: 32,
  uint32: 32,
  float64: 64,
  int64: 64,
  uint64: 64,
  complex64: 64,
  complex128: 128,
  float8_e4m3fn: 8,
  float8_e5m2: 8,
};

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

  /** `2×64×112×112 float32`; empty where nothing is known. */
  text(type: number): string {
    return (this.texts[type] ??= this.write(type));
  }

  private write(type: number): string {
    const shape = this.shape(type);
    const dtype = this.pools.types.dtype.at(type);
    if (!shape) return dtype;
    const dims = shape.length ? shape.map((d) => (d === null ? '?' : String(d))).join('×') : 'scalar';
    return dtype ? `${dims} ${dtype}` : dims;
  }

  /** Bytes, or -1 where a size is not known. */
  bytes(type: number): number {
    const known = this.sizes[type];
    if (known !== undefined) return known;
    const shape = this.shape(type);
    const bits = BITS[this.pools.types.dtype.at(type)];
    const count = shape?.every((d) => typeof d === 'number') ? (shape as number[]).reduce((a, b) => a * b, 1) : NaN;
    return (this.sizes[type] = bits === undefined || Number.isNaN(count) ? -1 : (count * bits) / 8);
  }
}

export function bytesText(bytes: number): string {
  if (bytes < 0) return 'size not known';
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  while (bytes >= 1000 && unit < units.length - 1) {
    bytes /= 1000;
    unit++;
  }
  return `${bytes >= 100 || unit === 0 ? Math.round(bytes) : bytes.toPrecision(3)} ${units[unit]}`;
}
