const LONE_HIGH = /[\uD800-\uDBFF]$/;

export interface ClippedText {
  readonly text: string;
  /** Characters that were cut off. */
  readonly numCut: number;
}

/**
 * Text that every store keeps as it is: at most `maxLength` units, and lone surrogates replaced, for UTF-8 has none and
 * a hash over what was sent would not be the hash of what is read.
 */
export function clipText(text: string, maxLength: number): ClippedText {
  if (text.length <= maxLength) return { text: text.toWellFormed(), numCut: 0 };
  const kept = text.slice(0, maxLength).replace(LONE_HIGH, '');
  return { text: kept.toWellFormed(), numCut: text.length - kept.length };
}
