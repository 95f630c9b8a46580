import type { ByteSource } from '../core/byte-source.ts';
import { RuvLLMError } from '../core/errors.ts';
import { showValue } from '../core/show-value.ts';
import type { PullContext } from './pull-context.ts';
import { withRetries } from './retry.ts';
import { sendForJson, sendUpload, toUploadError } from './upload-http.ts';
import { openUploadState, type UploadState } from './upload-state.ts';

/** A file to upload. */
export interface UploadFile {
  readonly source: ByteSource;
  readonly sha256: string;
  readonly label: string;
  /** Throws if the file is no longer the hashed one. */
  checkUnchanged(): Promise<void>;
}

/** Parts are read whole into memory. */
const MAX_PART_BYTES = 1 << 30;
const MAX_PARTS = 10_000;
const STREAM_BYTES = 4 << 20;
const LFS_HEADERS = { accept: 'application/vnd.git-lfs+json', 'content-type': 'application/vnd.git-lfs+json' };
const JSON_HEADERS = { accept: 'application/json', 'content-type': 'application/json' };

interface LfsAction {
  readonly href: string;
  readonly header: Readonly<Record<string, string>>;
}

/** Uploads a file to the large-file store of a repository; a store that has it already gets nothing. Returns the sent bytes. */
export async function uploadLfs(
  context: PullContext,
  repo: string,
  file: UploadFile,
  onProgress: (doneBytes: number) => void,
): Promise<number> {
  const stored = openUploadState(context, repo, file.sha256);
  const saved = await stored.read(file.source.sizeBytes);
  if (saved !== null) {
    try {
      return await uploadParts(context, file, saved, stored.write, onProgress).then(finish);
    } catch (error) {
      // The places of parts expire; any other failure is of this run.
      const status = error instanceof RuvLLMError ? error.data['status'] : undefined;
      if (status !== 400 && status !== 403 && status !== 404 && status !== 410) throw error;
      await stored.remove();
    }
  }
  const actions = await requestUpload(context, repo, file);
  if (actions === null) return 0;
  const { upload, verify } = actions;
  let sentBytes: number;
  const state = multipartState(file, upload);
  if (state === null) sentBytes = await uploadWhole(context, file, upload, onProgress);
  else sentBytes = await uploadParts(context, file, state, stored.write, onProgress).then(finish);
  if (verify !== null) {
    const body = JSON.stringify({ oid: file.sha256, size: file.source.sizeBytes });
    const what = `${file.label} (verification)`;
    await post(context, verify.href, { ...LFS_HEADERS, ...verify.header }, body, what);
  }
  return sentBytes;

  async function finish(bytes: number): Promise<number> {
    await stored.remove();
    return bytes;
  }
}

/** Asks where to send the file; null: the store has it. */
async function requestUpload(
  context: PullContext,
  repo: string,
  { sha256: oid, source, label }: UploadFile,
): Promise<{ upload: LfsAction; verify: LfsAction | null } | null> {
  const { endpoint, revision } = context.options;
  const body = JSON.stringify({
    operation: 'upload',
    transfers: ['basic', 'multipart'],
    hash_algo: 'sha256',
    ref: { name: revision },
    objects: [{ oid, size: source.sizeBytes }],
  });
  const url = `${endpoint}/${repo}.git/info/lfs/objects/batch`;
  const reply = await withRetries(context, label, () =>
    sendForJson(context, { method: 'POST', url, headers: LFS_HEADERS, body, what: label }),
  );
  const objects = fieldsOf(reply)['objects'];
  const object = fieldsOf(Array.isArray(objects) ? objects[0] : null);
  if (object['oid'] !== oid) throw new RuvLLMError('upload_failed', `${label}: the hub's answer is about another file`);
  if (object['error'] !== undefined) {
    const { code = 0, message = '' } = fieldsOf(object['error']);
    const reason = typeof message === 'string' ? message.slice(0, 200) : showValue(message);
    throw new RuvLLMError('upload_failed', `${label}: the hub refused the file (${showValue(code)}): ${reason}`, {
      data: { status: typeof code === 'number' ? code : null },
    });
  }
  const { upload, verify } = fieldsOf(object['actions']);
  if (upload === undefined) return null;
  return { upload: readAction(upload, label), verify: verify === undefined ? null : readAction(verify, label) };
}

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};

function readAction(value: unknown, label: string): LfsAction {
  const { href, header } = fieldsOf(value);
  if (typeof href !== 'string') throw new RuvLLMError('upload_failed', `${label}: the hub named no address`);
  // Some stores send the size of a part as a number.
  const texts = Object.entries(fieldsOf(header)).flatMap(([key, one]): [string, string][] =>
    typeof one === 'string' ? [[key, one]] : typeof one === 'number' ? [[key, String(one)]] : [],
  );
  return { href, header: Object.fromEntries(texts) };
}

/** Null: the store takes the file in one request. */
function multipartState({ source, label }: UploadFile, { href, header }: LfsAction): UploadState | null {
  const chunkBytes = Number(header['chunk_size'] ?? NaN);
  if (Number.isNaN(chunkBytes)) return null;
  const partUrls = Object.keys(header)
    .filter((key) => /^\d+$/.test(key))
    .toSorted((a, b) => Number(a) - Number(b))
    .map((key) => header[key]!);
  const expected = Math.ceil(source.sizeBytes / chunkBytes);
  if (!(chunkBytes > 0) || chunkBytes > MAX_PART_BYTES || partUrls.length !== expected || expected > MAX_PARTS) {
    throw new RuvLLMError(
      'upload_failed',
      `${label}: the hub offers ${partUrls.length} parts of ${chunkBytes} bytes for ${source.sizeBytes} bytes`,
      { data: { numParts: partUrls.length, chunkBytes, sizeBytes: source.sizeBytes } },
    );
  }
  return { chunkBytes, completeUrl: href, partUrls, receipts: partUrls.map(() => null) };
}

async function uploadParts(
  context: PullContext,
  file: UploadFile,
  state: UploadState,
  save: (state: UploadState) => Promise<void>,
  onProgress: (doneBytes: number) => void,
): Promise<number> {
  const { source, label, sha256: oid } = file;
  const { chunkBytes, partUrls, receipts } = state;
  await save(state);
  let sentBytes = 0;
  for (const [index, url] of partUrls.entries()) {
    const start = index * chunkBytes;
    const end = Math.min(start + chunkBytes, source.sizeBytes);
    if (receipts[index] === null) {
      await file.checkUnchanged();
      const bytes = new Uint8Array(end - start);
      source.readInto(bytes, start);
      const what = `${label}, part ${index + 1} of ${partUrls.length}`;
      receipts[index] = await withRetries(context, what, () => sendPart(context, url, bytes, what));
      sentBytes += bytes.length;
      await save(state);
    }
    onProgress(end);
  }
  await file.checkUnchanged();
  const parts = receipts.map((etag, index) => ({ partNumber: index + 1, etag }));
  await post(context, state.completeUrl, LFS_HEADERS, JSON.stringify({ oid, parts }), `${label} (completion)`);
  return sentBytes;
}

async function sendPart(context: PullContext, url: string, bytes: Uint8Array, what: string): Promise<string> {
  const reply = await sendUpload(context, { method: 'PUT', url, headers: {}, body: bytes, what });
  if (reply.status !== 200) throw await toUploadError(reply, what);
  const etag = reply.headers.get('etag');
  await reply.cancel();
  if (etag === null) throw new RuvLLMError('upload_failed', `${what}: the store returned no receipt (etag)`);
  return etag;
}

async function uploadWhole(
  context: PullContext,
  file: UploadFile,
  { href, header }: LfsAction,
  onProgress: (doneBytes: number) => void,
): Promise<number> {
  const { source, label } = file;
  await withRetries(context, label, async () => {
    const headers = { ...header, 'content-length': String(source.sizeBytes) };
    const body = streamOf(file, onProgress);
    const reply = await sendUpload(context, { method: 'PUT', url: href, headers, body, what: label });
    if (reply.status < 200 || reply.status > 299) throw await toUploadError(reply, label);
    await reply.cancel();
  });
  await file.checkUnchanged();
  return source.sizeBytes;
}

async function* streamOf(file: UploadFile, onProgress: (doneBytes: number) => void): AsyncGenerator<Uint8Array> {
  const { source } = file;
  for (let start = 0; start < source.sizeBytes; start += STREAM_BYTES) {
    await file.checkUnchanged();
    const bytes = new Uint8Array(Math.min(STREAM_BYTES, source.sizeBytes - start));
    source.readInto(bytes, start);
    yield bytes;
    onProgress(start + bytes.length);
  }
}

async function post(
  context: PullContext,
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string,
  what: string,
): Promise<void> {
  await withRetries(context, what, async () => {
    const reply = await sendUpload(context, {
      method: 'POST',
      url,
      headers: { ...JSON_HEADERS, ...headers },
      body,
      what,
    });
    if (reply.status < 200 || reply.status > 299) throw await toUploadError(reply, what);
    await reply.cancel();
  });
}
