const LONE_HIGH = /[\uD800-\uDBFF]$/;

interface ClippedText {
  readonly text: string;
  /** Characters cut off. */
  readonly numCut: number;
}

/**
 * Text that every store keeps unchanged: at most `maxLength` units, lone surrogates replaced. UTF-8 has no surrogates, so the
 * text read back would have another hash.
 */
export function clipText(text: string, maxLength: number): ClippedText {
  if (text.length <= maxLength) return { text: text.toWellFormed(), numCut: 0 };
  const kept = text.slice(0, maxLength).replace(LONE_HIGH, '');
  return { text: kept.toWellFormed(), numCut: text.length - kept.length };
}
