import { RuvLLMError } from '../core/errors.ts';
import type { KernelChoice } from '../engine/protocol.ts';
import type { WasmModule } from '../kernels/wasm/platform.ts';
import { checkNativeBuild } from '../platform/node/choose-native.ts';
import { describeUntestedBuild, inspectNativeBuilds } from '../platform/node/native-addon.ts';
import { describeMissingBuild } from '../platform/node/native-tools.ts';
import { createNodeWasmPlatform } from '../platform/node/wasm-platform.ts';

export interface KernelReport {
  readonly name: 'native' | 'wasm' | 'reference';
  /** null where there is only one, or none. */
  readonly build: string | null;
  readonly isUsable: boolean;
  /** Why it is used, or why not. */
  readonly reason: string;
  readonly isChosen: boolean;
}

async function probe(build: WasmModule['build']): Promise<string | null> {
  try {
    await createNodeWasmPlatform([build]).loadModule();
    return null;
  } catch (error) {
    if (error instanceof RuvLLMError) return error.message;
    throw error;
  }
}

async function reportNative(choice: KernelChoice, numThreads: number): Promise<KernelReport[]> {
  const states = inspectNativeBuilds();
  const plainest = states.at(-1);
  if (plainest === undefined || plainest.problem?.kind === 'missing') {
    const reason = plainest === undefined ? `none for ${process.arch}` : `not built: ${describeMissingBuild()}`;
    return [{ name: 'native', build: null, isUsable: false, reason, isChosen: false }];
  }
  let isDecided = choice !== 'auto' && choice !== 'native';
  const reports: KernelReport[] = [];
  for (const { build, addon, problem } of states) {
    const refusal = addon === null ? null : await checkNativeBuild({ build, addon }, { numThreads });
    const reason = problem?.message ?? refusal;
    const isChosen = !isDecided && reason === null;
    isDecided ||= isChosen;
    const verdict = isChosen ? 'the best build that this processor runs and that computes right' : 'computes right';
    const good = [verdict, describeUntestedBuild()].filter((part) => part !== null).join('; ');
    reports.push({ name: 'native', build, isUsable: reason === null, reason: reason ?? good, isChosen });
  }
  return reports;
}

/** Which kernel packs there are, and which one `choice` leads to here. */
export async function reportKernels(choice: KernelChoice, numThreads: number): Promise<KernelReport[]> {
  const reports = await reportNative(choice, numThreads);
  const builds = [
    { build: 'signed-dot', good: 'this processor multiplies signed bytes in one instruction' },
    { build: 'relaxed-simd', good: 'this JavaScript engine has relaxed SIMD' },
    { build: 'simd128', good: 'for engines with SIMD but without relaxed SIMD' },
  ] as const;
  let isDecided = choice === 'reference' || choice === 'native' || reports.some(({ isChosen }) => isChosen);
  for (const { build, good } of builds) {
    const failure = await probe(build);
    const isChosen = !isDecided && failure === null;
    isDecided ||= isChosen;
    reports.push({ name: 'wasm', build, isUsable: failure === null, reason: failure ?? good, isChosen });
  }
  const isChosen = choice === 'reference' || (choice === 'auto' && !isDecided);
  const reason =
    choice === 'reference' ? 'asked for by RUVLLM_KERNELS' : 'slow and plain: what the others are tested against';
  return [...reports, { name: 'reference', build: null, isUsable: true, reason, isChosen }];
}
