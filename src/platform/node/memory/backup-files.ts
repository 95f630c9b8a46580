import { createHash, randomFillSync, type KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { RuvLLMError } from '../../../core/errors.ts';
import { flushFolder, listNames, makeFolder, replaceFile, type Files } from '../sealing/atomic-files.ts';
import { keyedName, NONCE_BYTES, seal, TAG_BYTES, unseal } from '../sealing/sealing.ts';

const MANIFEST = 'backup.json';
const API_KEYS = 'api-keys.sealed';
const VERSION = 1;
const HASH_BYTES = 1 << 20;

export interface BackupManifest {
  readonly version: number;
  readonly createdMs: number;
  readonly numRecords: number;
  readonly numCommits: number;
  readonly files: readonly { readonly name: string; readonly sizeBytes: number; readonly sha256: string }[];
}

interface Keys {
  keyFor(purpose: string): KeyObject;
}

const sealOf = (keys: Keys, manifest: BackupManifest): string =>
  keyedName(keys.keyFor('seal the list of a backup'), Buffer.from(JSON.stringify(manifest)));

const damaged = (folder: string, reason: string): RuvLLMError =>
  new RuvLLMError('io', `the backup ${folder} cannot be used: ${reason}`, { data: { path: folder, isDamaged: true } });

/** Reads in parts, and lets other work of the thread go first in between. */
async function hashOf(files: Files, path: string): Promise<string> {
  const hash = createHash('sha256');
  const handle = files.openSync(path, 'r');
  const part = Buffer.allocUnsafe(HASH_BYTES);
  try {
    for (;;) {
      const numRead = files.readSync(handle, part, 0, HASH_BYTES, null);
      if (numRead === 0) return hash.digest('hex');
      hash.update(part.subarray(0, numRead));
      await new Promise(setImmediate);
    }
  } finally {
    files.closeSync(handle);
  }
}

const listAll = (files: Files, folder: string): string[] =>
  files
    .readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => name !== MANIFEST && files.statSync(join(folder, name)).isFile())
    .sort();

/** Lists all files with their hashes, sealed; on disk when it returns. */
export async function writeManifest(
  files: Files,
  folder: string,
  keys: Keys,
  counts: Pick<BackupManifest, 'createdMs' | 'numRecords' | 'numCommits'>,
): Promise<BackupManifest> {
  const listed: BackupManifest['files'][number][] = [];
  for (const name of listAll(files, folder)) {
    const path = join(folder, name);
    const handle = files.openSync(path, 'r+');
    files.fsyncSync(handle);
    files.closeSync(handle);
    listed.push({ name, sizeBytes: files.statSync(path).size, sha256: await hashOf(files, path) });
  }
  const manifest: BackupManifest = { version: VERSION, ...counts, files: listed };
  const text = JSON.stringify({ ...manifest, seal: sealOf(keys, manifest) });
  replaceFile(files, join(folder, MANIFEST), [Buffer.from(`${text}\n`)], true);
  return manifest;
}

/** What a backup says of itself; null: not a complete backup. */
export function readManifest(files: Files, folder: string): (BackupManifest & { readonly seal: string }) | null {
  try {
    const manifest = JSON.parse(files.readFileSync(join(folder, MANIFEST), 'utf8')) as BackupManifest & {
      seal: string;
    };
    return manifest.version === VERSION && Array.isArray(manifest.files) ? manifest : null;
  } catch {
    return null;
  }
}

/** Throws `io` unless every file is as it was written. */
export async function verifyBackup(files: Files, folder: string, keys: Keys): Promise<BackupManifest> {
  const sealed = readManifest(files, folder);
  if (sealed === null) throw damaged(folder, `${MANIFEST} is missing or damaged`);
  const { seal: given, ...manifest } = sealed;
  if (given !== sealOf(keys, manifest)) throw damaged(folder, `${MANIFEST} was changed, or is of another memory`);
  const names = manifest.files.map(({ name }) => name);
  const present = new Set(listAll(files, folder));
  const missing = names.find((name) => !present.has(name));
  if (missing !== undefined) throw damaged(folder, `${missing} is missing`);
  for (const { name, sizeBytes, sha256 } of manifest.files) {
    const { size } = files.statSync(join(folder, name));
    if (size !== sizeBytes) throw damaged(folder, `${name} has ${size} of ${sizeBytes} bytes`);
    if ((await hashOf(files, join(folder, name))) !== sha256) throw damaged(folder, `${name} was changed`);
  }
  return manifest;
}

/** The records of the API keys in one sealed file: their names and tenants are nobody else's business. */
export function sealApiKeys(files: Files, source: string, target: string, keys: Keys): void {
  const contents: Record<string, string> = {};
  for (const name of listNames(files, source)) {
    if (/^([0-9a-f]{18}\.json|keys\.head)$/.test(name)) contents[name] = files.readFileSync(join(source, name), 'utf8');
  }
  const nonce = randomFillSync(new Uint8Array(NONCE_BYTES));
  const { bytes, tag } = seal(
    keys.keyFor('seal the API keys of a backup'),
    nonce,
    Buffer.from(API_KEYS),
    Buffer.from(JSON.stringify(contents)),
  );
  replaceFile(files, join(target, API_KEYS), [nonce, bytes, tag], true);
}

/** Contents by file name. */
export function openApiKeys(files: Files, backup: string, keys: Keys): Readonly<Record<string, string>> {
  const sealed = files.readFileSync(join(backup, API_KEYS));
  const plain = unseal(
    keys.keyFor('seal the API keys of a backup'),
    sealed.subarray(0, NONCE_BYTES),
    Buffer.from(API_KEYS),
    { bytes: sealed.subarray(NONCE_BYTES, sealed.length - TAG_BYTES), tag: sealed.subarray(sealed.length - TAG_BYTES) },
  );
  if (plain === null) throw damaged(backup, `${API_KEYS} does not open`);
  return JSON.parse(Buffer.from(plain).toString()) as Record<string, string>;
}

const NAME = /^backup-\d{4}-\d{2}-\d{2}T[\d-]+Z$/;

export const backupName = (ms: number): string => `backup-${new Date(ms).toISOString().replaceAll(/[:.]/g, '-')}`;

/** Complete backups in a folder, the oldest first. */
export function listBackups(files: Files, root: string): { readonly path: string; readonly createdMs: number }[] {
  return listNames(files, root)
    .filter((name) => NAME.test(name))
    .flatMap((name) => {
      const manifest = readManifest(files, join(root, name));
      return manifest === null ? [] : [{ path: join(root, name), createdMs: manifest.createdMs }];
    })
    .sort((a, b) => a.createdMs - b.createdMs);
}

/** Removes the oldest backups until `keep` are left. */
export function pruneBackups(files: Files, root: string, keep: number): void {
  for (const { path } of listBackups(files, root).slice(0, -keep)) files.rmSync(path, { recursive: true, force: true });
}

/** Copies files of a folder that are not in the target yet. */
export async function copyMissing(files: Files, source: string, target: string): Promise<void> {
  const names = listNames(files, source);
  if (names.length === 0) return;
  makeFolder(files, target, false);
  for (const name of names) {
    const [from, to] = [join(source, name), join(target, name)];
    // Erased since it was listed.
    if (name.endsWith('.tmp') || files.existsSync(to) || !files.existsSync(from)) continue;
    await files.promises.copyFile(from, to);
  }
  flushFolder(files, target);
}
