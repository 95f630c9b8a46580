import type { DataOwner } from '../../core/erasure.ts';
import { checkKeys, refuse } from '../../core/options.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { showValue } from '../../core/show-value.ts';
import { canonicalJson } from '../common/canonical-json.ts';
import { hashText, nameId } from '../common/ids.ts';
import type { MemoryServices } from '../common/services.ts';
import type { EmbeddedText } from '../search/embed-text.ts';
import { checkTenantIsCallers } from '../state-tenant.ts';
import type { FieldCondition, JsonValue, MemoryRecord, MemoryStore } from '../types.ts';
import { argumentText, haveSameArguments } from './same-arguments.ts';

/** A tool as its owner declares it. */
export interface CacheableTool {
  readonly name: string;
  /** Whether it has no side effects. Only such tools are cached; MCP calls it `readOnlyHint`. */
  readonly isReadOnly: boolean;
  /** A tool of another version or schema shares nothing with this one. Default: none. */
  readonly version?: string;
}

/** The freshness that a caller of a tool accepts, and the owner of the result. */
export interface ToolCallOptions {
  /** Results may be at most this old; 0: never from the cache. */
  readonly maxAgeMs: number;
  /** Default `local`. */
  readonly tenant?: string;
  /** Results of one user are never given to another. Default: none. */
  readonly user?: string | null;
  /** The request that calls, with which the result is erased. Default: none. */
  readonly requestId?: string | null;
  /** Minimum cosine of the arguments' embeddings: 0.85 to 1. Default 0.85. */
  readonly minSimilarity?: number;
}

/** The result of a tool, new or from the cache. */
export interface ToolCallResult<T> {
  readonly result: T;
  /** `exact` and `similar`: from the cache; `joined`: of an equal call in progress. */
  readonly from: 'run' | 'exact' | 'similar' | 'joined';
  /** 0 for a call that ran. */
  readonly ageMs: number;
  /** Null: not stored or not from the store. */
  readonly id: string | null;
}

/** A stored result, without the result. */
export interface CachedCall {
  readonly id: string;
  readonly tool: string;
  readonly args: JsonValue;
  readonly userId: string | null;
  readonly storedMs: number;
  readonly sizeBytes: number;
}

/** Counts since this process started. */
export interface ToolCacheStats {
  readonly numCalls: number;
  readonly numRun: number;
  readonly numExact: number;
  readonly numSimilar: number;
  readonly numJoined: number;
  /** Near enough, but too old. */
  readonly numStale: number;
  /** Near enough, but the arguments differ in a word, number or name. */
  readonly numDifferent: number;
  /** Tools with side effects. */
  readonly numUncacheable: number;
  readonly numTooLarge: number;
  readonly numStored: number;
}

/** Caches the results of read-only tools by tool name, meaning of the arguments and age. */
export interface ToolCache {
  /**
   * Returns a result that is fresh enough, or calls `run` and stores its result. Errors are never stored. The arguments and the
   * result are JSON.
   */
  call<T extends JsonValue>(
    tool: CacheableTool,
    args: JsonValue,
    options: ToolCallOptions,
    run: () => Promise<T>,
  ): Promise<ToolCallResult<T>>;
  /** The newest first. */
  list(tenant: string, query: { readonly tool?: string; readonly limit: number; readonly after?: string }): Promise<{ readonly calls: readonly CachedCall[]; readonly next: string | null }>; // prettier-ignore
  stats(tenant: string): Promise<ToolCacheStats>;
  /** Deletes the results of one tool, or of all; returns their number. */
  clear(tenant: string, tool?: string): Promise<number>;
}

export interface ToolCacheContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  embed(text: string): Promise<EmbeddedText | null>;
  meet(tenant: string): Promise<void>;
  /** Whether data of this owner must not be written now. */
  isErasing(owner: DataOwner): boolean;
}

/** The name of its records. */
const NAME = 'tool-result';
/** Below it, arguments that differ only in empty words are rare; the comparison of words decides above it. */
export const MIN_SIMILARITY = 0.85;
const MAX_ARGS_CHARS = 1 << 16;
/** Of the JSON of a result; larger ones are not stored. */
const MAX_RESULT_CHARS = 1 << 20;
/** Results are deleted after this time, whatever age callers accept. */
const LIFE_MS = 7 * 86_400_000;
/** Similar calls that are compared word by word. */
const NUM_CANDIDATES = 8;
const PAGE = 500;
const OPTION_KEYS = ['maxAgeMs', 'tenant', 'user', 'requestId', 'minSimilarity'];
const TOOL_KEYS = ['name', 'isReadOnly', 'version'];

interface StoredCall {
  readonly tool: string;
  readonly args: JsonValue;
  readonly result: string;
  readonly storedMs: number;
}

/** A call that others with the same arguments may wait for. */
interface RunningCall {
  readonly startMs: number;
  readonly work: Promise<{ readonly result: JsonValue; readonly id: string | null }>;
}

const bodyOf = ({ body }: MemoryRecord): StoredCall => body as unknown as StoredCall;
const OURS: FieldCondition = { field: 'name', is: '=', value: NAME };

export function createToolCache({ store, services, embed, meet, isErasing }: ToolCacheContext): ToolCache {
  const counts = { numCalls: 0, numRun: 0, numExact: 0, numSimilar: 0, numJoined: 0, numStale: 0, numDifferent: 0, numUncacheable: 0, numTooLarge: 0 }; // prettier-ignore
  const running = new Map<string, RunningCall>();

  /** Null: of unknown age, because the clock went back. */
  const ageOf = (record: MemoryRecord): number | null => {
    const ageMs = services.now() - bodyOf(record).storedMs;
    return ageMs < 0 ? null : ageMs;
  };
  const isFresh = (record: MemoryRecord, maxAgeMs: number): boolean => {
    const ageMs = ageOf(record);
    return ageMs !== null && ageMs <= maxAgeMs;
  };

  async function similar(
    tenant: string,
    conditions: readonly FieldCondition[],
    args: JsonValue,
    embedded: EmbeddedText,
    { maxAgeMs, minSimilarity }: { readonly maxAgeMs: number; readonly minSimilarity: number },
  ): Promise<MemoryRecord | null> {
    const filter = { fields: conditions };
    const near = await store.nearest(tenant, { ...embedded, kinds: ['state'], k: NUM_CANDIDATES, filter, withVectors: false }); // prettier-ignore
    for (const { record, similarity } of near) {
      if (similarity < minSimilarity) break;
      if (!haveSameArguments(args, bodyOf(record).args)) counts.numDifferent++;
      else if (isFresh(record, maxAgeMs)) return record;
      else counts.numStale++;
    }
    return null;
  }

  return {
    async call<T extends JsonValue>(
      tool: CacheableTool,
      args: JsonValue,
      options: ToolCallOptions,
      run: () => Promise<T>,
    ) {
      checkKeys(tool, 'tool', TOOL_KEYS);
      checkKeys(options, 'toolCache.call', OPTION_KEYS);
      const { maxAgeMs, tenant = 'local', user = null, requestId = null, minSimilarity = MIN_SIMILARITY } = options;
      if (typeof maxAgeMs !== 'number' || !(maxAgeMs >= 0)) refuse(`option "maxAgeMs" must be 0 or more, got ${showValue(maxAgeMs)}`, 'maxAgeMs'); // prettier-ignore
      if (!(minSimilarity >= MIN_SIMILARITY && minSimilarity <= 1)) refuse(`option "minSimilarity" must be ${MIN_SIMILARITY} to 1, got ${showValue(minSimilarity)}`, 'minSimilarity'); // prettier-ignore
      checkTenantIsCallers(tenant);
      const startMs = services.now();
      counts.numCalls++;
      const runOnly = async (): Promise<ToolCallResult<T>> => {
        counts.numRun++;
        return { result: await run(), from: 'run', ageMs: 0, id: null };
      };
      if (tool.isReadOnly !== true) {
        counts.numUncacheable++;
        return runOnly();
      }
      const key = canonicalJson(args);
      if (maxAgeMs === 0 || key.length > MAX_ARGS_CHARS) return runOnly();
      const owner = user === null ? 'any' : `user ${user}`;
      const toolKey = hashText(services.sha256, canonicalJson([tool.name, tool.version ?? null]));
      const id = nameId(services.sha256, tenant, NAME, owner, toolKey, key);
      const [exact] = await store.get(tenant, [id]);
      if (exact != null && isFresh(exact, maxAgeMs)) {
        counts.numExact++;
        return { result: JSON.parse(bodyOf(exact).result) as T, from: 'exact', ageMs: ageOf(exact)!, id };
      }
      if (exact != null) counts.numStale++;
      const conditions: FieldCondition[] = [OURS, { field: 'tool', is: '=', value: toolKey }, { field: 'userId', is: '=', value: user }]; // prettier-ignore
      const embedded = await embed(argumentText(args).slice(0, MAX_ARGS_CHARS).toWellFormed());
      const found = embedded === null ? null : await similar(tenant, conditions, args, embedded, { maxAgeMs, minSimilarity }); // prettier-ignore
      if (found !== null) {
        counts.numSimilar++;
        return { result: JSON.parse(bodyOf(found).result) as T, from: 'similar', ageMs: ageOf(found)!, id: found.id };
      }
      const inProgress = running.get(id);
      // A slow call may have read its data longer ago than this caller accepts.
      if (inProgress !== undefined && services.now() - inProgress.startMs <= maxAgeMs) {
        counts.numJoined++;
        const joined = await inProgress.work;
        return { result: structuredClone(joined.result) as T, from: 'joined', ageMs: 0, id: joined.id };
      }
      const work = (async () => {
        counts.numRun++;
        const result = await run();
        const text = JSON.stringify(result);
        if (text === undefined) throw new RuvLLMError('invalid_option', `the result of ${tool.name} has no JSON form`);
        if (text.length > MAX_RESULT_CHARS) {
          counts.numTooLarge++;
          return { result, id: null };
        }
        if (isErasing({ tenant, userId: user, requestId })) return { result, id: null };
        // As old as its start: the tool may have read its data at any time since.
        const body = { tool: tool.name, args, result: text.toWellFormed(), storedMs: Math.floor(startMs) };
        const fields = { name: NAME, tool: toolKey, userId: user, requestId };
        await meet(tenant);
        await store.put([{ id, tenant, kind: 'state', expiresMs: body.storedMs + LIFE_MS, fields, body, vector: embedded?.vector ?? null, space: embedded?.space ?? null }]); // prettier-ignore
        return { result, id };
      })();
      const call = { startMs, work };
      running.set(id, call);
      try {
        const done = await work;
        return { result: done.result as T, from: 'run', ageMs: 0, id: done.id };
      } finally {
        if (running.get(id) === call) running.delete(id);
      }
    },
    async list(tenant, { tool, limit, after }) {
      const calls: CachedCall[] = [];
      const more = after === undefined ? {} : { after };
      const page = await store.find(tenant, { kinds: ['state'], filter: { fields: [OURS] }, order: 'newest', limit, ...more }); // prettier-ignore
      for (const record of page.records) {
        const { tool: name, args, storedMs, result } = bodyOf(record);
        if (tool !== undefined && name !== tool) continue;
        calls.push({ id: record.id, tool: name, args, userId: record.fields['userId'] as string | null, storedMs, sizeBytes: result.length }); // prettier-ignore
      }
      return { calls, next: page.next };
    },
    stats: async (tenant) => ({
      ...counts,
      numStored: await store.count(tenant, { kinds: ['state'], filter: { fields: [OURS] } }),
    }),
    async clear(tenant, tool) {
      const ids: string[] = [];
      let after: string | undefined;
      do {
        const more = after === undefined ? {} : { after };
        const page = await store.find(tenant, { kinds: ['state'], filter: { fields: [OURS] }, order: 'oldest', limit: PAGE, ...more }); // prettier-ignore
        for (const record of page.records) if (tool === undefined || bodyOf(record).tool === tool) ids.push(record.id);
        after = page.next ?? undefined;
      } while (after !== undefined);
      for (let from = 0; from < ids.length; from += PAGE) await store.delete(tenant, ids.slice(from, from + PAGE));
      return ids.length;
    },
  };
}
