import { RuvLLMError } from '../core/errors.ts';
import { linkSnapshot, repoFolder, writeRef, type RepoFolder } from './cache-layout.ts';
import { downloadBlob } from './download.ts';
import { chooseGgufFile } from './gguf-choice.ts';
import { fetchCommit, fetchFiles, fileUrl, type HubFile } from './huggingface-api.ts';
import { acquireLock } from './lock.ts';
import type { PullContext } from './pull-context.ts';
import type { ModelReference } from './reference.ts';
import { isSafeRelativePath } from './safe-path.ts';

export type HubReference = Extract<ModelReference, { kind: 'huggingface' }>;

/** The result of a pull. */
export interface PulledModel {
  readonly path: string;
  readonly file: string;
  readonly commit: string;
  readonly sizeBytes: number;
  /** Null for a small file that has only a git id on the hub. */
  readonly sha256: string | null;
  /** False if the file was already in the cache. */
  readonly isDownloaded: boolean;
}

export function hubRepoFolder(context: Pick<PullContext, 'platform' | 'options'>, reference: HubReference): RepoFolder {
  const name = `models--${reference.owner}--${reference.repo}`;
  return repoFolder(context.platform, context.options.cacheRoot, name);
}

async function chooseFile(context: PullContext, reference: HubReference, commit: string): Promise<HubFile> {
  const repo = `${reference.owner}/${reference.repo}`;
  const available = await fetchFiles(context, repo, commit);
  const path = chooseGgufFile(
    available.map((file) => file.path),
    reference,
    repo,
  );
  if (!isSafeRelativePath(path)) {
    throw new RuvLLMError('download_failed', `${repo}: unsafe file name ${JSON.stringify(path.slice(0, 120))}`);
  }
  return available.find((file) => file.path === path)!;
}

async function fetchIntoCache(
  context: PullContext,
  folder: RepoFolder,
  file: HubFile,
  source: { url: string; commit: string },
): Promise<{ path: string; isDownloaded: boolean }> {
  const { platform } = context;
  const blobPath = platform.files.join(folder.blobs, file.hash.hex);
  const lock = await acquireLock(context, folder.locks, file.hash.hex);
  try {
    // The previous lock holder may have downloaded it; a blob of another size is broken.
    const isCached = (await platform.files.stat(blobPath))?.sizeBytes === file.sizeBytes;
    const { sizeBytes, hash } = file;
    if (!isCached)
      await downloadBlob(context, { url: source.url, label: file.path, sizeBytes, hash }, folder.blobs, lock);
    const target = { commit: source.commit, file: file.path, blob: hash.hex };
    return { path: await linkSnapshot(platform, folder, target), isDownloaded: !isCached };
  } finally {
    await lock.release();
  }
}

/** Downloads a model from a Hugging Face compatible hub into the cache. */
export async function pullFromHub(context: PullContext, reference: HubReference): Promise<PulledModel> {
  const repo = `${reference.owner}/${reference.repo}`;
  context.onProgress({ phase: 'resolve', item: repo, doneBytes: 0, totalBytes: null });
  const commit = await fetchCommit(context, repo);
  const file = await chooseFile(context, reference, commit);
  const folder = hubRepoFolder(context, reference);
  const url = fileUrl(context, repo, commit, file.path);
  const { path, isDownloaded } = await fetchIntoCache(context, folder, file, { url, commit });
  await writeRef(context.platform, folder, context.options.revision, commit);
  const sha256 = file.hash.algorithm === 'sha256' ? file.hash.hex : null;
  return { path, file: file.path, commit, sizeBytes: file.sizeBytes, sha256, isDownloaded };
}
