import { RuvLLMError } from '../../core/errors.ts';
import type { KvCache } from '../../kv-cache/kv-cache.ts';
import type { Reservation, SpillSpace, SpillStore } from '../../kv-cache/types.ts';
import { createLearnedDrafts } from './learned-drafts.ts';
import type { DraftSource } from './types.ts';

/** Share of the memory budget that earlier answers may take. */
const MAX_BUDGET_SHARE = 1 / 16;
const MAX_BYTES = 64 * 2 ** 20;
/** New answers of a tenant before its file is written again. A crash loses fewer, and then only time. */
const SAVE_EVERY = 8;

/** Earlier answers of tenants, inside the memory budget of the engine and on disk beside its pages. */
export interface DraftMemory {
  open(tenant: string): DraftSource;
  /** Remembers a finished answer at the next `settle`. */
  add(tenant: string, tokens: readonly number[], numPromptTokens: number): void;
  /** Between two steps: takes new answers and stored ones into memory, as far as the budget allows. */
  settle(): void;
  readonly hasWork: boolean;
  /** Between two steps: writes the answers of one tenant to disk. */
  work(): void;
  /** Bytes of the budget that are reserved for it. */
  readonly reservedBytes: number;
  forget(tenant: string): void;
  clear(): void;
  /** Drops the oldest answers until a slab is free; false: it has none. */
  giveSlab(): boolean;
  /** Answers of a tenant in memory. */
  count(tenant: string): number;
  /** Writes what is not on disk yet. */
  dispose(): void;
}

export interface DraftMemoryOptions {
  readonly cache: Pick<KvCache, 'reserve' | 'unreserve' | 'slabBytes'>;
  readonly budgetBytes: number;
  readonly spill: SpillStore | null;
  readonly modelHash: string;
}

interface Answer {
  readonly tenant: string;
  readonly tokens: readonly number[];
  readonly numPromptTokens: number;
}

export function createDraftMemory({ cache, budgetBytes, spill, modelHash }: DraftMemoryOptions): DraftMemory {
  const learned = createLearnedDrafts();
  const maxBytes = Math.min(MAX_BYTES, budgetBytes * MAX_BUDGET_SHARE);
  const reservations: Reservation[] = [];
  let answers: Answer[] = [];
  /** It must not make room for itself. */
  let isFitting = false;
  /** Tenants whose stored answers were looked for, and those for whom that is still to be done. */
  const known = new Set<string>();
  const unread = new Set<string>();
  const reservedBytes = (): number => reservations.length * cache.slabBytes;

  /** Stored answers are a page of a namespace of their own: sealed, limited and erased like all pages of the tenant. */
  function spaceOf(tenant: string): { space: SpillSpace; key: string } {
    const space = spill!.open({ tenant, modelHash: `${modelHash} drafts`, adapterHash: null, policy: 'tokens' });
    return { space, key: space.childKey(space.rootKey, [0]) };
  }

  function restore(tenant: string): void {
    unread.delete(tenant);
    known.add(tenant);
    if (spill === null) return;
    const { space, key } = spaceOf(tenant);
    const bytes = space.has(key) ? space.read(key)?.bytes : undefined;
    // Another length or content is from another version: it is written anew.
    if (bytes !== undefined && bytes.length % 4 === 0) learned.restore(tenant, new Int32Array(bytes.slice().buffer));
  }

  function save(tenant: string): void {
    const stored = learned.takeChanges(tenant);
    if (stored === null || spill === null) return;
    const { space, key } = spaceOf(tenant);
    space.write(key, 'float', new Uint8Array(stored.buffer));
  }

  /** Reserves as much of the budget as the answers take; drops the oldest where that is too much. */
  function fit(): void {
    isFitting = true;
    try {
      while (learned.sizeBytes > reservedBytes()) {
        const isWithin = reservedBytes() + cache.slabBytes <= Math.max(maxBytes, cache.slabBytes);
        if (!isWithin || !tryReserve()) learned.shrink();
      }
    } finally {
      isFitting = false;
    }
  }

  /** Idle pages of prefixes make room; a sequence of full length keeps its own. */
  function tryReserve(): boolean {
    try {
      reservations.push(cache.reserve(cache.slabBytes));
      return true;
    } catch (error) {
      if (error instanceof RuvLLMError && error.code === 'out_of_memory') return false;
      throw error;
    }
  }

  function release(): void {
    while (reservations.length > 0 && reservedBytes() - cache.slabBytes >= learned.sizeBytes) {
      cache.unreserve(reservations.pop()!);
    }
  }

  return {
    open(tenant) {
      if (!known.has(tenant)) unread.add(tenant);
      return learned.open(tenant);
    },
    add: (tenant, tokens, numPromptTokens) => void answers.push({ tenant, tokens, numPromptTokens }),
    settle() {
      if (unread.size === 0 && answers.length === 0) return;
      for (const tenant of unread) restore(tenant);
      const added = answers;
      answers = [];
      for (const { tenant, tokens, numPromptTokens } of added) learned.add(tenant, tokens, numPromptTokens);
      fit();
    },
    get hasWork() {
      return spill !== null && learned.tenants.some((tenant) => learned.numChanges(tenant) >= SAVE_EVERY);
    },
    work() {
      const tenant = learned.tenants.find((one) => learned.numChanges(one) >= SAVE_EVERY);
      if (tenant !== undefined) save(tenant);
    },
    get reservedBytes() {
      return reservedBytes();
    },
    forget(tenant) {
      answers = answers.filter((answer) => answer.tenant !== tenant);
      known.delete(tenant);
      unread.delete(tenant);
      learned.forget(tenant);
      release();
    },
    giveSlab() {
      if (reservations.length === 0 || isFitting) return false;
      while (learned.sizeBytes > reservedBytes() - cache.slabBytes) learned.shrink();
      cache.unreserve(reservations.pop()!);
      return true;
    },
    clear() {
      answers = [];
      for (const tenant of learned.tenants) learned.forget(tenant);
      release();
    },
    count: (tenant) => learned.count(tenant),
    dispose() {
      for (const tenant of learned.tenants) if (learned.numChanges(tenant) > 0) save(tenant);
    },
  };
}
