import { RuvLLMError } from '../../core/errors.ts';
import { divideText } from '../common/divide-text.ts';
import { nameId } from '../common/ids.ts';
import { retryConflict } from '../common/retry-conflict.ts';
import type { MemoryServices } from '../common/services.ts';
import { readPages, statePut } from '../common/store-access.ts';
import type { JsonValue, MemoryRecord, MemoryStore, PutRecord } from '../types.ts';

/** A batch as it is stored: its state is the caller's. */
export interface BatchRecord {
  readonly id: string;
  /** Whether lines are left to run, or its end is not written yet. */
  readonly isOpen: boolean;
  /** Milliseconds since 1970 after which the record is deleted. */
  readonly expiresMs: number;
  readonly state: JsonValue;
}

/** The result of one line. */
export interface LineResult {
  /** Position of the line in the input file, from 0. */
  readonly line: number;
  /** Whether it belongs to the error file. */
  readonly isError: boolean;
  readonly text: string;
  /** By which it is erased; null: the line never became a request. */
  readonly requestId: string | null;
  readonly userId: string | null;
}

/** Batches and the results of their lines, sealed like every record. */
export interface BatchRecords {
  /** Tenants with data; some may have no batches. */
  tenants(): readonly string[];
  /** The oldest first; with `isOpen`, only those. */
  list(tenant: string, isOpen?: true): Promise<readonly BatchRecord[]>;
  /** Null: not found. */
  find(tenant: string, id: string): Promise<BatchRecord | null>;
  create(tenant: string, batch: BatchRecord): Promise<void>;
  /**
   * Changes a batch and adds results, in one transaction. `change` gets those results whose line has none yet, and may run again when
   * another writer was faster; it returns null to leave everything as it is. Null: not found.
   */
  update(
    tenant: string,
    id: string,
    results: readonly LineResult[],
    change: (batch: BatchRecord, added: readonly LineResult[]) => BatchRecord | null,
  ): Promise<BatchRecord | null>;
  /** The results of these lines, in their order; lines without a result are left out. */
  results(tenant: string, id: string, lines: readonly number[]): AsyncGenerator<LineResult>;
  /** Those of these lines that have a result. */
  finished(tenant: string, id: string, lines: readonly number[]): Promise<ReadonlySet<number>>;
  /** The lines whose results belong to these requests. */
  linesOf(
    tenant: string,
    requestIds: readonly string[],
  ): Promise<readonly { readonly batchId: string; readonly line: number }[]>;
  /** Deletes results of these lines. */
  deleteResults(tenant: string, id: string, lines: readonly number[]): Promise<void>;
}

interface BatchContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  readonly tenants: { all(): readonly string[]; add(tenant: string): Promise<void> };
}

const BATCH_NAME = 'batch';
const RESULT_NAME = 'batch-result';
const PART_NAME = 'batch-result-part';
/** Records of one call: a result may have a megabyte. */
const PAGE = 50;
const VALUES = 200;

interface ResultBody extends Omit<LineResult, 'requestId' | 'userId'> {
  readonly batchId: string;
  /** Records with the rest of the text. */
  readonly numParts: number;
}

export function createBatchRecords({ store, services, tenants }: BatchContext): BatchRecords {
  const idOf = (tenant: string, ...name: readonly string[]): string => nameId(services.sha256, tenant, ...name);
  const batchIdOf = (tenant: string, id: string): string => idOf(tenant, BATCH_NAME, id);
  const resultIdOf = (tenant: string, id: string, line: number): string => idOf(tenant, RESULT_NAME, id, String(line));
  const partIdOf = (tenant: string, id: string, line: number, part: number): string =>
    idOf(tenant, PART_NAME, id, String(line), String(part));

  const batchPut = (tenant: string, batch: BatchRecord, ifVersion: number): PutRecord => {
    const { isOpen, expiresMs } = batch;
    const place = { tenant, id: batchIdOf(tenant, batch.id), expiresMs, ifVersion };
    return statePut(place, batch, { name: BATCH_NAME, isOpen });
  };

  function resultPuts(tenant: string, batch: BatchRecord, result: LineResult): readonly PutRecord[] {
    const { line, isError, requestId, userId } = result;
    const [text, ...others] = divideText(result.text) as [string, ...string[]];
    const owner = { ...(requestId === null ? {} : { requestId }), ...(userId === null ? {} : { userId }) };
    const body = { batchId: batch.id, line, isError, text, numParts: others.length } satisfies ResultBody;
    const { expiresMs } = batch;
    return [
      statePut({ tenant, id: resultIdOf(tenant, batch.id, line), expiresMs, ifVersion: 0 }, body, {
        name: RESULT_NAME,
        ...owner,
      }),
      ...others.map((part, index) => {
        const id = partIdOf(tenant, batch.id, line, index);
        return statePut({ tenant, id, expiresMs }, { text: part }, { name: PART_NAME, ...owner });
      }),
    ];
  }

  async function* readResults(tenant: string, id: string, lines: readonly number[]) {
    for (let from = 0; from < lines.length; from += PAGE) {
      const ids = lines.slice(from, from + PAGE).map((line) => resultIdOf(tenant, id, line));
      for (const record of await store.get(tenant, ids)) if (record != null) yield record;
    }
  }

  async function textOf(tenant: string, id: string, { line, text, numParts }: ResultBody): Promise<string> {
    if (numParts === 0) return text;
    const partIds = Array.from({ length: numParts }, (_, part) => partIdOf(tenant, id, line, part));
    const parts = (await store.get(tenant, partIds)).map((part) => (part?.body as { text?: string } | undefined)?.text);
    if (parts.every((part) => part !== undefined)) return text + parts.join('');
    throw new RuvLLMError('io', `the memory is damaged: a part of the result of line ${line + 1} is missing`);
  }

  return {
    tenants: tenants.all,
    async list(tenant, isOpen) {
      const named = { field: 'name', is: '=', value: BATCH_NAME } as const;
      const open = { field: 'isOpen', is: '=', value: true } as const;
      const filter = { fields: isOpen === true ? [named, open] : [named] };
      const batches: BatchRecord[] = [];
      for await (const page of readPages(store, tenant, { kinds: ['state'], filter, order: 'oldest' })) {
        batches.push(...page.flatMap((record) => batchOf(record, services.now()) ?? []));
      }
      return batches;
    },
    async find(tenant, id) {
      const [record] = await store.get(tenant, [batchIdOf(tenant, id)]);
      return batchOf(record, services.now());
    },
    async create(tenant, batch) {
      await tenants.add(tenant);
      await store.put([batchPut(tenant, batch, 0)]);
    },
    update: (tenant, id, results, change) =>
      retryConflict(async () => {
        const ids = results.map(({ line }) => resultIdOf(tenant, id, line));
        const [record, ...known] = await store.get(tenant, [batchIdOf(tenant, id), ...ids]);
        const batch = batchOf(record, services.now());
        if (batch === null) return null;
        const added = results.filter((_, index) => known[index] == null);
        const next = change(batch, added);
        if (next === null) return batch;
        // One call, one transaction: a result without its count, or counted twice, cannot exist.
        await store.put([
          batchPut(tenant, next, record!.version),
          ...added.flatMap((result) => resultPuts(tenant, next, result)),
        ]);
        return next;
      }),
    async *results(tenant, id, lines) {
      for await (const { body, fields } of readResults(tenant, id, lines)) {
        const result = body as unknown as ResultBody;
        const { line, isError } = result;
        const [requestId, userId] = [fields['requestId'] ?? null, fields['userId'] ?? null] as (string | null)[];
        yield { line, isError, text: await textOf(tenant, id, result), requestId: requestId!, userId: userId! };
      }
    },
    async finished(tenant, id, lines) {
      const finished = new Set<number>();
      for await (const { body } of readResults(tenant, id, lines)) finished.add((body as unknown as ResultBody).line);
      return finished;
    },
    async linesOf(tenant, requestIds) {
      const lines: { batchId: string; line: number }[] = [];
      for (let from = 0; from < requestIds.length; from += VALUES) {
        const values = requestIds.slice(from, from + VALUES);
        const fields = [
          { field: 'name', is: '=', value: RESULT_NAME },
          { field: 'requestId', is: 'in', values },
        ] as const;
        for await (const page of readPages(store, tenant, { kinds: ['state'], filter: { fields }, order: 'oldest' })) {
          for (const { body } of page) {
            const { batchId, line } = body as unknown as ResultBody;
            lines.push({ batchId, line });
          }
        }
      }
      return lines;
    },
    async deleteResults(tenant, id, lines) {
      const ids: string[] = [];
      for await (const record of readResults(tenant, id, lines)) {
        const { line, numParts } = record.body as unknown as ResultBody;
        ids.push(record.id, ...Array.from({ length: numParts }, (_, part) => partIdOf(tenant, id, line, part)));
      }
      for (let from = 0; from < ids.length; from += 500) await store.delete(tenant, ids.slice(from, from + 500));
    },
  };
}

/** Null: not found, expired, or not written by this version. */
function batchOf(record: MemoryRecord | null | undefined, nowMs: number): BatchRecord | null {
  const { id, isOpen, expiresMs, state } = (record?.body ?? {}) as Partial<BatchRecord>;
  const isWhole = typeof id === 'string' && typeof isOpen === 'boolean' && typeof expiresMs === 'number';
  return !isWhole || state === undefined || expiresMs <= nowMs ? null : { id, isOpen, expiresMs, state };
}
