import { RuvLLMError } from '../../core/errors.ts';
import { openTrainer, type Trainer } from '../../node/training/open-trainer.ts';
import type { CommandContext } from '../command.ts';
import { fetchModel } from '../load-model.ts';
import { usageError } from '../usage-error.ts';
import type { ModelSettings } from './training-flags.ts';

export function requireFlag({ values }: CommandContext, method: string, flag: string, placeholder: string): string {
  const value = values[flag] as string | undefined;
  if (value === undefined) throw usageError(`train ${method} requires ${flag} ${placeholder}`, flag);
  return value;
}

/** Opens the model of --model; Ctrl-C stops the learning thread at its next step. */
export async function openCliTrainer(
  context: CommandContext,
  reference: string,
  settings: ModelSettings,
): Promise<Trainer> {
  const { signal } = context.io;
  const trainer = openTrainer(await fetchModel(context, reference), settings);
  const stop = (): void => void trainer.work.cancel().catch(() => {});
  signal.addEventListener('abort', stop, { once: true });
  return {
    ...trainer,
    encode(prompt, answer) {
      if (signal.aborted) throw new RuvLLMError('aborted', 'stopped before training');
      return trainer.encode(prompt, answer);
    },
    async close() {
      signal.removeEventListener('abort', stop);
      await trainer.close();
    },
  };
}
