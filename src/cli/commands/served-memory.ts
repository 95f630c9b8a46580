import { RuvLLMError } from '../../core/errors.ts';
import type { Memory } from '../../memory/memory.ts';
import { defaultMemoryFolder, openNodeMemory, type OpenMemoryOptions } from '../../node/memory/open-memory.ts';
import type { CommandContext } from '../command.ts';
import { readEmbedderChoice } from '../memory/embedder-flag.ts';
import { describeFallback, findEmbedder } from '../memory/find-embedder.ts';
import { memoryPlace } from '../memory/memory-place.ts';
import { conflictError } from '../usage-error.ts';

export interface ServedMemory {
  readonly memory: Memory | null;
  /** One line for the startup output. */
  readonly summary: string;
  /** Location without secrets; null without a memory. */
  readonly folder: string | null;
}

/** Removes credentials and parameters from a database URL. */
const withoutSecrets = (place: string): string => (/^postgres(ql)?:/.test(place) ? place.replace(/\/\/[^@/]*@/, '//').replace(/\?.*$/, '') : place); // prettier-ignore

/** Opens the memory of `--memory`, else the user's folder. If another process has the latter open, serves without memory. */
export async function openServedMemory(context: CommandContext, servedPath: string): Promise<ServedMemory> {
  const { output } = context;
  const { isExplicit } = readEmbedderChoice(context);
  // The parser sets `--memory` to false for `--no-memory`.
  const configuredPlace = memoryPlace(context);
  const retentionMs = context.values['--audit-retention'] as number | undefined;
  if (configuredPlace === false) {
    if (retentionMs !== undefined) throw conflictError('--audit-retention', '--no-memory');
    return { memory: null, summary: 'memory: none (--no-memory)', folder: null };
  }
  const retention = retentionMs === undefined ? {} : { retention: { maxAgeMs: retentionMs, archiveMaxAgeMs: retentionMs } }; // prettier-ignore
  const place = configuredPlace ?? defaultMemoryFolder();
  const { options: embedding, fallbackReason } = await findEmbedder(context, async () => servedPath);
  const report = (message: string): void => output.note(`memory: ${message}`);
  const open = async (options: Pick<OpenMemoryOptions, 'modelPath' | 'embedder' | 'reindex'>): Promise<Memory> => {
    const memory = await openNodeMemory({ place, report, ...retention, ...options });
    // Loads the embedders now, so that errors appear at startup and no request waits for them.
    await Promise.all([memory.embed('ready'), memory.embedRequest('ready')]).catch((error: unknown) =>
      closeAndThrow(memory, error),
    );
    return memory;
  };
  let memory: Memory;
  let limitation = '';
  try {
    memory = await open(embedding).catch((error: unknown) => {
      if (isExplicit || !isModelError(error)) throw error;
      limitation = `; similarity search is unavailable: ${error.message}`;
      return open({ modelPath: null });
    });
  } catch (error) {
    if (configuredPlace !== undefined || !(error instanceof RuvLLMError) || error.code !== 'conflict') throw error;
    const summary = `memory: none (${error.message}); use another one with --memory FOLDER`;
    return { memory: null, summary, folder: null };
  }
  const { degraded, embedder } = await memory.stats(null);
  const state = degraded === null ? '' : ` (degraded: ${degraded})`;
  const embeddings = embedder === null ? '' : `, embeddings by ${embedder}`;
  if (fallbackReason !== null) output.note(`memory: ${describeFallback(fallbackReason)}`);
  const folder = withoutSecrets(place);
  return { memory, summary: `memory: ${folder}${embeddings}${state}${limitation}`, folder };
}

async function closeAndThrow(memory: Memory, error: unknown): Promise<never> {
  await memory.close();
  throw error;
}

const MODEL_CODES: readonly string[] = ['invalid_model_file', 'unsupported', 'unknown_architecture'];

/** The model has no usable token embeddings; the memory itself is intact. */
function isModelError(error: unknown): error is RuvLLMError {
  return error instanceof RuvLLMError && MODEL_CODES.includes(error.code);
}
