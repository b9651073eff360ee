import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dark, light } from '../../src/draw/theme.ts';
import type { Scene } from '../../src/scene.ts';
import { writeSvg } from '../../src/svg/write.ts';
import { smallScene } from '../draw/synthetic.ts';

/** Reads XML strictly enough to fail on anything not closed, quoted or escaped; returns the names of its elements. */
function parse(xml: string): string[] {
  const names: string[] = [];
  const open: string[] = [];
  const token = /<(\/?)([a-zA-Z]+)((?:\s[a-zA-Z-]+="[^"<&]*(?:&(?:amp|lt|gt|quot|#39);[^"<&]*)*")*)\s*(\/?)>|([^<]+)/gy;
  while (token.lastIndex < xml.length) {
    const at = token.lastIndex;
    const match = token.exec(xml);
    if (match === null) throw new Error(`not XML at ${at}: ${xml.slice(at, at + 80)}`);
    const [, closing, name, , empty, text] = match;
    if (text !== undefined) {
      if (/&(?!(?:amp|lt|gt|quot|#39);)/.test(text)) throw new Error(`bare & in ${text.slice(0, 80)}`);
      // eslint-disable-next-line no-control-regex
      if (/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/.test(text)) throw new Error('a character that XML forbids');
    } else if (closing) {
      if (open.pop() !== name) throw new Error(`</${name}> closes nothing`);
    } else {
      names.push(name!);
      if (!empty) open.push(name!);
    }
  }
  if (open.length > 0) throw new Error(`<${open.at(-1)}> is not closed`);
  return names;
}

const KNOWN = new Set(['svg', 'title', 'style', 'g', 'rect', 'path', 'text']);
const renamed = (scene: Scene, name: string): Scene => ({ ...scene, texts: scene.texts.map((_, i) => (i === 0 ? '' : name)) });

describe('writeSvg', () => {
  it('is well-formed and says what is drawn', () => {
    const scene = smallScene();
    const svg = writeSvg(scene, light);
    const names = parse(svg);
    expect(svg).toMatch(/^<svg xmlns="http:\/\/www.w3.org\/2000\/svg" viewBox="-24 -24 [\d.]+ [\d.]+"/);
    expect(names.filter((n) => n === 'path')).toHaveLength(2 * scene.edges.count);
    expect(svg).toContain('>batch_norm<');
    expect(svg).toContain('>×32<');
    expect(svg).not.toMatch(/NaN|undefined|Infinity/);
  });

  it('shows selection, heat, dimming and labels, in both themes', () => {
    const scene = smallScene();
    const fill = { colours: [null, 'rgb(200, 10, 10)'], of: Uint8Array.from({ length: scene.boxes.count }, (_, b) => b % 2) };
    for (const theme of [light, dark]) {
      const svg = writeSvg(
        scene,
        theme,
        { selected: new Set([6]), found: new Set([7]), dim: true, fill, edgeLabels: 'always', edgeWidth: 'bytes' },
        { title: 'a "graph"' },
      );
      parse(svg);
      expect(svg).toContain(theme.selected);
      expect(svg).toContain(theme.found);
      expect(svg).toContain(`opacity="${theme.dimmed}"`);
      expect(svg).toContain('rgb(200, 10, 10)');
      expect(svg).toContain('<title>a &quot;graph&quot;</title>');
      expect(svg).toContain('class="l"');
    }
  });

  it('writes only what is in a region', () => {
    const scene = smallScene();
    const { x, y, width, height } = scene.boxes;
    const svg = writeSvg(scene, light, {}, { region: { x: x[0]! - 2, y: y[0]! - 2, width: width[0]! + 4, height: height[0]! + 4 } });
    expect(svg).toContain('>input<');
    expect(svg).not.toContain('>batch_norm<');
  });

  it.each([
    '</text><script>alert(1)</script>',
    '"><image href="x" onerror="y"/>',
    "a & b < c > d 'e'",
    '\u202eright to left',
    '\u0000\u0001\ud800',
    'x'.repeat(100_000),
    ']]>',
    '<!--',
  ])('makes %j harmless', (name) => {
    const svg = writeSvg(
      renamed(smallScene(), name),
      light,
      { edgeLabels: 'always', fill: { colours: [`red" onload="${name}`], of: new Uint8Array(9) } },
      { title: name },
    );
    for (const element of parse(svg)) expect(KNOWN).toContain(element);
    expect(svg.length).toBeLessThan(200_000);
  });

  it('makes any name harmless', () => {
    const scene = smallScene();
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (name) => {
        for (const element of parse(writeSvg(renamed(scene, name), dark, { edgeLabels: 'always' }, { title: name })))
          expect(KNOWN).toContain(element);
      }),
      { numRuns: 100 },
    );
  });
});
