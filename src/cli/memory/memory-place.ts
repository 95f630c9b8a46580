import type { CommandContext } from '../command.ts';

/** Where the memory is to be: as typed (false: `--no-memory`), else by variable or file; undefined: the user's own. */
export function memoryPlace({ values, io }: Pick<CommandContext, 'values' | 'io'>): string | false | undefined {
  return (values['--memory'] as string | false | undefined) ?? (io.environment['RUVLLM_MEMORY'] || undefined);
}
