import { valueByForks, valueByRecency, type PageValue } from './leaf-order.ts';
import { createShadowCache } from './shadow-cache.ts';

/**
 * Which pages are evicted first: by recency, or by forks, whichever would have saved more tokens of the recent prompts.
 * Neither wins on all traffic: forks gain up to 10 points where many conversations start alike, and lose 1.6 where the shared
 * documents change quickly. Two shadow caches of the same size replay every prompt, one per order; they have hashes only,
 * about 100 bytes per page.
 */
export interface EvictionOrder {
  readonly value: PageValue;
  /** The order in use. */
  readonly name: 'recency' | 'forks';
  /** A prompt was looked up in a cache of at most `maxPages` pages. */
  observe(namespace: string, tokens: readonly number[], maxPages: number): void;
  /** Forgets all prompts. */
  clear(): void;
}

/** Prompts after which a hit counts half. */
const HALF_LIFE = 300;
/** Share of the tokens by which the other order must lead: switching has a cost, and recency needs no proof. */
const MIN_LEAD = 0.002;
const DECAY = 2 ** (-1 / HALF_LIFE);

const ORDERS = [
  { name: 'recency', value: valueByRecency },
  { name: 'forks', value: valueByForks },
] as const;

export function createEvictionOrder(pageTokens: number): EvictionOrder {
  const shadows = ORDERS.map(({ value }) => createShadowCache(pageTokens, value));
  const hits = shadows.map(() => 0);
  let numPages = 0;
  let current = 0;

  return {
    value: (cached, numTokens, now) => ORDERS[current]!.value(cached, numTokens, now),
    get name() {
      return ORDERS[current]!.name;
    },
    observe(namespace, tokens, maxPages) {
      const pageIds = hashPages(namespace, tokens, pageTokens);
      numPages = numPages * DECAY + pageIds.length;
      for (const [i, shadow] of shadows.entries()) hits[i] = hits[i]! * DECAY + shadow.lookUp(pageIds, maxPages);
      const other = 1 - current;
      if (hits[other]! > hits[current]! + MIN_LEAD * numPages) current = other;
    },
    clear() {
      for (const shadow of shadows) shadow.clear();
    },
  };
}

/** A number per whole page that depends on the namespace and all tokens up to its end. */
function hashPages(namespace: string, tokens: readonly number[], pageTokens: number): number[] {
  let high = 0x811c9dc5;
  let low = 0x9e3779b1;
  const mix = (value: number): void => {
    high = Math.imul(high ^ value, 0x01000193);
    low = Math.imul(low ^ value ^ (high >>> 15), 0x85ebca6b);
  };
  for (let i = 0; i < namespace.length; i++) mix(namespace.charCodeAt(i));
  const ids: number[] = [];
  for (let i = 0; i < tokens.length; i++) {
    mix(tokens[i]!);
    // 53 bits
    if ((i + 1) % pageTokens === 0) ids.push((high >>> 0) * 2 ** 21 + (low >>> 11));
  }
  return ids;
}
