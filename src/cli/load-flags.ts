import { type ModelConfig, resolveModelConfig } from '../runtime/model-config.ts';
import { collectOptions, type Flag, type FlagValues, withFlagNames } from './flags.ts';
import { usageError } from './usage-error.ts';
import { readInteger, readSize, readSwitch } from './values.ts';

/** How a model is loaded. */
export const LOAD_FLAGS: readonly Flag[] = [
  {
    name: '--context',
    value: 'n',
    option: 'maxContext',
    variable: 'RUVLLM_CONTEXT',
    read: readInteger,
    description: 'most tokens of prompt and answer together (RUVLLM_CONTEXT)',
  },
  {
    name: '--threads',
    value: 'n',
    option: 'numThreads',
    variable: 'RUVLLM_THREADS',
    read: readInteger,
    description: 'threads that compute (RUVLLM_THREADS)',
  },
  {
    name: '--kernels',
    value: 'auto|native|wasm|reference',
    option: 'kernels',
    variable: 'RUVLLM_KERNELS',
    description: 'which kernels compute (RUVLLM_KERNELS)',
  },
  {
    name: '--memory-budget',
    value: 'size',
    option: 'memoryBudgetBytes',
    variable: 'RUVLLM_MEMORY_BUDGET',
    read: readSize,
    description: 'most memory for what conversations are kept in, such as 512MiB or 2G (RUVLLM_MEMORY_BUDGET)',
  },
  {
    name: '--kv-packing',
    value: 'auto|off|q8|q4',
    option: 'kvPacking',
    variable: 'RUVLLM_KV_PACKING',
    description: 'how older parts of conversations are rounded, to take less memory (RUVLLM_KV_PACKING)',
  },
  {
    name: '--no-prefix-cache',
    value: null,
    option: 'prefixCache',
    variable: 'RUVLLM_PREFIX_CACHE',
    read: readSwitch,
    description: 'compute every prompt from its beginning (RUVLLM_PREFIX_CACHE=off)',
  },
  {
    name: '--kv-spill',
    value: 'folder',
    option: 'kvSpill.folder',
    variable: 'RUVLLM_KV_SPILL',
    description: 'keep conversations in a folder, sealed, for the next start too (RUVLLM_KV_SPILL)',
  },
  {
    name: '--kv-spill-limit',
    value: 'size',
    option: 'kvSpill.limitBytes',
    variable: 'RUVLLM_KV_SPILL_LIMIT',
    read: readSize,
    description: 'most bytes of that folder; default 8GiB (RUVLLM_KV_SPILL_LIMIT)',
  },
  {
    name: '--repack-cache',
    value: 'auto|on|off',
    option: 'repackCache',
    variable: 'RUVLLM_REPACK_CACHE',
    description: 'keep packed weights on disk, to start faster (RUVLLM_REPACK_CACHE)',
  },
];

/** The model options that were typed or stand in the environment, checked before anything is loaded. */
export function readModelConfig(
  values: FlagValues,
  environment: Readonly<Record<string, string | undefined>>,
): ModelConfig {
  const config = nestSpill(collectOptions(LOAD_FLAGS, values, environment), values);
  withFlagNames(LOAD_FLAGS, values, () => resolveModelConfig(config, { numCpus: 1 }));
  return config;
}

/** The two flags of the folder are one option of the library. */
function nestSpill(options: Record<string, unknown>, values: FlagValues): ModelConfig {
  const { 'kvSpill.folder': folder, 'kvSpill.limitBytes': limitBytes, ...rest } = options;
  if (folder !== undefined)
    return { ...rest, kvSpill: { folder, ...(limitBytes === undefined ? {} : { limitBytes }) } } as ModelConfig;
  // A limit that stands in the environment waits for a folder; one that was typed was meant.
  if (Object.hasOwn(values, '--kv-spill-limit'))
    throw usageError('--kv-spill-limit needs --kv-spill', '--kv-spill-limit');
  return rest;
}
