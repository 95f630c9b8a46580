/** Texts, and questions whose answer is in one of them. */
export interface RecallSet {
  readonly name: string;
  readonly texts: readonly string[];
  readonly questions: readonly RecallQuestion[];
}

export interface RecallQuestion {
  readonly text: string;
  /** Earlier messages of the user. Default: none. */
  readonly turns?: readonly string[];
  /** Index of the text with the answer. */
  readonly evidence: number;
}

/** Takes `count` of them, evenly. */
export function pick<T>(items: readonly T[], count: number): T[] {
  if (items.length <= count) return [...items];
  return Array.from({ length: count }, (_, i) => items[Math.floor((i * items.length) / count)]!);
}

/** Wikitext separates tokens: "word , word" and "1 @,@ 000". */
export const untokenize = (line: string): string =>
  line
    .replace(/ @(.)@ /g, '$1')
    .replace(/ ([,.;:!?)%'])/g, '$1')
    .replace(/([(]) /g, '$1')
    .replaceAll('<unk>', '')
    .replace(/ +/g, ' ')
    .trim();
