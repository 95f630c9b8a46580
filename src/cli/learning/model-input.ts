import type { CommandContext } from '../command.ts';
import type { MemoryClient } from '../memory/client.ts';

/** Which model an operation is about, where one was named. */
export function modelInput(client: MemoryClient, { values }: CommandContext): { readonly model?: string } {
  const model = client.modelName ?? (values['--model'] as string | undefined);
  return model === undefined ? {} : { model };
}
