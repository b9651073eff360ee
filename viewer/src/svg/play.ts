// A run as elements that move: a bead from box to box while the curve of what is in memory grows. No script is needed.

import type { Rect } from '../draw/viewport.ts';
import type { Theme } from '../draw/theme.ts';
import { curve, PLAY_SECONDS, spotOf, STRIP, type Run } from '../picture/play.ts';
import type { Scene } from '../scene.ts';
import { bytesText } from '../text/figures.ts';
import { escape, num } from './escape.ts';

const MARGIN = 16;
const WORDS = 22; // above the curve

/** Over a drawing of `region`. `memory`: what the curve is called. */
export function playOver(scene: Scene, run: Run, theme: Theme, region: Rect, memory: string): { text: string; below: number } {
  const out: string[] = [];
  const times = [...run.at, 1].map((at) => num4(at));
  times[0] = '0';
  const spots = Array.from(run.box, (box) => spotOf(scene, box));
  const move = (name: 'cx' | 'cy', at: 'x' | 'y') => {
    const values = [...spots, spots.at(-1)!].map((spot) => num(spot[at]));
    return `<animate attributeName="${name}" dur="${PLAY_SECONDS}s" repeatCount="indefinite" calcMode="linear" keyTimes="${times.join(';')}" values="${values.join(';')}"/>`;
  };
  if (spots.length)
    out.push(
      `<circle class="bead" r="8" cx="${num(spots[0]!.x)}" cy="${num(spots[0]!.y)}" fill="${theme.selected}" stroke="${theme.background}" stroke-width="2.5">${move('cx', 'x')}${move('cy', 'y')}</circle>`,
    );
  if (!run.live.length) return { text: out.join('\n'), below: 0 };
  const [left, top] = [region.x + MARGIN, region.y + region.height];
  const [width, height] = [Math.max(40, region.width - 2 * MARGIN), STRIP - WORDS - 6];
  const points = curve(run, width, height).map(([x, y]) => `${num(left + x)} ${num(top + WORDS + y)}`);
  const base = num(top + WORDS + height);
  const grow = `dur="${PLAY_SECONDS}s" repeatCount="indefinite"`;
  out.push(
    `<clipPath id="played"><rect x="${num(left)}" y="${num(top)}" width="${num(width)}" height="${STRIP}"><animate attributeName="width" from="0" to="${num(width)}" ${grow}/></rect></clipPath>`,
    `<text class="d" x="${num(left)}" y="${num(top + 14)}">${escape(`${memory} ${bytesText(run.peakBytes)}`)}</text>`,
    `<path fill="${theme.edgeLabel}" stroke="${theme.panelBorder}" d="M${num(left)} ${base}L${points.join('L')}L${num(left + width)} ${base}Z"/>`,
    `<path clip-path="url(#played)" fill="${theme.selected}" opacity="0.75" d="M${num(left)} ${base}L${points.join('L')}L${num(left + width)} ${base}Z"/>`,
    `<line y1="${num(top + WORDS)}" y2="${base}" stroke="${theme.selected}" x1="${num(left)}" x2="${num(left)}">${['x1', 'x2']
      .map((name) => `<animate attributeName="${name}" from="${num(left)}" to="${num(left + width)}" ${grow}/>`)
      .join('')}</line>`,
  );
  return { text: out.join('\n'), below: STRIP };
}

function num4(value: number): string {
  return String(Math.round(Math.max(0, Math.min(1, value)) * 1e4) / 1e4);
}
