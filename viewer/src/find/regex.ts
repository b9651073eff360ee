// Regexes are written as Python reads them; this says the same to JavaScript.

import { BadQuery } from './parse.ts';

// \w, \d and \b know all scripts in Python. What is no letter, number or _ has to be listed to go into a class.
const WORD = '\\p{L}\\p{N}_';
const NO_WORD =
  '\\p{M}\\p{S}\\p{Z}\\p{C}\\p{Pd}\\p{Ps}\\p{Pe}\\p{Pi}\\p{Pf}\\p{Po}' + '\\u203f\\u2040\\u2054\\ufe33\\ufe34\\ufe4d-\\ufe4f\\uff3f';

const IN_CLASS: Record<string, string> = { a: '\\x07', d: '\\p{Nd}', D: '\\P{Nd}', w: WORD, W: NO_WORD };
const OUTSIDE: Record<string, string> = {
  ...IN_CLASS,
  w: `[${WORD}]`,
  W: `[^${WORD}]`,
  b: `(?=(?<=[${WORD}])(?![${WORD}])|(?<![${WORD}])(?=[${WORD}]))`,
  B: `(?=(?<=[${WORD}])(?=[${WORD}])|(?<![${WORD}])(?![${WORD}]))`,
  A: '^',
  Z: '$',
};

const CLASS = /\[(\^|(?!\^))((?:\]|[^\]\\]|\\.)(?:[^\]\\]|\\.)*)\]/.source;
const COUNT = /\{(\d*)(,?)(\d*)\}/.source;
const TOKEN = new RegExp(`\\\\(.)|${CLASS}|\\(\\?P=(\\w+)\\)|\\(\\?P<|${COUNT}|[.$[\\]{}]`, 'gsu');

/** The regex, in any case. What JavaScript does not have (possessive quantifiers, conditions, …) is an error. */
export function regex(text: string): RegExp {
  try {
    return new RegExp(translate(text), 'iu');
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new BadQuery(`/${text}/ is not a regex (${reason.slice(reason.lastIndexOf(': ') + 1).trim()})`);
  }
}

export function translate(text: string): string {
  return text.replace(/^\(\?i\)/, '').replace(TOKEN, (token: string, ...groups: (string | undefined)[]) => {
    const [escaped, not, members, name, least, comma, most] = groups;
    if (escaped !== undefined) return escape(escaped, OUTSIDE);
    if (members !== undefined) {
      // a bracket that comes first is one of the members
      const inside = members.replace(/^\]/, '\\]').replace(/\\(.)/gsu, (_, c: string) => escape(c, IN_CLASS));
      return `[${not}${inside}]`;
    }
    if (name !== undefined) return `\\k<${name}>`;
    if (least !== undefined) return least ? token : comma ? `{0,${most}}` : `\\{${most}\\}`;
    if (token === '(?P<') return '(?<';
    if (token === '[') throw new Error('unterminated character class');
    if (token === '.') return '[^\\n]';
    if (token === '$') return '(?=\\n?$)';
    return `\\${token}`;
  });
}

/** An escape, as the u flag accepts it. */
function escape(char: string, meanings: Record<string, string>): string {
  const keep = /[A-Za-z0-9^$\\.*+?()[\]{}|/]/.test(char) || (char === '-' && meanings === IN_CLASS);
  return meanings[char] ?? (keep ? `\\${char}` : char);
}
