import type { CommandContext } from '../command.ts';

/** The memory location from --memory (false for `--no-memory`) or RUVLLM_MEMORY; undefined for the user's folder. */
export function memoryPlace({ values, io }: Pick<CommandContext, 'values' | 'io'>): string | false | undefined {
  return (values['--memory'] as string | false | undefined) ?? (io.environment['RUVLLM_MEMORY'] || undefined);
}
