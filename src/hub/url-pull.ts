import { RuvLLMError } from '../core/errors.ts';
import { linkSnapshot, listSnapshot, repoFolder, writeRef, type CachedFile, type RepoFolder } from './cache-layout.ts';
import { httpGet, toStatusError } from './http.ts';
import type { PulledModel } from './huggingface-pull.ts';
import { acquireLock, type Lock } from './lock.ts';
import type { PullContext } from './pull-context.ts';
import type { ModelReference } from './reference.ts';
import { withRetries } from './retry.ts';
import { isSafeRelativePath } from './safe-path.ts';

export type UrlReference = Extract<ModelReference, { kind: 'url' }>;

const FOLDER = 'models--url--';
const REPORT_STEP_BYTES = 1 << 20;
type CacheContext = Pick<PullContext, 'platform' | 'options'>;

/** The cache folder of a host; each URL is a ref with a snapshot of its own. */
export function urlRepoFolder({ platform, options }: CacheContext, { url }: UrlReference): RepoFolder {
  return repoFolder(platform, options.cacheRoot, `${FOLDER}${new URL(url).host.replaceAll(':', '%3A')}`);
}

export const isUrlFolder = (folderName: string): boolean => folderName.startsWith(FOLDER);

export const urlRefName = ({ url }: UrlReference): string => encodeURIComponent(url);

export function urlCommit({ platform }: Pick<PullContext, 'platform'>, { url }: UrlReference): string {
  const hasher = platform.createHasher('sha256');
  hasher.update(new TextEncoder().encode(url));
  return hasher.digest().slice(0, 40);
}

/** The cached file of a URL, without a request; null if there is none. */
export async function findCachedUrlFile(context: CacheContext, reference: UrlReference): Promise<CachedFile | null> {
  const repo = urlRepoFolder(context, reference);
  return (await listSnapshot(context.platform, repo, urlCommit(context, reference)))[0] ?? null;
}

/** Writes the body to `path`; returns its size and hash. */
async function fetchFile(
  context: PullContext,
  url: string,
  path: string,
  lock: Lock,
): Promise<{ sizeBytes: number; sha256: string }> {
  const { files, createHasher } = context.platform;
  const reply = await httpGet(context, url);
  if (reply.status !== 200) throw await toStatusError(reply, url);
  const length = reply.headers.get('content-length');
  const totalBytes = length === null ? null : Number(length);
  const hasher = createHasher('sha256');
  const writer = await files.openWriter(path, 0);
  let [doneBytes, lastReport] = [0, 0];
  try {
    const free = await files.freeBytes(context.options.cacheRoot);
    if (totalBytes !== null && free !== null && free < totalBytes) {
      const message = `${url}: ${totalBytes} bytes are needed, ${free} are free`;
      throw new RuvLLMError('disk_full', message, { data: { neededBytes: totalBytes, freeBytes: free } });
    }
    for await (const chunk of reply.chunks()) {
      await writer.write(chunk);
      hasher.update(chunk);
      doneBytes += chunk.byteLength;
      await lock.keep();
      if (doneBytes - lastReport < REPORT_STEP_BYTES && doneBytes !== totalBytes) continue;
      lastReport = doneBytes;
      context.onProgress({ phase: 'download', item: url, doneBytes, totalBytes });
    }
    await writer.sync();
  } finally {
    await writer.close();
    await reply.cancel();
  }
  if (totalBytes !== null && doneBytes !== totalBytes) {
    const message = `${url}: the body ended after ${doneBytes} of ${totalBytes} bytes`;
    throw new RuvLLMError('download_failed', message, { isRetryable: true });
  }
  return { sizeBytes: doneBytes, sha256: hasher.digest() };
}

/** Downloads a GGUF file from any host. Its hash is not known in advance, so an interrupted download starts again. */
export async function pullFromUrl(
  context: PullContext,
  reference: UrlReference,
  /** Throws unless the file is a complete model. */
  requireModel: (path: string, label: string) => void,
): Promise<PulledModel> {
  const { platform } = context;
  const { files } = platform;
  const { url } = reference;
  const repo = urlRepoFolder(context, reference);
  const commit = urlCommit(context, reference);
  const file = decodeURIComponent(new URL(url).pathname.split('/').at(-1)!);
  if (!isSafeRelativePath(file) || /[\\/]/.test(file)) {
    throw new RuvLLMError('invalid_option', `${url}: unsafe file name ${JSON.stringify(file.slice(0, 120))}`);
  }
  const lock = await acquireLock(context, repo.locks, commit);
  const partial = files.join(repo.blobs, `${commit}.incomplete`);
  try {
    const cached = await findCachedUrlFile(context, reference);
    if (cached !== null) {
      return { path: cached.path, file, commit, sizeBytes: cached.sizeBytes, sha256: cached.blob, isDownloaded: false };
    }
    context.onProgress({ phase: 'resolve', item: url, doneBytes: 0, totalBytes: null });
    await files.makeFolder(repo.blobs);
    const { sizeBytes, sha256 } = await withRetries(context, url, () => fetchFile(context, url, partial, lock));
    requireModel(partial, url);
    await lock.requireHeld();
    await files.rename(partial, files.join(repo.blobs, sha256));
    const path = await linkSnapshot(platform, repo, { commit, file, blob: sha256 });
    await writeRef(platform, repo, urlRefName(reference), commit);
    return { path, file, commit, sizeBytes, sha256, isDownloaded: true };
  } finally {
    await files.remove(partial);
    await lock.release();
  }
}
