import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { messageOf, RuvLLMError } from '../../../core/errors.ts';
import { NATIVE_ABI, type NativeAddon, type NativeBuild } from '../../../kernels/native/addon.ts';
import { type Libc, readLibc } from '../process/libc.ts';
import { findLibraryFault, type LibraryHost } from '../files/library-file.ts';
import { PACKAGE_FOLDER } from '../files/package-folder.ts';

/** The folder of prebuilds/ for a platform: `linux-x64`, `linux-x64-musl`, `darwin-arm64`. */
export function prebuildName(platform: string, architecture: string, libc: Libc | null): string {
  return `${platform}-${architecture}${libc === 'musl' ? '-musl' : ''}`;
}

const HERE: LibraryHost = { platform: process.platform, architecture: process.arch, libc: readLibc() };
export const PREBUILD_NAME = prebuildName(process.platform, process.arch, HERE.libc);
/** Platforms whose native kernels the project has run, on a machine or emulated; others were only linked and inspected. */
const RUN_BY_PROJECT: readonly string[] = ['linux-x64', 'linux-arm64'];

/** What `ruvllm doctor` adds about a build that computes right here; null where the project runs it too. */
export function describeUntestedBuild(name: string = PREBUILD_NAME): string | null {
  if (RUN_BY_PROJECT.includes(name)) return null;
  return `the project has not run its ${name} kernels; the self-check passed on this machine`;
}

const PREBUILDS = new URL(`prebuilds/${PREBUILD_NAME}/`, PACKAGE_FOLDER);

/** A build of the kernels in C, and what the processor must have to run it (a name of the addon's cpuFeatures). */
export interface NativeBuildKind {
  readonly build: string;
  readonly needs: string | null;
}

/** Builds from best to plainest; scripts/build-native.mjs has the compiler flags of each. */
export const NATIVE_BUILDS: Readonly<Record<string, readonly NativeBuildKind[]>> = {
  x64: [
    { build: 'amx', needs: 'amx' },
    { build: 'avx512vnni', needs: 'avx512vnni' },
    { build: 'avx2vnni', needs: 'avxvnni' },
    { build: 'avx2', needs: 'avx2' },
    { build: 'baseline', needs: null },
  ],
  arm64: [
    { build: 'i8mm', needs: 'i8mm' },
    { build: 'dotprod', needs: 'dotprod' },
    { build: 'baseline', needs: null },
  ],
};

type LoadedAddon = NativeAddon & { cpuFeatures(): string[]; trimMemory?: () => void };

/** Where a build stands: loaded, or why not. */
export type NativeBuildState =
  | { readonly build: string; readonly addon: NativeAddon; readonly problem: null }
  | { readonly build: string; readonly addon: null; readonly problem: NativeProblem };

export interface NativeProblem {
  /** `broken` is worth a warning; the others are how machines differ. */
  readonly kind: 'missing' | 'unfit' | 'excluded' | 'broken';
  readonly message: string;
}

export interface NativeSearch {
  readonly folder?: URL;
  readonly architecture?: string;
  /** The best build allowed (RUVLLM_NATIVE_BUILD); empty or undefined: any. */
  readonly limit?: string | undefined;
  /** The NATIVE_ABI a binary must have been compiled with. */
  readonly abi?: number;
}

const REPAIR = 'reinstall ruvllm, or in a clone npm run build:native';

const fileOf = (folder: URL, build: string): string => fileURLToPath(new URL(`ruvllm-${build}.node`, folder));

function load(folder: URL, build: string, abi: number): LoadedAddon | NativeProblem {
  const file = fileOf(folder, build);
  if (!existsSync(file)) return { kind: 'missing', message: 'not built' };
  try {
    const fault = findLibraryFault(file, HERE);
    if (fault !== null) return { kind: 'broken', message: `cannot be loaded: ${fault} (${REPAIR})` };
    const addon = createRequire(import.meta.url)(file) as LoadedAddon;
    if (addon.abi === abi) return addon;
    // An older or newer binary would read other things out of the same records, and write anywhere.
    const found = addon.abi === undefined ? 'no version' : `version ${addon.abi}`;
    return {
      kind: 'broken',
      message: `compiled from other sources: its interface has ${found}, this package needs ${abi}: npm run build:native`,
    };
  } catch (error) {
    // No library at all, or one linked against a newer C library: as good as not there, but worth saying.
    const reason = messageOf(error).split('\n')[0];
    return { kind: 'broken', message: `cannot be loaded: ${reason} (${REPAIR})` };
  }
}

/** Every build this architecture can have, best first, loaded where this processor can run it. */
export function inspectNativeBuilds({
  folder = PREBUILDS,
  architecture = process.arch,
  limit = process.env['RUVLLM_NATIVE_BUILD'],
  abi = NATIVE_ABI,
}: NativeSearch = {}): NativeBuildState[] {
  const kinds = NATIVE_BUILDS[architecture] ?? [];
  const first = limit ? kinds.findIndex(({ build }) => build === limit) : 0;
  if (first < 0) {
    const names = kinds.map(({ build }) => build);
    throw new RuvLLMError(
      'invalid_option',
      `RUVLLM_NATIVE_BUILD is "${limit}", on ${architecture} it is one of: ${names.join(', ') || 'none'}`,
      { data: { option: 'RUVLLM_NATIVE_BUILD', names } },
    );
  }
  const plain = load(folder, 'baseline', abi);
  const found = featuresOf(folder, plain, abi);
  const features = 'kind' in found ? null : new Set(found);
  return kinds.map(({ build, needs }, i): NativeBuildState => {
    const refuse = (problem: NativeProblem): NativeBuildState => ({ build, addon: null, problem });
    if (i < first) return refuse({ kind: 'excluded', message: `excluded by RUVLLM_NATIVE_BUILD=${limit}` });
    if (needs !== null && 'kind' in found) {
      // A build that is here came with the addon that is broken, and its repair is the same.
      if (found.kind === 'broken' && existsSync(fileOf(folder, build))) return refuse(found);
      return refuse({ kind: 'unfit', message: 'the addon that detects the processor cannot be loaded' });
    }
    if (needs !== null && !features!.has(needs)) {
      return refuse({ kind: 'unfit', message: `this processor or system has no ${needs}` });
    }
    const addon = needs === null ? plain : load(folder, build, abi);
    return 'kind' in addon ? refuse(addon) : { build, addon, problem: null };
  });
}

/** Asks an addon that runs everywhere: the plainest build, or in a clone that compiled only the best one, a tiny one of its own. */
function featuresOf(folder: URL, plain: LoadedAddon | NativeProblem, abi: number): string[] | NativeProblem {
  if (!('kind' in plain)) return plain.cpuFeatures();
  const tiny = load(folder, 'features', abi);
  return 'kind' in tiny ? tiny : tiny.cpuFeatures();
}

/** Gives memory that was freed back to the system, where an addon is here that can; glibc keeps tens of megabytes otherwise. */
export function openMemoryTrim(folder = PREBUILDS): () => void {
  for (const build of ['features', 'baseline']) {
    const addon = load(folder, build, NATIVE_ABI);
    if (!('kind' in addon) && addon.trimMemory !== undefined) return addon.trimMemory;
  }
  return () => {};
}

/** What the processor and the system offer of what builds need; null where no build is here to tell. */
export function readNativeFeatures(folder = PREBUILDS): string[] | null {
  const found = featuresOf(folder, load(folder, 'baseline', NATIVE_ABI), NATIVE_ABI);
  return 'kind' in found ? null : found;
}

/** The native kernels this processor can run, best first; empty where none were built. */
export function loadNativeBuilds(search?: NativeSearch): NativeBuild[] {
  return inspectNativeBuilds(search).flatMap(({ build, addon }) => (addon === null ? [] : [{ addon, build }]));
}
