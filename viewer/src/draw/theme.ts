// The colours of the drawing. Plain objects: the page, the SVG writer and tests read the same ones.
import { contrast, parseColour } from './colour.ts';

/** How a box of one phase looks. */
export interface PhaseColours {
  /** The bar at its left, its badge, its mark in a group's header. */
  accent: string;
  /** The card. */
  tint: string;
  border: string;
  /** The whole box when it is too small for a card. */
  flat: string;
}

export interface Theme {
  name: 'light' | 'dark';
  background: string;
  grid: string;
  text: string;
  /** Second lines, counts. */
  dimText: string;
  /** By place in PHASES. */
  phases: PhaseColours[];
  /** Open groups by depth; deeper ones use the last. */
  panels: string[];
  panelBorder: string;
  edge: string;
  /** By EdgeKind: normal, lane, loop, wrap, rung, between phases, tied. */
  edgeKinds: string[];
  edgeLabel: string;
  edgeLabelText: string;
  selected: string;
  related: string;
  found: string;
  hover: string;
  /** Edges into and out of what is selected or hovered. */
  incoming: string;
  outgoing: string;
  /** Text on a colour that the page chose (Paint.fill). */
  onLight: string;
  onDark: string;
  /** How much is left of boxes that are not lit. */
  dimmed: number;
  viewport: string;
  /** By place in CHANGES: added, removed, changed, fused, split, rewritten, moved. */
  changes: ChangeColours[]; // in the order of CHANGES
}

export interface ChangeColours {
  accent: string;
  tint: string;
}

// PHASES: init, forward, backward, recompute, optimizer, other.
export const light: Theme = {
  name: 'light',
  background: '#f4f5f8',
  grid: '#dde1e8',
  text: '#171c28',
  dimText: '#566073',
  phases: [
    { accent: '#667186', tint: '#f1f3f6', border: '#cdd3dd', flat: '#b3bbc8' },
    { accent: '#2f6feb', tint: '#ecf2fe', border: '#b9d0f9', flat: '#8db4f5' },
    { accent: '#df6a0b', tint: '#fef2e6', border: '#f5cda3', flat: '#f2b273' },
    { accent: '#c93493', tint: '#fdecf6', border: '#f1bfde', flat: '#e796c8' },
    { accent: '#12804c', tint: '#e8f6ee', border: '#aaddc1', flat: '#7cc9a1' },
    { accent: '#8b94a5', tint: '#f5f6f8', border: '#d6dae2', flat: '#c1c8d2' },
  ],
  panels: ['#ffffff', '#f6f8fb', '#eef1f6', '#e7ebf2', '#dfe4ed', '#d8dee8'],
  panelBorder: '#d3d9e3',
  edge: '#98a3b5',
  edgeKinds: ['#98a3b5', '#aab3c3', '#a78bda', '#b4bccb', '#cfc2ef', '#cdd4df', '#5aa981'],
  edgeLabel: '#ffffff',
  edgeLabelText: '#3c4557',
  selected: '#1d5fe0',
  related: '#8b5cf6',
  found: '#e0a100',
  hover: '#5f8ff0',
  incoming: '#0d9488',
  outgoing: '#2f6feb',
  onLight: '#171c28',
  onDark: '#ffffff',
  dimmed: 0.28,
  viewport: '#2f6feb',
  changes: [
    { accent: '#7c3aed', tint: '#ede6fe' },
    { accent: '#0e7490', tint: '#d8f3f8' },
    { accent: '#1d4ed8', tint: '#dbe7fe' },
    { accent: '#a16207', tint: '#fdf0c4' },
    { accent: '#5b6475', tint: '#e8ebf0' },
    { accent: '#c81e2b', tint: '#fde4e4' },
    { accent: '#15803d', tint: '#dcf5e3' },
  ],
};

export const dark: Theme = {
  name: 'dark',
  background: '#0d0f14',
  grid: '#1d2129',
  text: '#e9ecf2',
  dimText: '#a3adbd',
  phases: [
    { accent: '#98a3b6', tint: '#21262f', border: '#3d4553', flat: '#4c5666' },
    { accent: '#5f9fff', tint: '#18263f', border: '#2f4d80', flat: '#33609f' },
    { accent: '#ff9d47', tint: '#33241a', border: '#6c4a2b', flat: '#97622d' },
    { accent: '#f472b6', tint: '#341d2d', border: '#6b385a', flat: '#8f4377' },
    { accent: '#4cc38a', tint: '#152b20', border: '#2c5b44', flat: '#2f7955' },
    { accent: '#7c8797', tint: '#1d2129', border: '#363d49', flat: '#3f4753' },
  ],
  panels: ['#14171e', '#191d25', '#1f242d', '#252b35', '#2b323d', '#313945'],
  panelBorder: '#343c49',
  edge: '#5c6779',
  edgeKinds: ['#5c6779', '#4f5969', '#7d68b0', '#4c5565', '#4a3f70', '#363e4b', '#3f8f68'],
  edgeLabel: '#262c36',
  edgeLabelText: '#c9d0dc',
  selected: '#6aa5ff',
  related: '#b794ff',
  found: '#f5c542',
  hover: '#4d7fd6',
  incoming: '#2dd4bf',
  outgoing: '#6aa5ff',
  onLight: '#12161f',
  onDark: '#f4f6fa',
  dimmed: 0.26,
  viewport: '#6aa5ff',
  changes: [
    { accent: '#b794ff', tint: '#2e2152' },
    { accent: '#4dd4ec', tint: '#0f3640' },
    { accent: '#7aa8ff', tint: '#172c57' },
    { accent: '#f5c542', tint: '#3b2f0c' },
    { accent: '#a3adbd', tint: '#2a303b' },
    { accent: '#ff7b7b', tint: '#421a1d' },
    { accent: '#4ade80', tint: '#12351f' },
  ],
};

/** The colour of text that reads best on `background`. */
export function textOn(theme: Theme, background: string): string {
  const under = parseColour(background);
  const [dark, bright] = [parseColour(theme.onLight), parseColour(theme.onDark)];
  return contrast(dark, under) >= contrast(bright, under) ? theme.onLight : theme.onDark;
}

export function panelOf(theme: Theme, depth: number): string {
  return theme.panels[Math.min(depth, theme.panels.length - 1)]!;
}
