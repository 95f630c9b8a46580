import type { MemoryRecord } from '../types.ts';

export interface PackedSource {
  /** From 1; shown as [1] in the text. */
  readonly number: number;
  readonly id: string;
  readonly kind: MemoryRecord['kind'];
  readonly numTokens: number;
}

export interface PackedContext {
  readonly text: string;
  readonly sources: readonly PackedSource[];
  readonly numTokens: number;
  /** Results that did not fit. */
  readonly numLeftOut: number;
}

interface PackItem {
  readonly id: string;
  readonly kind: MemoryRecord['kind'];
  readonly text: string;
}

const LINE_END = /\r\n?|[\n\v\f\u0085\u2028\u2029]/g;

/** Numbers results in order, skipping those that do not fit the budget. */
export function packContext(
  items: readonly PackItem[],
  tokenBudget: number,
  countTokens: (text: string) => number,
): PackedContext {
  const parts: string[] = [];
  const sources: PackedSource[] = [];
  let numTokens = 0;
  for (const { id, kind, text } of items) {
    // Indents further lines, so that none can pass for a numbered source.
    const part = `[${parts.length + 1}] ${text.replace(LINE_END, '\n  ')}\n`;
    const cost = countTokens(part);
    if (numTokens + cost > tokenBudget) continue;
    parts.push(part);
    numTokens += cost;
    sources.push({ number: parts.length, id, kind, numTokens: cost });
  }
  return { text: parts.join(''), sources, numTokens, numLeftOut: items.length - parts.length };
}
