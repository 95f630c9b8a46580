import { RuvLLMError } from '../../core/errors.ts';
import { createSerialQueues } from '../../core/serial-queues.ts';
import type { BatchRecords, StoredHead, StoredRecords } from '../../runtime/lower-layers.ts';
import type { ServerLimits } from '../limits.ts';
import type { Batch } from './types.ts';

export type FilePurpose = 'batch' | 'batch_output';

/** An uploaded file, or the results of a batch. */
export interface StoredFile {
  readonly id: string;
  readonly name: string;
  readonly purpose: FilePurpose;
  readonly numBytes: number;
  /** Milliseconds since 1970. */
  readonly createdMs: number;
  readonly expiresMs: number;
  /** The batch whose results it has; null: an uploaded file. */
  readonly batch: { readonly id: string; readonly isErrors: boolean; readonly numFileLines: number } | null;
}

/** Files of each tenant. */
export interface FileStore {
  /** The oldest first. */
  list(tenant: string): Promise<readonly StoredFile[]>;
  /** Uploaded files. */
  inputs(tenant: string): Promise<readonly StoredFile[]>;
  /** Null: not found. */
  find(tenant: string, id: string): Promise<StoredFile | null>;
  /** `limit_exceeded`: the tenant has too many bytes. */
  add(tenant: string, file: StoredFile, text: string): Promise<void>;
  /** Adds the file with the results of a batch that has ended; repeating it changes nothing. */
  addResults(tenant: string, file: StoredFile): Promise<void>;
  /** The text of an uploaded file; null: not found. */
  readText(tenant: string, id: string): Promise<string | null>;
  /** The text of any file in pieces. */
  content(tenant: string, file: StoredFile): AsyncGenerator<string>;
  /** Replaces the text of an uploaded file. */
  replace(tenant: string, id: string, text: string): Promise<void>;
  delete(tenant: string, file: StoredFile): Promise<void>;
  /** Resolves when everything is written. */
  settle(): Promise<void>;
}

interface FileStoreContext {
  readonly records: StoredRecords;
  readonly batches: BatchRecords;
  readonly limits: Pick<ServerLimits, 'maxBatchBytes'>;
}

/** Distinguishes these records from other stored objects. */
const TYPE = 'file';

export function createFileStore({ records, batches, limits }: FileStoreContext): FileStore {
  const queues = createSerialQueues();

  const listAll = async (tenant: string): Promise<readonly StoredFile[]> =>
    (await records.heads(tenant)).flatMap((head) => fileOf(head) ?? []);

  /** Bytes of files, and of results that are no file yet. */
  async function countBytes(tenant: string): Promise<number> {
    const running = (await batches.list(tenant, true)).map(({ state }) => state as unknown as Batch);
    const unfinished = running.reduce((sum, { outputBytes, errorBytes }) => sum + outputBytes + errorBytes, 0);
    return (await listAll(tenant)).reduce((sum, { numBytes }) => sum + numBytes, unfinished);
  }

  const headOf = ({ id, expiresMs, ...about }: StoredFile): StoredHead => ({
    id,
    expiresMs,
    owners: [],
    about: { type: TYPE, ...about },
  });

  async function read(tenant: string, id: string): Promise<{ file: StoredFile; text: string } | null> {
    const record = await records.read(tenant, id);
    const file = record === null ? null : fileOf(record.head);
    return file === null ? null : { file, text: record!.text };
  }

  return {
    list: async (tenant) => (await listAll(tenant)).toSorted((a, b) => a.createdMs - b.createdMs),
    inputs: async (tenant) => (await listAll(tenant)).filter(({ batch }) => batch === null),
    find: async (tenant, id) => (await read(tenant, id))?.file ?? null,
    add: (tenant, file, text) =>
      // One after another, because each counts the bytes of the others.
      queues.run(tenant, async () => {
        const numBytes = await countBytes(tenant);
        if (numBytes + file.numBytes > limits.maxBatchBytes) {
          throw new RuvLLMError(
            'limit_exceeded',
            `the file has ${file.numBytes} bytes and your files and results ${numBytes}; the limit is ${limits.maxBatchBytes}. Delete some`,
            { data: { numBytes: file.numBytes, storedBytes: numBytes, limit: limits.maxBatchBytes } },
          );
        }
        await records.put(tenant, headOf(file), text);
      }),
    addResults: (tenant, file) => records.put(tenant, headOf(file), ''),
    async readText(tenant, id) {
      const stored = await read(tenant, id);
      return stored === null || stored.file.batch !== null ? null : stored.text;
    },
    async *content(tenant, { id, batch }) {
      if (batch === null) {
        const stored = await read(tenant, id);
        if (stored !== null) yield stored.text;
        return;
      }
      const lines = Array.from({ length: batch.numFileLines }, (_, line) => line);
      for await (const { isError, text } of batches.results(tenant, batch.id, lines)) {
        if (isError === batch.isErrors) yield `${text}\n`;
      }
    },
    replace: (tenant, id, text) =>
      queues.run(tenant, async () => {
        const stored = await read(tenant, id);
        if (stored === null) return;
        const numBytes = new TextEncoder().encode(text).length;
        await records.put(tenant, headOf({ ...stored.file, numBytes }), text);
      }),
    async delete(tenant, { id, batch }) {
      // First: a file whose results are half deleted can still be deleted.
      if (batch !== null) {
        const lines: number[] = [];
        const all = Array.from({ length: batch.numFileLines }, (_, line) => line);
        for await (const { line, isError } of batches.results(tenant, batch.id, all)) {
          if (isError === batch.isErrors) lines.push(line);
        }
        await batches.deleteResults(tenant, batch.id, lines);
      }
      await records.delete(tenant, [id]);
    },
    settle: () => queues.settle(),
  };
}

/** Null: another type of object. */
function fileOf({ id, expiresMs, about }: StoredHead): StoredFile | null {
  const { type, ...file } = about as unknown as StoredFile & { readonly type: string };
  return type === TYPE ? { ...file, id, expiresMs } : null;
}
