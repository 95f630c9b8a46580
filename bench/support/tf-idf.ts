import type { Intent, IntentSets } from './banking77.ts';

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/** What word overlap alone finds, with frequencies counted over what is known: no embedder here has seen those. */
export function nearestByWords({ known, asked }: IntentSets, k: number): Intent[][] {
  const numTexts = new Map<string, number>();
  for (const { text } of known)
    for (const word of new Set(wordsOf(text))) numTexts.set(word, (numTexts.get(word) ?? 0) + 1);
  const weigh = (text: string): Map<string, number> => {
    const weights = new Map<string, number>();
    for (const word of wordsOf(text)) {
      const rarity = Math.log((known.length + 1) / ((numTexts.get(word) ?? 0) + 1)) + 1;
      weights.set(word, (weights.get(word) ?? 0) + rarity);
    }
    const length = Math.hypot(...weights.values());
    return new Map([...weights].map(([word, weight]) => [word, weight / length]));
  };
  const postings = new Map<string, [number, number][]>();
  for (const [index, { text }] of known.entries()) {
    for (const [word, weight] of weigh(text)) {
      const list = postings.get(word) ?? [];
      if (list.length === 0) postings.set(word, list);
      list.push([index, weight]);
    }
  }
  return asked.map(({ text }) => {
    const scores = new Float64Array(known.length);
    for (const [word, weight] of weigh(text)) {
      for (const [index, other] of postings.get(word) ?? []) scores[index]! += weight * other;
    }
    const order = Array.from(scores.keys()).sort((a, b) => scores[b]! - scores[a]!);
    return order.slice(0, k).map((index) => known[index]!);
  });
}
