import { integerOption, resolveOptions } from '../../core/options.ts';

/** What a chat template may spend; a template comes out of a downloaded file and is not trusted. */
export interface TemplateLimits {
  /** UTF-16 units of template source. Real templates are under 20 000. */
  readonly maxSourceChars: number;
  /** Brackets and block tags open at once in the source; the parser recurses on each. */
  readonly maxNesting: number;
  /** Syntax nodes evaluated in one render. */
  readonly maxSteps: number;
  /** Milliseconds of one render. */
  readonly maxTimeMs: number;
  /** Bytes (2 per UTF-16 unit) of any one string: the output, or a value on the way to it. */
  readonly maxTextBytes: number;
  /** Bytes read and written by all string and list operations of one render together. */
  readonly maxWorkBytes: number;
  /** Elements of any one list or mapping. */
  readonly maxItems: number;
  /** Nested evaluations: macro recursion, deep expressions, deep values. */
  readonly maxDepth: number;
}

/** Fills the defaults of the limits given. */
export function resolveTemplateLimits(given: Partial<TemplateLimits> | undefined): TemplateLimits {
  return resolveOptions<TemplateLimits>('template limits', given, {
    maxSourceChars: integerOption(131_072, 1, 16_777_216),
    maxNesting: integerOption(128, 1, 256),
    maxSteps: integerOption(2_000_000, 1, 1_000_000_000),
    maxTimeMs: integerOption(2_000, 1, 600_000),
    maxTextBytes: integerOption(16_777_216, 1, 268_435_456),
    maxWorkBytes: integerOption(536_870_912, 1, 68_719_476_736),
    maxItems: integerOption(100_000, 1, 10_000_000),
    // About 3 JavaScript frames a level: 800 levels fit the default stack of a megabyte several times over.
    maxDepth: integerOption(800, 1, 1_000),
  });
}
