import type { TensorTypeName } from '../../../core/tensor-type.ts';
import type { NativeAddon, NativeBuild } from '../../../kernels/native/addon.ts';
import { createNativePackFactory } from '../../../kernels/native/native-pack.ts';
import { createReferencePackFactory } from '../../../kernels/reference/reference-pack.ts';
import { findKernelFault } from '../../../kernels/self-check.ts';
import { inspectNativeBuilds, type NativeBuildState } from './native-addon.ts';
import { messageOf } from '../../../core/errors.ts';

/** More threads find no other faults, but take time to start. */
const MAX_CHECK_THREADS = 8;

/** What a build is checked with. */
export interface NativeCheck {
  readonly numThreads: number;
  /** The types of the matrices that will be computed; all by default. */
  readonly types?: readonly TensorTypeName[];
}

/** A build that is here but must not be used, and why. */
export interface NativeRefusal {
  readonly build: string;
  readonly reason: string;
}

export interface NativeChoice {
  /** null: no build is here that computes. */
  readonly native: NativeBuild | null;
  readonly refusals: readonly NativeRefusal[];
}

const checked = new WeakMap<NativeAddon, Map<string, Promise<string | null>>>();

/** Why a build must not be used, or null; each question is answered once a thread. */
export function checkNativeBuild(native: NativeBuild, { numThreads, types }: NativeCheck): Promise<string | null> {
  const threads = Math.min(numThreads, MAX_CHECK_THREADS);
  const answers = checked.get(native.addon) ?? new Map<string, Promise<string | null>>();
  checked.set(native.addon, answers);
  const key = `${threads} ${types?.toSorted().join() ?? 'all'}`;
  const answer =
    answers.get(key) ??
    findKernelFault(createNativePackFactory(native), createReferencePackFactory(), threads, types).then(
      (fault) => (fault === null ? null : `computes wrong: ${fault}`),
      // A pack that cannot even start, for example without external array buffers, is no better than a wrong one.
      (error: unknown) => `fails its self-check: ${messageOf(error)}`,
    );
  answers.set(key, answer);
  return answer;
}

/** The best native build that loads and computes what the reference computes. */
export async function chooseNative(
  check: NativeCheck,
  states: readonly NativeBuildState[] = inspectNativeBuilds(),
): Promise<NativeChoice> {
  const refusals: NativeRefusal[] = [];
  for (const { build, addon, problem } of states) {
    if (addon === null) {
      if (problem.kind === 'broken') refusals.push({ build, reason: problem.message });
      continue;
    }
    const reason = await checkNativeBuild({ build, addon }, check);
    if (reason === null) return { native: { build, addon }, refusals };
    refusals.push({ build, reason });
  }
  return { native: null, refusals };
}
