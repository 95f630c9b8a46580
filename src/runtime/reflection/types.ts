import type { ToolCall } from '../../chat/types.ts';

/** The part of an answer that is checked. */
export interface CheckedAnswer {
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finishReason: 'stop' | 'length' | 'tool_calls';
}

/** Retries an answer that cannot be used. */
export interface Reflection {
  /** Attempts after the first: 1 to 3. Default 3. */
  maxRetries?: number;
  /** Two retries in a row that raise the score of the best attempt by less end the retries: 0 to 1, 0 for never. Default 0.05. */
  minGain?: number;
  /** Answers with a lower confidence are retried: 0 to 1. Default 0, for none. */
  minConfidence?: number;
  /** Returns why an answer cannot be used, for the model to read, or null. Default: only formats and tool calls are checked. */
  check?: (answer: CheckedAnswer) => string | null | Promise<string | null>;
  /**
   * Whether a retry reads the last attempt and its error; false asks again. Default: true for models with 3 billion parameters and more, and
   * without randomness, which would repeat the answer; smaller models copy the attempt that they read.
   */
  showsErrors?: boolean;
  /** The errors of earlier requests. Default: those of the model's memory, if it has one. */
  patterns?: ErrorPatterns | null;
}

export type ResolvedReflection = Readonly<Required<Omit<Reflection, 'check' | 'showsErrors'>>> & {
  /** Null: by the model and its randomness. */
  readonly showsErrors: boolean | null;
  readonly check: NonNullable<Reflection['check']> | null;
  readonly patterns: ErrorPatterns | null;
};

/** Errors that the answers of a tenant repeat. */
export interface ErrorPatterns {
  /** The most frequent errors about these subjects. */
  frequent(tenant: string, subjects: readonly string[]): Promise<readonly string[]>;
  /** Counts errors; never rejects. */
  note(tenant: string, problems: readonly Problem[]): Promise<void>;
}

/** Why an answer cannot be used. */
export interface Problem {
  /** The tool, `json` or `check`. */
  readonly subject: string;
  /** How far the answer came: 0 not the requested form, 1 the form, 2 valid JSON, 3 valid by its schema. */
  readonly stage: 0 | 1 | 2 | 3;
  /** For the model to read. */
  readonly message: string;
}

/** An attempt as users see it. */
export interface Attempt {
  /** Null: it can be used. */
  readonly error: string | null;
  /** Probability that it is right, by the probabilities of its tokens; null: unknown. */
  readonly confidence: number | null;
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** `accepted`: the answer passed; otherwise the best attempt is the answer, and `error` is its error. */
export type ReflectionEnding = 'accepted' | 'exhausted' | 'cycle' | 'no-gain' | 'no-room' | 'timeout';

/** The attempts of an answer. */
export interface ReflectionReport {
  readonly ending: ReflectionEnding;
  /** Index of the attempt that is the answer. */
  readonly chosen: number;
  /** Why the answer still cannot be used; null: it can. */
  readonly error: string | null;
  readonly attempts: readonly Attempt[];
}
