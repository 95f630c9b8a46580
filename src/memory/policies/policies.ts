import { RuvLLMError } from '../../core/errors.ts';
import { integerOption, resolveOptions } from '../../core/options.ts';
import { nameId } from '../common/ids.ts';
import { createLruMap } from '../common/lru-map.ts';
import { isConflict, retryConflict } from '../common/retry-conflict.ts';
import type { MemoryServices } from '../common/services.ts';
import {
  policyFromRecord,
  policyKey,
  policyToRecord,
  type PolicyEntry,
  type PolicyOf,
  type PolicyParameters,
  type PolicySource,
  type PolicyType,
} from '../schemas/policy.ts';
import type { MemoryRecord, MemoryStore } from '../types.ts';
import { defaultPolicy } from './defaults.ts';

export interface PolicyOptions {
  /** How long a cached policy is valid. Default 30 s. */
  readonly ttlMs?: number;
  /** Maximum cached policies. Default 1024. */
  readonly cacheEntries?: number;
  /** Older versions kept per policy. Default 20. */
  readonly maxHistory?: number;
}

export interface NewPolicy<T extends PolicyType> {
  readonly policyType: T;
  /** Default `main`. */
  readonly name?: string;
  readonly parameters: PolicyParameters<T>;
  readonly confidence: number;
  readonly source: Exclude<PolicySource, 'default'>;
  readonly reason?: string;
  readonly fisherDiagonal?: Float32Array | null;
  readonly embedding?: Float32Array | null;
  readonly space?: string | null;
}

/** A rollback to a rollback keeps the first reason only. */
const ROLLBACK_PREFIX = /^(?:back to version \d+(?:: |$))+/;

export interface PolicyMemory {
  /** The current policy: the stored one, the bundled default (version 0, source `default`), or null. */
  get<T extends PolicyType>(tenant: string, type: T, name?: string): Promise<PolicyOf<T> | null>;
  /** The cached policy; undefined on a cache miss. */
  peek<T extends PolicyType>(tenant: string, type: T, name?: string): PolicyOf<T> | null | undefined;
  /** Reads the stored policy past the cache, because another process may have changed it; `get` and `peek` return it from then on. */
  refresh(tenant: string, type: PolicyType, name?: string): Promise<void>;
  /** Adds a version; the previous one stays in the history. */
  put<T extends PolicyType>(tenant: string, policy: NewPolicy<T>): Promise<PolicyOf<T>>;
  /** Stored versions, newest first. */
  history<T extends PolicyType>(tenant: string, type: T, name?: string): Promise<readonly PolicyOf<T>[]>;
  /** Restores an older version as a new version. */
  rollback<T extends PolicyType>(tenant: string, type: T, toVersion: number, name?: string): Promise<PolicyOf<T>>;
  /** Deletes a policy and its history; the default applies again. */
  remove(tenant: string, type: PolicyType, name?: string): Promise<boolean>;
  /** Stores the access times collected by reads; returns the number written. */
  flushAccess(): Promise<number>;
}

interface Cached {
  readonly policy: PolicyEntry | null;
  readonly untilMs: number;
  readonly readMs: number;
  accessedMs: number;
  /** Record version; 0: not stored. */
  readonly version: number;
  readonly tenant: string;
}

function freeze(policy: PolicyEntry): PolicyEntry {
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return;
    Object.values(value).forEach(visit);
    Object.freeze(value);
  };
  visit(policy);
  return policy;
}

export function createPolicyMemory(
  store: MemoryStore,
  services: MemoryServices,
  options?: PolicyOptions,
): PolicyMemory {
  const { ttlMs, cacheEntries, maxHistory } = resolveOptions<Required<PolicyOptions>>('policies', options, {
    ttlMs: integerOption(30_000, 0, 86_400_000),
    cacheEntries: integerOption(1024, 1, 1_000_000),
    maxHistory: integerOption(20, 0, 900),
  });
  const cache = createLruMap<Cached>(cacheEntries);
  const keyOf = (tenant: string, type: PolicyType, name: string): string =>
    `${tenant.length}:${tenant}${policyKey(type, name)}`;
  const currentId = (tenant: string, type: PolicyType, name: string): string =>
    nameId(services.sha256, tenant, 'policy', type, name);
  const versionId = (tenant: string, policy: PolicyEntry): string =>
    nameId(services.sha256, tenant, 'policy', policy.policyType, policy.name, String(policy.policyVersion));

  const remember = (
    tenant: string,
    type: PolicyType,
    name: string,
    policy: PolicyEntry | null,
    version: number,
  ): PolicyEntry | null => {
    const nowMs = services.now();
    const frozen = policy === null ? null : freeze(policy);
    cache.set(keyOf(tenant, type, name), {
      policy: frozen,
      untilMs: nowMs + ttlMs,
      readMs: nowMs,
      accessedMs: 0,
      version,
      tenant,
    });
    return frozen;
  };
  const load = async (
    tenant: string,
    type: PolicyType,
    name: string,
  ): Promise<{ policy: PolicyEntry | null; version: number }> => {
    const [record] = await store.get(tenant, [currentId(tenant, type, name)]);
    return record ? { policy: policyFromRecord(record), version: record.version } : { policy: null, version: 0 };
  };
  const peek = (tenant: string, type: PolicyType, name: string): PolicyEntry | null | undefined => {
    const cached = cache.get(keyOf(tenant, type, name));
    const nowMs = services.now();
    // After the clock goes back, `untilMs` alone would keep an entry too long.
    if (cached === undefined || nowMs >= cached.untilMs || nowMs < cached.readMs) return undefined;
    cached.accessedMs = nowMs;
    return cached.policy;
  };
  const findVersions = async (tenant: string, type: PolicyType, name: string): Promise<readonly MemoryRecord[]> => {
    const filter = { fields: [{ field: 'policyKey', is: '=', value: policyKey(type, name) }] } as const;
    const { records } = await store.find(tenant, { kinds: ['policy'], filter, order: 'newest', limit: 1000 });
    return [...records].sort((a, b) => Number(b.fields['policyVersion']) - Number(a.fields['policyVersion']));
  };
  const trimHistory = async (tenant: string, type: PolicyType, name: string): Promise<void> => {
    const old = (await findVersions(tenant, type, name)).slice(maxHistory + 1);
    if (old.length > 0) await store.delete(tenant, old.map(({ id }) => id)); // prettier-ignore
  };
  const write = async (
    tenant: string,
    make: (version: number, nowMs: number) => PolicyEntry,
    type: PolicyType,
    name: string,
  ): Promise<PolicyEntry> => {
    const policy = await retryConflict(async () => {
      const { policy: before, version } = await load(tenant, type, name);
      const next = make((before?.policyVersion ?? 0) + 1, Math.floor(services.now()));
      const current = policyToRecord(next, { id: currentId(tenant, type, name), tenant, isCurrent: true });
      const puts = [{ ...current, createdMs: next.createdMs, ifVersion: version }];
      if (before !== null) {
        const past = policyToRecord(before, { id: versionId(tenant, before), tenant, isCurrent: false });
        puts.push({ ...past, createdMs: before.createdMs, ifVersion: 0 });
      }
      cache.delete(keyOf(tenant, type, name));
      await store.put(puts);
      return remember(tenant, type, name, next, version + 1)!;
    });
    if (policy.policyVersion > maxHistory + 1) await trimHistory(tenant, type, name);
    return policy;
  };
  const history = async (tenant: string, type: PolicyType, name: string): Promise<readonly PolicyEntry[]> =>
    (await findVersions(tenant, type, name)).map(policyFromRecord);

  return {
    peek: (tenant, type, name = 'main') => peek(tenant, type, name) as never,
    async get(tenant, type, name = 'main') {
      const cached = peek(tenant, type, name);
      if (cached !== undefined) return cached as never;
      const { policy, version } = await load(tenant, type, name);
      remember(tenant, type, name, policy ?? defaultPolicy(type, name), version);
      return (peek(tenant, type, name) as never) ?? ((policy ?? defaultPolicy(type, name)) as never);
    },
    async refresh(tenant, type, name = 'main') {
      const { policy, version } = await load(tenant, type, name);
      // An older read must not replace what this process has written since; version 0 is a removal.
      const cached = cache.peek(keyOf(tenant, type, name));
      if (cached !== undefined && version !== 0 && cached.version >= version) return;
      remember(tenant, type, name, policy ?? defaultPolicy(type, name), version);
    },
    put: (tenant, { policyType, name = 'main', ...policy }) =>
      write(
        tenant,
        (policyVersion, nowMs) =>
          ({
            reason: '',
            fisherDiagonal: null,
            embedding: null,
            space: null,
            ...policy,
            policyType,
            name,
            policyVersion,
            createdMs: nowMs,
            lastAccessedMs: nowMs,
          }) as PolicyEntry,
        policyType,
        name,
      ) as never,
    history: (tenant, type, name = 'main') => history(tenant, type, name) as never,
    async rollback(tenant, type, toVersion, name = 'main') {
      const target = (await history(tenant, type, name)).find(({ policyVersion }) => policyVersion === toVersion);
      if (target === undefined) {
        throw new RuvLLMError('not_found', `policy ${type} "${name}" has no version ${toVersion}`, {
          data: { toVersion },
        });
      }
      const origin = target.reason.replace(ROLLBACK_PREFIX, '');
      const reason = `back to version ${toVersion}${origin === '' ? '' : `: ${origin}`}`.slice(0, 1024);
      const make = (policyVersion: number, nowMs: number): PolicyEntry => ({
        ...target,
        policyVersion,
        reason,
        createdMs: nowMs,
        lastAccessedMs: nowMs,
      });
      return write(tenant, make, type, name) as never;
    },
    async remove(tenant, type, name = 'main') {
      const records = await findVersions(tenant, type, name);
      const isRemoved = records.length > 0 && (await store.delete(tenant, records.map(({ id }) => id))) > 0; // prettier-ignore
      remember(tenant, type, name, defaultPolicy(type, name), 0);
      return isRemoved;
    },
    async flushAccess() {
      let numWritten = 0;
      for (const [key, cached] of cache.entries()) {
        const { policy, tenant, version, accessedMs } = cached;
        if (policy === null || version === 0 || accessedMs <= policy.lastAccessedMs) continue;
        const next = { ...policy, lastAccessedMs: Math.floor(accessedMs) };
        const id = currentId(tenant, policy.policyType, policy.name);
        try {
          await store.put([{ ...policyToRecord(next, { id, tenant, isCurrent: true }), ifVersion: version }]);
          // Neither the LRU order nor the expiry of the entry changes.
          if (cache.peek(key) === cached) cache.replace(key, { ...cached, policy: freeze(next), version: version + 1 });
          numWritten++;
        } catch (error) {
          // Replaced meanwhile: the access time belongs to the old version.
          if (!isConflict(error)) throw error;
          cache.delete(key);
        }
      }
      return numWritten;
    },
  };
}
