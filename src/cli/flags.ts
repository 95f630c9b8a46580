import { RuvLLMError } from '../core/errors.ts';
import { readList, readSwitch, readText, type ValueReader } from './values.ts';

/** One option of a command. */
export interface Flag {
  /** As it is typed: `--top-k`. */
  readonly name: string;
  /** What its value is called in the help; null for a switch. */
  readonly value: string | null;
  readonly description: string;
  readonly read?: ValueReader<unknown>;
  /** May be given several times; the values become a list. */
  readonly isList?: boolean;
  /** The library's name for it, when it is handed on. */
  readonly option?: string;
  /** The environment variable that stands in for it. */
  readonly variable?: string;
  /** Never to be shown. */
  readonly isSecret?: boolean;
}

/** The values of a command's flags by flag name; what was not given is not there. */
export type FlagValues = Readonly<Record<string, unknown>>;

export const JSON_FLAG: Flag = { name: '--json', value: null, description: 'print one JSON document on stdout' };

export const CONFIG_FLAG: Flag = {
  name: '--config',
  value: 'file',
  description: 'settings instead of ruvllm.config.json; ruvllm config show tells what holds',
};

/** Flag, else environment variable: what the library is to be given. An empty variable counts as unset. */
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

/** The values with those of the environment behind them, for options that the library does not know. */
export function fillValues(
  flags: readonly Flag[],
  values: FlagValues,
  environment: Readonly<Record<string, string | undefined>>,
): FlagValues {
  const found = flags.map((flag) => [flag.name, valueOf(flag, values, environment)] as const);
  return { ...values, ...Object.fromEntries(found.filter(([, value]) => value !== undefined)) };
}

/** Gives every option the variable of its name: `--top-k` is `RUVLLM_TOP_K`, and `--no-log` is `RUVLLM_LOG`. */
export function withVariables(flags: readonly Flag[]): readonly Flag[] {
  return flags.map((flag) => ({ variable: variableOf(flag), ...flag }));
}

function variableOf({ name }: Flag): string {
  return `RUVLLM_${name
    .replace(/^--(?:no-)?/, '')
    .replaceAll('-', '_')
    .toUpperCase()}`;
}

/** An `invalid_option` about one of these options comes out with the name that was typed. */
function renameOption(flags: readonly Flag[], values: FlagValues, error: unknown): unknown {
  if (!(error instanceof RuvLLMError) || error.code !== 'invalid_option') return error;
  const flag = flags.find(({ option }) => option !== undefined && option === error.data['option']);
  if (flag === undefined) return error;
  const name = Object.hasOwn(values, flag.name) ? flag.name : (flag.variable ?? flag.name);
  const message = error.message.replace(`option "${flag.option!}"`, name);
  return new RuvLLMError('invalid_option', message, { cause: error, data: { ...error.data, option: name } });
}

/** Runs `check`, naming options in its errors as they were typed. */
export function withFlagNames<T>(flags: readonly Flag[], values: FlagValues, check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw renameOption(flags, values, error);
  }
}

/** As `withFlagNames`, for work that takes a while. */
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
