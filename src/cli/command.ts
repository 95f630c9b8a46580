import type { LoadedConfig } from './config/load-config.ts';
import type { Flag, FlagValues } from './flags.ts';
import type { CliIo } from './io.ts';
import type { Output } from './output.ts';

export interface CommandContext {
  readonly io: CliIo;
  readonly output: Output;
  /** Positional arguments. */
  readonly args: readonly string[];
  readonly values: FlagValues;
  readonly version: string;
  /** The settings file; its values are also in `io.environment`. */
  readonly config: LoadedConfig;
  /** All commands, for completion scripts. */
  readonly commands: readonly CommandEntry[];
}

/** Runs a command; a thrown error determines the exit code. */
export type CommandRunner = (context: CommandContext) => Promise<void>;

/** An action of a command: `create` in `ruvllm keys create`. */
export interface HelpAction {
  readonly name: string;
  /** Arguments of the action: `<id>`. */
  readonly args: string;
  readonly description: string;
}

export interface HelpParts {
  readonly actions?: readonly HelpAction[];
  /** A paragraph, wrapped to the terminal width. */
  readonly notes?: string;
}

export interface CommandModule {
  readonly flags?: readonly Flag[];
  readonly help?: HelpParts;
  readonly run: CommandRunner;
}

/** A command; its code is imported only when it runs. */
export interface CommandEntry {
  readonly name: string;
  /** In commander's notation: `<model> [prompt]`. */
  readonly args: string;
  readonly description: string;
  /** Complete command lines. */
  readonly examples: readonly string[];
  /** Help below the options. */
  readonly help: () => Promise<HelpParts>;
  readonly flags: () => Promise<readonly Flag[]>;
  readonly load: () => Promise<CommandRunner>;
}
