import type { Budget } from './budget.ts';
import { templateError } from './values.ts';

/**
 * Charges for looking for `needle` in `haystack`. The engine's search is worst-case proportional to the product of the
 * lengths (`'aaa…b' in 'aaa…'`), so the product is what is charged, at the price of an eighth of a character.
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

/** Python's `str.replace`; the length of the result is known, and refused, before it is built. */
export function replaceText(budget: Budget, text: string, from: string, to: string, count: number): string {
  if (count === 0) return text;
  if (from === '') budget.items(text.length + 2);
  const parts = from === '' ? ['', ...text, ''] : splitText(budget, text, from);
  const numReplaced = count < 0 ? parts.length - 1 : Math.min(count, parts.length - 1);
  budget.text(text.length + numReplaced * (to.length - from.length));
  if (numReplaced === parts.length - 1) return parts.join(to);
  return [...parts.slice(0, numReplaced), parts.slice(numReplaced).join(from)].join(to);
}
