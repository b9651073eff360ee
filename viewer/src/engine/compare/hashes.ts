// Numbers of 52 bits that stand for things: equal for equal things, and for different ones hardly ever.

const LIMIT = 2 ** 52;

export type Hashes = Float64Array;

/** Of a text. */
export function hashText(text: string): number {
  let [one, other] = [0xdeadbeef, 0x41c6ce57];
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    one = Math.imul(one ^ code, 2654435761);
    other = Math.imul(other ^ code, 1597334677);
  }
  return finished(one, other);
}

/** Of numbers in this order. */
export function mixed(...parts: number[]): number {
  let [one, other] = [0x9e3779b9, 0x7f4a7c15];
  for (const part of parts) {
    const [low, high] = [part >>> 0, (part / 4294967296) >>> 0];
    one = Math.imul(one ^ low ^ (one >>> 15), 2654435761) ^ Math.imul(high, 668265263);
    other = Math.imul(other ^ high ^ (other >>> 13), 1597334677) ^ Math.imul(low, 374761393);
  }
  return finished(one, other);
}

function finished(one: number, other: number): number {
  const a = Math.imul(one ^ (one >>> 16), 2246822507) ^ Math.imul(other ^ (other >>> 13), 3266489909);
  const b = Math.imul(other ^ (other >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
  return (b & 0xfffff) * 4294967296 + (a >>> 0);
}

/** A sum does not care for the order. */
export function plus(a: number, b: number): number {
  return (a + b) % LIMIT;
}
