// Figures as people read them.

const STEPS = ['', 'k', 'M', 'G', 'T', 'P', 'E'];

/** 1.81 G; small whole numbers as they are. */
export function shortNumber(value: number): string {
  if (!Number.isFinite(value)) return '?';
  if (Math.abs(value) < 1000) return Number.isInteger(value) ? String(value) : trimmed(value);
  let step = 0;
  while (Math.abs(value) >= 999.5 && step < STEPS.length - 1) {
    value /= 1000;
    step++;
  }
  return `${trimmed(value)} ${STEPS[step]}`;
}

function trimmed(value: number): string {
  return Math.abs(value) >= 100 ? String(Math.round(value)) : value.toPrecision(3);
}

/** Without zeros at its end, for axes. */
export function plain(text: string): string {
  return text.replace(/(\.\d*?)0+(?=\D|$)/, '$1').replace(/\.(?=\D|$)/, '');
}

export function secondsText(seconds: number): string {
  for (const [unit, size] of [
    ['s', 1],
    ['ms', 1e-3],
    ['µs', 1e-6],
  ] as const)
    if (seconds >= size) return `${trimmed(seconds / size)} ${unit}`;
  return `${trimmed(seconds * 1e9)} ns`;
}

export function percent(part: number, whole: number): string {
  const share = whole > 0 ? (100 * part) / whole : 0;
  return share === 0 ? '0 %' : share > 0 && share < 0.1 ? '< 0.1 %' : `${share >= 10 ? share.toFixed(0) : share.toFixed(1)} %`;
}

/** A figure of an operator or module with its unit; null where it is not known. */
export function figureText(name: string, value: number | null): string | null {
  if (value === null) return null;
  if (['output size', 'written inside', 'bytes read', 'bytes written', 'bytes sent'].includes(name)) return bytesText(value);
  if (name === 'time' || name === 'CPU time') return secondsText(value);
  if (name === 'intensity') return `${shortNumber(value)} FLOP/B`;
  if (name === 'MACs' || name === 'causal MACs') return value < 1000 ? String(value) : `${shortNumber(value)}MACs`;
  if (name === 'other FLOPs') return value < 1000 ? String(value) : `${shortNumber(value)}FLOPs`;
  return name === 'kernels' ? value.toLocaleString('en') : shortNumber(value);
}

export function bytesText(bytes: number): string {
  if (bytes < 0) return 'size not known';
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  while (bytes >= 1000 && unit < units.length - 1) {
    bytes /= 1000;
    unit++;
  }
  return `${bytes >= 100 || unit === 0 ? Math.round(bytes) : bytes.toPrecision(3)} ${units[unit]}`;
}
