import { BUILT_IN_KERNELS } from '../kernels/kernel-choice.ts';
import { type ModelConfig, resolveModelConfig } from '../runtime/model-config.ts';
import { collectOptions, defineFlags, type Flag, type FlagValues, withFlagNames, withVariables } from './flags.ts';
import { readGpuLayers, readKernels } from './values.ts';
import { conflictError, requiresError, usageError } from './usage-error.ts';
import { readRegularFile } from '../platform/node/files/json-file.ts';
import { messageOf } from '../core/errors.ts';

/** Options for loading a model. */
export const LOAD_FLAGS: readonly Flag[] = withVariables(
  defineFlags({
    '--context <n> maxContext': 'context length: maximum tokens of prompt and answer (RUVLLM_CONTEXT)',
    '--threads <n> numThreads': 'number of compute threads (RUVLLM_THREADS)',
    [`--kernels <${BUILT_IN_KERNELS.join('|')}|pack:NAME> kernels`]: ['kernels to use (RUVLLM_KERNELS)', readKernels],
    '--gpu-layers <n|auto> gpuLayers': [
      'layers on the GPU with --kernels webgpu, the last of the model; default auto: as many as fit (RUVLLM_GPU_LAYERS)',
      readGpuLayers,
    ],
    '--gpu-memory <size> gpuMemoryBytes':
      'maximum memory on the GPU with --kernels webgpu, such as 6GiB; default no limit (RUVLLM_GPU_MEMORY)',
    '--memory-budget <size> memoryBudgetBytes':
      'memory budget of the KV cache, such as 512MiB or 2G (RUVLLM_MEMORY_BUDGET)',
    '--kv-packing <auto|off|q8|q4> kvPacking': 'quantization of older KV pages, to save memory (RUVLLM_KV_PACKING)',
    '--no-prefix-cache prefixCache': 'do not reuse cached prompt prefixes (RUVLLM_PREFIX_CACHE=off)',
    '--kv-spill <folder> kvSpill.folder':
      'spill KV pages to this folder, encrypted, and restore them after a restart (RUVLLM_KV_SPILL)',
    '--kv-spill-limit <size> kvSpill.limitBytes':
      'maximum size of the spill folder; default 8GiB (RUVLLM_KV_SPILL_LIMIT)',
    '--chat-template <template> chatTemplate':
      "built-in chat template by name, such as chatml, or a Jinja template, instead of the model's own (RUVLLM_CHAT_TEMPLATE)",
    '--chat-template-file <file> chatTemplate.file':
      'file with a Jinja chat template, such as chat_template.jinja (RUVLLM_CHAT_TEMPLATE_FILE)',
    '--mmproj <file> mmproj': 'projector (mmproj GGUF file) of a model that sees images (RUVLLM_MMPROJ)',
    '--speculation <auto|on|off> speculation':
      'guess tokens and verify several in one step where that is faster; the text is the same (RUVLLM_SPECULATION)',
    '--draft-model <model> draftModel':
      'smaller model with the same vocabulary that guesses tokens: a file, a reference, or auto for one in the cache (RUVLLM_DRAFT_MODEL)',
    '--repack-cache <auto|on|off> repackCache': 'cache packed weights on disk to start faster (RUVLLM_REPACK_CACHE)',
  }),
);

/** Model options from flags and variables, validated before anything is loaded. */
export function readModelConfig(
  values: FlagValues,
  environment: Readonly<Record<string, string | undefined>>,
  flags = LOAD_FLAGS,
): ModelConfig {
  const config = readTemplateFile(nestSpill(collectOptions(flags, values, environment), values));
  withFlagNames(flags, values, () => resolveModelConfig(config, { numCpus: 1 }));
  return config;
}

/** Combines the two spill flags into the library's one option. */
function nestSpill(options: Record<string, unknown>, values: FlagValues): Record<string, unknown> {
  const { 'kvSpill.folder': folder, 'kvSpill.limitBytes': limitBytes, ...config } = options;
  if (folder !== undefined)
    return { ...config, kvSpill: { folder, ...(limitBytes === undefined ? {} : { limitBytes }) } };
  // As a variable, a limit without a folder is harmless; as a flag, it is a mistake.
  if (Object.hasOwn(values, '--kv-spill-limit')) throw requiresError('--kv-spill-limit', '--kv-spill');
  return config;
}

/** The text of the file is the library's option. */
function readTemplateFile({ 'chatTemplate.file': file, ...config }: Record<string, unknown>): ModelConfig {
  if (file === undefined) return config;
  if (config['chatTemplate'] !== undefined) throw conflictError('--chat-template-file', '--chat-template');
  try {
    return { ...config, chatTemplate: new TextDecoder().decode(readRegularFile(String(file))) };
  } catch (error) {
    const reason = messageOf(error);
    throw usageError(`--chat-template-file cannot be read: ${reason}`, '--chat-template-file');
  }
}
