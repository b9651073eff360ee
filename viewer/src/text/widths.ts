// How wide a text is, without a browser: the one table used by the page and by headless exports, so that both lay out the
// same. Advance widths of Helvetica and Arial (which share their metrics), in 1/1000 em: the UI font stack `Inter, "Segoe UI",
// Roboto, "Noto Sans", Helvetica, Arial, sans-serif` differs from them by a few per cent.

// U+0020 … U+007E
const ASCII = [
  278,
  278,
  355,
  556,
  556,
  889,
  667,
  191,
  333,
  333,
  389,
  584,
  278,
  333,
  278,
  278, // space … /
  556,
  556,
  556,
  556,
  556,
  556,
  556,
  556,
  556,
  556,
  278,
  278,
  584,
  584,
  584,
  556, // 0 … ?
  1015,
  667,
  667,
  722,
  722,
  667,
  611,
  778,
  722,
  278,
  500,
  667,
  556,
  833,
  722,
  778, // @ … O
  667,
  778,
  722,
  667,
  611,
  722,
  667,
  944,
  667,
  667,
  611,
  278,
  278,
  278,
  469,
  556, // P … _
  333,
  556,
  556,
  500,
  556,
  556,
  278,
  556,
  556,
  222,
  222,
  500,
  222,
  833,
  556,
  556, // ` … o
  556,
  556,
  333,
  500,
  278,
  556,
  500,
  722,
  500,
  500,
  500,
  334,
  260,
  334,
  584, // p … ~
];
const ASCII_BOLD = [
  278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 333,
  333, 584, 584, 584, 611, 975, 722, 722, 722, 722, 667, 611, 778, 722, 278, 556, 722, 611, 833, 722, 778, 667, 778, 722, 667, 611, 722,
  667, 944, 667, 667, 611, 333, 278, 333, 584, 556, 333, 556, 611, 556, 611, 556, 333, 611, 611, 278, 278, 556, 278, 889, 611, 611, 611,
  611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389, 280, 389, 584,
];
// U+00A0 … U+00FF
const LATIN1 = [
  278, 333, 556, 556, 556, 556, 260, 556, 333, 737, 370, 556, 584, 333, 737, 333, 400, 584, 333, 333, 333, 556, 537, 278, 333, 333, 365,
  556, 834, 834, 834, 611, 667, 667, 667, 667, 667, 667, 1000, 722, 667, 667, 667, 667, 278, 278, 278, 278, 722, 722, 778, 778, 778, 778,
  778, 584, 778, 722, 722, 722, 722, 667, 667, 611, 556, 556, 556, 556, 556, 556, 889, 500, 556, 556, 556, 556, 278, 278, 278, 278, 556,
  556, 556, 556, 556, 556, 556, 584, 611, 556, 556, 556, 556, 500, 556, 500,
];
const LATIN1_BOLD = [
  278, 333, 556, 556, 556, 556, 280, 556, 333, 737, 370, 556, 584, 333, 737, 333, 400, 584, 333, 333, 333, 611, 556, 278, 333, 333, 365,
  556, 834, 834, 834, 611, 722, 722, 722, 722, 722, 722, 1000, 722, 667, 667, 667, 667, 278, 278, 278, 278, 722, 722, 778, 778, 778, 778,
  778, 584, 778, 722, 722, 722, 722, 667, 667, 611, 556, 556, 556, 556, 556, 556, 889, 556, 556, 556, 556, 556, 278, 278, 278, 278, 611,
  611, 611, 611, 611, 611, 611, 584, 611, 611, 611, 611, 611, 556, 611, 556,
];
// signs that labels of graphs use: dash, quotes, dots, arrows, mathematics
const SIGNS = new Map<number, number>([
  [0x2013, 556],
  [0x2014, 1000],
  [0x2018, 222],
  [0x2019, 222],
  [0x201c, 333],
  [0x201d, 333],
  [0x2022, 350],
  [0x2026, 1000],
  [0x2190, 1000],
  [0x2192, 1000],
  [0x2193, 500],
  [0x2191, 500],
  [0x2212, 584],
  [0x2248, 549],
  [0x2264, 549],
  [0x2265, 549],
  [0x221e, 713],
]);
const FULL = 1000,
  AVERAGE = 556;

/** East Asian wide and full-width characters, and emoji. */
function isWide(c: number): boolean {
  return (
    (c >= 0x1100 && c <= 0x115f) ||
    (c >= 0x2e80 && c <= 0x303e) ||
    (c >= 0x3041 && c <= 0xa4cf) ||
    (c >= 0xac00 && c <= 0xd7a3) ||
    (c >= 0xf900 && c <= 0xfaff) ||
    (c >= 0xfe30 && c <= 0xfe6f) ||
    (c >= 0xff00 && c <= 0xff60) ||
    (c >= 0xffe0 && c <= 0xffe6) ||
    (c >= 0x1f300 && c <= 0x1faff) ||
    (c >= 0x20000 && c <= 0x3fffd)
  );
}

/** Characters without a width of their own: combining marks, joiners, marks of direction. */
function isEmpty(c: number): boolean {
  return (
    c < 0x20 ||
    (c >= 0x7f && c < 0xa0) ||
    (c >= 0x300 && c <= 0x36f) ||
    (c >= 0x200b && c <= 0x200f) ||
    (c >= 0x202a && c <= 0x202e) ||
    (c >= 0x2060 && c <= 0x2069) ||
    (c >= 0xfe00 && c <= 0xfe0f) ||
    c === 0xfeff
  );
}

/** Width of one character in 1/1000 em. */
export function charWidth(code: number, bold = false): number {
  if (code >= 0x20 && code <= 0x7e) return (bold ? ASCII_BOLD : ASCII)[code - 0x20];
  if (code >= 0xa0 && code <= 0xff) return (bold ? LATIN1_BOLD : LATIN1)[code - 0xa0];
  if (isEmpty(code)) return 0;
  if (isWide(code)) return FULL;
  return SIGNS.get(code) ?? (bold ? 611 : AVERAGE);
}

/** Width of a text in pixels at a font size. `textWidth("conv2d", 12)` is about 39. */
export function textWidth(text: string, size: number, bold = false): number {
  const table = bold ? ASCII_BOLD : ASCII;
  let sum = 0;
  for (let i = 0; i < text.length; i++) {
    let c = text.charCodeAt(i);
    if (c >= 0x20 && c <= 0x7e) {
      sum += table[c - 0x20];
      continue;
    }
    if (c >= 0xd800 && c <= 0xdbff && i + 1 < text.length) c = text.codePointAt(i++)!;
    sum += charWidth(c, bold);
  }
  return (sum * size) / 1000;
}
