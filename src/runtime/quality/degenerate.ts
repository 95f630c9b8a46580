import { textSignals } from './text-signals.ts';

/** Below it, a text says the same thing again and again. */
const MIN_REPETITION = 0.4;
/** Shorter texts repeat words for good reasons. */
const MIN_LOOP_WORDS = 12;
const MAX_VALUES = 10_000;

const isBlank = (value: unknown): boolean => value === null || (typeof value === 'string' && value.trim() === '');

/** Visits the values that are neither objects nor lists. */
function leavesOf(value: unknown, leaves: unknown[] = []): unknown[] {
  if (leaves.length > MAX_VALUES) return leaves;
  if (typeof value !== 'object' || value === null) leaves.push(value);
  else for (const inner of Object.values(value)) leavesOf(inner, leaves);
  return leaves;
}

/** Whether a text is one phrase in a loop. */
export function isLoop(text: string): boolean {
  const { numWords, repetition } = textSignals(text);
  if (numWords >= MIN_LOOP_WORDS) return repetition < MIN_REPETITION;
  // A word without spaces: "aaaaaaaaaaaaaaaa", "hahahahahahaha".
  return /(.{1,8}?)\1{9,}/su.test(text.trim());
}

/**
 * Why a JSON value that fits its schema is still no answer; null: it is one. A model that is only asked for a valid value learns to leave
 * every string empty.
 */
export function whyDegenerate(value: unknown): string | null {
  const leaves = leavesOf(value);
  // An empty object or list may be the right answer; the schema decides on that.
  if (leaves.length === 0) return null;
  if (leaves.every(isBlank)) return `all ${leaves.length} values are empty`;
  const texts = leaves.filter((leaf) => typeof leaf === 'string');
  if (texts.some(isLoop)) return 'a value repeats the same words';
  const words = texts.map((text) => text.trim().toLowerCase());
  const isCopied = words.length >= 3 && leaves.length === words.length && new Set(words).size === 1;
  return isCopied ? `all ${words.length} values are the same text` : null;
}
