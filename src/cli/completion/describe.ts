import type { CommandEntry } from '../command.ts';
import { CONFIG_FLAG, type Flag, JSON_FLAG } from '../flags.ts';

/** Possible values of an option; null for a switch. */
export type Values = { readonly words: readonly string[] } | 'model' | 'file' | 'text' | null;

export interface CompletedFlag {
  readonly name: string;
  readonly description: string;
  readonly values: Values;
}

export interface CompletedCommand {
  readonly name: string;
  readonly description: string;
  readonly flags: readonly CompletedFlag[];
  readonly actions: readonly { readonly name: string; readonly description: string }[];
  readonly takesModel: boolean;
}

const FILE_VALUES = new Set(['file', 'folder', 'path', 'place']);

function valuesOf({ value }: Flag): Values {
  if (value === null) return null;
  if (value === 'model') return 'model';
  if (FILE_VALUES.has(value)) return 'file';
  const words = value.split('|').filter((word) => /^[\w.-]+$/.test(word));
  return words.length > 1 ? { words } : 'text';
}

async function describe(entry: CommandEntry): Promise<CompletedCommand> {
  const { name, description, args } = entry;
  const flags = [...(await entry.flags()), CONFIG_FLAG, JSON_FLAG];
  return {
    name,
    description,
    takesModel: /[<[]models?[\].>]/.test(args),
    actions: (await entry.help()).actions ?? [],
    flags: flags.map((flag) => ({ name: flag.name, description: flag.description, values: valuesOf(flag) })),
  };
}

export async function describeCommands(commands: readonly CommandEntry[]): Promise<CompletedCommand[]> {
  return await Promise.all(commands.map(describe));
}
