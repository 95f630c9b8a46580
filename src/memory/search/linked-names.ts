import type { FieldCondition, MatchedRecord, MemoryStore, RecordKind } from '../types.ts';
import { termsOf } from '../lexical/terms.ts';
import type { MemoryResult } from './fuse.ts';
import { recordText } from './record-text.ts';

/** Results whose names are followed: those that share the rarest words with the question. */
const NUM_SEEDS = 4;
/** Share of the best lexical score that such a result must have. */
const MIN_SHARE = 0.6;
const MAX_NAMES = 6;
/** A name in more records does not tell which of them belong together. */
const MAX_RECORDS = 8;
/** A capitalized word within a sentence, or any other word. */
const WORD = /((?<=[\p{L}\p{N},;:'’")\]-] {1,3}["'“‘(]?)\p{Lu}[\p{L}\p{N}'’-]+)|[\p{L}\d]{3,}/gu;

interface NamedQuery {
  readonly text: string;
  readonly kinds: readonly RecordKind[];
  readonly filter: { readonly fields: readonly FieldCondition[] };
}

/**
 * Records that share a rare name with the best results, which the question does not have: after "Ana's dog is called Rex", a
 * question about Ana's dog is one about Rex. They need not share a word with the question, nor be of the same session.
 */
export async function followNames(
  store: MemoryStore,
  tenant: string,
  near: readonly MemoryResult[],
  query: NamedQuery,
): Promise<readonly MatchedRecord[]> {
  const { text, ...rest } = query;
  const common = { context: text, k: MAX_RECORDS + 1, withVectors: true, ...rest };
  const found = await Promise.all(
    namesBeyond(text, near).map(async (name) => {
      const hits = await store.match(tenant, { text: name, ...common });
      // Others match the question alone.
      const named = hits.filter(({ record }) => recordText(record).includes(name));
      return named.length > MAX_RECORDS ? [] : named;
    }),
  );
  return found.flat();
}

/** Names in the best results that the question does not have. */
function namesBeyond(question: string, results: readonly MemoryResult[]): readonly string[] {
  const asked = new Set(termsOf(question));
  const names = new Set<string>();
  const seeds = results.filter(({ lexical }) => lexical !== null).toSorted((a, b) => b.lexical! - a.lexical!);
  for (const { text, lexical } of seeds.slice(0, NUM_SEEDS)) {
    if (lexical! < seeds[0]!.lexical! * MIN_SHARE) break;
    for (const [name, capitalized] of text.matchAll(WORD)) {
      if (capitalized === undefined && !/\d/.test(name)) continue;
      if (termsOf(name).every((term) => !asked.has(term))) names.add(name);
      if (names.size === MAX_NAMES) return [...names];
    }
  }
  return [...names];
}
