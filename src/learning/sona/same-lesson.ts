/** A question with the answer to learn, as texts. */
export interface LessonText {
  readonly question: string;
  readonly answer: string;
}

/** Share of common words from which two questions with the same answer count as one. */
const NEAR = 0.8;

/** Case, punctuation and spaces do not make another question. */
export const normalizeText = (text: string): string =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();

/** Whether one lesson says nothing independent of the other: the same question, or nearly the same with the same answer. */
export function isSameLesson(one: LessonText, other: LessonText): boolean {
  const [a, b] = [normalizeText(one.question), normalizeText(other.question)];
  if (a === b) return true;
  return normalizeText(one.answer) === normalizeText(other.answer) && commonWords(a, b) >= NEAR;
}

/** Jaccard similarity of the words. */
function commonWords(one: string, other: string): number {
  const [a, b] = [new Set(one.split(' ')), new Set(other.split(' '))];
  const numCommon = [...a].filter((word) => b.has(word)).length;
  return numCommon / (a.size + b.size - numCommon);
}
