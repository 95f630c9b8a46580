import type { CommandContext } from '../command.ts';
import type { MemoryClient } from '../memory/client-types.ts';

/** The named model as input of an operation. */
export function modelInput(client: MemoryClient, { values }: CommandContext): { readonly model?: string } {
  const model = client.modelName ?? (values['--model'] as string | undefined);
  return model === undefined ? {} : { model };
}

export const OF_ROW = {
  '--of <model|reranking|routing>':
    'what the versions belong to: the model, reranking of recalled records, or routing; default model (run and cancel: all, or federation, which merges adapters of peers)',
};

/** The model or part whose versions an operation concerns. */
export function lineInput(
  client: MemoryClient,
  context: CommandContext,
): { readonly model?: string; readonly of?: string } {
  const of = context.values['--of'] as string | undefined;
  if (of === 'federation') return { ...modelInput(client, context), of };
  return of === undefined || of === 'model' ? modelInput(client, context) : { of };
}

export const isOfModel = ({ values }: CommandContext): boolean => (values['--of'] ?? 'model') === 'model';
