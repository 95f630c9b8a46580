import type { MemoryRecord } from '../types.ts';

export interface PackedSource {
  /** From 1; the text refers to it as [1]. */
  readonly number: number;
  readonly id: string;
  readonly kind: MemoryRecord['kind'];
  readonly numTokens: number;
}

export interface PackedContext {
  readonly text: string;
  readonly sources: readonly PackedSource[];
  readonly numTokens: number;
  /** Results that did not fit any more. */
  readonly numLeftOut: number;
}

export interface PackItem {
  readonly id: string;
  readonly kind: MemoryRecord['kind'];
  readonly text: string;
}

const LINE_END = /\r\n?|[\n\v\f\u0085\u2028\u2029]/g;

/** Takes results in order as long as they fit, skipping those that do not, and numbers them. */
export function packContext(
  items: readonly PackItem[],
  tokenBudget: number,
  countTokens: (text: string) => number,
): PackedContext {
  const parts: string[] = [];
  const sources: PackedSource[] = [];
  let numTokens = 0;
  for (const { id, kind, text } of items) {
    // No line of a text stands where the number of a source does: it could pass for another one.
    const part = `[${parts.length + 1}] ${text.replace(LINE_END, '\n  ')}\n`;
    const cost = countTokens(part);
    if (numTokens + cost > tokenBudget) continue;
    parts.push(part);
    numTokens += cost;
    sources.push({ number: parts.length, id, kind, numTokens: cost });
  }
  return { text: parts.join(''), sources, numTokens, numLeftOut: items.length - parts.length };
}
