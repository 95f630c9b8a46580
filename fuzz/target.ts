/** A reader of untrusted bytes. */
export interface FuzzTarget {
  readonly name: string;
  /** Words that mutations insert: without them a random text never reaches the deeper parts of a parser. */
  readonly words: readonly string[];
  /** Valid inputs to start from, in addition to the files of the corpus. */
  readonly seeds: () => readonly Uint8Array[] | Promise<readonly Uint8Array[]>;
  /** Throws a `RuvLLMError` for bad input; anything else that it throws is a bug. */
  run(bytes: Uint8Array): unknown;
}

export const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
/** Bytes that are not UTF-8 become replacement characters, as in a request. */
export const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
