import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import { createReadStream, createWriteStream, renameSync, rmSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { RuvLLMError } from '../../core/errors.ts';
import { toFileError } from '../../platform/node/files/file-errors.ts';
import type { CommandContext } from '../command.ts';
import { decodeInput } from '../read-input.ts';
import type { MemoryClient } from './client-types.ts';
import { requireRegularFile } from '../../platform/node/files/regular-file.ts';

/** Records have at most 4 MiB; a longer line is probably the wrong file. */
const MAX_LINE_BYTES = 16 << 20;
/** Well below the limits of a server and of the import operation. */
const MAX_BATCH_BYTES = 1 << 20;
const MAX_BATCH_LINES = 200;

/** Input of the exports of memory and audit log, from the flags. */
export const exportInput = ({ values }: CommandContext): object => ({
  includeVectors: values['--vectors'] === true,
  ...(values['--kind'] ? { kinds: values['--kind'] } : {}),
});

/** Reads all pages of an operation and writes each item of `key` as a JSON line, to --output or stdout. */
export async function exportLines(
  client: MemoryClient,
  { io, output, values }: CommandContext,
  operation: string,
  key: string,
  input: object,
): Promise<void> {
  const path = values['--output'] as string | undefined;
  // A failed export must not destroy the one before.
  const draft = path === undefined ? null : `${path}.${process.pid}-${randomBytes(8).toString('hex')}.tmp`;
  const file = draft === null ? null : createWriteStream(draft, { flags: 'wx', mode: 0o600, flush: true });
  const progress = output.progress();
  const allItems: object[] | null = output.isJson && file === null ? [] : null;
  let count = 0;
  let doneBytes = 0;
  try {
    if (file !== null) await once(file, 'open');
    let after: unknown = undefined;
    do {
      io.signal.throwIfAborted();
      const page: Record<string, unknown> = await client.call(operation, {
        ...input,
        ...(after === undefined ? {} : { after }),
      });
      const items = page[key] as object[];
      count += items.length;
      const text = items.map((item) => `${JSON.stringify(item)}\n`).join('');
      doneBytes += text.length;
      allItems?.push(...items);
      if (file !== null) await write(file, text);
      else {
        output.text(text);
        await drained(io.stdout.stream);
      }
      progress.update({ label: `exporting: ${count}`, doneBytes, totalBytes: null });
      after = page['next'] ?? undefined;
    } while (after !== undefined);
    if (file !== null) {
      file.end();
      await finished(file);
      renameSync(draft!, path!);
    }
  } catch (error) {
    file?.destroy();
    if (draft !== null) rmSync(draft, { force: true });
    if (io.signal.aborted) throw new RuvLLMError('aborted', 'cancelled while exporting', { cause: error });
    throw error instanceof RuvLLMError ? error : toFileError(error, 'writing the export', path ?? 'stdout');
  } finally {
    progress.finish();
  }
  output.document({ count, ...(allItems === null ? { path } : { [key]: allItems }) });
  output.note(`${count} ${key}`);
}

async function write(stream: Writable, text: string): Promise<void> {
  if (!stream.write(text)) await once(stream, 'drain');
}

/** Waits for a slow reader instead of buffering everything. */
async function drained(stream: NodeJS.WritableStream): Promise<void> {
  if ((stream as Writable).writableNeedDrain) await once(stream, 'drain');
}

export interface ImportBatch {
  /** 1-based line numbers. */
  readonly lines: readonly number[];
  readonly records: readonly unknown[];
}

/** Batches of JSON lines from a file or stdin; skips empty lines, and names the line of a syntax error. */
export async function* readBatches(
  path: string | undefined,
  { io, output }: CommandContext,
): AsyncGenerator<ImportBatch> {
  const progress = output.progress();
  let batch: { lines: number[]; records: unknown[] } = { lines: [], records: [] };
  let batchBytes = 0;
  let doneBytes = 0;
  let number = 0;
  try {
    for await (const bytes of readLines(path, io)) {
      number++;
      doneBytes += bytes.length + 1;
      const text = decodeInput(bytes, doneBytes - bytes.length - 1).trim();
      if (text === '') continue;
      if (batch.lines.length === MAX_BATCH_LINES || batchBytes + bytes.length > MAX_BATCH_BYTES) {
        if (batch.lines.length > 0) yield batch;
        batch = { lines: [], records: [] };
        batchBytes = 0;
        progress.update({ label: `importing: line ${number}`, doneBytes, totalBytes: null });
      }
      batch.lines.push(number);
      batch.records.push(parseLine(text, number));
      batchBytes += bytes.length;
    }
    if (batch.lines.length > 0) yield batch;
  } finally {
    progress.finish();
  }
}

function parseLine(text: string, number: number): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new RuvLLMError('invalid_option', `line ${number} is not JSON`, { cause: error, data: { line: number } });
  }
}

async function* readLines(path: string | undefined, io: CommandContext['io']): AsyncGenerator<Uint8Array> {
  const isStdin = path === undefined || path === '-';
  if (!isStdin) requireRegularFile(path, 'reading the export');
  const stream = isStdin ? io.stdin : createReadStream(path);
  let pending: Buffer = Buffer.alloc(0);
  try {
    for await (const chunk of stream) {
      if (io.signal.aborted) throw new RuvLLMError('aborted', 'cancelled while importing');
      pending = Buffer.concat([pending, Buffer.from(chunk as Uint8Array | string)]);
      for (let end = pending.indexOf(10); end >= 0; end = pending.indexOf(10)) {
        yield pending.subarray(0, end);
        pending = pending.subarray(end + 1);
      }
      if (pending.length > MAX_LINE_BYTES) {
        throw new RuvLLMError('invalid_option', `a line has more than ${MAX_LINE_BYTES} bytes; this is not an export`);
      }
    }
  } catch (error) {
    throw error instanceof RuvLLMError ? error : toFileError(error, 'reading the export', path ?? 'stdin');
  }
  if (pending.length > 0) yield pending;
}
