import type { HubPlatform } from './platform.ts';

/**
 * The folder of one repository, in the layout of Hugging Face tools:
 *
 *   models--owner--repo/blobs/<hash>                       complete files, named by content
 *   models--owner--repo/blobs/<hash>.incomplete            a download to resume
 *   models--owner--repo/snapshots/<commit>/<path>          link → ../../blobs/<hash>
 *   models--owner--repo/refs/<name>                        text: the commit of a branch or version
 *   .locks/models--owner--repo/<hash>.lock                 the process that writes the blob
 */
export interface RepoFolder {
  readonly name: string;
  readonly path: string;
  readonly blobs: string;
  readonly snapshots: string;
  readonly refs: string;
  readonly locks: string;
}

/** A model file visible in the cache. */
export interface CachedFile {
  readonly commit: string;
  /** Path inside the repository, with forward slashes. */
  readonly file: string;
  /** Absolute path below snapshots/. */
  readonly path: string;
  readonly sizeBytes: number;
  readonly modifiedMs: number;
  /** Name of the blob it links to; null for a copy (file systems without links). */
  readonly blob: string | null;
}

const COMMIT = /^[0-9a-f]{40}$/;
/** Far more than any model repository has; limits the work on a hostile or broken cache. */
const MAX_DEPTH = 8;
const MAX_ENTRIES = 20_000;

/** Commit ids become folder names, so only forty hex digits are valid. */
export function isCommit(text: string): boolean {
  return COMMIT.test(text);
}

export function repoFolder({ files }: HubPlatform, cacheRoot: string, name: string): RepoFolder {
  const path = files.join(cacheRoot, name);
  return {
    name,
    path,
    blobs: files.join(path, 'blobs'),
    snapshots: files.join(path, 'snapshots'),
    refs: files.join(path, 'refs'),
    locks: files.join(cacheRoot, '.locks', name),
  };
}

/** The commit of a ref, or null. */
export async function readRef({ files }: HubPlatform, repo: RepoFolder, ref: string): Promise<string | null> {
  const text = (await files.readText(files.join(repo.refs, ...ref.split('/')), 256).catch(() => null))?.trim() ?? '';
  return isCommit(text) ? text : null;
}

export async function writeRef({ files }: HubPlatform, repo: RepoFolder, ref: string, commit: string): Promise<void> {
  const parts = ref.split('/');
  await files.makeFolder(files.join(repo.refs, ...parts.slice(0, -1)));
  await files.writeText(files.join(repo.refs, ...parts), commit);
}

/** All refs of a repository, nested ones with slashes. */
export async function listRefs(platform: HubPlatform, repo: RepoFolder): Promise<{ ref: string; commit: string }[]> {
  const refs: { ref: string; commit: string }[] = [];
  for (const ref of await walk(platform, repo.refs)) {
    const commit = await readRef(platform, repo, ref);
    if (commit !== null) refs.push({ ref, commit });
  }
  return refs;
}

/** Makes a complete blob visible under its file name. */
export async function linkSnapshot(
  { files }: HubPlatform,
  repo: RepoFolder,
  target: { commit: string; file: string; blob: string },
): Promise<string> {
  const parts = target.file.split('/');
  const folder = files.join(repo.snapshots, target.commit, ...parts.slice(0, -1));
  await files.makeFolder(folder);
  const path = files.join(folder, parts.at(-1)!);
  await files.link(`${'../'.repeat(parts.length + 1)}blobs/${target.blob}`, path);
  return path;
}

/** Relative paths of all files and links below a folder, sorted. */
export async function walk({ files }: HubPlatform, root: string): Promise<string[]> {
  const paths: string[] = [];
  const visit = async (folder: string, prefix: string, depth: number): Promise<void> => {
    for (const { name, kind } of await files.list(folder)) {
      if (paths.length >= MAX_ENTRIES) return;
      if (kind === 'folder' && depth < MAX_DEPTH) await visit(files.join(folder, name), `${prefix}${name}/`, depth + 1);
      else if (kind === 'file' || kind === 'link') paths.push(prefix + name);
    }
  };
  await visit(root, '', 0);
  return paths;
}

/** The GGUF files of one snapshot, without dangling links. */
export async function listSnapshot(platform: HubPlatform, repo: RepoFolder, commit: string): Promise<CachedFile[]> {
  const { files } = platform;
  const cached: CachedFile[] = [];
  const root = files.join(repo.snapshots, commit);
  for (const file of await walk(platform, root)) {
    if (!/\.gguf$/i.test(file)) continue;
    const path = files.join(root, ...file.split('/'));
    const facts = await files.stat(path);
    if (facts?.kind !== 'file') continue;
    const blob = await blobOf(platform, repo, path);
    cached.push({ commit, file, path, sizeBytes: facts.sizeBytes, modifiedMs: facts.modifiedMs, blob });
  }
  return cached;
}

/** The blob of a snapshot entry, if it is in this repository's blobs folder. */
async function blobOf({ files }: HubPlatform, repo: RepoFolder, path: string): Promise<string | null> {
  const real = await files.realPath(path);
  const blobs = await files.realPath(repo.blobs);
  if (real === null || blobs === null) return null;
  const name = real.split(/[\\/]/).at(-1)!;
  return files.join(blobs, name) === real ? name : null;
}

/** Commits with a snapshot folder, sorted. */
export async function listCommits({ files }: HubPlatform, repo: RepoFolder): Promise<string[]> {
  const entries = await files.list(repo.snapshots);
  return entries.filter(({ name, kind }) => kind === 'folder' && isCommit(name)).map(({ name }) => name);
}
