import type { CommandContext } from '../command.ts';
import type { Flag } from '../flags.ts';
import type { MemoryClient } from '../memory/client.ts';

/** Which model an operation is about, where one was named. */
export function modelInput(client: MemoryClient, { values }: CommandContext): { readonly model?: string } {
  const model = client.modelName ?? (values['--model'] as string | undefined);
  return model === undefined ? {} : { model };
}

/** Whose versions are meant. */
export const OF_FLAG: Flag = {
  name: '--of',
  value: 'model|reranking|routing',
  description:
    'whose versions: a model’s, of the order of what is recalled, or of who answers; default model, for run and cancel all of them',
};

/** The versions an operation is about. */
export function lineInput(
  client: MemoryClient,
  context: CommandContext,
): { readonly model?: string; readonly of?: string } {
  const of = context.values['--of'] as string | undefined;
  return of === undefined || of === 'model' ? modelInput(client, context) : { of };
}

/** Whether a model must be there for it. */
export const isOfModel = ({ values }: CommandContext): boolean => (values['--of'] ?? 'model') === 'model';
