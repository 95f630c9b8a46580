import { RuvLLMError } from '../core/errors.ts';
import { createContentHasher, type ExpectedHash } from './content-hash.ts';
import { httpGet, toStatusError, type HttpReply } from './http.ts';
import type { Lock } from './lock.ts';
import type { FileWriter, Hasher } from './platform.ts';
import { checkAborted, type PullContext } from './pull-context.ts';
import { withRetries } from './retry.ts';

/** A file to download, with its expected size and hash. */
export interface BlobRequest {
  readonly url: string;
  readonly label: string;
  readonly sizeBytes: number;
  readonly hash: ExpectedHash;
}

/** The bytes on disk so far and their running hash. */
interface Partial {
  readonly path: string;
  doneBytes: number;
  hasher: Hasher;
  /** Includes bytes from an earlier run. */
  isResumed: boolean;
}

/** Bytes between two progress reports, and the minimum for a connection to count as progress: a dripping hub is not retried forever. */
const PROGRESS_STEP_BYTES = 1 << 20;

function fail(request: BlobRequest, reason: string, data: Record<string, number | string>): RuvLLMError {
  return new RuvLLMError('download_failed', `${request.label}: ${reason}`, { data });
}

async function openPartial(context: PullContext, request: BlobRequest, path: string): Promise<Partial> {
  const { files } = context.platform;
  const fresh = (): Hasher => createContentHasher(context.platform, request.hash, request.sizeBytes);
  const existing = (await files.stat(path))?.sizeBytes ?? 0;
  if (existing === 0 || existing > request.sizeBytes) {
    await files.remove(path);
    return { path, doneBytes: 0, hasher: fresh(), isResumed: false };
  }
  const hasher = fresh();
  let doneBytes = 0;
  for await (const chunk of files.readChunks(path)) {
    checkAborted(context, request.label);
    hasher.update(chunk);
    doneBytes += chunk.byteLength;
    context.onProgress({ phase: 'check', item: request.label, doneBytes, totalBytes: existing });
  }
  return { path, doneBytes, hasher, isResumed: true };
}

async function requireFreeSpace(context: PullContext, request: BlobRequest, partial: Partial): Promise<void> {
  const needed = request.sizeBytes - partial.doneBytes;
  const free = await context.platform.files.freeBytes(context.options.cacheRoot);
  if (free === null || free >= needed) return;
  throw new RuvLLMError(
    'disk_full',
    `${request.label}: ${needed} more bytes are needed, ${free} are free at ${context.options.cacheRoot}`,
    { data: { neededBytes: needed, freeBytes: free } },
  );
}

/** Rejects a reply whose headers contradict the request; returns the offset at which its body begins. */
function checkHeaders(request: BlobRequest, reply: HttpReply, requestedStart: number): number {
  const encoding = reply.headers.get('content-encoding') ?? 'identity';
  if (encoding !== 'identity')
    throw fail(request, `the response is ${encoding}-encoded, which was not requested`, { encoding });
  const start = reply.status === 206 ? requestedStart : 0;
  if (reply.status === 206) {
    const range = reply.headers.get('content-range') ?? 'nothing';
    const match = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(range);
    const isRequestedRange =
      match !== null &&
      Number(match[1]) === requestedStart &&
      Number(match[2]) === request.sizeBytes - 1 &&
      (match[3] === '*' || Number(match[3]) === request.sizeBytes);
    if (!isRequestedRange) {
      const expectedRange = `bytes ${requestedStart}-${request.sizeBytes - 1}/${request.sizeBytes}`;
      throw fail(request, `requested "${expectedRange}", the response claims "${range.slice(0, 80)}"`, {
        wanted: expectedRange,
        range,
      });
    }
  }
  const length = reply.headers.get('content-length');
  const expectedBytes = request.sizeBytes - start;
  if (length !== null && Number(length) !== expectedBytes) {
    throw fail(request, `the response announces ${length} bytes, expected ${expectedBytes}`, {
      announcedBytes: Number(length),
      promisedBytes: expectedBytes,
    });
  }
  return start;
}

async function copyBody(
  context: PullContext,
  request: BlobRequest,
  partial: Partial,
  lock: Lock,
  body: { chunks: AsyncIterable<Uint8Array>; writer: FileWriter; hasProgressed: () => void },
): Promise<void> {
  const start = partial.doneBytes;
  let lastReport = -PROGRESS_STEP_BYTES;
  for await (const chunk of body.chunks) {
    const end = partial.doneBytes + chunk.byteLength;
    if (end > request.sizeBytes) {
      throw fail(request, `the body continues past the expected ${request.sizeBytes} bytes (at ${end})`, {
        promisedBytes: request.sizeBytes,
        gotBytes: end,
      });
    }
    await body.writer.write(chunk);
    partial.hasher.update(chunk);
    partial.doneBytes = end;
    if (end - start >= PROGRESS_STEP_BYTES) body.hasProgressed();
    await lock.keep();
    if (end - lastReport < PROGRESS_STEP_BYTES && end < request.sizeBytes) continue;
    lastReport = end;
    context.onProgress({ phase: 'download', item: request.label, doneBytes: end, totalBytes: request.sizeBytes });
  }
  if (partial.doneBytes === request.sizeBytes) return;
  throw new RuvLLMError(
    'download_failed',
    `${request.label}: the body ended after ${partial.doneBytes} of ${request.sizeBytes} bytes`,
    { isRetryable: true, data: { gotBytes: partial.doneBytes, promisedBytes: request.sizeBytes } },
  );
}

/** One connection: requests and appends the missing bytes. */
async function transfer(
  context: PullContext,
  request: BlobRequest,
  partial: Partial,
  lock: Lock,
  hasProgressed: () => void,
): Promise<void> {
  const { files } = context.platform;
  const from = partial.doneBytes;
  const reply = await httpGet(context, request.url, from === 0 ? {} : { range: `bytes=${from}-` });
  if (reply.status !== 200 && !(reply.status === 206 && from > 0)) throw await toStatusError(reply, request.label);
  let start: number;
  try {
    start = checkHeaders(request, reply, from);
  } catch (error) {
    await reply.cancel();
    throw error;
  }
  if (start !== from) {
    // The hub ignored the range: its body begins at byte 0, so the file must too.
    partial.doneBytes = 0;
    partial.hasher = createContentHasher(context.platform, request.hash, request.sizeBytes);
    partial.isResumed = false;
  }
  const writer = await files.openWriter(partial.path, start);
  try {
    await copyBody(context, request, partial, lock, { chunks: reply.chunks(), writer, hasProgressed });
    await writer.sync();
  } finally {
    await writer.close();
    await reply.cancel();
  }
}

async function fill(context: PullContext, request: BlobRequest, path: string, lock: Lock): Promise<Partial> {
  const { files } = context.platform;
  const partial = await openPartial(context, request, path);
  await requireFreeSpace(context, request, partial);
  try {
    if (partial.doneBytes < request.sizeBytes) {
      await withRetries(context, request.label, (hasProgressed) =>
        transfer(context, request, partial, lock, hasProgressed),
      );
    }
    return partial;
  } catch (error) {
    // A body that is too long means a lying source: keep nothing to resume. An empty partial file is litter.
    const gotBytes = error instanceof RuvLLMError ? error.data['gotBytes'] : undefined;
    const isTooLong = typeof gotBytes === 'number' && gotBytes > request.sizeBytes;
    if (isTooLong || partial.doneBytes === 0) await files.remove(path);
    throw error;
  }
}

/**
 * Downloads one blob into the cache: resumes, checks length and hash, and only then gives it its final name. The caller
 * holds the lock. A failure leaves at most `<blob>.incomplete`, and not even that if the bytes are known to be wrong.
 */
export async function downloadBlob(
  context: PullContext,
  request: BlobRequest,
  folder: string,
  lock: Lock,
): Promise<void> {
  const { files } = context.platform;
  const blobPath = files.join(folder, request.hash.hex);
  const path = `${blobPath}.incomplete`;
  await files.makeFolder(folder);
  for (;;) {
    const partial = await fill(context, request, path, lock);
    const actual = partial.hasher.digest();
    if (actual === request.hash.hex) break;
    await files.remove(path);
    // The old partial file may have been corrupt; after a download from zero there is no such excuse.
    if (partial.isResumed) continue;
    throw new RuvLLMError(
      'hash_mismatch',
      `${request.label}: ${request.hash.algorithm} is ${actual}, expected ${request.hash.hex}`,
      { data: { actual, promised: request.hash.hex, sizeBytes: request.sizeBytes } },
    );
  }
  await lock.requireHeld();
  await files.rename(path, blobPath);
}
