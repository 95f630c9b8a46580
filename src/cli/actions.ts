import type { CommandContext, CommandModule } from './command.ts';
import { type Flag, JSON_FLAG } from './flags.ts';
import { didYouMean } from '../core/nearest.ts';
import { usageError } from './usage-error.ts';

/** An action of a command: `create` in `ruvllm keys create`. */
export interface Action {
  /** Arguments: `<id>`. */
  readonly args: string;
  readonly description: string;
  readonly flags?: readonly Flag[];
  run(context: CommandContext, args: readonly string[]): Promise<void> | void;
}

export type Actions = Readonly<Record<string, Action>>;

/** The flag belongs to another action of the command and would be ignored. */
export function foreignFlag(flag: string, command: string, action: string): Error {
  return usageError(`${flag} is not an option of ${command} ${action}`, flag);
}

/** A command whose first argument names an action; `common` flags apply to all actions. */
export function actionCommand(
  command: string,
  actions: Actions,
  { common = [], notes = '' }: { common?: readonly Flag[]; notes?: string } = {},
): Required<CommandModule> {
  const names = Object.keys(actions);
  const flags = mergeByName([...common, ...Object.values(actions).flatMap((action) => action.flags ?? [])]);
  return {
    flags,
    help: {
      actions: Object.entries(actions).map(([name, { args, description }]) => ({ name, args, description })),
      notes,
    },
    async run(context) {
      const [name, ...args] = context.args as [string, ...string[]];
      if (!Object.hasOwn(actions, name)) {
        const hint = didYouMean(name, names);
        throw usageError(`unknown action ${JSON.stringify(name)}${hint}; ${command} has ${names.join(', ')}`);
      }
      const action = actions[name]!;
      const flagNames = [JSON_FLAG, ...common, ...(action.flags ?? [])].map((flag) => flag.name);
      const foreign = Object.keys(context.values).find((flag) => !flagNames.includes(flag));
      if (foreign !== undefined) throw foreignFlag(foreign, command, name);
      checkArguments(`${command} ${name}`, action.args, args);
      await action.run(context, args);
    },
  };
}

/** One flag per name. A flag that actions describe differently has all its descriptions. */
function mergeByName(flags: readonly Flag[]): readonly Flag[] {
  const merged = new Map<string, Flag>();
  for (const flag of flags) {
    const { description } = merged.get(flag.name) ?? flag;
    const isNew = !description.includes(flag.description);
    merged.set(flag.name, { ...flag, description: isNew ? `${description}; ${flag.description}` : description });
  }
  return [...merged.values()];
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
