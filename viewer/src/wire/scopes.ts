// Where an operator stands among the modules, as text.

import type { Pools } from './capture.ts';
import { CHAIN_ENDS, LONGEST_LABEL } from './facts.ts';

/** What a scope is called in a path. */
export function scopeLabel({ scopes }: Pools, scope: number): string {
  const name = scopes.name.at(scope) || `(${scopes.cls.at(scope)})`;
  return scopes.call[scope] ? `${name}#${scopes.call[scope]! + 1}` : name;
}

/** The path of a scope, as opscope writes it everywhere: of a long chain both ends, and how many are between. */
export function scopePath(pools: Pools, scope: number): string {
  const { level, outer } = depths(pools.scopes.parent);
  const between = level[scope]! - 2 * CHAIN_ENDS;
  if (between <= 0) return upwards(pools, scope, level[scope]!).join('/');
  return [...upwards(pools, outer[scope]!, CHAIN_ENDS), `…${between}…`, ...upwards(pools, scope, CHAIN_ENDS)].join('/');
}

function upwards(pools: Pools, scope: number, count: number): string[] {
  const parts: string[] = [];
  for (; count > 0; count--, scope = pools.scopes.parent[scope]!) {
    const label = scopeLabel(pools, scope);
    const letters = label.length > LONGEST_LABEL ? [...label] : []; // Python counts letters, not halves of them
    parts.push(letters.length > LONGEST_LABEL ? `${letters.slice(0, LONGEST_LABEL - 1).join('')}…` : label);
  }
  return parts.reverse();
}

interface Depths {
  level: Int32Array; // of each scope; the root is not counted
  outer: Int32Array; // the scope around it, or itself, that is CHAIN_ENDS deep
}

const known = new WeakMap<Int32Array, Depths>();

/** Made once for each pool: walking up from every scope of a chain 100,000 deep takes minutes. */
function depths(parent: Int32Array): Depths {
  let found = known.get(parent);
  if (found === undefined) {
    const level = new Int32Array(parent.length);
    const outer = new Int32Array(parent.length);
    for (let s = 1; s < parent.length; s++) {
      const p = parent[s]!; // stands before it
      level[s] = level[p]! + 1;
      outer[s] = level[s]! <= CHAIN_ENDS ? s : outer[p]!;
    }
    known.set(parent, (found = { level, outer }));
  }
  return found;
}
