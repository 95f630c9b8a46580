import type { CommandContext, CommandRunner, HelpParts } from '../command.ts';
import { type Flag, JSON_FLAG } from '../flags.ts';
import { didYouMean } from '../nearest.ts';
import { usageError } from '../usage-error.ts';
import { CLIENT_FLAGS, type ClientNeeds, type MemoryClient, openClient } from './client.ts';

/** One thing `ruvllm memory`, `audit` or `sessions` does. */
export interface Action {
  /** What follows it on the line, for the help: `<id>`. */
  readonly args: string;
  readonly description: string;
  readonly flags: readonly Flag[];
  /** Whether texts are compared, so that a model is needed; not behind a server, which has its own. */
  needsModel?(context: CommandContext): boolean;
  /** Whether texts are compared, for commands whose model is more than that. */
  readonly needsVectors?: boolean;
  /** Whether it may be what makes a memory. Where that is not so a mistyped folder would look like an empty one. */
  readonly isFirst?: boolean;
  /** `words`: the arguments behind the name of the action. */
  run(client: MemoryClient, context: CommandContext, words: readonly string[]): Promise<void>;
}

/** An action that opens what it needs by itself. */
export interface OwnAction extends Omit<Action, 'run' | 'needsModel' | 'isFirst'> {
  runAlone(context: CommandContext, words: readonly string[]): Promise<void>;
}

export type Actions = Readonly<Record<string, Action | OwnAction>>;

/** How a command finds what its actions work on. */
export interface ClientKind {
  readonly flags: readonly Flag[];
  open(context: CommandContext, needs: ClientNeeds): Promise<MemoryClient>;
}

const MEMORY_CLIENT: ClientKind = { flags: CLIENT_FLAGS, open: openClient };

/** The flags of all actions of a command, each once. */
export function flagsOf(actions: Actions, common = CLIENT_FLAGS): readonly Flag[] {
  const flags = new Map(common.map((flag) => [flag.name, flag]));
  for (const action of Object.values(actions)) for (const flag of action.flags) flags.set(flag.name, flag);
  return [...flags.values()];
}

/** The part of the help that lists them. */
export function helpOf(actions: Actions, notes: string): HelpParts {
  return {
    actions: Object.entries(actions).map(([name, { args, description }]) => ({ name, args, description })),
    notes,
  };
}

/** What was typed as an action is none. */
export function unknownAction(command: string, name: string, actions: object): Error {
  const known = Object.keys(actions);
  return usageError(`${command} knows ${known.join(', ')}, not ${JSON.stringify(name)}${didYouMean(name, known)}`);
}

/** Runs the action that was typed, with the memory it needs. */
export function actionRunner(
  command: string,
  actions: Actions,
  { open, flags }: ClientKind = MEMORY_CLIENT,
): CommandRunner {
  return async (context) => {
    const [name, ...words] = context.args as [string, ...string[]];
    if (!Object.hasOwn(actions, name)) throw unknownAction(command, name, actions);
    const action = actions[name]!;
    const known = [JSON_FLAG, ...flags, ...action.flags].map((flag) => flag.name);
    const unknown = Object.keys(context.values).find((flag) => !known.includes(flag));
    // It belongs to another action of the command, and would be ignored here.
    if (unknown !== undefined) throw usageError(`${command} ${name} has no ${unknown}`, unknown);
    checkWords(`${command} ${name}`, action.args, words);
    if ('runAlone' in action) return action.runAlone(context, words);
    const client = await open(context, {
      needsModel: action.needsModel?.(context) ?? false,
      canCreate: action.isFirst ?? false,
      needsVectors: action.needsVectors ?? false,
    });
    try {
      await action.run(client, context, words);
    } finally {
      await client.close();
    }
  };
}

/** `<a> [b]` or `<a...>`: as commander reads it, for the words behind the action. */
function checkWords(what: string, args: string, words: readonly string[]): void {
  const places = args === '' ? [] : args.split(' ');
  const numNeeded = places.filter((place) => place.startsWith('<')).length;
  const isOpen = places.at(-1)?.includes('...') === true;
  if (words.length < numNeeded) throw usageError(`${what} needs ${places[words.length]}`);
  if (!isOpen && words.length > places.length) throw usageError(`${what} does not know what to do with ${JSON.stringify(words[places.length])}`); // prettier-ignore
}

/** The values of flags under the names of an operation; what was not typed is left out. */
export function pick(context: CommandContext, names: Readonly<Record<string, string>>): Record<string, unknown> {
  const { values } = context;
  return Object.fromEntries(
    Object.entries(names)
      .filter(([flag]) => values[flag] !== undefined)
      .map(([flag, key]) => [key, values[flag]]),
  );
}
