import { RuvLLMError } from '../../../core/errors.ts';
import { type BuiltInKernels, type KernelChoice, packNameOf } from '../../../kernels/kernel-choice.ts';
import type { KernelPackFactory } from '../../../kernels/contract.ts';
import type { SpeedShape } from '../../../kernels/measure-kernels.ts';
import { createNativePackFactory } from '../../../kernels/native/native-pack.ts';
import { createReferencePackFactory } from '../../../kernels/reference/reference-pack.ts';
import { findKernelFault } from '../../../kernels/self-check.ts';
import type { WasmPlatform } from '../../../kernels/wasm/platform.ts';
import { ARENA } from './arena-limit.ts';
import { chooseNative, type NativeCheck, type NativeChoice, type NativeRefusal } from './choose-native.ts';
import { chooseFastest, openAllowedPacks, openNamedPack } from './packs/choose-pack.ts';
import { createNodeWasmPlatform } from './wasm-platform.ts';

/** What the caller's program should hear of, though everything goes on. */
export interface KernelWarning {
  readonly code: 'RUVLLM_NATIVE_REFUSED' | 'RUVLLM_PACK_REFUSED';
  readonly message: string;
}

export interface KernelFactoryOptions extends NativeCheck {
  readonly warn: (warning: KernelWarning) => void;
  /** The matrices of the model, by which `auto` compares kernels where there is a choice; default: no comparison. */
  readonly matrices?: readonly SpeedShape[];
  /** For tests: a choice among builds that are not really there. */
  readonly choose?: (check: NativeCheck) => Promise<NativeChoice>;
}

const describe = ({ build, reason }: NativeRefusal): string => `native ${build} kernels refused: ${reason}`;

async function findNative({ choose = chooseNative, ...options }: KernelFactoryOptions): Promise<NativeChoice> {
  const choice = await choose(options);
  for (const refusal of choice.refusals) {
    options.warn({ code: 'RUVLLM_NATIVE_REFUSED', message: describe(refusal) });
  }
  return choice;
}

async function createWasm(platform: WasmPlatform): Promise<KernelPackFactory> {
  const { createWasmPackFactory } = await import('../../../kernels/wasm/wasm-pack.ts');
  return createWasmPackFactory(platform);
}

async function createWasmOrReference(): Promise<KernelPackFactory> {
  const platform = createNodeWasmPlatform();
  try {
    await platform.loadModule();
    return await createWasm(platform);
  } catch (error) {
    if (error instanceof RuvLLMError && error.code === 'unsupported') return createReferencePackFactory();
    throw error;
  }
}

const FACTORIES: Readonly<Record<BuiltInKernels, (options: KernelFactoryOptions) => Promise<KernelPackFactory>>> = {
  reference: async () => createReferencePackFactory(),
  wasm: () => createWasm(createNodeWasmPlatform()),
  async native(options) {
    const { native, refusals } = await findNative(options);
    if (native !== null) return createNativePackFactory(native, ARENA);
    if (refusals.length === 0) {
      throw new RuvLLMError('unsupported', 'native kernels are not built for this machine: npm run build:native');
    }
    throw new RuvLLMError('kernel_failed', refusals.map(describe).join('; '), {
      data: { builds: refusals.map(({ build }) => build) },
    });
  },
  async webgpu({ types }) {
    const { largestBuffer, openGpu, requestAdapter } = await import('../../../kernels/webgpu/open-gpu.ts');
    const { createWebGpuPackFactory } = await import('../../../kernels/webgpu/webgpu-pack.ts');
    const { nodeGpu } = await import('./webgpu-platform.ts');
    const gpu = await nodeGpu();
    const factory = createWebGpuPackFactory(() => openGpu(gpu), largestBuffer(await requestAdapter(gpu)));
    const fault = await findKernelFault(factory, createReferencePackFactory(), 1, types);
    if (fault === null) return factory;
    throw new RuvLLMError('kernel_failed', `webgpu kernels refused: computes wrong: ${fault}`);
  },
  async auto(options) {
    const { native } = await findNative(options);
    const own = native === null ? await createWasmOrReference() : createNativePackFactory(native, ARENA);
    const { numThreads, types, matrices = [] } = options;
    const packs = await openAllowedPacks({ numThreads, ...(types && { types }) }, (name, message) =>
      options.warn({ code: 'RUVLLM_PACK_REFUSED', message: `kernel pack ${name} refused: ${message}` }),
    );
    return chooseFastest([own, ...packs], { numThreads, matrices, now: () => performance.now() });
  },
};

/** The kernels a choice leads to here; `auto` is the best native build that passes its check, or else WASM. */
export function createKernelFactory(choice: KernelChoice, options: KernelFactoryOptions): Promise<KernelPackFactory> {
  const name = packNameOf(choice);
  return name === null ? FACTORIES[choice as BuiltInKernels](options) : openNamedPack(name, options);
}
