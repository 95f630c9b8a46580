import { createHash } from 'node:crypto';
import { join, resolve } from 'node:path';
import { type ErrorData, RuvLLMError } from '../../../../core/errors.ts';
import type { TensorTypeName } from '../../../../core/tensor-type.ts';
import type { KernelPackFactory } from '../../../../kernels/contract.ts';
import { createReferencePackFactory } from '../../../../kernels/reference/reference-pack.ts';
import { findKernelFault } from '../../../../kernels/self-check.ts';
import { readSmallFile } from '../../files/json-file.ts';
import { createNodeWasmPlatform } from '../wasm-platform.ts';
import { hasValidSignature, MANIFEST_NAME, type PackManifest, readManifest } from './pack-manifest.ts';
import type { PackTrust } from './pack-trust.ts';

const MAX_MANIFEST_BYTES = 64 * 1024;
const MAX_FILE_BYTES = 64 << 20;
const MAX_TOTAL_BYTES = 256 << 20;

/** Handed to `createKernelPackFactory` of a pack. */
export interface PackHost {
  /** The verified bytes of the pack's files. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** Packs of this runtime, for operations that a pack does not implement itself. */
  readonly reference: KernelPackFactory;
  readonly wasm: KernelPackFactory;
}

/** A pack whose files are those that its key has signed; nothing of it has run yet. */
export interface VerifiedPack {
  readonly folder: string;
  readonly manifest: PackManifest;
  readonly manifestHash: string;
  readonly files: ReadonlyMap<string, Uint8Array>;
}

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

function refuse(folder: string, reason: string, data: ErrorData = {}): RuvLLMError {
  return new RuvLLMError('untrusted', `kernel pack ${folder}: ${reason}`, { data: { folder, ...data } });
}

/** Reads a pack and checks hashes and signature, not whether its key is trusted. */
export function verifyPack(folder: string): VerifiedPack {
  const path = resolve(folder);
  const bytes = readSmallFile(join(path, MANIFEST_NAME), MAX_MANIFEST_BYTES);
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    throw new RuvLLMError('invalid_option', `${MANIFEST_NAME} of ${path} is not JSON`, {
      cause,
      data: { folder: path },
    });
  }
  const manifest = readManifest(value);
  if (!hasValidSignature(manifest)) throw refuse(path, 'the signature does not match the manifest');
  const files = new Map<string, Uint8Array>();
  let totalBytes = 0;
  for (const [name, expected] of Object.entries(manifest.files)) {
    const file = readSmallFile(join(path, name), MAX_FILE_BYTES);
    totalBytes += file.length;
    if (totalBytes > MAX_TOTAL_BYTES) {
      throw refuse(path, `its files have more than ${MAX_TOTAL_BYTES} bytes`, { limit: MAX_TOTAL_BYTES });
    }
    const found = sha256(file);
    if (found !== expected) throw refuse(path, `${name} has the hash ${found}, signed is ${expected}`, { file: name });
    files.set(name, file);
  }
  return { folder: path, manifest, manifestHash: sha256(bytes), files };
}

/** Why a pack must not run here, or null. */
export function findDistrust({ manifest, manifestHash, folder }: VerifiedPack, trust: PackTrust): string | null {
  const { key } = manifest.signature;
  if (!trust.keys.some((trusted) => trusted.key === key)) return `its key ${key} is not trusted`;
  const allowed = trust.packs.find((pack) => pack.folder === folder);
  if (allowed === undefined) return 'it is not on the list of allowed packs';
  return allowed.manifestHash === manifestHash ? null : 'it has changed since it was allowed';
}

interface PackModule {
  readonly createKernelPackFactory?: (host: PackHost) => KernelPackFactory | Promise<KernelPackFactory>;
}

/**
 * Runs the code of a pack, which must be trusted. The module is loaded from the verified bytes: a file that changes after the check has
 * no effect. For the same reason it cannot import files beside it.
 */
export async function startPack({ manifest, files, folder }: VerifiedPack): Promise<KernelPackFactory> {
  const code = Buffer.from(files.get(manifest.entry)!).toString('base64');
  const { createKernelPackFactory } = (await import(`data:text/javascript;base64,${code}`)) as PackModule;
  if (typeof createKernelPackFactory !== 'function') {
    throw refuse(folder, `${manifest.entry} does not export createKernelPackFactory`);
  }
  const { createWasmPackFactory } = await import('../../../../kernels/wasm/wasm-pack.ts');
  const factory = await createKernelPackFactory({
    files,
    reference: createReferencePackFactory(),
    wasm: createWasmPackFactory(createNodeWasmPlatform()),
  });
  const { name, version } = manifest;
  return { ...factory, name: `${name}@${version}`, create: (options) => factory.create(options) };
}

export interface PackCheck {
  readonly numThreads: number;
  readonly types?: readonly TensorTypeName[];
}

/** A trusted pack that computes what the reference computes; throws `untrusted` or `kernel_failed` with the reason. */
export async function openPack(folder: string, trust: PackTrust, check: PackCheck): Promise<KernelPackFactory> {
  const pack = verifyPack(folder);
  const distrust = findDistrust(pack, trust);
  if (distrust !== null) throw refuse(pack.folder, distrust);
  const factory = await startPack(pack);
  const fault = await findKernelFault(factory, createReferencePackFactory(), check.numThreads, check.types);
  if (fault === null) return factory;
  throw new RuvLLMError('kernel_failed', `kernel pack ${factory.name} computes wrong: ${fault}`, {
    data: { folder: pack.folder, pack: factory.name },
  });
}
