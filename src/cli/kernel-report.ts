import { RuvLLMError } from '../core/errors.ts';
import type { KernelChoice } from '../engine/protocol.ts';
import type { WasmModule } from '../kernels/wasm/platform.ts';
import { loadNativeBuilds } from '../platform/node/native-addon.ts';
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

function reportNative(choice: KernelChoice): KernelReport[] {
  const builds = loadNativeBuilds();
  if (builds.length === 0) {
    const reason = 'not built: npm run build:native, which needs a C compiler';
    return [{ name: 'native', build: null, isUsable: false, reason, isChosen: false }];
  }
  return builds.map(({ build }, i): KernelReport => {
    const reason = i === 0 ? 'the best build for this processor, on request: --kernels native' : 'a plainer build';
    return { name: 'native', build, isUsable: true, reason, isChosen: choice === 'native' && i === 0 };
  });
}

/** Which kernel packs there are, and which one `choice` leads to here. */
export async function reportKernels(choice: KernelChoice): Promise<KernelReport[]> {
  const reports = reportNative(choice);
  const builds = [
    { build: 'relaxed-simd', good: 'fastest: this JavaScript engine has relaxed SIMD' },
    { build: 'simd128', good: 'for engines with SIMD but without relaxed SIMD' },
  ] as const;
  let isDecided = choice === 'reference' || choice === 'native';
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
