import { expect, test } from 'vitest';
import { charWidth, textWidth } from '../../src/text/widths.ts';

test('Latin, bold, CJK, marks without width', () => {
  expect(textWidth('', 12)).toBe(0);
  expect(textWidth('conv2d', 10)).toBeCloseTo(32.24, 3);
  expect(textWidth('W', 1000)).toBe(944);
  expect(textWidth('ab', 1000, true)).toBe(556 + 611);
  expect(textWidth('é', 1000)).toBe(556);
  expect(textWidth('卷积', 13)).toBe(26);
  expect(textWidth('ＡＢ', 10)).toBe(20);
  expect(textWidth('😀', 10)).toBe(10);
  expect(textWidth('\u202e\u200b\u0301\n', 10)).toBe(0);
  expect(charWidth(0x0416)).toBe(556);
});

test('every printable character has a width', () => {
  for (let c = 0x20; c < 0x7f; c++) for (const bold of [false, true]) expect(charWidth(c, bold)).toBeGreaterThan(100);
  for (let c = 0xa0; c < 0x100; c++) for (const bold of [false, true]) expect(charWidth(c, bold)).toBeGreaterThan(100);
});
