// What tests ask of the page's own source: its files, what they import, and how long their functions are.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parsers } from 'prettier/plugins/typescript';

const SRC = join(dirname(fileURLToPath(import.meta.url)), '..', 'src');

/** Text by path, as `engine/tree.ts`. */
export type Files = Map<string, string>;

export function sourceFiles(): Files {
  const paths = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'));
  return new Map(paths.map((path) => [path.replaceAll('\\', '/'), readFileSync(join(SRC, path), 'utf8')]));
}

export interface Import {
  from: string;
  to: string;
  isType: boolean;
}

const IMPORT = /^(?:import|export)\s+(type\s)?[^;'"]*?(?:from\s+)?'(\.[^']+)'/gm;
const INLINE = /\bimport\('(\.[^']+)'\)/g;

/** All imports between files; types count too. */
export function importsOf(files: Files): Import[] {
  return [...files].flatMap(([from, text]) => {
    const to = (path: string) => posix.join(posix.dirname(from), path);
    const plain = [...text.matchAll(IMPORT)].map((m) => ({ from, to: to(m[2]!), isType: m[1] !== undefined }));
    return [...plain, ...[...text.matchAll(INLINE)].map((m) => ({ from, to: to(m[1]!), isType: true }))];
  });
}

/** The folder of a file; a file at the top is a place of its own. */
export function folderOf(path: string): string {
  return path.split('/')[0]!;
}

/** One cycle, as a way that comes back to where it began; null where there is none. */
export function cycleIn(edges: readonly { from: string; to: string }[]): string[] | null {
  const next = new Map<string, Set<string>>();
  for (const { from, to } of edges) if (from !== to) next.set(from, (next.get(from) ?? new Set()).add(to));
  const done = new Set<string>();
  const way: string[] = [];
  const visit = (at: string): string[] | null => {
    if (way.includes(at)) return [...way.slice(way.indexOf(at)), at];
    if (done.has(at)) return null;
    way.push(at);
    for (const to of next.get(at) ?? []) {
      const found = visit(to);
      if (found) return found;
    }
    way.pop();
    done.add(at);
    return null;
  };
  for (const at of next.keys()) {
    const found = visit(at);
    if (found) return found;
  }
  return null;
}

export interface Long {
  place: string; // file:line
  lines: number;
  isDefended: boolean;
}

interface Node {
  type?: string;
  loc?: { start: { line: number }; end: { line: number } };
}

/** Functions with more lines than this. One is defended by a comment above it that begins with `Long:` and says why. */
export function longFunctions(files: Files, most: number): Long[] {
  const found: Long[] = [];
  for (const [path, text] of files) {
    const lines = text.split('\n');
    const visit = (node: unknown): void => {
      if (Array.isArray(node)) node.forEach(visit);
      if (!node || typeof node !== 'object' || Array.isArray(node)) return;
      const { type, loc } = node as Node;
      const length = loc ? loc.end.line - loc.start.line + 1 : 0;
      if (loc && /Function/.test(type ?? '') && length > most) {
        let above = loc.start.line - 2;
        const comment: string[] = [];
        while (above >= 0 && /^\s*(\/\/|\*|\/\*)/.test(lines[above]!)) comment.unshift(lines[above--]!);
        found.push({ place: `${path}:${loc.start.line}`, lines: length, isDefended: /\bLong: \S/.test(comment.join('\n')) });
      }
      for (const [key, inner] of Object.entries(node)) if (key !== 'loc' && key !== 'tokens' && key !== 'comments') visit(inner);
    };
    visit(parsers.typescript.parse(text, { filepath: path } as never));
  }
  return found;
}
