// Where an operator stands among the modules, as text.

import type { Pools } from './capture.ts';

/** The path of a scope, as opscope writes it everywhere. */
export function scopePath(pools: Pools, scope: number): string {
  const parts: string[] = [];
  for (let s = scope; s > 0; s = pools.scopes.parent[s]!) {
    const name = pools.scopes.name.at(s) || `(${pools.scopes.cls.at(s)})`;
    parts.push(pools.scopes.call[s] ? `${name}#${pools.scopes.call[s]! + 1}` : name);
  }
  return parts.reverse().join('/');
}
