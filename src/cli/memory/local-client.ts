import * as nodeFiles from 'node:fs';
import { resolve } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import type { Memory } from '../../memory/memory.ts';
import { operationOf } from '../../memory/operations/table.ts';
import { defaultMemoryFolder } from '../../node/memory/default-folders.ts';
import { openNodeMemory, type OpenMemoryOptions } from '../../node/memory/open-memory.ts';
import { expandHome } from '../../platform/node/files/paths.ts';
import { lockFolder } from '../../platform/node/memory/folder-lock.ts';
import { DEFAULT_TENANT } from '../../runtime/generate-options.ts';
import { nameOption } from '../../runtime/name-option.ts';
import { chooseModel } from '../choose-model.ts';
import type { CommandContext } from '../command.ts';
import { fetchModel } from '../load-model.ts';
import type { ClientNeeds, MemoryClient } from './client-types.ts';
import { readEmbedderChoice } from './embedder-flag.ts';
import { describeFallback, findEmbedder } from './find-embedder.ts';
import { explainLock } from './explain-lock.ts';
import { memoryPlace } from './memory-place.ts';

/** The memory of this machine. */
export async function openLocalClient(
  context: CommandContext,
  { needsModel, canOmitModel = false, canCreate }: ClientNeeds,
): Promise<MemoryClient> {
  const { values, output } = context;
  const tenant = nameOption(values['--tenant'] ?? DEFAULT_TENANT, '--tenant');
  const place = readPlace(context, canCreate);
  let memory: Memory;
  try {
    if (needsModel) requireUnlocked(place);
    const embedding = needsModel ? await chooseEmbedder(context, canOmitModel) : { modelPath: null };
    memory = await openNodeMemory({
      ...(place === undefined ? {} : { place }),
      ...embedding,
      ...(await chooseCounter(context)),
      whenUnreachable: 'fail', // records must be stored before the command exits
      report: (message) => output.note(message),
    });
  } catch (error) {
    throw explainLock(error);
  }
  return {
    call: (name, input) => operationOf(name).run(memory, tenant, input) as Promise<never>,
    addDocument: (document) => memory.documents.add(tenant, document),
    close: () => memory.close(),
  };
}

/** The configured memory location; a folder must exist unless `canCreate`. */
export function readPlace(context: CommandContext, canCreate: boolean): string | undefined {
  const place = memoryPlace(context) as string | undefined;
  if (place !== undefined && !canCreate && !isDatabase(place) && !nodeFiles.existsSync(place)) {
    throw new RuvLLMError('not_found', `memory ${place} not found`, { data: { path: place } });
  }
  return place;
}

/** Throws if another process has the folder open, before a model is downloaded. */
export function requireUnlocked(place: string | undefined): void {
  const folder = resolve(expandHome(place ?? defaultMemoryFolder()));
  if (!isDatabase(place) && nodeFiles.existsSync(folder)) lockFolder(nodeFiles, folder).release();
}

const isDatabase = (place = ''): boolean => /^postgres(ql)?:/.test(place);

async function chooseEmbedder(
  context: CommandContext,
  canOmitModel: boolean,
): Promise<Pick<OpenMemoryOptions, 'modelPath' | 'embedder' | 'projection' | 'reindex'>> {
  const model = context.values['--model'] as string | undefined;
  const isOptional = canOmitModel && model === undefined && !readEmbedderChoice(context).isExplicit;
  const finding = findEmbedder(context, async () =>
    // A chat model is downloaded only if it is named: it has hundreds of megabytes.
    model === undefined
      ? (await chooseModel(context, undefined, { download: false })).source
      : await fetchModel(context, model),
  );
  const { options, fallbackReason } = await finding.catch((error: unknown) => {
    if (!isOptional || context.io.signal.aborted) throw error;
    context.output.note(`searching by words only: ${(error as Error).message}`);
    return { options: { modelPath: null }, fallbackReason: null };
  });
  if (fallbackReason !== null) context.output.note(describeFallback(fallbackReason));
  return options;
}

/** Counts the tokens of --token-budget with the tokenizer of --model. */
async function chooseCounter(context: CommandContext): Promise<Pick<OpenMemoryOptions, 'countTokens'>> {
  const model = context.values['--model'] as string | undefined;
  if (model === undefined || context.values['--token-budget'] === undefined) return {};
  const { openModelFile } = await import('../../platform/node/files/open-model-file.ts');
  const { createTokenizer } = await import('../../tokenizers/tokenizer.ts');
  const file = openModelFile(await fetchModel(context, model));
  try {
    const tokenizer = createTokenizer(file.metadata);
    return { countTokens: (text) => tokenizer.encode(text).length };
  } finally {
    file.source.close();
  }
}
