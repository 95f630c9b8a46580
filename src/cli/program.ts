import { Command, Option } from 'commander';
import type { CommandContext, CommandEntry } from './command.ts';
import { COMMANDS } from './commands.ts';
import { type Flag, JSON_FLAG } from './flags.ts';

/** A command that was typed correctly. */
export interface ParsedCommand {
  readonly entry: CommandEntry;
  readonly args: CommandContext['args'];
  readonly values: CommandContext['values'];
}

interface ParserOutput {
  out(text: string): void;
  err(text: string): void;
}

/**
 * Parses the arguments; null when only help was asked for. Commander throws its own error on a bad line. Flags of the
 * other commands are not even imported.
 */
export async function parseCommand(
  args: readonly string[],
  version: string,
  output: ParserOutput,
): Promise<ParsedCommand | null> {
  let parsed: ParsedCommand | null = null;
  const program = new Command('ruvllm')
    .description('Runs language models on this machine.')
    .version(version)
    .exitOverride()
    .configureOutput({ writeOut: output.out, writeErr: output.err, outputError: () => {} })
    .addHelpText('after', '\nModels are named by path, owner/repo[:QUANT] or npm:package. Start with: ruvllm chat');
  for (const entry of COMMANDS) {
    const command = program.command(`${entry.name} ${entry.args}`.trim()).description(entry.description);
    if (args.includes(entry.name)) {
      for (const flag of await entry.flags()) command.addOption(toOption(flag));
      if (entry.help !== undefined) command.addHelpText('after', await entry.help());
    }
    command.addOption(toOption(JSON_FLAG));
    command.action(() => {
      parsed = { entry, args: command.args, values: valuesOf(command) };
    });
  }
  await program.parseAsync([...args], { from: 'user' });
  return parsed;
}

function toOption({ name, value, description, read, isList }: Flag): Option {
  if (value === null) return new Option(name, description);
  return new Option(`${name} <${value}>`, description).argParser((text: string, previous: unknown) => {
    const one = read === undefined ? text : read(text, name);
    return isList === true ? [...((previous as unknown[] | undefined) ?? []), one] : one;
  });
}

/** Only what was typed, by the name it was typed with. */
function valuesOf(command: Command): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const option of command.options) {
    const key = option.attributeName();
    if (command.getOptionValueSource(key) === 'cli') values[option.long!] = command.getOptionValue(key);
  }
  return values;
}
