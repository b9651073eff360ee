// A scene as SVG, looking like the canvas. A pure function of its arguments: the page and headless use share it.
import { mixCss } from '../draw/colour.ts';
import { fillOf, litColour, marksOf, noPaint } from '../draw/frame.ts';
import type { Fitted } from '../draw/label.ts';
import { clean, fitBox, fitText } from '../draw/label.ts';
import {
  BADGE_SIZE,
  BAR,
  cardHeight,
  DETAIL_SIZE,
  FONT,
  GROUP_WEIGHT,
  HEADER,
  isPill,
  LABEL_SIZE,
  mostKept,
  PANEL_BAR,
  PANEL_LEFT,
  PANEL_RADIUS,
  RADIUS,
  STACK,
  stackOf,
  TEXT_LEFT,
  TEXT_RIGHT,
  TITLE_SIZE,
  TITLE_WEIGHT,
  widthOfBytes,
  widthOfRung,
} from '../picture/sizes.ts';
import type { Theme } from '../draw/theme.ts';
import { panelOf, textOn } from '../draw/theme.ts';
import type { Rect } from '../draw/viewport.ts';
import type { Paint, Scene } from '../scene.ts';
import { BoxKind, EdgeKind } from '../scene.ts';
import { textWidth } from '../text/widths.ts';
import { colour, escape, num } from './escape.ts';
import { arrowPath, linePath, partsOf } from './line.ts';
import { withRoom, writeAround, type Around } from './around.ts';
import { Taken, type Area } from './taken.ts';

const LINE = LABEL_SIZE + 2; // of words on an edge
/** Where words may be placed along a part of a line: in its middle, or as near to it as there is room. */
const PLACES = [0.5, 0.36, 0.64, 0.24, 0.76, 0.14, 0.86];

export interface SvgOptions {
  /** Only this part of the scene. */
  region?: Rect;
  /** Space around the scene. */
  margin?: number;
  /** Paint the theme's background; true by default. */
  background?: boolean;
  /** The document's title, read aloud by screen readers. */
  title?: string;
  /** The full name of each box as a tooltip; true by default. */
  tooltips?: boolean;
  /** Written above, and below. */
  around?: Partial<Around>;
  /** Drawn over it: elements, and the room that they take below. */
  over?: { text: string; below: number };
}

export function writeSvg(scene: Scene, theme: Theme, paint: Partial<Paint> = {}, options: SvgOptions = {}): string {
  return new Writer(scene, theme, { ...noPaint(), ...paint }, options).write();
}

class Writer {
  #scene: Scene;
  #theme: Theme;
  #paint: Paint;
  #options: SvgOptions;
  #region: Rect;
  #marks: Uint8Array;
  #out: string[] = [];

  constructor(scene: Scene, theme: Theme, paint: Paint, options: SvgOptions) {
    this.#scene = scene;
    this.#theme = theme;
    this.#paint = paint;
    this.#options = options;
    const margin = options.margin ?? 24;
    this.#region = options.region ?? { x: -margin, y: -margin, width: scene.width + 2 * margin, height: scene.height + 2 * margin };
    this.#marks = marksOf(paint, scene.boxes.count);
  }

  write(): string {
    const around = { head: '', legend: [], ...this.#options.around };
    const { over } = this.#options;
    const { x, y, width, height: tall } = withRoom(this.#region, around);
    const height = tall + (over?.below ?? 0);
    const { boxes } = this.#scene;
    const out = this.#out;
    out.push(
      `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${num(x)} ${num(y)} ${num(width)} ${num(height)}" width="${num(width)}" height="${num(height)}" role="img">`,
    );
    if (this.#options.title) out.push(`<title>${escape(this.#options.title)}</title>`);
    out.push(this.#style());
    if (this.#options.background !== false)
      out.push(`<rect x="${num(x)}" y="${num(y)}" width="${num(width)}" height="${num(height)}" fill="${this.#theme.background}"/>`);
    // Parents come before children, so groups in order of boxes are in order of depth.
    const panels: number[] = [];
    const leaves: number[] = [];
    for (let b = 0; b < boxes.count; b++) if (this.#inside(b)) (boxes.kind[b] === BoxKind.Open ? panels : leaves).push(b);
    out.push('<g>');
    for (const b of panels) this.#panel(b);
    out.push('</g><g>');
    for (let e = 0; e < this.#scene.edges.count; e++) if (this.#passes(e)) this.#edge(e);
    out.push('</g><g>');
    for (const b of panels) this.#header(b);
    for (const b of leaves) this.#card(b);
    out.push('</g>');
    if (this.#paint.edgeLabels === 'always' || this.#scene.layout === 'u') this.#labels();
    out.push(...writeAround(this.#region, around, this.#theme));
    if (over) out.push(over.text);
    out.push('</svg>\n');
    return out.join('\n');
  }

  #style(): string {
    const t = this.#theme;
    const rules = [
      `text{font-family:${FONT};fill:${t.text}}`,
      `.t{font-size:${TITLE_SIZE}px;font-weight:${TITLE_WEIGHT}}`,
      `.g{font-size:${TITLE_SIZE}px;font-weight:${GROUP_WEIGHT}}`,
      `.d{font-size:${DETAIL_SIZE}px;fill:${t.dimText}}`,
      `.b{font-size:${BADGE_SIZE}px;font-weight:${GROUP_WEIGHT};text-anchor:middle}`,
      `.l{font-size:${LABEL_SIZE}px;fill:${t.edgeLabelText};text-anchor:middle}`,
      '.e{fill:none;stroke-linejoin:round}',
      ...t.phases.map(
        (p, i) =>
          `.p${i}{fill:${p.tint};stroke:${p.border}}.s${i}{fill:${mixCss(p.tint, p.border, 0.45)};stroke:${p.border}}.a${i}{fill:${p.accent}}`,
      ),
      ...t.edgeKinds.map((c, i) => `.k${i}{stroke:${c}}.h${i}{fill:${c}}`),
    ];
    return `<style>${rules.join('')}</style>`;
  }

  #inside(b: number): boolean {
    const { x, y, width, height } = this.#scene.boxes;
    const r = this.#region;
    return x[b]! <= r.x + r.width && y[b]! <= r.y + r.height && x[b]! + width[b]! >= r.x && y[b]! + height[b]! >= r.y;
  }

  #passes(e: number): boolean {
    if (this.#options.region === undefined) return true;
    const { points, start } = this.#scene.edges;
    const r = this.#region;
    let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let p = start[e]!; p < start[e + 1]!; p++) {
      x0 = Math.min(x0, points[2 * p]!);
      x1 = Math.max(x1, points[2 * p]!);
      y0 = Math.min(y0, points[2 * p + 1]!);
      y1 = Math.max(y1, points[2 * p + 1]!);
    }
    return x0 <= r.x + r.width && y0 <= r.y + r.height && x1 >= r.x && y1 >= r.y;
  }

  #rect(x: number, y: number, w: number, h: number, r: number, rest: string): void {
    this.#out.push(
      `<rect x="${num(x)}" y="${num(y)}" width="${num(Math.max(0, w))}" height="${num(Math.max(0, h))}" rx="${num(Math.min(r, w / 2, h / 2))}" ${rest}/>`,
    );
  }

  #text(kind: string, x: number, y: number, text: string, rest = ''): void {
    if (text !== '') this.#out.push(`<text class="${kind}" x="${num(x)}" y="${num(y)}"${rest}>${escape(text)}</text>`);
  }

  #panel(b: number): void {
    const { boxes } = this.#scene;
    this.#rect(
      boxes.x[b]! + 0.5,
      boxes.y[b]! + 0.5,
      boxes.width[b]! - 1,
      boxes.height[b]! - 1,
      PANEL_RADIUS,
      `fill="${panelOf(this.#theme, boxes.depth[b]!)}" stroke="${this.#theme.panelBorder}"`,
    );
    this.#ring(b);
  }

  #header(b: number): void {
    const { boxes } = this.#scene;
    const text = fitBox(this.#scene, b);
    const [x, y] = [boxes.x[b]!, boxes.y[b]! + HEADER / 2];
    // Under the words: a line that passes there would strike them through.
    const ground = `fill="${panelOf(this.#theme, boxes.depth[b]!)}"`;
    const wide = text.titleWidth + (text.detail ? text.detailWidth + 8 : 0);
    this.#rect(x + PANEL_LEFT - 3, y - TITLE_SIZE / 2 - 2, wide + 6, TITLE_SIZE + 4, 0, ground);
    const right = x + boxes.width[b]! - TEXT_RIGHT - (text.badge ? text.badgeWidth + 4 : 0);
    if (text.count) this.#rect(right - text.countWidth - 3, y - TITLE_SIZE / 2 - 2, text.countWidth + 6, TITLE_SIZE + 4, 0, ground);
    this.#rect(x + PANEL_BAR, y - 6, BAR.width, 12, 2, `class="a${boxes.phase[b]}"`);
    this.#text('g', x + PANEL_LEFT, y + 4.6, text.title);
    this.#text('d', x + PANEL_LEFT + text.titleWidth + 8, y + 4.4, text.detail);
    this.#text('d', right, y + 4.4, text.count, ' text-anchor="end"');
    this.#badge(b, text, y);
  }

  #badge(b: number, text: Fitted, middle: number): void {
    if (text.badge === '') return;
    const { boxes } = this.#scene;
    const accent = this.#theme.phases[boxes.phase[b]!]!.accent;
    const left = boxes.x[b]! + boxes.width[b]! - TEXT_RIGHT + 3 - text.badgeWidth;
    const h = BADGE_SIZE + 6;
    this.#rect(left, middle - h / 2, text.badgeWidth, h, h / 2, `class="a${boxes.phase[b]}"`);
    this.#text('b', left + text.badgeWidth / 2, middle + BADGE_SIZE * 0.36, text.badge, ` style="fill:${textOn(this.#theme, accent)}"`);
  }

  #card(b: number): void {
    const { boxes, texts } = this.#scene;
    const kind = boxes.kind[b]!;
    const phase = boxes.phase[b]!;
    const [x, y, w] = [boxes.x[b]!, boxes.y[b]!, boxes.width[b]!];
    const h = cardHeight(boxes, b);
    const own = fillOf(this.#paint, b);
    const loss = kind === BoxKind.Loss && own === null;
    const dim = this.#paint.dim && this.#marks[b] === 0;
    this.#out.push(dim ? `<g opacity="${this.#theme.dimmed}">` : '<g>');
    const whole = clean(texts[boxes.title[b]!] ?? '');
    const text = fitBox(this.#scene, b);
    if (this.#options.tooltips !== false && text.title !== whole) this.#out.push(`<title>${escape(whole)}</title>`);
    for (let s = stackOf(kind); s > 0; s--)
      this.#rect(x + 5 * s + 0.5, y + h - 12 + s * STACK, w - 10 * s - 1, 11.5, RADIUS, `class="s${phase}"`);
    const paint = loss
      ? `fill="${this.#theme.text}"`
      : own === null
        ? `class="p${phase}"`
        : `fill="${colour(own)}" stroke="${mixCss(own, this.#theme.text, 0.2)}"`;
    const input = isPill(kind);
    this.#rect(x + 0.5, y + 0.5, w - 1, h - 1, input ? Math.min(h / 2, 14) : RADIUS, paint);
    if (!input && own === null) this.#rect(x + BAR.left, y + BAR.gap, BAR.width, h - 2 * BAR.gap, 1.5, `class="a${phase}"`);
    const ink = loss ? ` style="fill:${this.#theme.background}"` : own === null ? '' : ` style="fill:${textOn(this.#theme, own)}"`;
    const place = input ? ' text-anchor="middle"' : '';
    const left = input ? x + w / 2 : x + TEXT_LEFT;
    const group = kind === BoxKind.Closed || kind === BoxKind.Folded;
    this.#text(group ? 'g' : 't', left, y + (text.detail ? h / 2 - 2.8 : h / 2 + 4.5), text.title, place + ink);
    this.#text('d', left, y + h / 2 + 12, text.detail, place + ink);
    this.#text('d', x + w - TEXT_RIGHT - (text.badge ? text.badgeWidth + 4 : 0), y + h / 2 + 4, text.count, ` text-anchor="end"${ink}`);
    this.#badge(b, text, y + (text.detail ? h / 2 - 7 : h / 2));
    this.#out.push('</g>');
    this.#ring(b);
  }

  #ring(b: number): void {
    const mark = this.#marks[b]!;
    if (mark === 0) return;
    const { boxes } = this.#scene;
    const radius = boxes.kind[b] === BoxKind.Open ? PANEL_RADIUS : isPill(boxes.kind[b]!) ? Math.min(cardHeight(boxes, b) / 2, 14) : RADIUS;
    this.#rect(
      boxes.x[b]! - 1.5,
      boxes.y[b]! - 1.5,
      boxes.width[b]! + 3,
      cardHeight(boxes, b) + 3,
      radius + 1.5,
      `fill="none" stroke="${litColour(this.#theme, mark)}" stroke-width="2.2"`,
    );
  }

  #edge(e: number): void {
    const { edges } = this.#scene;
    const kind = Math.min(edges.kind[e]!, this.#theme.edgeKinds.length - 1);
    const lit = this.#paint.selected.has(edges.source[e]!)
      ? this.#theme.outgoing
      : this.#paint.selected.has(edges.target[e]!)
        ? this.#theme.incoming
        : null;
    if (kind === EdgeKind.Rung) {
      const wide = widthOfRung(edges.bytes[e]!, mostKept(edges));
      const dots = edges.bytes[e]! > 0 ? '' : ' stroke-dasharray="2 4"';
      this.#out.push(`<path class="e k${kind}" stroke-width="${num(wide)}" d="${linePath(edges, e)}"${dots}/>`);
      return;
    }
    const width = this.#paint.edgeWidth === 'bytes' ? widthOfBytes(edges.bytes[e]!) : lit === null ? 1.3 : 2;
    const dim = this.#paint.dim && lit === null ? ' opacity="0.4"' : '';
    const dash = kind === EdgeKind.Loop || kind === EdgeKind.Tied ? ' stroke-dasharray="5 4"' : '';
    const line = lit === null ? '' : ` style="stroke:${lit}"`;
    const head = lit === null ? '' : ` style="fill:${lit}"`;
    this.#out.push(`<path class="e k${kind}" stroke-width="${num(width)}" d="${linePath(edges, e)}"${dash}${dim}${line}/>`);
    const tip = arrowPath(edges, e, 6 + (width - 1) * 1.2);
    if (tip !== '') this.#out.push(`<path class="h${kind}" d="${tip}"${dim}${head}/>`);
  }

  /** Where words would hide a box. */
  #cards(): Area[] {
    const { boxes } = this.#scene;
    const found: Area[] = [];
    for (let b = 0; b < boxes.count; b++) {
      const [w, h] = [boxes.width[b]!, boxes.height[b]!];
      if (boxes.kind[b] !== BoxKind.Open && this.#inside(b)) found.push({ x: boxes.x[b]! + w / 2, y: boxes.y[b]! + h / 2, w, h });
    }
    return found;
  }

  /** What a rung keeps is said in any case. */
  #isTold(e: number): boolean {
    const kind = this.#scene.edges.kind[e];
    return this.#paint.edgeLabels === 'always' || kind === EdgeKind.Rung || kind === EdgeKind.Tied;
  }

  #labels(): void {
    const { edges, texts, direction, boxes } = this.#scene;
    // The words of headers stay free.
    const headers: Area[] = [];
    for (let b = 0; b < boxes.count; b++) {
      if (boxes.kind[b] !== BoxKind.Open || !this.#inside(b)) continue;
      const { titleWidth, detailWidth } = fitBox(this.#scene, b);
      const w = PANEL_LEFT + titleWidth + 8 + detailWidth;
      headers.push({ x: boxes.x[b]! + w / 2, y: boxes.y[b]! + HEADER / 2, w, h: 18 });
    }
    // So that a line among many finds its place: those with the least room first.
    const order = Array.from({ length: edges.count }, (_, e) => ({ e, parts: partsOf(edges, e) })).filter(
      ({ e }) => this.#passes(e) && this.#isTold(e),
    );
    order.sort((a, b) => (a.parts[0]?.length ?? 0) - (b.parts[0]?.length ?? 0));
    const taken = new Taken([...headers, ...this.#cards()]);
    for (const { e, parts } of order) {
      const lines = (texts[edges.label[e]!] ?? '').split('\n').map((line) => fitText(clean(line), 260, LABEL_SIZE));
      if (lines.join('') === '') continue;
      const w = Math.max(...lines.map((line) => textWidth(line, LABEL_SIZE))) * 1.04 + 10;
      const h = lines.length * LINE + 6;
      const long = parts.filter((part) => (direction === 'down' && edges.kind[e] !== EdgeKind.Rung ? part.length : part.length - w) >= h);
      const places = (long.length ? long : parts).flatMap((part) => PLACES.map((t) => part.at(t)));
      const place = places.find((at) => taken.isFree(at.x, at.y, w, h));
      if (place === undefined) continue;
      taken.add(place.x, place.y, w, h);
      this.#rect(place.x - w / 2, place.y - h / 2, w, h, 5, `fill="${this.#theme.edgeLabel}" opacity="0.92"`);
      const top = place.y - ((lines.length - 1) * LINE) / 2 + LABEL_SIZE * 0.36;
      lines.forEach((line, i) => this.#text('l', place.x, top + i * LINE, line));
    }
  }
}
