// What is written on the box of an operator: as short as it can be read; the full name is in the panel.

import type { Graph, Pools } from '../wire/capture.ts';
import { ATTRIBUTES, SPELLINGS } from '../wire/facts.ts';

const { READS_ATTRIBUTE: READS, CALLS_METHOD: CALLS } = SPELLINGS;

/** `torch.ops.aten.add.Tensor` reads as `add`, `torch.nn.functional.linear` as `linear`, `nn.Conv2d` as `Conv2d`. */
export function shortOp(op: string): string {
  const known = SPELLINGS.NATIVE_OPERATOR.exec(op) ?? SPELLINGS.PYTHON_OPERATOR.exec(op);
  return known ? known[1]! : op.replace(SPELLINGS.OPERATOR_GROUP, '');
}

/** Titles of operators. A read of an attribute or a call of a method says which one. */
export class Titles {
  private known: string[] = []; // by op

  constructor(
    private graph: Graph,
    private pools: Pools,
  ) {}

  of(node: number): string {
    const op = this.graph.op[node]!;
    const title = (this.known[op] ??= shortOp(this.pools.strings.at(op)));
    if (node === this.graph.nodes - 1 && this.attrs(node)[ATTRIBUTES.FAILED] !== undefined) return `✗ ${title}`; // it ended the program
    if (title !== READS && title !== CALLS) return title;
    const name = this.attribute(node);
    if (!name) return title;
    if (title === READS) return `.${name}`;
    const owner = this.owner(node);
    return owner === null ? `${name}()` : `${owner}.${name}()`;
  }

  /** The name of the module whose method is called, where it was read from another one. */
  private owner(node: number): string | null {
    const { useStart, useValue, producer, op } = this.graph;
    const value = useStart[node]! < useStart[node + 1]! ? useValue[useStart[node]!]! : -1;
    const maker = value >= 0 ? producer[value]! : -1;
    return maker >= 0 && shortOp(this.pools.strings.at(op[maker]!)) === READS ? this.attribute(maker) || null : null;
  }

  private attribute(node: number): string {
    const { name } = this.attrs(node);
    return typeof name === 'string' ? name : '';
  }

  private attrs(node: number): Record<string, unknown> {
    return JSON.parse(this.pools.attrs.at(this.graph.attrs[node]!) || '{}') as Record<string, unknown>;
  }
}
