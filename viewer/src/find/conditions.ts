// Which nodes a search term holds for.
//
// Terms are tried on what many nodes share (a string, a type, a scope, a stack, a set of attributes), each distinct one
// once; the columns of the graph then spread the verdicts over the nodes.

import { scopeLabel, scopePath } from '../wire/scopes.ts';
import type { Graph, Pools } from '../wire/capture.ts';
import { PHASES, ROLES } from '../scene.ts';
import { comparison } from './compare.ts';
import { attrTest, chosen, frameTest, isPattern, shapeTest, textTest, type Test } from './match.ts';
import type { Term } from './parse.ts';

export type Mask = Uint8Array; // 0 or 1 for each row

/** The one name that an operation has in all frameworks: by the string id of its op ('': not known), and of nodes whose op
 * does not say it. */
export interface Kinds {
  ofOp(op: number): string;
  byNode: ReadonlyMap<number, string>;
}

export const NO_KINDS: Kinds = { ofOp: () => '', byNode: new Map() };

/** What was measured of a stage: the time of a node in seconds, a figure of a value; null where it is not known. */
export interface Measured {
  time(node: number): number | null;
  figure(name: string, value: number): number | null;
  /** Columns of the user's own. */
  own?: readonly OwnFigures[];
  /** The framework's own number of a node or of a value. */
  id?(by: 'node' | 'value', index: number): number | null;
}

/** A column of the user's own: of operators, and of modules by their scopes. */
export interface OwnFigures {
  name: string;
  isText: boolean;
  node: ReadonlyMap<number, string | number>;
  scope: ReadonlyMap<number, string | number>;
}

export const NOTHING_MEASURED: Measured = { time: () => null, figure: () => null };

/** The terms of one query, tried on one graph. */
export class Conditions {
  constructor(
    private graph: Graph,
    private pools: Pools,
    private kinds: Kinds,
    private measured: Measured,
  ) {}

  /** The nodes that every term holds for. Terms on file and line speak of one and the same frame. */
  allOf(terms: readonly Term[]): Mask {
    const onFrame = terms.filter(({ field, negated }) => (field === 'file' || field === 'line') && !negated);
    const mask = onFrame.length ? this.stacks(onFrame) : new Uint8Array(this.graph.nodes).fill(1);
    for (const term of terms) {
      if (onFrame.includes(term)) continue;
      const holds = this.term(term);
      const no = term.negated ? 1 : 0;
      for (let i = 0; i < mask.length; i++) mask[i]! &= holds[i]! ^ no;
    }
    return mask;
  }

  private term(term: Term): Mask {
    const { graph, pools } = this;
    const own = this.measured.own?.find(({ name }) => name === term.field);
    if (own) return this.own(own, term);
    switch (term.field) {
      case '': {
        const test = textTest(term);
        return union(this.texts(graph.op, test), this.names(test), this.within(term), this.classes(test));
      }
      case 'op':
        return this.texts(graph.op, textTest(term));
      case 'kind': {
        const test = textTest(term);
        const { ofOp, byNode } = this.kinds;
        const mask = spread(
          graph.op,
          verdicts([graph.op], pools.strings.length, (i) => {
            const kind = i > 0 ? ofOp(i) : '';
            return kind !== '' && test(kind);
          }),
        );
        for (const [node, kind] of byNode) mask[node] = test(kind) ? 1 : 0;
        return mask;
      }
      case 'name':
        return this.names(textTest(term));
      case 'scope':
        return this.within(term);
      case 'class':
        return this.classes(textTest(term));
      case 'phase':
        return spread(graph.phase, Uint8Array.from(chosen(PHASES, term), Number));
      case 'role':
        return this.roles(Uint8Array.from(chosen(ROLES, term), Number));
      case 'dtype': {
        const test = textTest(term);
        return this.types(pools.types.dtype.length, (type) => {
          const dtype = pools.types.dtype.at(type);
          return dtype !== '' && test(dtype);
        });
      }
      case 'shape': {
        const test = shapeTest(term);
        return this.types(pools.types.shape.length, (type) => test(pools.types.shape.at(type)));
      }
      case 'attr': {
        const test = attrTest(term);
        const { length } = pools.attrs;
        return spread(
          graph.attrs,
          verdicts([graph.attrs], length, (i) => i > 0 && test(pools.attrs.at(i))),
        );
      }
      case 'kernel':
        return this.kernels(term);
      case 'file':
      case 'line':
        return this.stacks([term]);
      case 'id':
        return this.ids(comparison(term));
      case 'time':
        return this.times(comparison(term));
      default:
        return this.figures(term.field, comparison(term));
    }
  }

  /** A test on a column of string ids. */
  private texts(column: Int32Array, test: Test): Mask {
    return spread(column, this.strings([column], test));
  }

  /** A verdict on every string that these columns name. No name is never found. */
  private strings(columns: Int32Array[], test: Test): Mask {
    const { strings } = this.pools;
    return verdicts(columns, strings.length, (i) => i > 0 && test(strings.at(i)));
  }

  /** Its own name, those of what it makes, and those of what it reads that no node made (parameters …). */
  private names(test: Test): Mask {
    const { name, valueName, producer } = this.graph;
    const verdict = this.strings([name, valueName], test);
    const mask = spread(name, verdict);
    const outside = new Uint8Array(valueName.length);
    for (let v = 0; v < valueName.length; v++) {
      if (!verdict[valueName[v]!]) continue;
      if (producer[v]! >= 0) mask[producer[v]!] = 1;
      else outside[v] = 1;
    }
    return this.readers(outside, mask);
  }

  /** Adds the nodes that read one of these values. */
  private readers(values: Mask, mask: Mask): Mask {
    const { useNode, useValue } = this.graph;
    if (!values.includes(1)) return mask;
    for (let u = 0; u < useValue.length; u++) if (useValue[u]! >= 0 && values[useValue[u]!]) mask[useNode[u]!] = 1;
    return mask;
  }

  /** The path of its module. A text is looked for in the whole of it, a pattern in what is printed of it. */
  private within(term: Term): Mask {
    const { pools } = this;
    const { scope } = this.graph;
    const { parent } = pools.scopes;
    if (isPattern(term)) {
      const test = textTest(term);
      return spread(
        scope,
        verdicts([scope], parent.length, (i) => i > 0 && test(scopePath(pools, i))),
      );
    }
    const wanted = term.text.toLowerCase();
    const behind = wanted.split('/').length - 1; // it ends in a scope, and begins in that or at most so many further out
    const holds = new Uint8Array(parent.length);
    for (let i = 1; i < holds.length; i++) {
      let around = parent[i]!; // stands before it
      holds[i] = holds[around]!;
      if (holds[i]) continue;
      let tail = scopeLabel(pools, i);
      for (let more = behind; more > 0 && around > 0; more--, around = parent[around]!) tail = `${scopeLabel(pools, around)}/${tail}`;
      holds[i] = tail.toLowerCase().includes(wanted) ? 1 : 0;
    }
    return spread(scope, holds);
  }

  /** The class of its module, or of a module around it. Scopes are written parents first. */
  private classes(test: Test): Mask {
    const { parent, cls } = this.pools.scopes;
    const known = new Map([['', false]]);
    const holds = new Uint8Array(parent.length);
    for (let i = 0; i < parent.length; i++) {
      const text = cls.at(i);
      let found = known.get(text);
      if (found === undefined) known.set(text, (found = test(text)));
      holds[i] = found || (i > 0 && holds[parent[i]!]) ? 1 : 0;
    }
    return spread(this.graph.scope, holds);
  }

  /** The type of something that it makes. */
  private types(count: number, test: (type: number) => boolean): Mask {
    const { nodes, type, producer } = this.graph;
    const verdict = verdicts([type], count, test);
    const mask = new Uint8Array(nodes);
    for (let v = 0; v < type.length; v++) if (verdict[type[v]!] && producer[v]! >= 0) mask[producer[v]!] = 1;
    return mask;
  }

  /** The role of something that it reads or makes. */
  private roles(wanted: Mask): Mask {
    const { nodes, role, producer } = this.graph;
    const mask = new Uint8Array(nodes);
    const values = spread(role, wanted);
    for (let v = 0; v < values.length; v++) if (values[v] && producer[v]! >= 0) mask[producer[v]!] = 1;
    return this.readers(values, mask);
  }

  /** The nodes with a frame that all these terms (file and line, taken as not negated) hold for. */
  private stacks(terms: readonly Term[]): Mask {
    const { frames, stacks } = this.pools;
    const tests = terms.map(frameTest);
    const good = new Uint8Array(frames.line.length);
    for (let i = 1; i < good.length; i++) {
      good[i] = tests.every((test) => test(frames.file.at(i), frames.line[i]!)) ? 1 : 0;
    }
    const holds = new Uint8Array(stacks.parent.length);
    for (let i = 1; i < holds.length; i++) holds[i] = good[stacks.frame[i]!]! | holds[stacks.parent[i]!]!;
    return spread(this.graph.stack, holds);
  }

  /** Its measured time. */
  private times(test: (seconds: number) => boolean): Mask {
    return Uint8Array.from({ length: this.graph.nodes }, (_, node) => holds(this.measured.time(node), test));
  }

  /** The framework's own number of it, or of something that it makes. */
  private ids(test: (id: number) => boolean): Mask {
    const { nodes, producer } = this.graph;
    const id = this.measured.id ?? (() => null);
    const mask = Uint8Array.from({ length: nodes }, (_, node) => holds(id('node', node), test));
    for (let v = 0; v < producer.length; v++) if (producer[v]! >= 0) mask[producer[v]!]! |= holds(id('value', v), test);
    return mask;
  }

  /** The measured figure of something that it makes. */
  private figures(name: string, test: (figure: number) => boolean): Mask {
    const { nodes, producer } = this.graph;
    const mask = new Uint8Array(nodes);
    for (let v = 0; v < producer.length; v++) {
      if (producer[v]! >= 0) mask[producer[v]!]! |= holds(this.measured.figure(name, v), test);
    }
    return mask;
  }

  /** A figure of the user's own: the operator's, or that of a module around it. */
  private own({ isText, node, scope }: OwnFigures, term: Term): Mask {
    const text = isText ? textTest(term) : null;
    const number = isText ? null : comparison(term);
    const test = (value: string | number) => (text ? text(String(value)) : number!(Number(value)));
    const { parent } = this.pools.scopes;
    const within = new Uint8Array(parent.length);
    for (let i = 1; i < within.length; i++) within[i] = within[parent[i]!] || (scope.has(i) && test(scope.get(i)!)) ? 1 : 0;
    const mask = spread(this.graph.scope, within);
    for (const [at, value] of node) if (test(value)) mask[at] = 1;
    return mask;
  }

  private kernels(term: Term): Mask {
    const mask = new Uint8Array(this.graph.nodes);
    const kernels = this.graph.groups.get('kernel');
    if (!kernels) return mask;
    const count = kernels.name.length;
    const isWord = term.kind === 'word';
    let found: Mask;
    if (isWord && /^#\d{1,9}$/.test(term.text)) {
      found = new Uint8Array(count);
      const number = Number(term.text.slice(1));
      if (number < count) found[number] = 1;
    } else if (isWord && term.text === '*') {
      found = new Uint8Array(count).fill(1);
    } else {
      found = this.texts(kernels.name, textTest(term));
    }
    for (let k = 0; k < count; k++) {
      if (found[k]) for (let m = kernels.start[k]!; m < kernels.start[k + 1]!; m++) mask[kernels.member[m]!] = 1;
    }
    return mask;
  }
}

function holds(figure: number | null, test: (figure: number) => boolean): 0 | 1 {
  return figure !== null && test(figure) ? 1 : 0;
}

/** A test made once for each entry of a pool that the columns name. */
function verdicts(columns: Int32Array[], count: number, test: (entry: number) => boolean): Mask {
  const verdict = new Uint8Array(count);
  for (const column of columns) for (let i = 0; i < column.length; i++) verdict[column[i]!] = 1;
  for (let entry = 0; entry < count; entry++) if (verdict[entry] && !test(entry)) verdict[entry] = 0;
  return verdict;
}

function spread(column: Int32Array | Int8Array, verdict: Mask): Mask {
  const mask = new Uint8Array(column.length);
  for (let i = 0; i < column.length; i++) mask[i] = verdict[column[i]!]!;
  return mask;
}

function union(first: Mask, ...others: Mask[]): Mask {
  for (const other of others) for (let i = 0; i < first.length; i++) first[i]! |= other[i]!;
  return first;
}
