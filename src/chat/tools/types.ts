import type { RuvLLMError } from '../../core/errors.ts';
import type { Input } from './input.ts';

/** A function the model may call. */
export interface ToolSpec {
  readonly name: string;
  readonly description?: string;
  /** JSON schema of the arguments; default: an object without members. */
  readonly parameters?: Readonly<Record<string, unknown>>;
}

/** Whether the model may, must or must not call a tool, or which one it must call. */
export type ToolChoice = 'auto' | 'none' | 'required' | { readonly name: string };

/** A parser's events, in the order of the text. */
export type OutputEvent =
  | { readonly type: 'content'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'toolCallStart'; readonly index: number; readonly id: string; readonly name: string }
  | { readonly type: 'toolCallArguments'; readonly index: number; readonly text: string }
  | { readonly type: 'toolCallEnd'; readonly index: number; readonly outcome: CallOutcome }
  | { readonly type: 'error'; readonly error: RuvLLMError };

/** `truncated`: the text ended inside the call; `malformed`: the arguments became invalid, and the following text is content. */
export type CallOutcome = 'complete' | 'truncated' | 'malformed';

/** The grammar of one tool's arguments. */
export type ArgumentsGrammar =
  | { readonly kind: 'json'; readonly schema: Readonly<Record<string, unknown>> }
  | {
      readonly kind: 'parameters';
      readonly parameters: readonly ParameterGrammar[];
      /** Text between two parameters. */
      readonly separator: string;
      /** The complete schema, for constraints that no parameter list can express. */
      readonly schema: Readonly<Record<string, unknown>>;
    };

/** One parameter that a format writes between its tags. */
export interface ParameterGrammar {
  readonly tool: string;
  readonly name: string;
  readonly begin: string;
  /** True: the value is the raw text up to `end`; false: JSON that satisfies `schema`. */
  readonly isRaw: boolean;
  readonly schema: Readonly<Record<string, unknown>>;
  readonly end: string;
  /** Text the value may not contain, because the parser would end the value or the call there. */
  readonly stop: string;
  readonly isRequired: boolean;
}

/** The grammar of valid calls, as plain data: `begin (call (separator call)*)? end`. */
export interface CallGrammar {
  /** True: the answer is a call; false: the grammar applies only after one of `triggers`. */
  readonly isRequired: boolean;
  /** Texts that begin a call; the last characters of `begin` if that is written first. */
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

/** Options of a tool-call grammar. */
export interface GrammarRequest {
  readonly tools: readonly ToolSpec[];
  readonly choice: Exclude<ToolChoice, 'none'>;
  readonly allowsParallel: boolean;
}

/** A family's format of tool calls. */
export interface ToolFormat {
  readonly name: string;
  /** Whether `written`, a template's text for one call of `probe.name`, is in this format. */
  detect(written: string, probe: { readonly name: string }): boolean;
  readonly triggers: readonly string[];
  /** Texts that begin a call only at the start of the answer; an empty one: the answer may begin inside a call. */
  readonly startTriggers: readonly string[];
  /** Texts at the start of the answer that are not content. */
  readonly startSilent?: readonly string[];
  /** Further control texts of the family that are not content. */
  readonly silent: readonly string[];
  /** All fixed texts in or around calls: control tokens with these spellings are part of the answer. */
  readonly markers: readonly string[];
  /** Reads calls after a trigger; false: not a call, and nothing was reported. */
  parse(context: CallContext): Generator<void, boolean>;
  grammar(request: GrammarRequest): CallGrammar;
  /** Writes calls into the assistant's text if the template does not write them. */
  write?(calls: readonly { readonly name: string; readonly arguments: string }[]): string;
  /** The id of the call at `index` of its turn and `total` of the conversation, in the family's prompts. */
  callId?(name: string, index: number, total: number): string;
}

/**
 * The interface of a format's parser. Before `begin` it reports nothing, and the text can still turn out not to be a
 * call; after `end` the call is final, and a later failure returns only the text after it.
 */
export interface CallContext {
  readonly input: Input;
  /** The matched marker; the input is after it. Empty if the answer starts with a call without marker. */
  readonly trigger: string;
  /** The tool with that name; undefined: not a call. */
  tool(name: string): ToolSpec | undefined;
  begin(name: string): void;
  /** Reports a part of the arguments' JSON; the input is after its source text. */
  argument(text: string): void;
  end(): void;
  /** Whether a call has begun and not ended. */
  isOpen(): boolean;
  /** Drops text before the position that cannot be returned any more; invalidates earlier indices. */
  release(): void;
}
