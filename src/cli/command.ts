import type { LoadedConfig } from './config/load-config.ts';
import type { Flag, FlagValues } from './flags.ts';
import type { CliIo } from './io.ts';
import type { Output } from './output.ts';

/** What a command gets to work with. */
export interface CommandContext {
  readonly io: CliIo;
  readonly output: Output;
  /** Positional arguments, those that were given. */
  readonly args: readonly string[];
  readonly values: FlagValues;
  /** Of the package. */
  readonly version: string;
  /** The file of settings; they stand in `io.environment`, too. */
  readonly config: LoadedConfig;
}

/** A command does its work or throws; the exit code follows from the error. */
export type CommandRunner = (context: CommandContext) => Promise<void>;

/** What the first word behind a command may be. */
export interface HelpAction {
  readonly name: string;
  /** What follows it: `<id>`. */
  readonly args: string;
  readonly description: string;
}

export interface HelpParts {
  readonly actions?: readonly HelpAction[];
  /** A paragraph; lines are broken to fit. */
  readonly notes?: string;
}

/** One command of the command line; its code is imported only when it runs. */
export interface CommandEntry {
  readonly name: string;
  /** As commander writes them: `<model> [prompt]`. */
  readonly args: string;
  readonly description: string;
  /** Whole command lines, for the help. */
  readonly examples: readonly string[];
  /** More of the help, below its options. */
  readonly help?: () => Promise<HelpParts>;
  /** Whether it goes on with a file of settings that is wrong: it may be what finds out. */
  readonly isTolerant?: boolean;
  readonly flags: () => Promise<readonly Flag[]>;
  readonly load: () => Promise<CommandRunner>;
}
