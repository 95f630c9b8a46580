/** What a parser may hold. The text comes from a model and may be anything. */
export interface ParserLimits {
  /** UTF-16 units of one answer's calls that stand together, markers included; longer ends the parse with an error. */
  readonly maxCallChars: number;
  /** Calls in one answer. */
  readonly maxCalls: number;
}

export const DEFAULT_PARSER_LIMITS: ParserLimits = { maxCallChars: 262_144, maxCalls: 128 };

/** Until the name is known a call is only a guess: little is held for it, so that garbage is scanned about once. */
export const MAX_HEADER_CHARS = 4_096;
export const MAX_NAME_CHARS = 256;
/** White space around markers that counts as theirs; templates write at most four. */
export const MAX_SPACES = 64;
/** Brackets open at once in JSON. */
export const MAX_JSON_DEPTH = 256;
