import type { Intent, IntentSets } from './banking77.ts';

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/** Results of word overlap alone, with frequencies counted over the searched texts, which no embedder here has seen. */
export function nearestByWords({ texts, queries }: IntentSets, k: number): Intent[][] {
  const numTexts = new Map<string, number>();
  for (const { text } of texts)
    for (const word of new Set(wordsOf(text))) numTexts.set(word, (numTexts.get(word) ?? 0) + 1);
  const weigh = (text: string): Map<string, number> => {
    const weights = new Map<string, number>();
    for (const word of wordsOf(text)) {
      const rarity = Math.log((texts.length + 1) / ((numTexts.get(word) ?? 0) + 1)) + 1;
      weights.set(word, (weights.get(word) ?? 0) + rarity);
    }
    const length = Math.hypot(...weights.values());
    return new Map([...weights].map(([word, weight]) => [word, weight / length]));
  };
  const postings = new Map<string, [number, number][]>();
  for (const [index, { text }] of texts.entries()) {
    for (const [word, weight] of weigh(text)) {
      const list = postings.get(word) ?? [];
      if (list.length === 0) postings.set(word, list);
      list.push([index, weight]);
    }
  }
  return queries.map(({ text }) => {
    const scores = new Float64Array(texts.length);
    for (const [word, weight] of weigh(text)) {
      for (const [index, other] of postings.get(word) ?? []) scores[index]! += weight * other;
    }
    const order = Array.from(scores.keys()).sort((a, b) => scores[b]! - scores[a]!);
    return order.slice(0, k).map((index) => texts[index]!);
  });
}
