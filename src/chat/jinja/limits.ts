import { integerOption, resolveOptions } from '../../core/options.ts';

/** Limits of a chat template, which comes from a downloaded file and is not trusted. */
export interface TemplateLimits {
  /** UTF-16 units of template source. Real templates have under 20,000. */
  readonly maxSourceChars: number;
  /** Brackets and block tags open at once; the parser recurses on each. */
  readonly maxNesting: number;
  /** Syntax nodes evaluated in one render. */
  readonly maxSteps: number;
  /** Milliseconds of one render. */
  readonly maxTimeMs: number;
  /** Bytes (2 per UTF-16 unit) of any string: the output or an intermediate value. */
  readonly maxTextBytes: number;
  /** Total bytes read and written by string and list operations of one render. */
  readonly maxWorkBytes: number;
  /** Elements of any list or mapping. */
  readonly maxItems: number;
  /** Nested evaluations: macro recursion, deep expressions, deep values. */
  readonly maxDepth: number;
}

/** Validates limits and fills in defaults. */
export function resolveTemplateLimits(options: Partial<TemplateLimits> | undefined): TemplateLimits {
  return resolveOptions<TemplateLimits>('template limits', options, {
    maxSourceChars: integerOption(131_072, 1, 16_777_216),
    maxNesting: integerOption(128, 1, 256),
    maxSteps: integerOption(2_000_000, 1, 1_000_000_000),
    maxTimeMs: integerOption(2_000, 1, 600_000),
    maxTextBytes: integerOption(16_777_216, 1, 268_435_456),
    maxWorkBytes: integerOption(536_870_912, 1, 68_719_476_736),
    maxItems: integerOption(100_000, 1, 10_000_000),
    // About 3 JavaScript frames per level: 800 levels use a fraction of the default 1 MB stack.
    maxDepth: integerOption(800, 1, 1_000),
  });
}
