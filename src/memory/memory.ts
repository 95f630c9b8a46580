import { RuvLLMError } from '../core/errors.ts';
import type { ErasureReport, ErasureTarget } from '../core/erasure.ts';
import { type AgentMemory, createAgentMemory } from './agents/agent-memory.ts';
import { type BatchRecords, createBatchRecords } from './batches/batch-records.ts';
import { createErasure, type Erasure } from './erasure.ts';
import { atOnce, createEventually, type Eventually } from './common/eventually.ts';
import { createPauses } from './common/pauses.ts';
import { createForeground, type Foreground } from './common/foreground.ts';
import type { MemoryServices, Schedule } from './common/services.ts';
import { createDocuments, type Documents } from './documents/documents.ts';
import type { DivideDocument } from './documents/divide-document.ts';
import type { Embedder } from './embedder-types.ts';
import { createMemoryGraph, type MemoryGraph } from './graph/graph.ts';
import { createPolicyMemory, type PolicyMemory, type PolicyOptions } from './policies/policies.ts';
import { nodeFromRecord, nodeToRecord, type MemoryNode, NODE_KINDS } from './schemas/node.ts';
import type { AskMemory } from './search/ask.ts';
import { type EmbeddedText, embedText } from './search/embed-text.ts';
import type { Rerank } from './search/rerank.ts';
import type { MemoryQuery, MemorySearchResult } from './search/search.ts';
import { createSessionIndex, type SessionIndex, type SessionOptions } from './sessions/sessions.ts';
import { createWaitingTurns, type WaitingTurns } from './sessions/waiting-turns.ts';
import { createFinder, type FinderContext } from './search/finder.ts';
import { createStoredRecords, type StoredRecords } from './stored/stored-records.ts';
import type { BackupReport, NewMasterKey } from './remote/protocol.ts';
import { noteSpace, readSpace } from './space-mark.ts';
import { createReindex, forgetReindex, type Reindex, type ReindexProgress } from './reindex.ts';
import { checkTenantIsCallers, STATE_TENANT } from './state-tenant.ts';
import { checkKeys } from '../core/options.ts';
import { openTenantList } from './tenant-list.ts';
import { createToolCache, type ToolCache } from './tool-cache/tool-cache.ts';
import { type WatchStore, createWriteLocks, watchStore } from './watched-store.ts';
import type { JsonValue, MemoryRecord, MemoryStore, StoreStats } from './types.ts';
import { removeOrphans } from './audit/orphans.ts';
import {
  openAuditLog,
  type RetentionOptions,
  type AuditArchive,
  type AuditLogOptions,
  type AuditLog,
  type AuditStats,
} from './audit/index.ts';

/** A text to add. */
export interface NewItem {
  readonly text: string;
  /** Default `document`. */
  readonly kind?: (typeof NODE_KINDS)[number];
  /** Its origin. */
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
  /** Fingerprint of the embedder; null: none, and texts are searched by words only. */
  readonly space: string | null;
  /** Name of the embedder, or of the last one if the memory is open without; null: there was none. */
  readonly embedder: string | null;
  /** Progress of embedding the records of an earlier embedder again; null: done, or not begun. */
  readonly reindex: ReindexProgress | null;
}

export type { EmbeddedText };

/** Texts, sessions, policies, the audit log and the graph of all tenants, who share nothing. */
export interface Memory {
  readonly store: MemoryStore;
  /** Reports changes of records. Null: other processes change the store, too. */
  readonly watch: WatchStore | null;
  readonly policies: PolicyMemory;
  readonly sessions: SessionIndex;
  /** Stores the turn of an answered request; if the disk fails, the turn waits in memory until it works again. */
  addTurn: WaitingTurns['add'];
  readonly audit: AuditLog;
  readonly graph: MemoryGraph;
  readonly documents: Documents;
  /** Notes, messages and facts of agents. */
  readonly agents: AgentMemory;
  /** Results of read-only tools, by the meaning of their arguments. */
  readonly toolCache: ToolCache;
  /** Objects that clients store on a server. */
  readonly stored: StoredRecords;
  /** Batches of requests and the results of their lines. */
  readonly batches: BatchRecords;
  readonly services: MemoryServices;
  /** Lets background writes give way to requests. */
  readonly foreground: Pick<Foreground, 'isQuiet' | 'turn' | 'release'>;
  /** The spaces of `embed` and `embedRequest`, equal if the memory has one embedder; null: none. */
  readonly spaces: { readonly texts: string | null; readonly requests: string | null };
  /**
   * Searches by meaning from now on, and embeds in the background what was stored without. Once, for a memory that is open without an
   * embedder; the memory closes it.
   */
  useEmbedder(choice: EmbedderChoice): Promise<void>;
  /** Embeds a text to store or to search for. Null: the text has no tokens, or there is no embedder. */
  embed(text: string): Promise<EmbeddedText | null>;
  /**
   * Embeds a request for the router, the audit log, sessions and patterns, in a fraction of a millisecond. The same as `embed` if the
   * memory has one embedder.
   */
  embedRequest(text: string): Promise<EmbeddedText | null>;
  /** The same for a text that can wait: it takes no time of the thread that serves requests. */
  embedLater(text: string): Promise<EmbeddedText | null>;
  /** Returns its id. */
  add(tenant: string, item: NewItem): Promise<string>;
  get(tenant: string, id: string): Promise<MemoryNode | null>;
  remove(tenant: string, ids: readonly string[]): Promise<number>;
  /** Embeds a text and searches by it, in one call of the memory's thread. */
  readonly ask: AskMemory;
  /** Searches by words and meaning; without an embedder by words only. */
  search(tenant: string, query: MemoryQuery): Promise<MemorySearchResult>;
  /** Re-ranks search results with a learned model; returns a function that stops it. */
  useRerank(rerank: Rerank): () => void;
  /** Records that a tenant has data, so that retention continues after a restart. */
  meet(tenant: string): Promise<void>;
  stats(tenant: string | null): Promise<MemoryStats>;
  /** Why data is kept in this process only and lost with it; null: it is stored. */
  degraded(): string | null;
  /** Embeds the records of earlier embedders again; runs by itself in the background. Does nothing without an embedder. */
  reindex(): Promise<void>;
  /** Deletes expired records and archives old audit entries; also runs every minute. */
  maintain(): Promise<void>;
  /** Replaces the master key of the running memory; `unsupported` without encryption. */
  rotateKey(to: NewMasterKey): Promise<void>;
  /**
   * Writes a verified copy of everything that is stored, as of one moment, while the memory is in use; `unsupported` if it is not in a
   * folder.
   */
  backup(): Promise<BackupReport>;
  /** Where everything that holds data of tenants registers, so that it is erased with them. */
  readonly erasure: Omit<Erasure, 'erase'>;
  /**
   * Erases a tenant with its key, one of its users, or one request, everywhere; throws `io` that names the parts that still hold
   * data. An interrupted erasure is completed when the memory is opened again.
   */
  erase(target: ErasureTarget): Promise<ErasureReport>;
  /** Runs a task of the opening, which has to succeed in the end: later, if the store cannot be reached. */
  readonly eventually: Eventually;
  /** Writes the queued audit entries and closes the store. */
  close(): Promise<void>;
}

export interface EmbedderChoice {
  readonly embedder: Embedder;
  /** A fast embedder for requests that recall nothing. Default: `embedder`. */
  readonly requestEmbedder?: Embedder | null;
  /** Whether records of earlier embedders are embedded again. Default: the option of the memory. */
  readonly reindex?: boolean;
}

export interface MemoryContext extends Omit<FinderContext, 'embedder' | 'requestEmbedder' | 'graph' | 'rerank'> {
  readonly schedule: Schedule;
  readonly embedder: Embedder | null;
  /** A fast embedder for requests that recall nothing. Default: `embedder`. */
  readonly requestEmbedder?: Embedder | null;
  readonly archive?: AuditArchive;
  /** Reads and divides documents. Default: in this thread. */
  readonly divide?: DivideDocument;
  /** Whether it opens while the store cannot be reached, and reads what it needs when it can. Default false. */
  readonly canBeAway?: boolean;
  /** Whether other processes change the store. Default false. */
  readonly isShared?: boolean;
  /** Default: none, the store is not encrypted. */
  readonly rotateKey?: (to: NewMasterKey) => Promise<void>;
  /** Default: none, the store is not in a folder. */
  readonly backup?: () => Promise<BackupReport>;
  /** Called with errors from background work. */
  readonly report: (message: string) => void;
  readonly options?: MemoryOptions;
}

/** Options of the memory's parts; all have defaults. */
export interface MemoryOptions {
  readonly audit?: AuditLogOptions;
  readonly retention?: RetentionOptions;
  readonly sessions?: SessionOptions;
  readonly policies?: PolicyOptions;
  /** Whether records of earlier embedders are embedded again in the background. Default true. */
  readonly reindex?: boolean;
}

const MAINTAIN_EVERY_MS = 60_000;
/** Expired records or sessions deleted in one call. */
const SWEEP_LIMIT = 1000;
/** Calls per run: expired records must not pile up. */
const MAX_SWEEPS = 100;
const ITEM_KEYS = ['text', 'kind', 'source', 'topic', 'quality', 'metadata', 'expiresMs'];

const isExpired = ({ expiresMs }: MemoryRecord, nowMs: number): boolean => expiresMs !== null && expiresMs <= nowMs;

/** Opens a memory on a store. */
export async function openMemory(context: MemoryContext): Promise<Memory> {
  const { services, schedule, archive, report, options = {} } = context;
  const locks = createWriteLocks();
  const { store, watch } = watchStore(context.store, locks);
  const graph = createMemoryGraph(store, services);
  const foreground = createForeground(context.monotonic ?? services.now, schedule);
  const opening = createEventually(schedule, report);
  const eventually: Eventually = context.canBeAway === true ? opening.run : atOnce;
  const tenants = await openTenantList(store, services, STATE_TENANT, locks, eventually);
  const embedders: { texts: Embedder | null; requests: Embedder | null } = { texts: null, requests: null };
  let policies = createPolicyMemory(store, services, options.policies);
  let sessions = createSessionIndex(store, services, options.sessions);
  const audit = await openAuditLog({
    store,
    services,
    schedule,
    archive,
    retention: options.retention,
    foreground,
    eventually,
    log: { ...options.audit, stateTenant: STATE_TENANT },
  });
  let rerank: Rerank | null = null;
  const finder = createFinder({
    ...context,
    get embedder() {
      return embedders.texts;
    },
    get requestEmbedder() {
      return embedders.requests;
    },
    graph,
    rerank: () => rerank,
  });

  let forgetting: Promise<void> | null = null;
  async function embedding(text: string): Promise<EmbeddedText | null> {
    // Before the text is stored without a vector: an embedder that has looked at all records would miss it after a restart.
    if (embedders.texts === null) {
      forgetting ??= forgetReindex(store, services).catch(() => void (forgetting = null));
      await forgetting;
    }
    return embedText(embedders.texts, text);
  }
  const documents = createDocuments({
    store,
    services,
    divide: context.divide ?? (async (file) => (await import('./documents/divide-document.ts')).divideDocument(file)),
    embed: embedding,
    space: () => embedders.texts?.fingerprint ?? null,
    pause: createPauses(),
    meet: (tenant) => tenants.add(tenant),
  });

  const agents = createAgentMemory({
    store,
    services,
    get embedder() {
      return embedders.texts;
    },
    embed: embedding,
    embedRequest: (text) => embedText(embedders.requests, text),
    meet: (tenant) => tenants.add(tenant),
  });
  const toolCache = createToolCache({
    store,
    services,
    embed: embedding,
    meet: (tenant) => tenants.add(tenant),
    isErasing: (owner) => erasure.isErasing(owner),
  });

  const erasure = createErasure({
    store,
    services,
    archive: archive ?? null,
    audit,
    tenants,
    stateTenant: STATE_TENANT,
    locks,
    sessions: () => sessions,
    facts: agents.facts,
    dropCaches(tenant) {
      agents.episodes.forget(tenant);
      policies = createPolicyMemory(store, services, options.policies);
      sessions = createSessionIndex(store, services, options.sessions);
      rerank?.forget(tenant);
      embedders.texts?.forget?.();
    },
    report,
  });

  const turns = createWaitingTurns({ sessions: () => sessions, newId: services.newId, schedule, report });
  erasure.register(turns.erasurePart);

  let hasOrphans = true;
  const isDegraded = (): boolean =>
    !opening.isDone() || (context.degraded !== undefined && context.degraded() !== null);
  /** Once: deletes segments of a killed process. The fallback store has no manifests, so it must not run while degraded. */
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

  let reindex: Reindex | null = null;
  async function useEmbedder(choice: EmbedderChoice): Promise<void> {
    const { embedder, reindex: isReindexed = options.reindex ?? true } = choice;
    const requests = choice.requestEmbedder ?? embedder;
    if (embedders.texts !== null) throw new RuvLLMError('conflict', 'the memory has an embedder already');
    [embedders.texts, embedders.requests] = [embedder, requests];
    await eventually(() => noteSpace(store, services, STATE_TENANT, embedder, isReindexed, report));
    if (isClosed || !isReindexed) return;
    reindex = createReindex({ store, services, schedule, foreground, embedder, tenants: tenants.all, isDegraded, report }); // prettier-ignore
  }
  let maintaining: Promise<void> = Promise.resolve();
  let isClosed = false;
  let cancel = (): void => {};
  const plan = (): void => {
    cancel = schedule(() => {
      maintaining = maintain()
        .catch((error: unknown) =>
          report(`maintenance of the memory failed: ${error instanceof Error ? error.message : ''}`),
        )
        .finally(() => {
          if (!isClosed) plan();
        });
    }, MAINTAIN_EVERY_MS);
  };
  plan();
  if (context.embedder !== null) {
    const { embedder, requestEmbedder = null } = context;
    await useEmbedder({ embedder, requestEmbedder });
  }

  return {
    store,
    watch: context.isShared === true ? null : watch,
    get policies() {
      return policies;
    },
    get sessions() {
      return sessions;
    },
    addTurn: turns.add,
    audit,
    graph,
    documents,
    agents,
    toolCache,
    stored: createStoredRecords({ store, services, tenants }),
    batches: createBatchRecords({ store, services, tenants }),
    services,
    foreground,
    get spaces() {
      const { texts, requests } = embedders;
      return { texts: texts?.fingerprint ?? null, requests: requests?.fingerprint ?? null };
    },
    useEmbedder,
    embed: embedding,
    embedRequest: (text) => embedText(embedders.requests, text),
    embedLater(text) {
      const { requests } = embedders;
      const embed = (given: string) => requests!.embedLater?.(given) ?? requests!.embed(given);
      return embedText(requests && { fingerprint: requests.fingerprint, embed }, text);
    },
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
      // Not expired records, even before the sweep, nor turns of sessions.
      if (!isNode || record.fields['sessionId'] != null || isExpired(record, services.now())) return null;
      return nodeFromRecord(record);
    },
    async remove(tenant, ids) {
      checkTenantIsCallers(tenant);
      return store.delete(tenant, ids);
    },
    ask: (tenant, question) => foreground.run(() => finder.ask(tenant, question)),
    search: (tenant, query) => finder.search(tenant, query),
    useRerank(next) {
      rerank = next;
      return () => {
        if (rerank === next) rerank = null;
      };
    },
    async meet(tenant) {
      checkTenantIsCallers(tenant);
      await tenants.add(tenant);
    },
    stats: async (tenant) => ({
      ...(await store.stats(tenant)),
      audit: audit.stats(),
      space: embedders.texts?.fingerprint ?? null,
      embedder:
        embedders.texts === null
          ? ((await readSpace(store, services, STATE_TENANT).catch(() => null))?.embedder ?? null)
          : (embedders.texts.name ?? embedders.texts.fingerprint),
      reindex: reindex?.progress() ?? null,
    }),
    degraded: () => context.degraded?.() ?? turns.problem(),
    reindex: async () => reindex?.run(),
    maintain,
    async rotateKey(to) {
      if (context.rotateKey === undefined) throw new RuvLLMError('unsupported', 'this memory has no master key');
      await context.rotateKey(to);
    },
    async backup() {
      if (context.backup === undefined) throw new RuvLLMError('unsupported', 'this memory is not in a folder');
      await audit.sync();
      return context.backup();
    },
    erasure,
    eventually,
    async erase(target) {
      checkTenantIsCallers(target.tenant);
      checkKeys(target, 'target', ['tenant', 'userId', 'requestId']);
      return erasure.erase(target);
    },
    async close() {
      isClosed = true;
      cancel();
      opening.stop();
      await reindex?.stop();
      await maintaining;
      try {
        await turns.close();
        await policies.flushAccess();
        await audit.close();
      } finally {
        await store.close().finally(async () => {
          const { texts, requests } = embedders;
          await texts?.close?.();
          if (requests !== texts) await requests?.close?.();
        });
      }
    },
  };
}
