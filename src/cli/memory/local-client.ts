import { existsSync } from 'node:fs';
import { RuvLLMError } from '../../core/errors.ts';
import type { Memory } from '../../memory/memory.ts';
import { operationOf } from '../../memory/operations/table.ts';
import { openNodeMemory, type OpenMemoryOptions } from '../../node/memory/open-memory.ts';
import { DEFAULT_TENANT } from '../../runtime/generate-options.ts';
import { nameOption } from '../../runtime/name-option.ts';
import { chooseModel } from '../choose-model.ts';
import type { CommandContext } from '../command.ts';
import { fetchModel } from '../load-model.ts';
import type { ClientNeeds, MemoryClient } from './client-types.ts';
import { describeFallback, findEmbedder } from './find-embedder.ts';
import { memoryPlace } from './memory-place.ts';

/** The memory of this machine. */
export async function openLocalClient(
  context: CommandContext,
  { needsModel, canCreate }: ClientNeeds,
): Promise<MemoryClient> {
  const { values, output } = context;
  const tenant = nameOption(values['--tenant'] ?? DEFAULT_TENANT, '--tenant');
  const place = readPlace(context, canCreate);
  const embedding = needsModel ? await chooseEmbedder(context) : { modelPath: null };
  let memory: Memory;
  try {
    memory = await openNodeMemory({
      ...(place === undefined ? {} : { place }),
      ...embedding,
      whenUnreachable: 'fail', // records must be stored before the command exits
      report: (message) => output.note(message),
    });
  } catch (error) {
    throw explainLock(error, context);
  }
  return {
    call: (name, input) => operationOf(name).run(memory, tenant, input) as Promise<never>,
    close: () => memory.close(),
  };
}

/** The configured memory location; a folder must exist unless `canCreate`. */
export function readPlace(context: CommandContext, canCreate: boolean): string | undefined {
  const place = memoryPlace(context) as string | undefined;
  if (place !== undefined && !canCreate && !/^postgres(ql)?:/.test(place) && !existsSync(place)) {
    throw new RuvLLMError('not_found', `memory ${place} not found`, { data: { path: place } });
  }
  return place;
}

/** Suggests --url if another process has the memory open. */
export function explainLock(error: unknown, { io }: Pick<CommandContext, 'io'>): unknown {
  if (!(error instanceof RuvLLMError) || error.code !== 'conflict') return error;
  const port = io.environment['RUVLLM_PORT'] || '8080';
  const next = `if that is ruvllm serve, repeat with --url http://127.0.0.1:${port}; otherwise wait until it exits`;
  return new RuvLLMError('conflict', `cannot open the memory: ${error.message}`, {
    cause: error,
    data: { ...error.data, next },
    isRetryable: true,
  });
}

async function chooseEmbedder(
  context: CommandContext,
): Promise<Pick<OpenMemoryOptions, 'modelPath' | 'embedder' | 'reindex'>> {
  const model = context.values['--model'] as string | undefined;
  const { options, fallbackReason } = await findEmbedder(context, async () =>
    model === undefined ? (await chooseModel(context, undefined)).source : await fetchModel(context, model),
  );
  if (fallbackReason !== null) context.output.note(describeFallback(fallbackReason));
  return options;
}
