import { hashTerm } from './features/hashed-terms.ts';

/** Assigns groups to folds by the hash of their names, independent of their order. */
export function foldsOf(examples: readonly { readonly group: string }[], numFolds: number, seed: number): Int32Array {
  // Hashed once: hashing long names in every comparison takes longer than the training.
  const names = [...new Set(examples.map(({ group }) => group))]
    .map((name) => ({ name, hash: hashTerm(`${seed}:${name}`) }))
    .sort((a, b) => a.hash - b.hash || (a.name < b.name ? -1 : 1));
  const fold = new Map(names.map(({ name }, i) => [name, i % numFolds]));
  return Int32Array.from(examples, ({ group }) => fold.get(group)!);
}
