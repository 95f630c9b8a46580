import { allowTokens } from './automaton-walk.ts';
import type { Fuel } from './limits.ts';
import { numberSetKey, type NumberSet } from './numbers/number-set.ts';
import { isNumberPrefix } from './numbers/number-text.ts';
import type { TokenTrie } from './token-trie.ts';

/** A place inside or before a number. */
export interface NumberContent {
  readonly set: NumberSet;
  readonly written: string;
}

const setKeys = new WeakMap<NumberSet, string>();

/** Equal for places with equal content. */
export function numberContentKey({ set, written }: NumberContent): string {
  let key = setKeys.get(set);
  if (key === undefined) setKeys.set(set, (key = numberSetKey(set)));
  return `N${key},${written}`;
}

/** Sets the bits of all tokens of a trie of number characters that may follow. */
export function allowNumberContent(
  { bytes, depths, skip, first, own, sorted, numNodes }: TokenTrie,
  { set, written }: NumberContent,
  fuel: Fuel,
  mask: Uint32Array,
): void {
  const texts = [written];
  for (let node = 1; node < numNodes;) {
    const depth = depths[node]!;
    const text = texts[depth - 1]! + String.fromCharCode(bytes[node]!);
    if (!isNumberPrefix(set, text, fuel)) {
      node = skip[node]!;
      continue;
    }
    allowTokens(sorted, first[node]!, own[node]!, mask);
    texts[depth] = text;
    node++;
  }
}
