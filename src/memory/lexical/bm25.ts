/** Robertson's constants; no set of the recall benchmark gains from others. */
export const K1 = 1.2;
export const B = 0.75;

/** The rarer a term, the more it weighs; a term in every text weighs nearly nothing, so no list of stop words is needed. */
export function inverseFrequency(numTexts: number, numTextsWithTerm: number): number {
  return Math.log(1 + (numTexts - numTextsWithTerm + 0.5) / (numTextsWithTerm + 0.5));
}

/** The score that a term adds to a text in which it occurs `frequency` times. `length` in average lengths. */
export function termScore(idf: number, frequency: number, length: number): number {
  return (idf * frequency * (K1 + 1)) / (frequency + K1 * (1 - B + B * length));
}

/** The most a term can add. */
export const maxTermScore = (idf: number): number => idf * (K1 + 1);
