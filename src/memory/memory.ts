import { RuvLLMError } from '../core/errors.ts';
import { createForeground, type Foreground } from './common/foreground.ts';
import type { MemoryServices, Schedule } from './common/services.ts';
import type { Embedder } from './embedder-types.ts';
import { createMemoryGraph, type MemoryGraph } from './graph/graph.ts';
import { createPolicyMemory, type PolicyMemory, type PolicyOptions } from './policies/policies.ts';
import { nodeFromRecord, nodeToRecord, type MemoryNode, NODE_KINDS } from './schemas/node.ts';
import { type AskMemory, type EmbeddedText, embedText } from './search/ask.ts';
import type { Rerank } from './search/rerank.ts';
import type { MemoryQuery, MemorySearchResult } from './search/search.ts';
import type { SessionOptions } from './sessions/options.ts';
import { createSessionIndex, type SessionIndex } from './sessions/sessions.ts';
import { createFinder, type FinderContext } from './search/finder.ts';
import type { NewMasterKey } from './remote/protocol.ts';
import { noteSpace } from './space-mark.ts';
import { checkTenantIsCallers, STATE_TENANT } from './state-tenant.ts';
import { checkKeys } from './store/checks.ts';
import { openTenantList } from './tenant-list.ts';
import type { JsonValue, MemoryRecord, MemoryStore, StoreStats } from './types.ts';
import { readManifests } from './audit/archive.ts';
import { removeOrphans } from './audit/orphans.ts';
import { openAuditLog, type RetentionOptions, type AuditArchive, type AuditLogOptions, type AuditLog, type AuditStats } from './audit/index.ts'; // prettier-ignore

/** Something to be remembered. */
export interface NewItem {
  readonly text: string;
  /** Default `document`. */
  readonly kind?: (typeof NODE_KINDS)[number];
  /** Where it came from. */
  readonly source?: string;
  readonly topic?: string;
  /** 0 to 1. */
  readonly quality?: number;
  readonly metadata?: Readonly<Record<string, JsonValue>>;
  /** Milliseconds since 1970. Default: never. */
  readonly expiresMs?: number;
}

export interface MemoryStats extends StoreStats {
  readonly audit: AuditStats;
  /** What makes the vectors; null: nothing, and nothing can be found by meaning. */
  readonly space: string | null;
}

export type { EmbeddedText };

/** Everything a runtime knows: what it was told, what it did, what it learned. Tenants share nothing. */
export interface Memory {
  readonly store: MemoryStore;
  readonly policies: PolicyMemory;
  readonly sessions: SessionIndex;
  readonly audit: AuditLog;
  readonly graph: MemoryGraph;
  readonly services: MemoryServices;
  /** Whose turn it is: what is written in the background gives way to questions. */
  readonly foreground: Pick<Foreground, 'isQuiet' | 'turn' | 'release'>;
  /** Null where the text has nothing to embed, or nothing can. */
  embed(text: string): Promise<EmbeddedText | null>;
  /** The id it has from now on. */
  add(tenant: string, item: NewItem): Promise<string>;
  get(tenant: string, id: string): Promise<MemoryNode | null>;
  remove(tenant: string, ids: readonly string[]): Promise<number>;
  /** Embeds a text and looks for what is near it, at the cost of one call of the memory's thread; null embedded where nothing can. */
  readonly ask: AskMemory;
  /** Over everything, by meaning. */
  search(tenant: string, query: MemoryQuery): Promise<MemorySearchResult>;
  /** Lets what was learned put in order what searches find, until what comes back is called. */
  useRerank(rerank: Rerank): () => void;
  /** Notes that a tenant has something here, so that its time limits are kept after a restart, too. */
  meet(tenant: string): Promise<void>;
  stats(tenant: string | null): Promise<MemoryStats>;
  /** Why what is written is kept in this process only, and lost with it; null: it is kept where it should be. */
  degraded(): string | null;
  /** Removes what has expired and archives what is old; runs by itself as long as the memory is open. */
  maintain(): Promise<void>;
  /** Another master key from now on, while everything goes on; `unsupported` where nothing is sealed. */
  rotateKey(to: NewMasterKey): Promise<void>;
  /** Hears of a tenant just before it is forgotten, until what comes back is called: what is in use of it elsewhere must go, too. */
  beforeErase(heard: (tenant: string) => Promise<void>): () => void;
  /** Forgets a tenant for good. */
  eraseTenant(tenant: string): Promise<void>;
  /** Writes what is left. */
  close(): Promise<void>;
}

export interface MemoryContext extends Omit<FinderContext, 'embedder' | 'graph' | 'rerank'> {
  readonly schedule: Schedule;
  readonly embedder: Embedder | null;
  readonly archive?: AuditArchive;
  /** Default: none, nothing is sealed. */
  readonly rotateKey?: (to: NewMasterKey) => Promise<void>;
  /** Called with errors from background work. */
  readonly report: (message: string) => void;
  readonly options?: MemoryOptions;
}

/** How the parts of a memory work; every field has a default. */
export interface MemoryOptions {
  readonly audit?: AuditLogOptions;
  readonly retention?: RetentionOptions;
  readonly sessions?: SessionOptions;
  readonly policies?: PolicyOptions;
}

const MAINTAIN_EVERY_MS = 60_000;
/** Expired records that are removed in one go, and sessions. */
const SWEEP_LIMIT = 1000;
/** Goes of one tidying: what expires faster than one go a minute must not pile up. */
const MAX_SWEEPS = 100;
const ITEM_KEYS = ['text', 'kind', 'source', 'topic', 'quality', 'metadata', 'expiresMs'];

const isExpired = ({ expiresMs }: MemoryRecord, nowMs: number): boolean => expiresMs !== null && expiresMs <= nowMs;

/** Binds the parts of the memory together. */
export async function openMemory(context: MemoryContext): Promise<Memory> {
  const { store, services, schedule, embedder, archive, report, options = {} } = context;
  const graph = createMemoryGraph(store, services);
  const foreground = createForeground(context.monotonic ?? services.now, schedule);
  const tenants = await openTenantList(store, services, STATE_TENANT);
  if (embedder !== null) await noteSpace(store, services, STATE_TENANT, embedder.fingerprint, report);
  let policies = createPolicyMemory(store, services, options.policies);
  let sessions = createSessionIndex(store, services, options.sessions);
  const audit = await openAuditLog({
    store,
    services,
    schedule,
    ...(archive === undefined ? {} : { archive }),
    ...(options.retention === undefined ? {} : { retention: options.retention }),
    foreground,
    log: { ...options.audit, stateTenant: STATE_TENANT },
  });
  let rerank: Rerank | null = null;
  const finder = embedder === null ? null : createFinder({ ...context, embedder, graph, rerank: () => rerank });

  const embedding = async (text: string): Promise<EmbeddedText | null> =>
    embedder === null ? null : embedText(embedder, text);
  const leaving = new Set<(tenant: string) => Promise<void>>();

  let hasOrphans = true;
  const isDegraded = (): boolean => context.degraded !== undefined && context.degraded() !== null;
  /** Once: what a killed process left in the archive. In another store than its own nothing would be named. */
  async function tidyArchive(): Promise<void> {
    if (!hasOrphans || archive === undefined || isDegraded()) return;
    await removeOrphans({ store, services, archive }, tenants.all(), () => !isDegraded());
    hasOrphans = false;
  }

  async function maintain(): Promise<void> {
    for (let i = 0; i < MAX_SWEEPS; i++) {
      if ((await store.sweepExpired(services.now(), SWEEP_LIMIT)) < SWEEP_LIMIT) break;
    }
    await policies.flushAccess();
    for (const tenant of tenants.all()) {
      await sessions.sweep(tenant, SWEEP_LIMIT);
      await audit.retain(tenant);
    }
    await tidyArchive();
  }

  let maintaining: Promise<void> = Promise.resolve();
  let isClosed = false;
  let cancel = (): void => {};
  const plan = (): void => {
    cancel = schedule(() => {
      maintaining = maintain()
        .catch((error: unknown) => report(`tidying the memory failed: ${error instanceof Error ? error.message : ''}`))
        .finally(() => {
          if (!isClosed) plan();
        });
    }, MAINTAIN_EVERY_MS);
  };
  plan();

  return {
    store,
    get policies() {
      return policies;
    },
    get sessions() {
      return sessions;
    },
    audit,
    graph,
    services,
    foreground,
    embed: embedding,
    async add(tenant, item) {
      checkTenantIsCallers(tenant);
      checkKeys(item, 'item', ITEM_KEYS);
      const { text, kind = 'document', source, topic, quality, metadata, expiresMs } = item;
      const id = services.newId();
      const embedded = typeof text === 'string' ? await embedding(text) : null;
      const node: MemoryNode = {
        id,
        kind,
        text,
        source: source ?? null,
        topic: topic ?? null,
        quality: quality ?? null,
        metadata: (metadata ?? {}) as MemoryNode['metadata'],
        expiresMs: expiresMs ?? null,
        embedding: embedded?.vector ?? null,
        space: embedded?.space ?? null,
      };
      const record = nodeToRecord(node, tenant);
      await tenants.add(tenant);
      await store.put([{ ...record, ifVersion: 0 }]);
      return id;
    },
    async get(tenant, id) {
      const [record] = await store.get(tenant, [id]);
      const isNode = record != null && (NODE_KINDS as readonly string[]).includes(record.kind);
      // What has expired is gone before it is swept; exchanges of sessions are theirs.
      if (!isNode || record.fields['sessionId'] != null || isExpired(record, services.now())) return null;
      return nodeFromRecord(record);
    },
    async remove(tenant, ids) {
      checkTenantIsCallers(tenant);
      return store.delete(tenant, ids);
    },
    async ask(tenant, question) {
      if (finder !== null) return foreground.run(() => finder.ask(tenant, question));
      return { embedded: null, near: null, found: null, embeddingMs: 0, nearMs: 0, searchMs: 0 };
    },
    async search(tenant, query) {
      if (finder !== null) return finder.search(tenant, query);
      throw new RuvLLMError('unsupported', 'the memory has no model to embed with, so nothing can be found by meaning');
    },
    useRerank(given) {
      rerank = given;
      return () => {
        if (rerank === given) rerank = null;
      };
    },
    async meet(tenant) {
      checkTenantIsCallers(tenant);
      await tenants.add(tenant);
    },
    stats: async (tenant) => ({
      ...(await store.stats(tenant)),
      audit: audit.stats(),
      space: embedder?.fingerprint ?? null,
    }),
    degraded: () => context.degraded?.() ?? null,
    maintain,
    async rotateKey(to) {
      if (context.rotateKey === undefined) throw new RuvLLMError('unsupported', 'this memory has no master key');
      await context.rotateKey(to);
    },
    beforeErase(heard) {
      leaving.add(heard);
      return () => void leaving.delete(heard);
    },
    async eraseTenant(tenant) {
      checkTenantIsCallers(tenant);
      for (const heard of leaving) await heard(tenant);
      await audit.flush().catch(() => {}); // what waits to be written would come back after the erasure
      // Of an erasure that was cut short the key may be gone already; it must still be brought to its end.
      const segments = archive === undefined ? [] : await readManifests(store, tenant).catch(() => []);
      await store.eraseTenant(tenant);
      // Nobody can open them any more; what fails here costs space, not secrecy.
      for (const { manifest } of segments) {
        await archive!.delete(manifest.file).catch(() => report(`the segment ${manifest.file} could not be deleted`));
      }
      await tenants.remove(tenant);
      // Their caches know the tenant still.
      policies = createPolicyMemory(store, services, options.policies);
      sessions = createSessionIndex(store, services, options.sessions);
      rerank?.forget(tenant);
    },
    async close() {
      isClosed = true;
      cancel();
      await maintaining;
      try {
        await policies.flushAccess();
        await audit.close();
      } finally {
        await store.close().finally(() => embedder?.close?.());
      }
    },
  };
}
