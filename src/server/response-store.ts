import type { Clock } from '../core/clock.ts';
import { covers, type DataOwner, type ErasurePart, type ErasureSubject } from '../core/erasure.ts';
import type { ServerLimits } from './limits.ts';
import type { ChatMessage } from '../runtime/lower-layers.ts';

/** A response that can be read and continued later. */
export interface StoredResponse {
  readonly id: string;
  readonly body: object;
  /** The whole conversation including this response, without instructions. */
  readonly messages: readonly ChatMessage[];
  /** The requests of the conversation and their users. */
  readonly owners: readonly Omit<DataOwner, 'tenant'>[];
}

/** Recent responses of each tenant, in memory. */
export interface ResponseStore {
  /** Stores a response, evicting the oldest; one larger than the limit is not stored. */
  put(tenant: string, response: StoredResponse): void;
  /** Null: unknown, evicted or of another tenant. */
  find(tenant: string, id: string): StoredResponse | null;
  /** False: not found. */
  delete(tenant: string, id: string): boolean;
  readonly numBytes: number;
  /** Erases responses of a tenant, or those whose conversation contains a request of the subject. */
  readonly erasure: ErasurePart;
}

interface Entry {
  readonly response: StoredResponse;
  readonly numBytes: number;
  readonly endMs: number;
}

/** In insertion order: the oldest response, which expires first, is first. */
interface Shelf {
  readonly entries: Map<string, Entry>;
  numBytes: number;
}

type StoreLimits = Pick<
  ServerLimits,
  'maxStoredResponses' | 'maxStoredBytes' | 'maxStoredBytesInAll' | 'storedResponseMs'
>;

/** Bytes of an entry and of each message besides their text. */
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

  function removeExpired(): void {
    const nowMs = clock.now();
    for (const [tenant, shelf] of shelves) {
      for (const [id, { endMs }] of shelf.entries) {
        if (endMs > nowMs) break;
        remove(tenant, shelf, id);
      }
    }
  }

  /** Ids of responses whose conversation contains a request of the subject. */
  const idsOf = (subject: ErasureSubject): string[] =>
    [...(shelves.get(subject.tenant)?.entries ?? [])].flatMap(([id, { response }]) =>
      response.owners.some((owner) => covers(subject, { tenant: subject.tenant, ...owner })) ? [id] : [],
    );

  const isFull = (): boolean => numBytes > maxStoredBytesInAll;

  /** Evicts from the tenant with the most bytes, so that one tenant cannot displace the others. */
  function makeRoom(): void {
    while (isFull()) {
      let [largest] = shelves;
      for (const item of shelves) if (item[1].numBytes > largest![1].numBytes) largest = item;
      removeOldest(...largest!);
    }
  }

  return {
    erasure: {
      name: 'stored responses',
      async erase(subject) {
        for (const id of idsOf(subject)) remove(subject.tenant, shelves.get(subject.tenant)!, id);
      },
      count: async (subject) => idsOf(subject).length,
    },
    get numBytes() {
      return numBytes;
    },
    put(tenant, response) {
      removeExpired();
      const size = sizeOf(response);
      if (size > Math.min(maxStoredBytes, maxStoredBytesInAll) || maxStoredResponses === 0) return;
      const existing = shelves.get(tenant);
      if (existing !== undefined) remove(tenant, existing, response.id);
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
      removeExpired();
      const shelf = shelves.get(tenant);
      return shelf === undefined ? false : remove(tenant, shelf, id);
    },
  };
}

/** Two bytes per character, the most a string takes. Text shared by several responses counts in each. */
function sizeOf({ body, messages }: StoredResponse): number {
  let numChars = JSON.stringify(body).length;
  for (const { content, reasoning = '', toolCalls = [] } of messages) {
    numChars += content.length + reasoning.length;
    for (const call of toolCalls) numChars += call.name.length + call.arguments.length;
  }
  return 2 * numChars + OVERHEAD_BYTES * (1 + messages.length);
}
