import { RuvLLMError } from '../core/errors.ts';
import type { KernelChoice } from '../engine/protocol.ts';
import type { WasmModule } from '../kernels/wasm/platform.ts';
import { createNodeWasmPlatform } from '../platform/node/wasm-platform.ts';

export interface KernelReport {
  readonly name: 'wasm' | 'reference';
  /** null where there is only one. */
  readonly build: WasmModule['build'] | null;
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

/** Which kernel packs there are, and which one `choice` leads to here. */
export async function reportKernels(choice: KernelChoice): Promise<KernelReport[]> {
  const reports: KernelReport[] = [];
  const builds = [
    { build: 'relaxed-simd', good: 'fastest: this JavaScript engine has relaxed SIMD' },
    { build: 'simd128', good: 'for engines with SIMD but without relaxed SIMD' },
  ] as const;
  let isDecided = choice === 'reference';
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
