import { RuvLLMError } from '../core/errors.ts';
import { listCommits, listRefs, listSnapshot, walk, type CachedFile, type RepoFolder } from './cache-layout.ts';
import { findCachedNpmFile } from './cached-models.ts';
import { matchesQuant } from './gguf-choice.ts';
import { hubRepoFolder } from './huggingface-pull.ts';
import { isLocked } from './lock.ts';
import { npmRepoFolder } from './npm-pull.ts';
import type { PullContext } from './pull-context.ts';
import { formatModelReference, type ModelReference } from './reference.ts';
import { findCachedUrlFile, urlRepoFolder } from './url-pull.ts';

/** The result of removing a model. */
export interface RemovedModel {
  /** The removed paths: snapshot entries, then blobs and partial downloads. */
  readonly removed: readonly string[];
  readonly freedBytes: number;
}

/** A planted link in the cache must not lead deletions out of it. */
async function requireInside({ platform, options }: PullContext, folder: string): Promise<void> {
  const { files } = platform;
  const root = await files.realPath(options.cacheRoot);
  const real = await files.realPath(folder);
  if (root !== null && real !== null && real.startsWith(files.join(root, 'x').slice(0, -1))) return;
  throw new RuvLLMError('io', `refused to remove from ${folder}: it is not inside the cache ${options.cacheRoot}`);
}

async function hashFile({ platform }: PullContext, path: string): Promise<string> {
  const hasher = platform.createHasher('sha256');
  for await (const chunk of platform.files.readChunks(path)) hasher.update(chunk);
  return hasher.digest();
}

/** Blobs that some entry still uses. A copied entry could be of any blob, so it protects those of its size. */
async function usedBlobs(
  context: PullContext,
  repo: RepoFolder,
): Promise<{ names: Set<string>; copySizes: Set<number> }> {
  const { files } = context.platform;
  const names = new Set<string>();
  const copySizes = new Set<number>();
  for (const path of await walk(context.platform, repo.snapshots)) {
    const full = files.join(repo.snapshots, ...path.split('/'));
    const real = await files.realPath(full);
    const isCopy = real?.endsWith(files.join('snapshots', ...path.split('/'))) ?? false;
    if (isCopy) copySizes.add((await files.stat(full))?.sizeBytes ?? -1);
    else if (real !== null) names.add(real.split(/[\\/]/).at(-1)!);
  }
  return { names, copySizes };
}

async function removeEmptyFolders(context: PullContext, root: string): Promise<void> {
  const { files } = context.platform;
  for (const { name, kind } of await files.list(root)) {
    if (kind === 'folder') await removeEmptyFolders(context, files.join(root, name));
  }
  await files.removeEmptyFolder(root);
}

/** Removes refs whose snapshot is gone, and empty folders. */
async function tidy(context: PullContext, repo: RepoFolder): Promise<void> {
  const { platform } = context;
  await removeEmptyFolders(context, repo.snapshots);
  const commits = new Set(await listCommits(platform, repo));
  for (const { ref, commit } of await listRefs(platform, repo)) {
    if (!commits.has(commit)) await platform.files.remove(platform.files.join(repo.refs, ...ref.split('/')));
  }
  await removeEmptyFolders(context, repo.path);
}

async function removeEntries(
  context: PullContext,
  repo: RepoFolder,
  entries: readonly CachedFile[],
): Promise<RemovedModel> {
  const { files } = context.platform;
  const removed: string[] = [];
  const blobs = new Map<string, number>();
  let freedBytes = 0;
  for (const entry of entries) {
    await requireInside(context, files.join(entry.path, '..'));
    blobs.set(entry.blob ?? (await hashFile(context, entry.path)), entry.sizeBytes);
    if (entry.blob === null) freedBytes += entry.sizeBytes;
    if (await files.remove(entry.path)) removed.push(entry.path);
  }
  const used = await usedBlobs(context, repo);
  for (const [blob, sizeBytes] of blobs) {
    if (used.names.has(blob) || used.copySizes.has(sizeBytes)) continue;
    const path = files.join(repo.blobs, blob);
    if (!(await files.remove(path))) continue;
    removed.push(path);
    freedBytes += sizeBytes;
  }
  return { removed, freedBytes };
}

/** Removes partial downloads that no process is working on. */
async function removePartials(context: PullContext, repo: RepoFolder): Promise<RemovedModel> {
  const { files } = context.platform;
  const removed: string[] = [];
  let freedBytes = 0;
  for (const { name } of await files.list(repo.blobs)) {
    const blob = /^([0-9a-f]+)\.incomplete$/.exec(name)?.[1];
    if (blob === undefined || (await isLocked(context, repo.locks, blob))) continue;
    await requireInside(context, repo.blobs);
    const path = files.join(repo.blobs, name);
    freedBytes += (await files.stat(path))?.sizeBytes ?? 0;
    if (await files.remove(path)) removed.push(path);
  }
  return { removed, freedBytes };
}

/**
 * Removes a model from the cache: its snapshot entries, and the blobs no other snapshot uses. `owner/repo` without a
 * quantization means all GGUF files of the repository and its partial downloads. Local files are never removed.
 */
export async function removeModel(context: PullContext, reference: ModelReference): Promise<RemovedModel> {
  const label = formatModelReference(reference);
  if (reference.kind === 'path') {
    throw new RuvLLMError('invalid_option', `${label} is a local file outside the model cache; it was not removed`);
  }
  const repo =
    reference.kind === 'npm'
      ? npmRepoFolder(context, reference)
      : reference.kind === 'url'
        ? urlRepoFolder(context, reference)
        : hubRepoFolder(context, reference);
  const entries: CachedFile[] = [];
  if (reference.kind !== 'huggingface') {
    const isNpm = reference.kind === 'npm';
    const entry = isNpm ? await findCachedNpmFile(context, reference) : await findCachedUrlFile(context, reference);
    if (entry !== null) entries.push(entry);
  } else {
    const { quant, file } = reference;
    for (const commit of await listCommits(context.platform, repo)) {
      const all = await listSnapshot(context.platform, repo, commit);
      entries.push(
        ...all.filter(
          (entry) => (file === null || entry.file === file) && (quant === null || matchesQuant(entry.file, quant)),
        ),
      );
    }
  }
  const main = await removeEntries(context, repo, entries);
  const isWholeRepo = reference.kind === 'huggingface' && reference.quant === null && reference.file === null;
  const partials = isWholeRepo ? await removePartials(context, repo) : { removed: [], freedBytes: 0 };
  const removed = [...main.removed, ...partials.removed];
  if (removed.length === 0) throw new RuvLLMError('not_found', `${label} is not in the cache`);
  await tidy(context, repo);
  return { removed, freedBytes: main.freedBytes + partials.freedBytes };
}
