import type { Input } from './input.ts';
import type { ToolSpec } from './types.ts';

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
