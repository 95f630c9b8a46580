import { RuvLLMError } from '../../core/errors.ts';
import { createRandom } from '../../core/random.ts';

/** A uniform sample of all that ever passed, of bounded size (Vitter's algorithm R). */
export interface Reservoir<T> {
  readonly numSeen: number;
  readonly items: readonly T[];
  add(item: T): void;
}

/** 1 000 on small machines, 100 000 on servers; more than a million is a mistake. */
export function createReservoir<T>(capacity: number, seed: number): Reservoir<T> {
  if (!(Number.isSafeInteger(capacity) && capacity >= 1 && capacity <= 1_000_000))
    throw new RuvLLMError('invalid_option', `a reservoir holds 1 to 1000000 items, not ${capacity}`);
  const random = createRandom(seed);
  const items: T[] = [];
  let numSeen = 0;
  return {
    get numSeen() {
      return numSeen;
    },
    items,
    add(item) {
      numSeen += 1;
      if (items.length < capacity) items.push(item);
      else {
        const at = Math.floor(random.next() * numSeen);
        if (at < capacity) items[at] = item;
      }
    },
  };
}
