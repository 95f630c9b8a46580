import type { Value } from './values.ts';

/** Names visible at one position of a template. */
export interface Scope {
  readonly names: Map<string, Value>;
  readonly parent: Scope | null;
}

export function createScope(parent: Scope | null, names: Iterable<readonly [string, Value]> = []): Scope {
  return { names: new Map(names), parent };
}

export function lookUp(scope: Scope, name: string): Value {
  for (let at: Scope | null = scope; at !== null; at = at.parent) {
    if (at.names.has(name)) return at.names.get(name);
  }
  return undefined;
}
