import type { RuvLLMError } from '../../core/errors.ts';
import type { Input } from './input.ts';

/** A function the model may call. */
export interface ToolSpec {
  readonly name: string;
  readonly description?: string;
  /** JSON schema of the arguments; absent: an object without members. */
  readonly parameters?: Readonly<Record<string, unknown>>;
}

/** Whether the model may, must or must not call a tool, or which one it must call. */
export type ToolChoice = 'auto' | 'none' | 'required' | { readonly name: string };

/** What a parser tells, in the order of the text. */
export type OutputEvent =
  | { readonly type: 'content'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'toolCallStart'; readonly index: number; readonly id: string; readonly name: string }
  | { readonly type: 'toolCallArguments'; readonly index: number; readonly text: string }
  | { readonly type: 'toolCallEnd'; readonly index: number; readonly outcome: CallOutcome }
  | { readonly type: 'error'; readonly error: RuvLLMError };

/** `truncated`: the text ended inside the call; `malformed`: the arguments broke off, what follows is content. */
export type CallOutcome = 'complete' | 'truncated' | 'malformed';

/** How the arguments of one tool are spelled, for a matcher that enforces them. */
export type ArgumentsGrammar =
  | { readonly kind: 'json'; readonly schema: Readonly<Record<string, unknown>> }
  | {
      readonly kind: 'parameters';
      readonly parameters: readonly ParameterGrammar[];
      /** Text between two parameters. */
      readonly separator: string;
      /** The whole as a schema, for what no parameter list can say. */
      readonly schema: Readonly<Record<string, unknown>>;
    };

/** One parameter that a format writes between tags of its own. */
export interface ParameterGrammar {
  /** Whose parameter it is. */
  readonly tool: string;
  readonly name: string;
  readonly begin: string;
  /** True: the value is the bare text up to `end`; false: JSON that satisfies `schema`. */
  readonly isRaw: boolean;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly end: string;
  /** What the value's text may not contain, because it would be read as the end of the value or of the call. */
  readonly stop: string;
  readonly isRequired: boolean;
}

/** What text is a valid call, as plain data: `begin (call (separator call)*)? end`. */
export interface CallGrammar {
  /** True: the answer is a call; false: the grammar binds only after one of `triggers`. */
  readonly isRequired: boolean;
  /** Texts that begin a call; the last characters of `begin` where that is written first. */
  readonly triggers: readonly string[];
  /** Once, before the first call. */
  readonly begin: string;
  readonly calls: readonly {
    readonly name: string;
    /** From the end of `begin` or a separator to the arguments. */
    readonly prefix: string;
    readonly arguments: ArgumentsGrammar;
    readonly suffix: string;
  }[];
  /** Between two calls; null: only one call. */
  readonly separator: string | null;
  /** Once, after the last call. */
  readonly end: string;
}

/** What a grammar of tool calls is made for. */
export interface GrammarRequest {
  readonly tools: readonly ToolSpec[];
  readonly choice: Exclude<ToolChoice, 'none'>;
  readonly allowsParallel: boolean;
}

/** A way to write tool calls: one record a family. */
export interface ToolFormat {
  readonly name: string;
  /** Whether text that a template wrote for one call of `probe.name` is in this format. */
  detect(written: string, probe: { readonly name: string }): boolean;
  /** Texts that may begin a call. */
  readonly triggers: readonly string[];
  /** Texts that begin a call only where the answer begins; an empty one: the answer may begin inside a call. */
  readonly startTriggers: readonly string[];
  /** Texts that are no part of what is said where the answer begins. */
  readonly startSilent?: readonly string[];
  /** Further control texts of the family that are no part of what the assistant says. */
  readonly silent: readonly string[];
  /** Every fixed text that may stand in or around calls: control tokens spelled in one of them are part of the answer. */
  readonly markers: readonly string[];
  /** Reads calls from a trigger on; false: it is no call, and nothing was told. */
  parse(context: CallContext): Generator<void, boolean>;
  grammar(request: GrammarRequest): CallGrammar;
  /** How a call is written into the assistant's text where the template does not write calls itself. */
  write?(calls: readonly { readonly name: string; readonly arguments: string }[]): string;
  /** The id the family's prompts give the call at `index` of its turn, `total` of the conversation. */
  callId?(name: string, index: number, total: number): string;
}

/**
 * What a format's parser works with. Until `begin` nothing is told and the text can still turn out to be no call;
 * after `end` the call stands, and a failure further on gives back only the text behind it.
 */
export interface CallContext {
  readonly input: Input;
  /** The marker that was found; the input stands behind it. Empty where the answer begins with a call unmarked. */
  readonly trigger: string;
  /** The tool of that name; undefined: there is none, and it is no call. */
  tool(name: string): ToolSpec | undefined;
  begin(name: string): void;
  /** Tells a piece of the arguments' JSON; the input stands behind the text it came from. */
  argument(text: string): void;
  end(): void;
  /** A call has begun and not ended. */
  isOpen(): boolean;
  /** Drops the text before the position where nothing may give it back; indices taken earlier are void. */
  release(): void;
}
