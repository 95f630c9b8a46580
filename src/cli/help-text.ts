import type { Command, Help } from 'commander';
import type { CommandEntry, HelpParts } from './command.ts';
import { CONFIG_FLAG, type Flag, JSON_FLAG } from './flags.ts';
import { displayWidth, wrapToWidth } from './terminal/text-width.ts';

const INDENT = '  ';
/** Minimum width of a description; names that leave less get their own line. */
const MIN_DESCRIPTION = 46;

/** Two indented columns, name and wrapped description. */
function layRows(rows: readonly (readonly [string, string])[], columns: number): string[] {
  const widest = Math.max(...rows.map(([name]) => displayWidth(name)));
  const left = Math.min(widest, Math.max(10, columns - MIN_DESCRIPTION - 4));
  return rows.flatMap(([name, description]) => {
    const lines = wrapToWidth(description, columns - left - 4);
    const fits = displayWidth(name) <= left;
    const first = fits ? [`${INDENT}${name.padEnd(left)}${INDENT}${lines.shift()!}`] : [`${INDENT}${name}`];
    return [...first, ...lines.map((line) => `${' '.repeat(left + 4)}${line}`)].map((line) => line.trimEnd());
  });
}

/** Usage, description, options and commands; commander's formatter does not wrap next to long options. */
export function writeHelpStart(command: Command, helper: Help, columns: number): string {
  const options = helper
    .visibleOptions(command)
    .map((option) => [helper.optionTerm(option), helper.optionDescription(option)] as const);
  const commands = helper
    .visibleCommands(command)
    .map((sub) => [`${sub.name()} ${argumentsOf(sub)}`.trim(), helper.subcommandDescription(sub)] as const);
  const parts = [
    [`Usage: ${helper.commandUsage(command)}`],
    wrapToWidth(helper.commandDescription(command), columns),
    ['Options:', ...layRows(options, columns)],
    ...(commands.length === 0 ? [] : [['Commands:', ...layRows(commands, columns)]]),
  ];
  return `${parts.map((lines) => lines.join('\n')).join('\n\n')}\n`;
}

/** Without `[options]`, which applies to every command and takes width from the descriptions. */
function argumentsOf(command: Command): string {
  return command.registeredArguments
    .map((argument) => {
      const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
      return argument.required ? `<${name}>` : `[${name}]`;
    })
    .join(' ');
}

/** Actions, examples and notes below the options. */
export function writeHelpEnd(entry: CommandEntry, { actions = [], notes = '' }: HelpParts, columns: number): string {
  const parts: string[] = [];
  if (actions.length > 0) {
    const rows = actions.map(({ name, args, description }) => [`${name} ${args}`.trim(), description] as const);
    parts.push(['Actions:', ...layRows(rows, columns)].join('\n'));
  }
  // Never wrapped: examples are meant to be copied.
  parts.push(['Examples:', ...entry.examples.map((line) => `${INDENT}${line}`)].join('\n'));
  if (notes !== '') parts.push(wrapToWidth(notes, columns).join('\n'));
  return `\n${parts.join('\n\n')}`;
}

export async function describeCommand(entry: CommandEntry): Promise<object> {
  const { name, args, description, examples } = entry;
  const { actions = [], notes = '' } = await entry.help();
  const flags = [...(await entry.flags()), CONFIG_FLAG, JSON_FLAG].map(describeFlag);
  return { name, args, description, options: flags, actions, examples, notes };
}

function describeFlag({ name, value, description, isList = false, variable }: Flag) {
  return { name, value, description, isList, variable: variable ?? null };
}
