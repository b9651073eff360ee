// Draws lines as points in one growing array.

/** Points of lines, appended one after the other. */
export class Pen {
  points = new Float32Array(1024);
  count = 0;
  private from = 0;
  /** Upright pieces whose ends differ by less than `snap` are made upright: pieces of levels join with rounding. */
  constructor(private readonly snap = 0) {}
  begin(): void {
    this.from = this.count;
  }
  private grow(room: number): void {
    if (2 * (this.count + room) <= this.points.length) return;
    const next = new Float32Array(Math.max(2 * this.points.length, 2 * (this.count + room)));
    next.set(this.points.subarray(0, 2 * this.count));
    this.points = next;
  }
  /** Adds a point; one that only prolongs an upright or level piece replaces its end. */
  to(px: number, py: number): void {
    let x = Math.fround(px);
    const y = Math.fround(py),
      p = this.points,
      k = 2 * this.count;
    const have = this.count - this.from;
    if (have) {
      const lx = p[k - 2],
        ly = p[k - 1];
      if (x !== lx && Math.abs(x - lx) <= this.snap) x = lx;
      if (lx === x && ly === y) return;
      if (have > 1) {
        const qx = p[k - 4],
          qy = p[k - 3];
        if ((qx === lx && lx === x && (y - ly) * (ly - qy) > 0) || (qy === ly && ly === y && (x - lx) * (lx - qx) > 0)) {
          p[k - 2] = x;
          p[k - 1] = y;
          return;
        }
      }
    }
    this.grow(1);
    this.points[k] = x;
    this.points[k + 1] = y;
    this.count++;
  }
  /** Adds the first points of an earlier line, the last of them at height y. */
  again(from: number, many: number, y: number): void {
    this.grow(many);
    this.points.copyWithin(2 * this.count, 2 * from, 2 * (from + many));
    this.count += many;
    this.points[2 * this.count - 1] = y;
  }
}
