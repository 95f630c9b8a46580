import { hashTerm } from './features/hashed-terms.ts';
import type { RouteExample } from './types.ts';

/** Groups to folds by the hash of their names, so that no order of a file and no choice of ours decides. */
export function foldsOf(examples: readonly RouteExample[], numFolds: number, seed: number): Int32Array {
  // Hashed once: a comparison that hashes long names takes longer than the training it is for.
  const names = [...new Set(examples.map(({ group }) => group))]
    .map((name) => ({ name, hash: hashTerm(`${seed}:${name}`) }))
    .sort((a, b) => a.hash - b.hash || (a.name < b.name ? -1 : 1));
  const fold = new Map(names.map(({ name }, i) => [name, i % numFolds]));
  return Int32Array.from(examples, ({ group }) => fold.get(group)!);
}
