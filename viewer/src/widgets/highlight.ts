// Syntax colours for Python and C++: enough to read by, in one regular expression each.

import { h } from './dom.ts';

const PYTHON =
  /(?<comment>#.*)|(?<string>[rbf]{0,2}(?:"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))|(?<number>\b\d[\w.]*)|(?<keyword>\b(?:False|None|True|and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|self|try|while|with|yield)\b)|(?<call>\b[A-Za-z_]\w*(?=\())/g;
const CPP =
  /(?<comment>\/\/.*|\/\*[\s\S]*?\*\/)|(?<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(?<macro>^[ \t]*#.*)|(?<number>\b\d[\w.]*)|(?<keyword>\b(?:auto|bool|break|case|char|class|const|constexpr|continue|default|do|double|else|float|float16|float32|float64|for|if|inline|int|int8|int16|int32|int64|long|namespace|new|nullptr|operator|private|public|return|short|signed|sizeof|static|struct|switch|template|this|typedef|typename|uint8|uint32|uint64|union|unsigned|using|void|while|__restrict__|__global__|__device__)\b)|(?<call>\b[A-Za-z_]\w*(?=\())/gm;

export type CodeLanguage = 'python' | 'cpp' | 'plain';

/** Lines of elements. A token that spans lines is cut at their ends. */
export function highlight(text: string, language: CodeLanguage): HTMLElement[][] {
  const lines: HTMLElement[][] = [[]];
  const put = (piece: string, kind: string) => {
    piece.split('\n').forEach((part, i) => {
      if (i) lines.push([]);
      if (part) lines.at(-1)!.push(h('span', kind ? { class: `tok-${kind}` } : {}, part));
    });
  };
  if (language === 'plain') {
    put(text, '');
    return lines;
  }
  let at = 0;
  for (const match of text.matchAll(language === 'python' ? PYTHON : CPP)) {
    put(text.slice(at, match.index), '');
    const kind = Object.entries(match.groups ?? {}).find(([, value]) => value !== undefined)?.[0] ?? '';
    put(match[0], kind);
    at = match.index + match[0].length;
  }
  put(text.slice(at), '');
  return lines;
}
