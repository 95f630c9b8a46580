import type { Clock } from '../core/clock.ts';
import type { ServerLimits } from './limits.ts';
import type { ChatMessage } from '../runtime/lower-layers.ts';

/** A response that can be read again, and continued. */
export interface StoredResponse {
  readonly id: string;
  /** As it was sent. */
  readonly body: object;
  /** The conversation up to its end, with everything before it, without instructions. */
  readonly messages: readonly ChatMessage[];
}

/** The last responses of each tenant, in memory. */
export interface ResponseStore {
  /** Keeps it at the cost of the oldest; one that is larger than all the place is not kept. */
  put(tenant: string, response: StoredResponse): void;
  /** null when it is unknown, forgotten or somebody else's. */
  find(tenant: string, id: string): StoredResponse | null;
  /** Whether there was one. */
  delete(tenant: string, id: string): boolean;
  readonly numBytes: number;
}

interface Entry {
  readonly response: StoredResponse;
  readonly numBytes: number;
  readonly endMs: number;
}

/** In the order of insertion: the first is the oldest, and the first to be over. */
interface Shelf {
  readonly entries: Map<string, Entry>;
  numBytes: number;
}

type StoreLimits = Pick<
  ServerLimits,
  'maxStoredResponses' | 'maxStoredBytes' | 'maxStoredBytesInAll' | 'storedResponseMs'
>;

/** What an entry and each of its messages take besides their text. */
const OVERHEAD_BYTES = 256;

export function createResponseStore(limits: StoreLimits, clock: Clock): ResponseStore {
  const { maxStoredResponses, maxStoredBytes, maxStoredBytesInAll, storedResponseMs } = limits;
  const shelves = new Map<string, Shelf>();
  let numBytes = 0;

  function remove(tenant: string, shelf: Shelf, id: string): boolean {
    const entry = shelf.entries.get(id);
    if (entry === undefined) return false;
    shelf.entries.delete(id);
    shelf.numBytes -= entry.numBytes;
    numBytes -= entry.numBytes;
    if (shelf.entries.size === 0) shelves.delete(tenant);
    return true;
  }

  const removeOldest = (tenant: string, shelf: Shelf): void =>
    void remove(tenant, shelf, shelf.entries.keys().next().value!);

  function removeOver(): void {
    const nowMs = clock.now();
    for (const [tenant, shelf] of shelves) {
      for (const [id, { endMs }] of shelf.entries) {
        if (endMs > nowMs) break;
        remove(tenant, shelf, id);
      }
    }
  }

  const isFull = (): boolean => numBytes > maxStoredBytesInAll;

  /** Whoever has most makes place: one tenant's many responses do not push out another's few. */
  function makeRoom(): void {
    while (isFull()) {
      let [largest] = shelves;
      for (const one of shelves) if (one[1].numBytes > largest![1].numBytes) largest = one;
      removeOldest(...largest!);
    }
  }

  return {
    get numBytes() {
      return numBytes;
    },
    put(tenant, response) {
      removeOver();
      const size = sizeOf(response);
      if (size > Math.min(maxStoredBytes, maxStoredBytesInAll) || maxStoredResponses === 0) return;
      const known = shelves.get(tenant);
      if (known !== undefined) remove(tenant, known, response.id);
      const shelf = shelves.get(tenant) ?? { entries: new Map<string, Entry>(), numBytes: 0 };
      shelves.set(tenant, shelf);
      shelf.entries.set(response.id, { response, numBytes: size, endMs: clock.now() + storedResponseMs });
      shelf.numBytes += size;
      numBytes += size;
      while (shelf.entries.size > maxStoredResponses || shelf.numBytes > maxStoredBytes) removeOldest(tenant, shelf);
      makeRoom();
    },
    find(tenant, id) {
      const entry = shelves.get(tenant)?.entries.get(id);
      return entry === undefined || entry.endMs <= clock.now() ? null : entry.response;
    },
    delete(tenant, id) {
      removeOver();
      const shelf = shelves.get(tenant);
      return shelf === undefined ? false : remove(tenant, shelf, id);
    },
  };
}

/** Two bytes a character, the most a string takes. Texts shared with other responses count in each: none is ever free. */
function sizeOf({ body, messages }: StoredResponse): number {
  let numChars = JSON.stringify(body).length;
  for (const { content, reasoning = '', toolCalls = [] } of messages) {
    numChars += content.length + reasoning.length;
    for (const call of toolCalls) numChars += call.name.length + call.arguments.length;
  }
  return 2 * numChars + OVERHEAD_BYTES * (1 + messages.length);
}
