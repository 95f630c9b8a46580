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
  const flags = [...common, ...Object.values(actions).flatMap((action) => action.flags ?? [])];
  return {
    flags: [...new Map(flags.map((flag) => [flag.name, flag])).values()],
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
