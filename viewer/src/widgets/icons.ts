// Icons as lines in a 16 × 16 square: drawn the same on every machine, whatever fonts it has.

export const ICONS = {
  back: 'M10 3 5 8l5 5',
  forward: 'm6 3 5 5-5 5',
  less: 'M3 3h10v10H3zM5.5 8h5',
  more: 'M3 3h10v10H3zM5.5 8h5M8 5.5v5',
  all: 'M9 7l4-4m0 0H9.5M13 3v3.5M7 9l-4 4m0 0h3.5M3 13V9.5',
  fit: 'M3 6V3h3M10 3h3v3M13 10v3h-3M6 13H3v-3',
  down: 'M8 2v11m0 0-3.5-3.5M8 13l3.5-3.5',
  right: 'M2 8h11m0 0L9.5 4.5M13 8l-3.5 3.5',
  play: 'M5 3v10l8-5z',
  compare: 'M2 3h4v10H2zM10 3h4v10h-4zM6 6l4 2M6 11l4-2',
  export: 'M8 10V2m0 0L5 5m3-3 3 3M3 9v4h10V9',
  sun: 'M8 5.2A2.8 2.8 0 1 0 8 10.8 2.8 2.8 0 1 0 8 5.2M8 1.5v1.6M8 12.9v1.6M1.5 8h1.6M12.9 8h1.6M3.4 3.4l1.1 1.1M11.5 11.5l1.1 1.1M3.4 12.6l1.1-1.1M11.5 4.5l1.1-1.1',
  moon: 'M13 9.6A5.5 5.5 0 0 1 6.4 3a5.5 5.5 0 1 0 6.6 6.6z',
} as const;

export type Icon = keyof typeof ICONS;

export function icon(name: Icon): SVGElement {
  const space = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(space, 'svg');
  svg.setAttribute('viewBox', '0 0 16 16');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS(space, 'path');
  path.setAttribute('d', ICONS[name]);
  svg.append(path);
  return svg;
}
