import type { Input } from './input.ts';
import type { ToolSpec } from './types.ts';

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
