import type { CommandContext, CommandRunner, HelpParts } from '../command.ts';
import { type Flag, JSON_FLAG } from '../flags.ts';
import { didYouMean } from '../nearest.ts';
import type { Output } from '../output.ts';
import { usageError } from '../usage-error.ts';
import { readInteger, readNumber } from '../values.ts';
import { CLIENT_FLAGS, openClient } from './client.ts';
import { type ClientNeeds, type MemoryClient } from './client-types.ts';

/** An action of `ruvllm memory`, `audit`, `sessions` or `learn`. */
export interface Action {
  /** Arguments: `<id>`. */
  readonly args: string;
  readonly description: string;
  readonly flags: readonly Flag[];
  /** Whether a local memory requires a model, by default to embed texts. */
  needsModel?(context: CommandContext): boolean;
  /** Whether texts are embedded, for commands that use the model for more than that. */
  readonly needsVectors?: boolean;
  /** Whether the action may create a memory; otherwise a mistyped folder would look like an empty one. */
  readonly canCreate?: boolean;
  run(client: MemoryClient, context: CommandContext, args: readonly string[]): Promise<void>;
}

/** An action that opens its own resources. */
export interface StandaloneAction extends Omit<Action, 'run' | 'needsModel' | 'canCreate'> {
  runAlone(context: CommandContext, args: readonly string[]): Promise<void>;
}

export type Actions = Readonly<Record<string, Action | StandaloneAction>>;

/** Flags of a client, and how to open it. */
export interface ClientKind {
  readonly flags: readonly Flag[];
  open(context: CommandContext, needs: ClientNeeds): Promise<MemoryClient>;
}

const MEMORY_CLIENT: ClientKind = { flags: CLIENT_FLAGS, open: openClient };

export const AFTER_FLAG: Flag = { name: '--after', value: 'next', description: 'continue after a page, at its "next"' };
export const K_FLAG: Flag = {
  name: '--k',
  value: 'n',
  read: readInteger,
  description: 'number of results; default 10',
};
export const MIN_SIMILARITY_FLAG: Flag = { name: '--min-similarity', value: 'n', read: readNumber, description: 'minimum similarity, -1 to 1' }; // prettier-ignore
export const OUTPUT_FLAG: Flag = {
  name: '--output',
  value: 'file',
  description: 'write to this file instead of stdout',
};

export function limitFlag(items: string, defaultLimit: number | null): Flag {
  const description = `maximum number of ${items}${defaultLimit === null ? '' : `; default ${defaultLimit}`}`;
  return { name: '--limit', value: 'n', read: readInteger, description };
}

/** Prints the flag that continues a listing; `next` null: this was the last page. */
export function noteNextPage(output: Output, next: string | null): void {
  if (next !== null) output.note(`next page: --after '${next}'`);
}

/** The flags of all actions of a command, each once. */
export function flagsOf(actions: Actions, common = CLIENT_FLAGS): readonly Flag[] {
  const flags = new Map(common.map((flag) => [flag.name, flag]));
  for (const action of Object.values(actions)) for (const flag of action.flags) flags.set(flag.name, flag);
  return [...flags.values()];
}

/** Help with all actions. */
export function helpOf(actions: Actions, notes: string): HelpParts {
  return {
    actions: Object.entries(actions).map(([name, { args, description }]) => ({ name, args, description })),
    notes,
  };
}

export function unknownAction(command: string, name: string, actions: object): Error {
  const names = Object.keys(actions);
  return usageError(
    `unknown action ${JSON.stringify(name)}${didYouMean(name, names)}; ${command} has ${names.join(', ')}`,
  );
}

/** The flag belongs to another action of the command and would be ignored. */
export function foreignFlag(flag: string, command: string, action: string): Error {
  return usageError(`${flag} is not an option of ${command} ${action}`, flag);
}

/** Runs the named action with the client it requires. */
export function actionRunner(
  command: string,
  actions: Actions,
  { open, flags }: ClientKind = MEMORY_CLIENT,
): CommandRunner {
  return async (context) => {
    const [name, ...args] = context.args as [string, ...string[]];
    if (!Object.hasOwn(actions, name)) throw unknownAction(command, name, actions);
    const action = actions[name]!;
    const flagNames = [JSON_FLAG, ...flags, ...action.flags].map((flag) => flag.name);
    const foreign = Object.keys(context.values).find((flag) => !flagNames.includes(flag));
    if (foreign !== undefined) throw foreignFlag(foreign, command, name);
    checkArguments(`${command} ${name}`, action.args, args);
    if ('runAlone' in action) return action.runAlone(context, args);
    const client = await open(context, {
      needsModel: action.needsModel?.(context) ?? false,
      canCreate: action.canCreate ?? false,
      needsVectors: action.needsVectors ?? false,
    });
    try {
      await action.run(client, context, args);
    } finally {
      await client.close();
    }
  };
}

/** Checks the number of arguments against `<a> [b]` or `<a...>`. */
function checkArguments(action: string, pattern: string, args: readonly string[]): void {
  const parameters = pattern === '' ? [] : pattern.split(' ');
  const numRequired = parameters.filter((parameter) => parameter.startsWith('<')).length;
  const isVariadic = parameters.at(-1)?.includes('...') === true;
  if (args.length < numRequired) throw usageError(`${action} requires ${parameters[args.length]}`);
  if (!isVariadic && args.length > parameters.length) {
    throw usageError(`unexpected argument ${JSON.stringify(args[parameters.length])} of ${action}`);
  }
}

/** Values of present flags, under the operation's names. */
export function pick(context: CommandContext, names: Readonly<Record<string, string>>): Record<string, unknown> {
  const { values } = context;
  return Object.fromEntries(
    Object.entries(names)
      .filter(([flag]) => values[flag] !== undefined)
      .map(([flag, key]) => [key, values[flag]]),
  );
}
