import { RuvLLMError } from '../core/errors.ts';
import type { Foreground } from './common/foreground.ts';
import { nameId } from './common/ids.ts';
import type { MemoryServices, Schedule } from './common/services.ts';
import { statePut } from './common/store-access.ts';
import type { Embedder } from './embedder-types.ts';
import { NODE_KINDS } from './schemas/node.ts';
import { embedText } from './search/embed-text.ts';
import { searchableText } from './search/record-text.ts';
import { STATE_TENANT } from './state-tenant.ts';
import type { MemoryRecord, MemoryStore, RecordKind } from './types.ts';

export interface ReindexProgress {
  /** Records looked at. */
  readonly numDone: number;
  readonly numTotal: number;
}

/** Embeds records of earlier embedders again, in the background. */
export interface Reindex {
  /** Null: all records are in the embedder's space. */
  progress(): ReindexProgress | null;
  /** Runs until all are done; continues where the last run ended. */
  run(): Promise<void>;
  stop(): Promise<void>;
}

interface ReindexContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  readonly schedule: Schedule;
  readonly foreground: Foreground;
  readonly embedder: Embedder;
  readonly tenants: () => readonly string[];
  readonly isDegraded: () => boolean;
  readonly report: (message: string) => void;
}

/** Where a run ended. */
interface ReindexState {
  readonly space: string;
  readonly isDone: boolean;
  /** Tenants in alphabetical order; the ones before are done. */
  readonly tenant: string | null;
  readonly after: string | null;
  readonly numDone: number;
}

/** Longer than most commands run, which leave it to the next server. */
const START_AFTER_MS = 2000;
/** Patterns are means of requests, and audit entries never change. */
const KINDS: readonly RecordKind[] = NODE_KINDS.filter((kind) => kind !== 'pattern');
const PAGE = 32;
/** Texts embedded at once: a request that recalls waits for all of them. */
const AT_ONCE = 4;

const isConflict = (error: unknown): boolean => error instanceof RuvLLMError && error.code === 'conflict';

interface EmbeddedBody {
  readonly query?: unknown;
  readonly text?: unknown;
  readonly metadata?: { readonly question?: unknown };
}

/** The embedded text: of an exchange or a correction the question, otherwise all of it. */
function textOf(record: MemoryRecord): string {
  // A chunk has its headings, and the record of a document no vector.
  if (record.kind === 'document') return searchableText(record);
  const { body, fields } = record;
  const { query, text, metadata } = body as EmbeddedBody;
  const question = fields['source'] === 'correction' ? metadata?.question : query;
  return typeof question === 'string' ? question : typeof text === 'string' ? text : '';
}

const stateId = (services: Pick<MemoryServices, 'sha256'>): string => nameId(services.sha256, STATE_TENANT, 'reindex');

/** The next run looks at all records again: some are, or will be, without a vector of the embedder that has looked at them. */
export async function forgetReindex(store: MemoryStore, services: Pick<MemoryServices, 'sha256'>): Promise<void> {
  await store.delete(STATE_TENANT, [stateId(services)]);
}

export function createReindex(context: ReindexContext): Reindex {
  const { store, services, schedule, foreground, embedder, isDegraded, report } = context;
  const id = stateId(services);
  let current: ReindexProgress | null = null;
  let isStopped = false;
  let running: Promise<void> | null = null;

  async function readState(): Promise<ReindexState | null> {
    const [record] = await store.get(STATE_TENANT, [id]);
    const state = record?.body as unknown as ReindexState | undefined;
    return state?.space === embedder.fingerprint ? state : null;
  }
  const writeState = (state: Omit<ReindexState, 'space'>): Promise<unknown> =>
    store.put([statePut({ id, tenant: STATE_TENANT }, { space: embedder.fingerprint, ...state })]);

  async function embedAgain(record: MemoryRecord): Promise<boolean> {
    const text = textOf(record);
    const embedded = text === '' ? null : await embedText(embedder, text);
    if (embedded === null) return false;
    const { version, createdMs: _, updatedMs: __, ...put } = record;
    try {
      await store.put([{ ...put, ...embedded, ifVersion: version }]);
      return true;
    } catch (error) {
      // Changed or deleted meanwhile: the change has embedded it.
      if (isConflict(error)) return false;
      throw error;
    }
  }

  /** Returns how many were embedded. */
  async function embedPage(records: readonly MemoryRecord[]): Promise<number> {
    const others = records.filter(({ space }) => space !== embedder.fingerprint);
    let numEmbedded = 0;
    for (let from = 0; from < others.length; from += AT_ONCE) {
      await foreground.turn();
      if (isStopped) break;
      const done = await Promise.all(others.slice(from, from + AT_ONCE).map(embedAgain));
      numEmbedded += done.filter(Boolean).length;
    }
    return numEmbedded;
  }

  async function countAll(tenants: readonly string[]): Promise<number> {
    let numTotal = 0;
    for (const tenant of tenants) numTotal += await store.count(tenant, { kinds: KINDS });
    return numTotal;
  }

  async function work(): Promise<void> {
    const before = await readState();
    if (before?.isDone === true || isStopped || isDegraded()) return;
    const tenants = context.tenants().toSorted();
    const numTotal = await countAll(tenants);
    let numDone = before?.numDone ?? 0;
    let numEmbedded = 0;
    current = { numDone, numTotal };
    for (const tenant of tenants) {
      if (before?.tenant != null && tenant < before.tenant) continue;
      let after = tenant === before?.tenant ? before.after : null;
      do {
        await foreground.turn();
        if (isStopped || isDegraded()) return;
        const page = await store.find(tenant, { kinds: KINDS, order: 'oldest', limit: PAGE, ...(after === null ? {} : { after }) }); // prettier-ignore
        const numNow = await embedPage(page.records);
        if (isStopped) return; // the page is read again by the next run
        if (numEmbedded === 0 && numNow > 0) report(`re-indexing ${numTotal - numDone} records for the embedder ${embedder.name ?? embedder.fingerprint}`); // prettier-ignore
        numEmbedded += numNow;
        numDone += page.records.length;
        after = page.next;
        current = { numDone, numTotal: Math.max(numTotal, numDone) };
        await writeState({ isDone: false, tenant, after, numDone });
      } while (after !== null);
    }
    await writeState({ isDone: true, tenant: null, after: null, numDone });
    current = null;
    if (numEmbedded > 0) report(`re-indexed ${numEmbedded} records`);
  }

  const run = (): Promise<void> =>
    (running ??= work().finally(() => {
      running = null;
    }));
  const cancel = schedule(() => {
    run().catch((error: unknown) =>
      report(`re-indexing failed, it continues with the next start: ${error instanceof Error ? error.message : ''}`),
    );
  }, START_AFTER_MS);

  return {
    progress: () => current,
    run,
    async stop() {
      isStopped = true;
      cancel();
      await running?.catch(() => {});
    },
  };
}
