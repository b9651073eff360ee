// Flat rectangles and thin lines written straight into pixels, with soft edges. From afar there are tens of
// thousands of them a frame: here each costs a few dozen nanoseconds, through the canvas about a microsecond.

export class Pixels {
  width = 0;
  height = 0;
  data = new Uint32Array(0);
  image: ImageData | null = null;

  /** Makes room and paints everything in one colour. */
  begin(width: number, height: number, rgb: number): void {
    if (width !== this.width || height !== this.height) {
      const bytes = new Uint8ClampedArray(width * height * 4);
      this.width = width;
      this.height = height;
      this.data = new Uint32Array(bytes.buffer);
      // Absent where there is no canvas (tests).
      this.image = typeof ImageData === 'undefined' ? null : new ImageData(bytes, width, height);
    }
    this.data.fill(toPixel(rgb));
  }

  /** A rectangle with corners at any place between pixels; `alpha` from 0 to 256. */
  rect(x0: number, y0: number, x1: number, y1: number, rgb: number, alpha: number): void {
    const { width, height, data } = this;
    if (x0 < 0) x0 = 0;
    if (y0 < 0) y0 = 0;
    if (x1 > width) x1 = width;
    if (y1 > height) y1 = height;
    if (x1 <= x0 || y1 <= y0) return;
    const pixel = toPixel(rgb);
    const rb = pixel & 0xff00ff;
    const g = pixel & 0xff00;
    const left = x0 | 0;
    const top = y0 | 0;
    const right = Math.ceil(x1) - 1;
    const bottom = Math.ceil(y1) - 1;
    const firstPart = (x1 < left + 1 ? x1 : left + 1) - x0;
    const lastPart = x1 - right;
    for (let y = top; y <= bottom; y++) {
      const high = (y1 < y + 1 ? y1 : y + 1) - (y0 > y ? y0 : y);
      const whole = (alpha * high) | 0;
      // First column, the whole ones between, last column.
      let at = y * width + left;
      blend(data, at, rb, g, (whole * firstPart) | 0);
      if (right === left) continue;
      const end = y * width + right;
      at++;
      if (whole >= 255) {
        // For a few pixels a loop is faster than fill().
        if (end - at > 24) data.fill(pixel, at, end);
        else for (; at < end; at++) data[at] = pixel;
      } else {
        for (; at < end; at++) blend(data, at, rb, g, whole);
      }
      blend(data, end, rb, g, (whole * lastPart) | 0);
    }
  }

  /** A rectangle on whole pixels, at least one; several times faster than rect(). */
  block(x0: number, y0: number, x1: number, y1: number, rgb: number): void {
    const { width, height, data } = this;
    const left = x0 < 0 ? 0 : (x0 + 0.5) | 0;
    const top = y0 < 0 ? 0 : (y0 + 0.5) | 0;
    const right = Math.min(width, Math.max(left + 1, (x1 + 0.5) | 0));
    const bottom = Math.min(height, Math.max(top + 1, (y1 + 0.5) | 0));
    if (x1 <= 0 || y1 <= 0) return;
    const pixel = toPixel(rgb);
    for (let y = top; y < bottom; y++) {
      const end = y * width + right;
      const start = y * width + left;
      if (end - start > 24) data.fill(pixel, start, end);
      else for (let at = start; at < end; at++) data[at] = pixel;
    }
  }

  /** A line one pixel wide; `alpha` from 0 to 256. */
  line(x0: number, y0: number, x1: number, y1: number, rgb: number, alpha: number): void {
    const { width, height, data } = this;
    const dx = x1 - x0;
    const dy = y1 - y0;
    // Cut to the picture first: a long edge may reach far outside.
    const right = width - 1;
    const bottom = height - 1;
    if (x0 < 0 || y0 < 0 || x1 < 0 || y1 < 0 || x0 > right || y0 > bottom || x1 > right || y1 > bottom) {
      let t0 = 0;
      let t1 = 1;
      if (dx !== 0) {
        t0 = Math.max(t0, Math.min(-x0 / dx, (right - x0) / dx));
        t1 = Math.min(t1, Math.max(-x0 / dx, (right - x0) / dx));
      } else if (x0 < 0 || x0 > right) return;
      if (dy !== 0) {
        t0 = Math.max(t0, Math.min(-y0 / dy, (bottom - y0) / dy));
        t1 = Math.min(t1, Math.max(-y0 / dy, (bottom - y0) / dy));
      } else if (y0 < 0 || y0 > bottom) return;
      if (t0 >= t1) return;
      x1 = x0 + dx * t1;
      y1 = y0 + dy * t1;
      x0 += dx * t0;
      y0 += dy * t0;
    }
    const pixel = toPixel(rgb);
    const rb = pixel & 0xff00ff;
    const g = pixel & 0xff00;
    const steep = Math.abs(dy) > Math.abs(dx);
    const along = Math.max(1, Math.ceil(steep ? Math.abs(y1 - y0) : Math.abs(x1 - x0)));
    const sx = (x1 - x0) / along;
    const sy = (y1 - y0) / along;
    const step = steep ? 1 : width;
    const most = data.length;
    for (let i = 0; i < along; i++, x0 += sx, y0 += sy) {
      const px = x0 | 0;
      const py = y0 | 0;
      const part = steep ? x0 - px : y0 - py;
      const at = py * width + px;
      const second = (alpha * part) | 0;
      if (at < 0 || at >= most) continue;
      blend(data, at, rb, g, alpha - second);
      if (second > 0 && at + step < most) blend(data, at + step, rb, g, second);
    }
  }
}

/** 0xRRGGBB as it lies in memory: opaque, red first. */
export function toPixel(rgb: number): number {
  return (0xff000000 | ((rgb & 255) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0;
}

// Red and blue are mixed in one multiplication, with eight free bits between them.
function blend(data: Uint32Array, at: number, rb: number, g: number, alpha: number): void {
  const under = data[at]!;
  const rest = 256 - alpha;
  const mixedRb = ((Math.imul(rb, alpha) + Math.imul(under & 0xff00ff, rest)) >>> 8) & 0xff00ff;
  const mixedG = ((Math.imul(g, alpha) + Math.imul(under & 0xff00, rest)) >>> 8) & 0xff00;
  data[at] = (0xff000000 | mixedRb | mixedG) >>> 0;
}
