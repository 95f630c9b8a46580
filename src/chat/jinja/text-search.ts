import type { Budget } from './budget.ts';
import { templateError } from './values.ts';

/**
 * Charges for a search of `needle` in `haystack`. In the worst case (`'aaa…b' in 'aaa…'`) it costs the product of the
 * lengths, so it charges the product at an eighth of a character.
 */
export function chargeSearch(budget: Budget, haystack: string, needle: string): void {
  budget.work(haystack.length * (1 + needle.length / 8));
}

export function splitText(budget: Budget, text: string, separator: string): string[] {
  if (separator === '') throw templateError('split() requires a non-empty separator');
  chargeSearch(budget, text, separator);
  const parts = text.split(separator);
  budget.items(parts.length);
  return parts;
}

/** Python's `str.replace`; rejects a result that is too long before building it. */
export function replaceText(budget: Budget, text: string, from: string, to: string, count: number): string {
  if (count === 0) return text;
  if (from === '') budget.items(text.length + 2);
  const parts = from === '' ? ['', ...text, ''] : splitText(budget, text, from);
  const numReplaced = count < 0 ? parts.length - 1 : Math.min(count, parts.length - 1);
  budget.text(text.length + numReplaced * (to.length - from.length));
  if (numReplaced === parts.length - 1) return parts.join(to);
  return [...parts.slice(0, numReplaced), parts.slice(numReplaced).join(from)].join(to);
}
