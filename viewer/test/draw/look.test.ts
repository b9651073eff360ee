import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { contrast, mixCss, parseColour, toCss } from '../../src/draw/colour.ts';
import { clean, fitBox, Fitter, fitText } from '../../src/draw/label.ts';
import { compact, SMALL, TEXT_LEFT, TEXT_RIGHT, TITLE_SIZE, widthOfBytes } from '../../src/picture/sizes.ts';
import { Pixels, toPixel } from '../../src/draw/pixels.ts';
import { dark, light, textOn } from '../../src/draw/theme.ts';
import { PHASES } from '../../src/scene.ts';
import { textWidth } from '../../src/text/widths.ts';
import { smallScene } from './synthetic.ts';

describe.each([light, dark])('theme $name', (theme) => {
  const over = (text: string, under: string): number => contrast(parseColour(text), parseColour(under));

  it('has colours for every phase', () => expect(theme.phases).toHaveLength(PHASES.length));

  it('has text that can be read (WCAG AA)', () => {
    for (const under of [theme.background, ...theme.panels.slice(0, 5), ...theme.phases.map((p) => p.tint)]) {
      expect(over(theme.text, under)).toBeGreaterThan(7);
      expect(over(theme.dimText, under), `${theme.dimText} on ${under}`).toBeGreaterThan(4.5);
    }
    expect(over(theme.edgeLabelText, theme.edgeLabel)).toBeGreaterThan(4.5);
    for (const p of theme.phases) expect(over(textOn(theme, p.accent), p.accent)).toBeGreaterThan(4.5);
  });

  it('has rings and bars that can be seen', () => {
    for (const ring of [theme.selected, theme.related]) expect(over(ring, theme.panels[0]!)).toBeGreaterThan(3);
    for (const p of theme.phases) expect(over(p.accent, p.tint)).toBeGreaterThan(2.7);
  });

  it('chooses text by what is under it', () => {
    fc.assert(
      fc.property(fc.nat(0xffffff), (rgb) => {
        expect(contrast(parseColour(textOn(theme, toCss(rgb))), rgb)).toBeGreaterThan(4);
      }),
    );
  });
});

describe('colours', () => {
  it('are read from what CSS allows; others are grey', () => {
    expect(
      ['#abc', '#0a0B0c', '#0a0b0cff', 'rgb(1, 2, 3)', 'hsl(0 100% 50%)', 'hsl(240,100%,50%)'].map((c) => toCss(parseColour(c))),
    ).toEqual(['#aabbcc', '#0a0b0c', '#0a0b0c', '#010203', '#ff0000', '#0000ff']);
    expect(toCss(parseColour('url(javascript:x)'))).toBe('#808080');
    expect(mixCss('#000000', '#ffffff', 0.5)).toBe('#808080');
  });
});

describe('labels', () => {
  it('fit, whatever they are', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), fc.integer({ min: 0, max: 200 }), (text, room) => {
        const cleaned = clean(text);
        expect(textWidth(fitText(cleaned, room, 13, true), 13, true)).toBeLessThanOrEqual(room);
      }),
    );
    expect(fitText('short', 200, 13)).toBe('short');
    expect(fitText('a long name that must be cut', 60, 13)).toMatch(/^a .*…$/);
  });

  it('cannot turn, break or flood the drawing', () => {
    expect(clean('a\u202eb\u0000c\nd\ud800')).toBe('a\ufffdb\ufffdc d\ufffd');
    expect(clean('x'.repeat(100_000)).length).toBeLessThan(500);
    expect(clean('卷积 😀')).toBe('卷积 😀');
  });

  it('stay in their boxes', () => {
    const scene = smallScene();
    for (let b = 0; b < scene.boxes.count; b++) {
      const { titleWidth, badgeWidth } = fitBox(scene, b);
      expect(titleWidth + badgeWidth).toBeLessThanOrEqual(scene.boxes.width[b]! - TEXT_LEFT - TEXT_RIGHT + 1);
    }
    expect(fitBox(scene, 0).title).toBe('input');
    expect(TITLE_SIZE).toBeGreaterThan(10);
  });

  it('are cut to small cards at every zoom, never wider than their card', () => {
    const scene = smallScene();
    const fitter = new Fitter(scene);
    let any = 0;
    for (let zoom = 0.16; zoom < 0.56; zoom += 0.013) {
      for (let b = 0; b < scene.boxes.count; b++) {
        const text = fitter.small(b, zoom);
        if (text === '') continue;
        any++;
        expect(textWidth(text, SMALL.size, true)).toBeLessThanOrEqual(scene.boxes.width[b]! * zoom - 2 * SMALL.gap);
        // Fitted again, it is the same: what is kept between frames is not stale.
        expect(new Fitter(scene).small(b, zoom)).toBe(text);
      }
    }
    expect(any).toBeGreaterThan(10);
  });

  it('say large numbers shortly', () => {
    expect([7, 999, 1000, 1234, 99_500, 999_999, 1_500_000, 2e9].map(compact)).toEqual([
      '7',
      '999',
      '1k',
      '1.2k',
      '100k',
      '1M',
      '1.5M',
      '2G',
    ]);
    expect(widthOfBytes(-1)).toBe(1.2);
    expect(widthOfBytes(1e12)).toBe(7);
  });
});

describe('pixels', () => {
  const fresh = (): Pixels => {
    const pixels = new Pixels();
    pixels.begin(20, 10, 0);
    return pixels;
  };
  const sum = (pixels: Pixels): number => pixels.data.reduce((total, pixel) => total + (pixel & 255), 0);

  it('cover the area of a rectangle wherever it lies between pixels', () => {
    const real = (min: number, max: number) => fc.double({ min, max, noNaN: true });
    fc.assert(
      fc.property(real(0, 10), real(0, 5), real(0.5, 9), real(0.5, 4), (x, y, w, h) => {
        const pixels = fresh();
        pixels.rect(x, y, x + w, y + h, 0xffffff, 256);
        const [high, wide] = [Math.ceil(h) + 1, Math.ceil(w) + 1];
        expect(Math.abs(sum(pixels) / 255 - w * h)).toBeLessThan(0.02 * high * wide + 0.05);
      }),
    );
  });

  it('never write outside', () => {
    const any = fc.double({ min: -1e7, max: 1e7, noNaN: true });
    fc.assert(
      fc.property(any, any, any, any, (a, b, c, d) => {
        const pixels = fresh();
        pixels.line(a, b, c, d, 0xffffff, 256);
        pixels.rect(a, b, c, d, 0xffffff, 256);
        pixels.block(a, b, c, d, 0xffffff);
        expect(pixels.data.length).toBe(200);
      }),
    );
  });

  it('draw lines of even weight', () => {
    const pixels = fresh();
    pixels.line(2, 2.5, 12, 2.5, 0xffffff, 256);
    expect(sum(pixels) / 255).toBeCloseTo(10, 0);
    expect(toPixel(0x112233)).toBe(0xff332211);
  });
});
