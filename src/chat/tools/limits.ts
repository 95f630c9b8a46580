/** Limits of a parser; a model's text can be anything. */
export interface ParserLimits {
  /** UTF-16 units of adjacent calls in one answer, including markers; more ends the parse with an error. */
  readonly maxCallChars: number;
  readonly maxCalls: number;
}

export const DEFAULT_PARSER_LIMITS: ParserLimits = { maxCallChars: 262_144, maxCalls: 128 };

/** Before its name is read, a call is only a guess: a small buffer means garbage is scanned about once. */
export const MAX_HEADER_CHARS = 4_096;
export const MAX_NAME_CHARS = 256;
/** Whitespace that belongs to a marker; templates write at most four characters. */
export const MAX_SPACES = 64;
/** Brackets open at once in JSON. */
export const MAX_JSON_DEPTH = 256;
