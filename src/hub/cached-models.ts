import { RuvLLMError } from '../core/errors.ts';
import {
  listCommits,
  listRefs,
  listSnapshot,
  readRef,
  repoFolder,
  type CachedFile,
  type RepoFolder,
} from './cache-layout.ts';
import { chooseGgufFile, quantOf } from './gguf-choice.ts';
import { hubRepoFolder, type HubReference } from './huggingface-pull.ts';
import { npmCommit, npmNamesOf, npmRefName, npmRepoFolder, type NpmReference } from './npm-pull.ts';
import { isExactVersion } from './npm-package.ts';
import type { PullContext } from './pull-context.ts';
import { formatModelReference, parseModelReference } from './reference.ts';
import { isUrlFolder } from './url-pull.ts';

/** A model in the cache. */
export interface CachedModel {
  /** Identifies this file; every hub function accepts it. */
  readonly reference: string;
  readonly source: 'huggingface' | 'npm' | 'url';
  readonly file: string;
  readonly path: string;
  readonly sizeBytes: number;
  readonly modifiedMs: number;
  readonly commit: string;
  readonly sha256: string | null;
}

type CacheContext = Pick<PullContext, 'platform' | 'options'>;

/** The blob's name is the SHA-256 of every large file. */
export function sha256Of(file: Pick<CachedFile, 'blob'>): string | null {
  return file.blob !== null && /^[0-9a-f]{64}$/.test(file.blob) ? file.blob : null;
}

function toModel(reference: string, source: CachedModel['source'], file: CachedFile): CachedModel {
  const { path, sizeBytes, modifiedMs, commit } = file;
  return { reference, source, file: file.file, path, sizeBytes, modifiedMs, commit, sha256: sha256Of(file) };
}

/** The commit of the requested revision first; for the default branch, then all other snapshots. */
async function orderedCommits({ platform, options }: CacheContext, repo: RepoFolder): Promise<string[]> {
  const commits = await listCommits(platform, repo);
  const current = await readRef(platform, repo, options.revision);
  const otherCommits = options.revision === 'main' ? commits : commits.filter((commit) => commit === options.revision);
  return [...new Set([...(current === null ? [] : [current]), ...otherCommits])];
}

function tryChoose(files: readonly CachedFile[], reference: HubReference): CachedFile | null {
  try {
    const chosen = chooseGgufFile(
      files.map(({ file }) => file),
      reference,
      'the cache',
    );
    return files.find(({ file }) => file === chosen) ?? null;
  } catch (error) {
    if (error instanceof RuvLLMError) return null;
    throw error;
  }
}

/** The cached file of a hub reference, without a request to the hub; null if there is none. */
export async function findCachedHubFile(context: CacheContext, reference: HubReference): Promise<CachedFile | null> {
  const repo = hubRepoFolder(context, reference);
  for (const commit of await orderedCommits(context, repo)) {
    const match = tryChoose(await listSnapshot(context.platform, repo, commit), reference);
    if (match !== null) return match;
  }
  return null;
}

/** The cached file of an npm reference, without a request to npm; null if there is none. */
export async function findCachedNpmFile(context: CacheContext, reference: NpmReference): Promise<CachedFile | null> {
  const repo = npmRepoFolder(context, reference);
  const commit =
    npmCommit(context, reference.packages) ?? (await readRef(context.platform, repo, npmRefName(reference.packages)));
  return commit === null ? null : ((await listSnapshot(context.platform, repo, commit))[0] ?? null);
}

async function listHubRepo(context: CacheContext, repo: RepoFolder): Promise<CachedModel[]> {
  const [prefix, owner, ...names] = repo.name.split('--');
  if (prefix !== 'models' || !owner || names.length === 0) return [];
  const name = names.join('--');
  let plain: HubReference;
  try {
    plain = parseModelReference(`hf:${owner}/${name}`) as HubReference;
  } catch {
    return []; // Another tool's folder that our references cannot name.
  }
  const byName = new Map<string, CachedFile>();
  for (const commit of await orderedCommits(context, repo)) {
    for (const file of await listSnapshot(context.platform, repo, commit)) {
      if (!byName.has(file.file)) byName.set(file.file, file);
    }
  }
  const all = [...byName.values()];
  return all.map((file) => {
    const byQuant: HubReference = { ...plain, quant: quantOf(file.file) };
    const isNamedByQuant = byQuant.quant !== null && tryChoose(all, byQuant) === file;
    const reference = isNamedByQuant ? byQuant : { ...plain, file: file.file };
    return toModel(formatModelReference(reference), 'huggingface', file);
  });
}

async function listNpmRepo({ platform }: CacheContext, repo: RepoFolder, names: string[]): Promise<CachedModel[]> {
  const models: CachedModel[] = [];
  for (const { ref, commit } of await listRefs(platform, repo)) {
    const versions = ref.split('+').map((part) => decodeURIComponent(part).split('#', 2));
    if (versions.length !== names.length || !versions.every(([version]) => isExactVersion(version ?? null))) continue;
    const packages = names.map((name, i) => ({ name, version: versions[i]![0]!, file: versions[i]![1] ?? null }));
    const [file] = await listSnapshot(platform, repo, commit);
    if (file !== undefined) models.push(toModel(formatModelReference({ kind: 'npm', packages }), 'npm', file));
  }
  return models;
}

async function listUrlRepo({ platform }: CacheContext, repo: RepoFolder): Promise<CachedModel[]> {
  const models: CachedModel[] = [];
  for (const { ref, commit } of await listRefs(platform, repo)) {
    const [file] = await listSnapshot(platform, repo, commit);
    if (file !== undefined) models.push(toModel(decodeURIComponent(ref), 'url', file));
  }
  return models;
}

/** Every model in the cache, sorted by reference. */
export async function listCachedModels(context: CacheContext): Promise<CachedModel[]> {
  const { platform, options } = context;
  const models: CachedModel[] = [];
  for (const { name } of await platform.files.list(options.cacheRoot)) {
    if (!name.startsWith('models--')) continue;
    const repo = repoFolder(platform, options.cacheRoot, name);
    const names = npmNamesOf(name);
    if (isUrlFolder(name)) models.push(...(await listUrlRepo(context, repo)));
    else models.push(...(names === null ? await listHubRepo(context, repo) : await listNpmRepo(context, repo, names)));
  }
  return models.sort((a, b) => (a.reference < b.reference ? -1 : a.reference > b.reference ? 1 : 0));
}
