import type { CommandEntry } from '../command.ts';
import { COMMANDS } from '../commands.ts';
import { CONFIG_FLAG, type Flag, JSON_FLAG } from '../flags.ts';

/** What may stand behind an option. */
export type Values = { readonly words: readonly string[] } | 'model' | 'file' | 'text' | null;

export interface CompletedFlag {
  readonly name: string;
  readonly description: string;
  /** Null: it is a switch. */
  readonly values: Values;
}

/** A command as a shell needs to know it. */
export interface CompletedCommand {
  readonly name: string;
  readonly description: string;
  readonly flags: readonly CompletedFlag[];
  readonly actions: readonly { readonly name: string; readonly description: string }[];
  readonly takesModel: boolean;
}

const FILE_VALUES = new Set(['file', 'folder', 'path', 'place']);

function valuesOf({ value, read }: Flag): Values {
  if (value === null) return null;
  if (value === 'model') return 'model';
  if (FILE_VALUES.has(value)) return 'file';
  const words = read === undefined ? value.split('|').filter((word) => /^[\w.-]+$/.test(word)) : [];
  return words.length > 1 ? { words } : 'text';
}

async function describe(entry: CommandEntry): Promise<CompletedCommand> {
  const { name, description, args } = entry;
  const flags = [...(await entry.flags()), CONFIG_FLAG, JSON_FLAG];
  return {
    name,
    description,
    takesModel: /[<[]models?[\].>]/.test(args),
    actions: (await entry.help?.())?.actions ?? [],
    flags: flags.map((flag) => ({ name: flag.name, description: flag.description, values: valuesOf(flag) })),
  };
}

/** All commands, from the table they are run by. */
export async function describeCommands(): Promise<CompletedCommand[]> {
  return await Promise.all(COMMANDS.map(describe));
}
