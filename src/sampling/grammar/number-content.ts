import type { Fuel } from './limits.ts';
import { numberSetKey, type NumberSet } from './numbers/number-set.ts';
import { isNumberPrefix } from './numbers/number-text.ts';
import type { TokenTable } from './token-table.ts';

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

/** Sets the bits of all tokens of digits, signs, points and exponents that may follow. */
export function allowNumberContent(
  { numeric }: TokenTable,
  { set, written }: NumberContent,
  fuel: Fuel,
  mask: Uint32Array,
): void {
  const { bytes, depths, skip, first, own, sorted, numNodes } = numeric;
  const texts = [written];
  for (let node = 1; node < numNodes;) {
    const depth = depths[node]!;
    const text = texts[depth - 1]! + String.fromCharCode(bytes[node]!);
    if (!isNumberPrefix(set, text, fuel)) {
      node = skip[node]!;
      continue;
    }
    for (let i = first[node]!; i < own[node]!; i++) {
      const id = sorted[i]!;
      mask[id >>> 5]! |= 1 << (id & 31);
    }
    texts[depth] = text;
    node++;
  }
}
