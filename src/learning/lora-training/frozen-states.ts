/**
 * Results that depend on the tokens alone, such as hidden states below the lowest trained layer: an example of a later epoch starts at that
 * layer, and with two trained layers of 22 that is a tenth of the forward pass.
 */
export interface FrozenStates {
  find(tokenIds: ArrayLike<number>): Float32Array | null;
  /** Copies the states, if there is room. */
  keep(tokenIds: ArrayLike<number>, states: Float32Array): void;
}

/** 32 examples of 512 tokens with 2048 numbers each. */
const MAX_BYTES = 128 * 2 ** 20;

export function createFrozenStates(maxBytes = MAX_BYTES): FrozenStates {
  const entries = new Map<string, { readonly states: Float32Array; usedAt: number }>();
  let sizeBytes = 0;
  let numFinds = 0;
  const keyOf = (tokenIds: ArrayLike<number>): string => Array.from(tokenIds).join(',');

  return {
    find(tokenIds) {
      numFinds++;
      const key = keyOf(tokenIds);
      const entry = entries.get(key);
      if (entry === undefined) return null;
      entry.usedAt = numFinds;
      // The map is ordered by the last use.
      entries.delete(key);
      entries.set(key, entry);
      return entry.states;
    },
    keep(tokenIds, states) {
      const key = keyOf(tokenIds);
      if (entries.has(key) || states.byteLength > maxBytes) return;
      // Epochs visit all examples in turn: dropping the least recently used one for each new one would leave nothing to find. Only those
      // that two rounds have not used, such as the samples of an earlier round, make room.
      for (const [oldest, { states: dropped, usedAt }] of entries) {
        if (sizeBytes + states.byteLength <= maxBytes || numFinds - usedAt <= 2 * entries.size) break;
        entries.delete(oldest);
        sizeBytes -= dropped.byteLength;
      }
      if (sizeBytes + states.byteLength > maxBytes) return;
      entries.set(key, { states: states.slice(), usedAt: numFinds });
      sizeBytes += states.byteLength;
    },
  };
}
