import { RuvLLMError } from '../core/errors.ts';
import type { PullContext } from './pull-context.ts';
import type { NpmPackageReference } from './reference.ts';

/** A package version in the user's registry. */
export interface NpmPackage {
  readonly name: string;
  readonly version: string;
  /** SHA-512 of the tarball, hexadecimal. */
  readonly sha512: string;
}

const EXACT_VERSION = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$/;
/** npm's codes for "not found". */
const ABSENT_CODES = new Set(['E404', 'ETARGET', 'ENOVERSIONS']);

/** Whether a version is one fixed release; a tag such as `latest` moves. */
export function isExactVersion(version: string | null): version is string {
  return version !== null && EXACT_VERSION.test(version);
}

function specOf(reference: NpmPackageReference): string {
  return `${reference.name}@${reference.version ?? 'latest'}`;
}

function parseReply(stdout: string): unknown {
  try {
    return JSON.parse(stdout);
  } catch {
    return null;
  }
}

/** `spec` and `fields` follow `--`, so npm never takes them for options. */
async function runNpm(
  context: PullContext,
  command: { name: 'view' | 'pack'; options: readonly string[]; spec: string; fields: readonly string[] },
  folder: string,
): Promise<unknown> {
  const { name, options, spec, fields } = command;
  const quiet = ['--json', '--ignore-scripts', '--loglevel=error', '--no-update-notifier'];
  const args = [name, ...quiet, ...options, '--', spec, ...fields];
  const outcome = await context.platform.runNpm(args, { folder, signal: context.signal });
  const reply = parseReply(outcome.stdout);
  if (outcome.exitCode === 0) return reply;
  const error = (reply as { error?: { code?: unknown; summary?: unknown } } | null)?.error;
  const code = typeof error?.code === 'string' ? error.code : 'unknown error';
  const lastLine = outcome.stderr.trim().split('\n').at(-1) ?? '';
  const summary = (typeof error?.summary === 'string' && error.summary !== '' ? error.summary : lastLine).slice(0, 300);
  throw new RuvLLMError(
    ABSENT_CODES.has(code) ? 'not_found' : 'download_failed',
    `npm ${name} ${spec}: exit ${outcome.exitCode}, ${code}${summary === '' ? '' : `: ${summary}`}`,
    { data: { exitCode: outcome.exitCode, npmCode: code } },
  );
}

function toHex(base64: string): string | null {
  if (!/^[A-Za-z0-9+/]{86}==$/.test(base64)) return null;
  return Array.from(atob(base64), (char) => char.charCodeAt(0).toString(16).padStart(2, '0')).join('');
}

/** Looks up the release of a reference and its tarball hash in the user's registry. */
export async function viewPackage(
  context: PullContext,
  reference: NpmPackageReference,
  folder: string,
): Promise<NpmPackage> {
  const spec = specOf(reference);
  const outcome = await runNpm(context, { name: 'view', options: [], spec, fields: ['version', 'dist'] }, folder);
  const reply = (Array.isArray(outcome) ? outcome.at(-1) : outcome) as { version?: unknown; dist?: unknown } | null;
  const version = reply?.version;
  if (typeof version !== 'string' || !isExactVersion(version)) {
    throw new RuvLLMError('not_found', `release ${spec} not found on npm`);
  }
  const integrity = (reply?.dist as { integrity?: unknown } | undefined)?.integrity;
  const hashes = typeof integrity === 'string' ? integrity.split(/\s+/) : [];
  const sha512 = toHex(hashes.find((hash) => hash.startsWith('sha512-'))?.slice(7) ?? '');
  if (sha512 === null) {
    throw new RuvLLMError('unsupported', `${spec}: the registry has no SHA-512 for it, so it cannot be verified`);
  }
  return { name: reference.name, version, sha512 };
}

/** Downloads the tarball with the user's npm and checks its hash; returns its path. */
export async function packPackage(context: PullContext, release: NpmPackage, folder: string): Promise<string> {
  const { files, createHasher } = context.platform;
  const spec = `${release.name}@${release.version}`;
  context.onProgress({ phase: 'download', item: spec, doneBytes: 0, totalBytes: null });
  await runNpm(context, { name: 'pack', options: [`--pack-destination=${folder}`], spec, fields: [] }, folder);
  // Some npm releases report the wrong file name for scoped packages, so list the folder.
  const tarballs = (await files.list(folder)).filter(({ name, kind }) => kind === 'file' && name.endsWith('.tgz'));
  if (tarballs.length !== 1) {
    throw new RuvLLMError('download_failed', `npm pack ${spec}: created ${tarballs.length} tarballs, expected 1`);
  }
  const path = files.join(folder, tarballs[0]!.name);
  const hasher = createHasher('sha512');
  let sizeBytes = 0;
  for await (const chunk of files.readChunks(path)) {
    hasher.update(chunk);
    sizeBytes += chunk.byteLength;
  }
  const actual = hasher.digest();
  if (actual !== release.sha512) {
    throw new RuvLLMError('hash_mismatch', `${spec}: SHA-512 of the tarball is ${actual}, expected ${release.sha512}`, {
      data: { actual, promised: release.sha512, sizeBytes },
    });
  }
  context.onProgress({ phase: 'download', item: spec, doneBytes: sizeBytes, totalBytes: sizeBytes });
  return path;
}
