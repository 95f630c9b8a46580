import { promptText } from './near-duplicates.ts';
import type { DataLine, PromptText, TaskLine } from './records.ts';

/** An answer to learn, or with a negative weight to avoid. */
export interface AnswerText {
  readonly prompt: PromptText;
  readonly answer: string;
  readonly weight: number;
}
export interface PairText {
  readonly prompt: PromptText;
  readonly chosen: string;
  readonly rejected: string;
}
export interface RatedText {
  readonly prompt: PromptText;
  readonly answer: string;
  readonly isAccepted: boolean;
}

/** Answers for SFT: corrections, chosen answers, and answers without a thumbs-down. */
export const answersOf = (lines: readonly DataLine[]): AnswerText[] =>
  lines.flatMap((line) => {
    const { prompt } = line;
    if (line.form === 'task') return [];
    if (line.form === 'preference') return [{ prompt, answer: line.chosen, weight: 1 }];
    if (line.correction !== null) return [{ prompt, answer: line.correction, weight: Math.abs(line.weight) }];
    return line.thumbs === 'down' ? [] : [{ prompt, answer: line.completion, weight: line.weight }];
  });

/** Answers that a teacher can show: corrections and, in data without ratings, completions. */
export const demonstrationsOf = (lines: readonly DataLine[]): AnswerText[] =>
  answersOf(lines).filter(({ weight }) => weight > 0);

/** Pairs for DPO: given ones, a correction over its answer, and each liked answer over each disliked one of the same prompt. */
export function pairsOf(lines: readonly DataLine[]): PairText[] {
  const pairs: PairText[] = [];
  const rated = new Map<string, { prompt: PromptText; liked: string[]; disliked: string[] }>();
  for (const line of lines) {
    const { prompt } = line;
    if (line.form === 'preference') pairs.push({ prompt, chosen: line.chosen, rejected: line.rejected });
    if (line.form !== 'answer') continue;
    if (line.correction !== null && line.correction !== line.completion) {
      pairs.push({ prompt, chosen: line.correction, rejected: line.completion });
    } else if (line.thumbs !== null) {
      const key = promptText(prompt);
      const group = rated.get(key) ?? { prompt, liked: [], disliked: [] };
      group[line.thumbs === 'up' ? 'liked' : 'disliked'].push(line.completion);
      rated.set(key, group);
    }
  }
  for (const { prompt, liked, disliked } of rated.values()) {
    for (const chosen of liked) {
      for (const rejected of disliked) if (chosen !== rejected) pairs.push({ prompt, chosen, rejected });
    }
  }
  return pairs;
}

/** Rated answers for KTO. */
export const ratingsOf = (lines: readonly DataLine[]): RatedText[] =>
  lines.flatMap((line): RatedText[] => {
    const { prompt } = line;
    if (line.form === 'preference') {
      return [
        { prompt, answer: line.chosen, isAccepted: true },
        { prompt, answer: line.rejected, isAccepted: false },
      ];
    }
    if (line.form !== 'answer') return [];
    if (line.correction !== null) {
      return [
        { prompt, answer: line.correction, isAccepted: true },
        { prompt, answer: line.completion, isAccepted: false },
      ];
    }
    return line.thumbs === null ? [] : [{ prompt, answer: line.completion, isAccepted: line.thumbs === 'up' }];
  });

/** Tasks with a verifiable answer, for GRPO. */
export const tasksOf = (lines: readonly DataLine[]): TaskLine[] => lines.filter((line) => line.form === 'task');
