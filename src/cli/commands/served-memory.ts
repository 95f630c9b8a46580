import { basename } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import type { Memory } from '../../memory/memory.ts';
import { defaultMemoryFolder, openNodeMemory, type OpenMemoryOptions } from '../../platform/node/memory/open-memory.ts';
import type { CommandContext } from '../command.ts';
import { fetchModel } from '../fetch-model.ts';
import { readEmbedderWish } from '../memory/embedder-flag.ts';
import { memoryPlace } from '../memory/memory-place.ts';

/** The memory of a server, and what to say of it. */
export interface ServedMemory {
  readonly opened: Memory | null;
  /** For people. */
  readonly place: string;
  /** Null: there is none. */
  readonly folder: string | null;
}

/** Password and parameters of an address are nobody's business. */
const shown = (place: string): string => (/^postgres(ql)?:/.test(place) ? place.replace(/\/\/[^@/]*@/, '//').replace(/\?.*$/, '') : place); // prettier-ignore

/** Opens what `--memory` names, else the user's own folder; a second server goes without that rather than not start. */
export async function openServedMemory(context: CommandContext, servedPath: string): Promise<ServedMemory> {
  const { output } = context;
  const { embedder, reference, isGiven } = readEmbedderWish(context);
  // `--no-memory` is the same option to the parser, set to false.
  const typed = memoryPlace(context) as string | false | undefined;
  if (typed === false) return { opened: null, place: 'memory: none (--no-memory)', folder: null };
  const place = typed ?? defaultMemoryFolder();
  const modelPath = reference === null ? servedPath : await fetchModel(context, reference);
  const report = (message: string): void => output.note(`memory: ${message}`);
  const open = async (given: Pick<OpenMemoryOptions, 'modelPath' | 'embedder'>): Promise<Memory> => {
    const memory = await openNodeMemory({ place, report, ...given });
    // What is wrong with a model that is to be run is found out now, and no request waits for it to be loaded.
    if (given.embedder === 'model') await memory.embed('ready').catch((error: unknown) => closeAndThrow(memory, error));
    return memory;
  };
  let opened: Memory;
  let without = '';
  try {
    opened = await open({ modelPath, embedder }).catch((error: unknown) => {
      if (isGiven || !isOfModel(error)) throw error;
      without = `; nothing can be found by meaning: ${error.message}`;
      return open({ modelPath: null });
    });
  } catch (error) {
    if (typed !== undefined || !(error instanceof RuvLLMError) || error.code !== 'conflict') throw error;
    const why = `memory: none, for ${error.message}; --memory FOLDER opens another`;
    return { opened: null, place: why, folder: null };
  }
  const { degraded } = await opened.stats(null);
  const state = degraded === null ? '' : ` (degraded: ${degraded})`;
  const by = embedder === 'model' ? `, vectors by ${basename(modelPath)}` : '';
  return { opened, place: `memory: ${shown(place)}${by}${state}${without}`, folder: shown(place) };
}

async function closeAndThrow(memory: Memory, error: unknown): Promise<never> {
  await memory.close();
  throw error;
}

const MODEL_CODES: readonly string[] = ['invalid_model_file', 'unsupported', 'unknown_architecture'];

/** The model has no rows a vector could be made of; the folder itself is good. */
function isOfModel(error: unknown): error is RuvLLMError {
  return error instanceof RuvLLMError && MODEL_CODES.includes(error.code);
}
