/** Context lengths that are looked up, longest first. */
const ORDERS = [16, 8, 4, 2] as const;
const MIN_ORDER = 2;
/** Matches are compared up to this length; longer ones are equally good. */
const MAX_MATCH = 32;
/** Positions examined per order, newest first. */
const MAX_CANDIDATES = 8;
const INITIAL_CAPACITY = 256;
/** Odd constants spread the bits of a product (Knuth, 6.4). */
const MULTIPLIER = 0x9e3779b1;

/** A text that ends like the one that was looked up: the first `end` tokens of the index, the last `length` of which match. */
export interface TokenMatch {
  readonly end: number;
  readonly length: number;
}

/**
 * An append-only list of tokens with hash chains, as compressors use them: for each context length, `heads` leads to the newest
 * position after a context with that hash, and `chains` from there to older ones. Collisions cost a comparison.
 */
export interface TokenIndex {
  readonly length: number;
  readonly sizeBytes: number;
  push(tokenId: number): void;
  /** Ends a text: no match crosses this place. */
  separate(): void;
  at(position: number): number;
  /** The longest of the newest places before `limit` that end like `tokens`; null: not even two tokens match. */
  find(tokens: readonly number[], limit?: number): TokenMatch | null;
  /** Up to `maxTokens` tokens after a position, within its text. */
  after(position: number, maxTokens: number): number[];
}

/** Marks the end of a text; no token has this id. */
const SEPARATOR = -1;

export function createTokenIndex(): TokenIndex {
  let length = 0;
  /** Tokens since the last separator: contexts do not reach beyond it. */
  let textLength = 0;
  let tokens = new Int32Array(INITIAL_CAPACITY);
  let chains = ORDERS.map(() => new Int32Array(INITIAL_CAPACITY + 1));
  let heads = ORDERS.map(() => new Int32Array(2 * INITIAL_CAPACITY));

  const slotOf = (hash: number, size: number): number => (hash >>> 0) & (size - 1);

  function link(end: number): void {
    for (const [i, order] of ORDERS.entries()) {
      if (textLength < order) continue;
      const head = heads[i]!;
      const slot = slotOf(hashOf(tokens, end, order), head.length);
      chains[i]![end] = head[slot]!;
      head[slot] = end;
    }
  }

  function grow(): void {
    const capacity = 2 * tokens.length;
    const old = tokens;
    tokens = new Int32Array(capacity);
    tokens.set(old);
    chains = ORDERS.map(() => new Int32Array(capacity + 1));
    heads = ORDERS.map(() => new Int32Array(2 * capacity));
    textLength = 0;
    for (let end = 1; end <= length; end++) {
      textLength = tokens[end - 1] === SEPARATOR ? 0 : textLength + 1;
      link(end);
    }
  }

  function append(tokenId: number): void {
    if (length === tokens.length) grow();
    tokens[length++] = tokenId;
    textLength = tokenId === SEPARATOR ? 0 : textLength + 1;
    link(length);
  }

  /** How many tokens before `end` equal the last ones of `query`. */
  function matchLength(query: readonly number[], end: number): number {
    const most = Math.min(MAX_MATCH, end, query.length);
    let count = 0;
    while (count < most && tokens[end - 1 - count] === query[query.length - 1 - count]) count++;
    return count;
  }

  return {
    get length() {
      return length;
    },
    get sizeBytes() {
      return 4 * (tokens.length + (chains[0]!.length + heads[0]!.length) * ORDERS.length);
    },
    push: append,
    separate: () => append(SEPARATOR),
    at: (position) => tokens[position]!,
    find(query, limit = length) {
      let best: TokenMatch | null = null;
      for (const [i, order] of ORDERS.entries()) {
        if (query.length < order) continue;
        const head = heads[i]!;
        let end = head[slotOf(hashOf(query, query.length, order), head.length)]!;
        for (let n = 0; n < MAX_CANDIDATES && end > 0; n++, end = chains[i]![end]!) {
          if (end >= limit || tokens[end] === SEPARATOR) continue;
          const count = matchLength(query, end);
          if (count >= MIN_ORDER && count > (best?.length ?? 0)) best = { end, length: count };
        }
        // A shorter context cannot match more.
        if (best !== null && best.length >= order) return best;
      }
      return best;
    },
    after(position, maxTokens) {
      const found: number[] = [];
      for (let at = position; at < length && found.length < maxTokens && tokens[at] !== SEPARATOR; at++) {
        found.push(tokens[at]!);
      }
      return found;
    },
  };
}

function hashOf(tokens: ArrayLike<number>, end: number, order: number): number {
  let hash = order;
  for (let i = end - order; i < end; i++) hash = Math.imul(hash ^ tokens[i]!, MULTIPLIER) ^ (hash >>> 15);
  return hash ^ (hash >>> 13);
}
