import { RuvLLMError } from '../../core/errors.ts';
import type { CommandRunner } from '../command.ts';

/** Says why it does nothing. */
export const run: CommandRunner = async ({ args }) => {
  throw new RuvLLMError(
    'unsupported',
    `cannot push ${args[0]!}: there is no registry; share its file, whose path ruvllm show ${args[0]!} prints`,
  );
};
