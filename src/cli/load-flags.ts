import { type ModelConfig, resolveModelConfig } from '../runtime/model-config.ts';
import { collectOptions, type Flag, type FlagValues, withFlagNames } from './flags.ts';
import { requiresError } from './usage-error.ts';
import { readInteger, readSize, readSwitch } from './values.ts';

/** Options for loading a model. */
export const LOAD_FLAGS: readonly Flag[] = [
  {
    name: '--context',
    value: 'n',
    option: 'maxContext',
    variable: 'RUVLLM_CONTEXT',
    read: readInteger,
    description: 'context length: maximum tokens of prompt and answer (RUVLLM_CONTEXT)',
  },
  {
    name: '--threads',
    value: 'n',
    option: 'numThreads',
    variable: 'RUVLLM_THREADS',
    read: readInteger,
    description: 'number of compute threads (RUVLLM_THREADS)',
  },
  {
    name: '--kernels',
    value: 'auto|native|wasm|reference',
    option: 'kernels',
    variable: 'RUVLLM_KERNELS',
    description: 'kernels to use (RUVLLM_KERNELS)',
  },
  {
    name: '--memory-budget',
    value: 'size',
    option: 'memoryBudgetBytes',
    variable: 'RUVLLM_MEMORY_BUDGET',
    read: readSize,
    description: 'memory budget of the KV cache, such as 512MiB or 2G (RUVLLM_MEMORY_BUDGET)',
  },
  {
    name: '--kv-packing',
    value: 'auto|off|q8|q4',
    option: 'kvPacking',
    variable: 'RUVLLM_KV_PACKING',
    description: 'quantization of older KV pages, to save memory (RUVLLM_KV_PACKING)',
  },
  {
    name: '--no-prefix-cache',
    value: null,
    option: 'prefixCache',
    variable: 'RUVLLM_PREFIX_CACHE',
    read: readSwitch,
    description: 'do not reuse cached prompt prefixes (RUVLLM_PREFIX_CACHE=off)',
  },
  {
    name: '--kv-spill',
    value: 'folder',
    option: 'kvSpill.folder',
    variable: 'RUVLLM_KV_SPILL',
    description: 'spill KV pages to this folder, encrypted, and restore them after a restart (RUVLLM_KV_SPILL)',
  },
  {
    name: '--kv-spill-limit',
    value: 'size',
    option: 'kvSpill.limitBytes',
    variable: 'RUVLLM_KV_SPILL_LIMIT',
    read: readSize,
    description: 'maximum size of the spill folder; default 8GiB (RUVLLM_KV_SPILL_LIMIT)',
  },
  {
    name: '--repack-cache',
    value: 'auto|on|off',
    option: 'repackCache',
    variable: 'RUVLLM_REPACK_CACHE',
    description: 'cache packed weights on disk to start faster (RUVLLM_REPACK_CACHE)',
  },
];

/** Model options from flags and variables, validated before anything is loaded. */
export function readModelConfig(
  values: FlagValues,
  environment: Readonly<Record<string, string | undefined>>,
): ModelConfig {
  const config = nestSpill(collectOptions(LOAD_FLAGS, values, environment), values);
  withFlagNames(LOAD_FLAGS, values, () => resolveModelConfig(config, { numCpus: 1 }));
  return config;
}

/** Combines the two spill flags into the library's one option. */
function nestSpill(options: Record<string, unknown>, values: FlagValues): ModelConfig {
  const { 'kvSpill.folder': folder, 'kvSpill.limitBytes': limitBytes, ...config } = options;
  if (folder !== undefined)
    return { ...config, kvSpill: { folder, ...(limitBytes === undefined ? {} : { limitBytes }) } } as ModelConfig;
  // As a variable, a limit without a folder is harmless; as a flag, it is a mistake.
  if (Object.hasOwn(values, '--kv-spill-limit')) throw requiresError('--kv-spill-limit', '--kv-spill');
  return config;
}
