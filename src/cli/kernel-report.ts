import { RuvLLMError } from '../core/errors.ts';
import type { KernelChoice } from '../kernels/contract.ts';
import { describeAdapter, requestAdapter } from '../kernels/webgpu/open-gpu.ts';
import type { WasmModule } from '../kernels/wasm/platform.ts';
import { checkNativeBuild } from '../platform/node/kernels/choose-native.ts';
import { describeUntestedBuild, inspectNativeBuilds } from '../platform/node/kernels/native-addon.ts';
import { describeMissingBuild } from '../platform/node/kernels/native-tools.ts';
import { nodeGpu } from '../platform/node/kernels/webgpu-platform.ts';
import { createNodeWasmPlatform } from '../platform/node/kernels/wasm-platform.ts';

export interface KernelReport {
  readonly name: 'native' | 'webgpu' | 'wasm' | 'reference';
  /** null if the pack has one build or none. */
  readonly build: string | null;
  readonly isUsable: boolean;
  /** Why it is used or not. */
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
  // A clone has only the best build; a package has all of them.
  if (states.every(({ addon, problem }) => addon === null && problem.kind !== 'broken')) {
    const reason = states.length === 0 ? `none for ${process.arch}` : `not built: ${describeMissingBuild()}`;
    return [{ name: 'native', build: null, isUsable: false, reason, isChosen: false }];
  }
  let isDecided = choice !== 'auto' && choice !== 'native';
  const reports: KernelReport[] = [];
  for (const { build, addon, problem } of states) {
    const refusal = addon === null ? null : await checkNativeBuild({ build, addon }, { numThreads });
    const reason = problem?.message ?? refusal;
    const isChosen = !isDecided && reason === null;
    isDecided ||= isChosen;
    const verdict = isChosen ? 'fastest build that passes the self-test' : 'passes the self-test';
    const success = [verdict, describeUntestedBuild()].filter((part) => part !== null).join('; ');
    reports.push({ name: 'native', build, isUsable: reason === null, reason: reason ?? success, isChosen });
  }
  return reports;
}

/** The GPU's adapter and limits, or how to get one. Not a self-test: that compiles every kernel, which takes seconds. */
async function reportGpu(choice: KernelChoice): Promise<KernelReport> {
  const isChosen = choice === 'webgpu';
  try {
    const adapter = await requestAdapter(await nodeGpu());
    const mostBytes = adapter.limits['maxStorageBufferBindingSize']!;
    const features = ['subgroups', 'shader-f16'].filter((name) => adapter.features.has(name)).join(', ');
    const reason = `${adapter.info.description}; buffers up to ${Math.floor(mostBytes / 2 ** 20)} MiB; ${features || 'no subgroups'}`;
    return { name: 'webgpu', build: describeAdapter(adapter), isUsable: true, reason, isChosen };
  } catch (error) {
    if (!(error instanceof RuvLLMError)) throw error;
    return { name: 'webgpu', build: null, isUsable: false, reason: error.message, isChosen };
  }
}

/** All kernel packs, and which one `choice` selects on this machine. */
export async function reportKernels(choice: KernelChoice, numThreads: number): Promise<KernelReport[]> {
  const reports = await reportNative(choice, numThreads);
  const builds = [
    { build: 'signed-dot', success: 'the processor has a dot product of signed bytes' },
    { build: 'relaxed-simd', success: 'the JavaScript engine has relaxed SIMD' },
    { build: 'simd128', success: 'for engines with SIMD but without relaxed SIMD' },
  ] as const;
  let isDecided =
    choice === 'reference' || choice === 'native' || choice === 'webgpu' || reports.some(({ isChosen }) => isChosen);
  for (const { build, success } of builds) {
    const failure = await probe(build);
    const isChosen = !isDecided && failure === null;
    isDecided ||= isChosen;
    reports.push({ name: 'wasm', build, isUsable: failure === null, reason: failure ?? success, isChosen });
  }
  const isChosen = choice === 'reference' || (choice === 'auto' && !isDecided);
  const reason = choice === 'reference' ? 'set by RUVLLM_KERNELS' : 'slow; the other kernels are tested against it';
  reports.push(await reportGpu(choice));
  return [...reports, { name: 'reference', build: null, isUsable: true, reason, isChosen }];
}
