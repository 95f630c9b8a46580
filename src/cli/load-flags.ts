import { type ModelConfig, resolveModelConfig } from '../runtime/model-config.ts';
import { collectOptions, type Flag, type FlagValues, withFlagNames } from './flags.ts';
import { readInteger } from './values.ts';

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
  const config = collectOptions(LOAD_FLAGS, values, environment) as ModelConfig;
  withFlagNames(LOAD_FLAGS, values, () => resolveModelConfig(config, { numCpus: 1 }));
  return config;
}
