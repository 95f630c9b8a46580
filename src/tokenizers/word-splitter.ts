import { RuvLLMError } from '../core/errors.ts';

/** Splits a text into the words that are merged separately. */
export type WordSplitter = (text: string) => readonly string[];

function compile(pattern: string): RegExp {
  const source = pattern.replaceAll(String.raw`\s`, String.raw`\p{White_Space}`);
  return new RegExp(source.replaceAll(String.raw`\S`, String.raw`\P{White_Space}`), 'gu');
}

function splitWithGaps(text: string, pattern: RegExp, pieces: string[]): void {
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > end) pieces.push(text.slice(end, match.index));
    pieces.push(match[0]);
    end = match.index + match[0].length;
  }
  if (end < text.length) pieces.push(text.slice(end));
}

function splitBy(pattern: RegExp, texts: readonly string[]): string[] {
  const pieces: string[] = [];
  for (const text of texts) {
    const matches = text.match(pattern);
    if (matches === null) {
      pieces.push(text);
      continue;
    }
    let length = 0;
    for (const match of matches) length += match.length;
    if (length !== text.length) splitWithGaps(text, pattern, pieces);
    else if (texts.length === 1) return matches;
    else for (const match of matches) pieces.push(match);
  }
  return pieces;
}

export function createWordSplitter(patterns: readonly string[]): WordSplitter {
  const compiled = patterns.map(compile);
  return (text) => {
    let pieces: readonly string[] = [text];
    try {
      for (const pattern of compiled) pieces = splitBy(pattern, pieces);
    } catch (error) {
      // The regex engine's stack is finite: tens of megabytes of one script without a break overflow it.
      const message = `text of ${text.length} characters contains a run too long to split into words`;
      throw new RuvLLMError('invalid_text', message, { cause: error });
    }
    return pieces;
  };
}
