import { Command, Option } from 'commander';
import type { CommandContext, CommandEntry } from './command.ts';
import { COMMANDS } from './commands.ts';
import { CONFIG_FLAG, type Flag, JSON_FLAG } from './flags.ts';
import { writeHelpEnd, writeHelpStart } from './help-text.ts';
import { wrapToWidth } from './terminal/text-width.ts';

export interface ParsedCommand {
  readonly entry: CommandEntry;
  readonly args: CommandContext['args'];
  readonly values: CommandContext['values'];
}

interface ParserOutput {
  /** Width of the help text. */
  readonly columns: number;
  out(text: string): void;
  err(text: string): void;
}

const EPILOGUE =
  'Models are named by a short name such as tinyllama or qwen2.5:0.5b, path, owner/repo[:QUANT], URL or npm:package. Options can also be set by environment variables ' +
  '(--top-k: RUVLLM_TOP_K) and in ruvllm.config.json; see ruvllm config show. Get started: ruvllm chat';

/**
 * Parses the arguments; returns null if only help was requested. Throws a CommanderError for invalid arguments. Imports
 * only the flags of the named command.
 */
export async function parseCommand(
  args: readonly string[],
  version: string,
  output: ParserOutput,
): Promise<ParsedCommand | null> {
  let parsed: ParsedCommand | null = null;
  const program = new Command('ruvllm')
    .description('Run language models locally.')
    .version(version)
    .exitOverride()
    .configureOutput({
      writeOut: output.out,
      writeErr: output.err,
      outputError: () => {},
      getOutHelpWidth: () => output.columns,
      getErrHelpWidth: () => output.columns,
    })
    .configureHelp({ formatHelp: (command, helper) => writeHelpStart(command, helper, output.columns) })
    .addHelpText('after', `\n${wrapToWidth(EPILOGUE, output.columns).join('\n')}`);
  for (const entry of COMMANDS) {
    const command = program.command(`${entry.name} ${entry.args}`.trim()).description(entry.description);
    if (args.includes(entry.name)) {
      for (const flag of await entry.flags()) command.addOption(toOption(flag));
      command.addHelpText('after', writeHelpEnd(entry, await entry.help(), output.columns));
    }
    command.addOption(toOption(CONFIG_FLAG)).addOption(toOption(JSON_FLAG));
    command.action(() => {
      parsed = { entry, args: command.args, values: valuesOf(command) };
    });
  }
  await program.parseAsync([...args], { from: 'user' });
  return parsed;
}

function toOption({ name, short, value, description, read, isList }: Flag): Option {
  const names = short === undefined ? name : `${short}, ${name}`;
  if (value === null) return new Option(names, description);
  return new Option(`${names} <${value}>`, description).argParser((text: string, previous: unknown) => {
    const parsed = read === undefined ? text : read(text, name);
    return isList === true ? [...((previous as unknown[] | undefined) ?? []), parsed] : parsed;
  });
}

/** Values set on the command line, by flag name. */
function valuesOf(command: Command): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const option of command.options) {
    const key = option.attributeName();
    if (command.getOptionValueSource(key) === 'cli') values[option.long!] = command.getOptionValue(key);
  }
  return values;
}
