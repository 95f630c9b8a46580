export interface TextSink {
  /** For readline. */
  readonly stream: NodeJS.WritableStream;
  readonly isTerminal: boolean;
  readonly columns: number;
  write(text: string): void;
}

export interface TextInput extends NodeJS.ReadableStream {
  readonly isTTY?: boolean;
}

/** The process as commands see it; tests provide their own. */
export interface CliIo {
  readonly stdin: TextInput;
  readonly stdout: TextSink;
  readonly stderr: TextSink;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The current folder; default: the process's. */
  readonly folder?: string;
  /** The setting and line that an unset variable was filled from; otherwise the variable itself. */
  readonly originOf?: (variable: string) => string;
  /** Aborts the command; the reason is the name of a signal or of an output error. */
  readonly signal: AbortSignal;
  /** Makes a signal a normal exit with code 0, for commands that run until stopped. */
  readonly acceptSignal?: () => void;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}
