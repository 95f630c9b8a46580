import { createTokenIndex, type TokenIndex } from './token-index.ts';
import type { DraftSource } from './types.ts';

/** Tokens of a prompt's end that are kept with its answer: they hold the question. */
const PROMPT_TAIL = 64;
/** Shorter answers save nothing. */
const MIN_ANSWER = 4;
const MAX_ANSWER = 4096;

export interface LearnedDraftsOptions {
  /** Tokens kept for one tenant; the oldest answers are dropped. Default 65,536. */
  readonly maxTokens?: number;
  /** Tenants kept; the longest unused is dropped. Default 64. */
  readonly maxTenants?: number;
}

/** Earlier answers of each tenant: their questions are often asked again. Tenants never see each other's. */
export interface LearnedDrafts {
  /** The source of one sequence. */
  open(tenant: string): DraftSource;
  /** Remembers a finished answer. */
  add(tenant: string, tokens: readonly number[], numPromptTokens: number): void;
  /** Drops the older half of the answers of the tenant that was idle longest. */
  shrink(): void;
  /** Answers that were added since the last `takeChanges`. */
  numChanges(tenant: string): number;
  /** All answers of a tenant, oldest first, for storing; null: unchanged since the last call. */
  takeChanges(tenant: string): Int32Array | null;
  /** Adds stored answers below newer ones; false: not in this format. */
  restore(tenant: string, stored: Int32Array): boolean;
  forget(tenant: string): void;
  /** Answers kept for a tenant. */
  count(tenant: string): number;
  readonly tenants: readonly string[];
  readonly sizeBytes: number;
}

interface Store {
  index: TokenIndex;
  /** By content, oldest first: an answer that comes again becomes the newest. */
  readonly answers: Map<string, readonly number[]>;
  numTokens: number;
  numChanges: number;
}

export function createLearnedDrafts({ maxTokens = 65_536, maxTenants = 64 }: LearnedDraftsOptions = {}): LearnedDrafts {
  /** Least recently used first. */
  const stores = new Map<string, Store>();

  function storeOf(tenant: string): Store {
    const store = stores.get(tenant) ?? {
      index: createTokenIndex(),
      answers: new Map(),
      numTokens: 0,
      numChanges: 0,
    };
    stores.delete(tenant);
    stores.set(tenant, store);
    for (const oldest of stores.keys()) {
      if (stores.size <= maxTenants) break;
      stores.delete(oldest);
    }
    return store;
  }

  function keep(store: Store, answer: readonly number[]): void {
    const key = answer.join();
    const isNew = !store.answers.delete(key);
    store.answers.set(key, answer);
    if (!isNew) return;
    store.numChanges++;
    append(store.index, answer);
    store.numTokens += answer.length;
    if (store.numTokens > maxTokens) dropOldest(store, maxTokens / 2);
  }

  /** Much of it at once, because the index is built again. */
  function dropOldest(store: Store, goalTokens: number): void {
    for (const [key, answer] of store.answers) {
      if (store.numTokens <= goalTokens) break;
      store.answers.delete(key);
      store.numTokens -= answer.length;
    }
    store.index = createTokenIndex();
    for (const answer of store.answers.values()) append(store.index, answer);
  }

  return {
    open: (tenant) => ({
      propose(tokens, maxDraft) {
        const index = stores.get(tenant)?.index;
        const match = index?.find(tokens) ?? null;
        if (match === null) return null;
        return { source: 'learned', tokens: index!.after(match.end, maxDraft), evidence: match.length };
      },
    }),
    add(tenant, tokens, numPromptTokens) {
      if (tokens.length - numPromptTokens < MIN_ANSWER) return;
      const start = Math.max(0, numPromptTokens - PROMPT_TAIL);
      keep(storeOf(tenant), tokens.slice(start, numPromptTokens + MAX_ANSWER));
    },
    shrink() {
      for (const [tenant, store] of stores) {
        if (store.answers.size > 1) dropOldest(store, store.numTokens / 2);
        else stores.delete(tenant);
        return;
      }
    },
    numChanges: (tenant) => stores.get(tenant)?.numChanges ?? 0,
    takeChanges(tenant) {
      const store = stores.get(tenant);
      if (store === undefined || store.numChanges === 0) return null;
      store.numChanges = 0;
      return encode([...store.answers.values()]);
    },
    restore(tenant, stored) {
      const answers = decode(stored);
      if (answers === null) return false;
      const store = storeOf(tenant);
      const newer = [...store.answers.values()];
      const { numChanges } = store;
      for (const answer of [...answers, ...newer]) keep(store, answer);
      store.numChanges = numChanges;
      return true;
    },
    forget: (tenant) => void stores.delete(tenant),
    count: (tenant) => stores.get(tenant)?.answers.size ?? 0,
    get tenants() {
      return [...stores.keys()];
    },
    get sizeBytes() {
      let sizeBytes = 0;
      // The key of an answer takes about as much as six numbers of each token.
      for (const { index, numTokens } of stores.values()) sizeBytes += index.sizeBytes + 14 * numTokens;
      return sizeBytes;
    },
  };
}

function append(index: TokenIndex, answer: readonly number[]): void {
  for (const id of answer) index.push(id);
  index.separate();
}

/** int32: the number of answers, then each with its length before it. */
function encode(answers: readonly (readonly number[])[]): Int32Array {
  return Int32Array.from([answers.length, ...answers.flatMap((answer) => [answer.length, ...answer])]);
}

function decode(stored: Int32Array): number[][] | null {
  const answers: number[][] = [];
  let at = 1;
  for (let i = 0; i < (stored[0] ?? 0); i++) {
    const length = stored[at++] ?? -1;
    if (length < 0 || at + length > stored.length) return null;
    answers.push([...stored.subarray(at, at + length)]);
    at += length;
  }
  return at === stored.length ? answers : null;
}
