import { RuvLLMError } from '../core/errors.ts';
import { tryGgufSummary } from './gguf-summary.ts';
import { fetchCommit, fetchFiles } from './huggingface-api.ts';
import { uploadLfs, type UploadFile } from './lfs-upload.ts';
import { type CardFigures, writeModelCard } from './model-card.ts';
import { checkAborted, type PullContext } from './pull-context.ts';
import { parseModelReference } from './reference.ts';
import { withRetries } from './retry.ts';
import { sendForJson, sendUpload, toUploadError } from './upload-http.ts';

/** Options of `pushModel`. */
export interface PushOptions {
  /** Measured figures for the model card, with the hash of their file; default null. */
  record?: (CardFigures & { readonly sha256: string }) | null;
  /** Creates a repository that does not exist; default false. */
  create?: boolean;
  /** A new repository is private; default false. */
  isPrivate?: boolean;
  /** Replaces an existing README.md; default false. */
  replaceCard?: boolean;
  /** The model that was quantized, as owner/repo, for the card; default null. */
  baseModel?: string | null;
  signal?: AbortSignal | null;
  onProgress?: (progress: PushProgress) => void;
}

/** A progress report of a push. */
export interface PushProgress {
  readonly phase: 'hash' | 'upload';
  readonly doneBytes: number;
  readonly totalBytes: number;
}

/** The file as it is in the repository. */
export interface PushedModel {
  readonly repo: string;
  readonly file: string;
  readonly sizeBytes: number;
  readonly sha256: string;
  /** 0: the hub had the file. */
  readonly sentBytes: number;
  readonly isCardWritten: boolean;
  readonly commit: string | null;
}

const JSON_HEADERS = { accept: 'application/json', 'content-type': 'application/json' };

/** Uploads a GGUF file to a repository of a hub, with a model card, in one commit. */
export async function pushModel(
  context: PullContext,
  path: string,
  repoName: string,
  options: PushOptions,
): Promise<PushedModel> {
  const { platform } = context;
  const { owner, repo } = parseRepo(repoName);
  const fullName = `${owner}/${repo}`;
  const baseModel = options.baseModel == null ? null : Object.values(parseRepo(options.baseModel)).join('/');
  if (context.token === null) {
    throw new RuvLLMError('invalid_option', 'pushing requires a token with write access: set HF_TOKEN');
  }
  const before = await platform.files.stat(path);
  if (before?.kind !== 'file') throw new RuvLLMError('not_found', `${path} is not a file`, { data: { path } });
  const summary = tryGgufSummary(platform, path);
  if (summary === null) throw new RuvLLMError('invalid_model_file', `${path} is not a readable GGUF model`);
  const name = path.split(/[\\/]/).at(-1)!;
  const onProgress = options.onProgress ?? (() => {});
  const sha256 = await hashFile(context, path, before.sizeBytes, onProgress);
  if (options.record != null && options.record.sha256 !== sha256) {
    throw new RuvLLMError(
      'hash_mismatch',
      `the record is of a file with SHA-256 ${options.record.sha256}, ${name} has ${sha256}`,
      { data: { recorded: options.record.sha256, actual: sha256 } },
    );
  }
  if (options.create === true) await createRepo(context, owner, repo, options.isPrivate ?? false);
  const hasCard = await hasFile(context, fullName, 'README.md');
  const checkUnchanged = async (): Promise<void> => {
    checkAborted(context, name);
    const now = await platform.files.stat(path);
    if (now?.sizeBytes === before.sizeBytes && now.modifiedMs === before.modifiedMs) return;
    const state = now === null ? 'it is gone' : `it has ${now.sizeBytes} bytes, was ${before.sizeBytes}`;
    throw new RuvLLMError('conflict', `${name} changed during the upload: ${state}; push it again`, {
      data: { sizeBytes: now?.sizeBytes ?? 0, expectedBytes: before.sizeBytes },
    });
  };
  const source = platform.files.openSource(path);
  let sentBytes: number;
  try {
    const file: UploadFile = { source, sha256, label: name, checkUnchanged };
    sentBytes = await uploadLfs(context, fullName, file, (doneBytes) =>
      onProgress({ phase: 'upload', doneBytes, totalBytes: before.sizeBytes }),
    );
  } finally {
    source.close();
  }
  const isCardWritten = !hasCard || options.replaceCard === true;
  const facts = { name, sizeBytes: before.sizeBytes, sha256, summary };
  const card = isCardWritten ? writeModelCard(facts, options.record ?? null, baseModel) : null;
  const commit = await commitFiles(context, fullName, facts, card);
  return { repo: fullName, file: name, sizeBytes: before.sizeBytes, sha256, sentBytes, isCardWritten, commit };
}

function parseRepo(text: string): { owner: string; repo: string } {
  const reference = parseModelReference(
    text.startsWith('hf:') ? text : `hf:${text.replace(/^(?:https?:\/\/)?(?:hf\.co|huggingface\.co)\//, '')}`,
  );
  if (reference.kind === 'huggingface' && reference.quant === null && reference.file === null) {
    return { owner: reference.owner, repo: reference.repo };
  }
  throw new RuvLLMError('invalid_option', `"${text.slice(0, 120)}" is not a repository; expected owner/repo`);
}

async function hashFile(
  context: PullContext,
  path: string,
  totalBytes: number,
  onProgress: (progress: PushProgress) => void,
): Promise<string> {
  const hasher = context.platform.createHasher('sha256');
  let doneBytes = 0;
  for await (const chunk of context.platform.files.readChunks(path)) {
    checkAborted(context, path);
    hasher.update(chunk);
    doneBytes += chunk.byteLength;
    onProgress({ phase: 'hash', doneBytes, totalBytes });
  }
  return hasher.digest();
}

async function createRepo(context: PullContext, owner: string, name: string, isPrivate: boolean): Promise<void> {
  const body = JSON.stringify({ type: 'model', name, organization: owner, private: isPrivate });
  const what = `${owner}/${name}`;
  const url = `${context.options.endpoint}/api/repos/create`;
  await withRetries(context, what, async () => {
    const reply = await sendUpload(context, { method: 'POST', url, headers: JSON_HEADERS, body, what });
    // 409: it exists already.
    if (reply.status > 299 && reply.status !== 409) throw await toUploadError(reply, what);
    await reply.cancel();
  });
}

async function hasFile(context: PullContext, repo: string, path: string): Promise<boolean> {
  try {
    const files = await fetchFiles(context, repo, await fetchCommit(context, repo));
    return files.some((file) => file.path === path);
  } catch (error) {
    if (!(error instanceof RuvLLMError)) throw error;
    if (error.code === 'not_found') {
      throw new RuvLLMError('not_found', `${repo} does not exist, or its branch does not; --create creates it`);
    }
    // Reading failed as a download; to the caller it is part of the upload.
    if (error.code !== 'download_failed') throw error;
    throw new RuvLLMError('upload_failed', error.message, { data: error.data });
  }
}

async function commitFiles(
  context: PullContext,
  repo: string,
  { name, sizeBytes, sha256 }: { name: string; sizeBytes: number; sha256: string },
  card: string | null,
): Promise<string | null> {
  const lines: object[] = [
    { key: 'header', value: { summary: `Add ${name}`, description: '' } },
    { key: 'lfsFile', value: { path: name, algo: 'sha256', oid: sha256, size: sizeBytes } },
  ];
  if (card !== null) {
    const content = toBase64(new TextEncoder().encode(card));
    lines.push({ key: 'file', value: { path: 'README.md', content, encoding: 'base64' } });
  }
  const { endpoint, revision } = context.options;
  const url = `${endpoint}/api/models/${repo}/commit/${encodeURIComponent(revision)}`;
  const body = lines.map((line) => JSON.stringify(line)).join('\n');
  const headers = { accept: 'application/json', 'content-type': 'application/x-ndjson' };
  const what = `${repo} (commit)`;
  const reply = await withRetries(context, what, () =>
    sendForJson(context, { method: 'POST', url, headers, body, what }),
  );
  const commit = (reply as { commitOid?: unknown } | null)?.commitOid;
  return typeof commit === 'string' ? commit : null;
}

const toBase64 = (bytes: Uint8Array): string => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
