import { RuvLLMError } from '../core/errors.ts';
import {
  readBias,
  readDuration,
  readInteger,
  readList,
  readNumber,
  readSeconds,
  readSize,
  readSwitch,
  readText,
  readTime,
  type ValueReader,
} from './values.ts';

/** An option of a command. */
export interface Flag {
  /** `--top-k`. */
  readonly name: string;
  /** One letter for the same: `-f`. */
  readonly short?: string;
  /** Name of the value in the help; null for a switch. */
  readonly value: string | null;
  readonly description: string;
  readonly read?: ValueReader<unknown>;
  /** Repeatable; the values become a list. */
  readonly isList?: boolean;
  /** Name of the library option that receives the value. */
  readonly option?: string;
  /** Environment variable used when the flag is absent. */
  readonly variable?: string;
  /** Never shown. */
  readonly isSecret?: boolean;
}

/** Values by flag name; absent flags have no key. */
export type FlagValues = Readonly<Record<string, unknown>>;

/** How the value of a placeholder is read; other placeholders are texts. */
const READERS: Readonly<Record<string, ValueReader<unknown>>> = {
  n: readInteger,
  x: readNumber,
  seconds: readSeconds,
  size: readSize,
  time: readTime,
  duration: readDuration,
  'id=value': readBias,
};
const SYNTAX = /^(--[a-z-]+)(?: <([^>]+)>(\.\.\.)?)?(?: ([\w.]+))?$/;

export type FlagRows = Readonly<Record<string, string | readonly [description: string, read: ValueReader<unknown>]>>;

/**
 * Flags by their syntax, `--name <value>... option`, with a description or a description and a reader. `...` makes a
 * flag repeatable; `option` is the library option that receives the value.
 */
export function defineFlags(rows: FlagRows): readonly Flag[] {
  return Object.entries(rows).map(([syntax, row]) => {
    const [, name, value = null, dots, option] = SYNTAX.exec(syntax)!;
    const [description, read] = typeof row === 'string' ? [row, value === null ? undefined : READERS[value]] : row;
    return {
      name: name!,
      value,
      description,
      ...(read === undefined ? {} : { read }),
      ...(dots === undefined ? {} : { isList: true }),
      ...(option === undefined ? {} : { option }),
    };
  });
}

export const JSON_FLAG: Flag = { name: '--json', value: null, description: 'print one JSON document to stdout' };

export const CONFIG_FLAG: Flag = {
  name: '--config',
  value: 'file',
  description: 'settings file to use instead of ruvllm.config.json; see ruvllm config show',
};

/** Library options from flags, else from environment variables. An empty variable counts as unset. */
export function collectOptions(
  flags: readonly Flag[],
  values: FlagValues,
  environment: Readonly<Record<string, string | undefined>> = {},
): Record<string, unknown> {
  const options: Record<string, unknown> = {};
  for (const flag of flags) {
    if (flag.option === undefined) continue;
    const value = valueOf(flag, values, environment);
    if (value !== undefined) options[flag.option] = value;
  }
  return options;
}

function valueOf(flag: Flag, values: FlagValues, environment: Readonly<Record<string, string | undefined>>): unknown {
  const { name, variable, value, isList = false } = flag;
  if (Object.hasOwn(values, name)) return values[name];
  const text = variable === undefined ? '' : (environment[variable] ?? '');
  if (text === '') return undefined;
  const read = flag.read ?? (value === null ? readSwitch : readText);
  return isList ? readList(text, variable!, read) : read(text, variable!);
}

/** Adds values of environment variables for absent flags. */
export function fillValues(
  flags: readonly Flag[],
  values: FlagValues,
  environment: Readonly<Record<string, string | undefined>>,
): FlagValues {
  const entries = flags.map((flag) => [flag.name, valueOf(flag, values, environment)] as const);
  return { ...values, ...Object.fromEntries(entries.filter(([, value]) => value !== undefined)) };
}

/** Adds environment variables: `RUVLLM_TOP_K` for `--top-k`, `RUVLLM_LOG` for `--no-log`. */
export function withVariables(flags: readonly Flag[]): readonly Flag[] {
  const variableOf = ({ name }: Flag): string => name.replace(/^--(?:no-)?/, 'RUVLLM_').replaceAll('-', '_');
  return flags.map((flag) => ({ variable: variableOf(flag).toUpperCase(), ...flag }));
}

/** Replaces the library's option name in an `invalid_option` error with the flag or variable. */
function renameOption(flags: readonly Flag[], values: FlagValues, error: unknown): unknown {
  if (!(error instanceof RuvLLMError) || error.code !== 'invalid_option') return error;
  const path = String(error.data['option']);
  const flag =
    flags.find(({ option }) => option === path) ?? flags.find(({ option }) => option === path.split('.', 1)[0]);
  if (flag === undefined) return error;
  const name = Object.hasOwn(values, flag.name) ? flag.name : (flag.variable ?? flag.name);
  // Operations write `memory.search: "k": …`.
  const message = error.message.replace(`option "${flag.option!}"`, name).replace(/^[a-z.-]+: "[^"]+": /, `${name}: `);
  return new RuvLLMError('invalid_option', message, { cause: error, data: { ...error.data, option: name } });
}

/** Runs `check`; its errors name flags or variables instead of library options. */
export function withFlagNames<T>(flags: readonly Flag[], values: FlagValues, check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw renameOption(flags, values, error);
  }
}

export async function withFlagNamesAsync<T>(
  flags: readonly Flag[],
  values: FlagValues,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw renameOption(flags, values, error);
  }
}
