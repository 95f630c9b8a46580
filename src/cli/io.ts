/** Where text goes. */
export interface TextSink {
  /** The stream itself, for readline. */
  readonly stream: NodeJS.WritableStream;
  readonly isTerminal: boolean;
  readonly columns: number;
  write(text: string): void;
}

export interface TextInput extends NodeJS.ReadableStream {
  readonly isTTY?: boolean;
}

/** Everything a command takes from its process; tests bring their own. */
export interface CliIo {
  readonly stdin: TextInput;
  readonly stdout: TextSink;
  readonly stderr: TextSink;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The current folder; default: the process's. */
  readonly folder?: string;
  /** What stands in for a variable that nobody set: the setting and its line; else the variable itself. */
  readonly originOf?: (variable: string) => string;
  /** Fires when the command is to end; its reason is the name of the signal, or of the error that made the output unusable. */
  readonly signal: AbortSignal;
  /** Says that ending by the signal was the right end, with the exit code 0: for commands that run until they are told to stop. */
  readonly acceptSignal?: () => void;
  /** Milliseconds on a clock that does not jump. */
  readonly now: () => number;
}
