import { cosine } from '../../memory/common/cosine.ts';
import { contentWords, namesOf, wordsOf } from '../../memory/common/words.ts';

/** A question with its embedding; null: none. */
export interface EmbeddedQuestion {
  readonly text: string;
  readonly vector: Float32Array | null;
}

/** Compares questions with one embedder. */
export interface QuestionMatcher {
  /** Above `near`, an answer to one question answers the other; −Infinity: they ask for different things. */
  score(a: EmbeddedQuestion, b: EmbeddedQuestion): number;
  /** Calibrated for the embedder. */
  readonly near: number;
  /** Whether two answers to near questions contradict each other. Stricter, because a wrong match would hide an answer. */
  isSame(a: EmbeddedQuestion, b: EmbeddedQuestion): boolean;
}

/** Shared words separate paraphrases from questions on a similar subject where embeddings do not. */
const OVERLAP_WEIGHT = 0.2;
/** Identical questions score 1.2; above this no pair of different questions was found with either embedder. */
const MIN_SAME = 1;
/** Position of `near` between the highest rejected and the lowest accepted score; nearer to the rejected ones, which are hard cases. */
const GAP_SHARE = 0.25;

const QUESTION_WORDS: Readonly<Record<string, string>> = { who: 'who', whom: 'who', whose: 'who', when: 'when', where: 'where', why: 'why' }; // prettier-ignore

/** Equal up to an ending; words with digits must be equal. */
function isSameWord(a: string, b: string): boolean {
  if (a === b) return true;
  if (/\d/.test(a + b)) return false;
  const longer = Math.max(a.length, b.length);
  let prefix = 0;
  while (prefix < longer && a[prefix] === b[prefix]) prefix++;
  return prefix >= 3 && prefix >= longer - 3 && prefix >= longer / 2;
}

const hasWord = (words: readonly string[], word: string): boolean => words.some((other) => isSameWord(word, other));

/** The share of the content words of the shorter question that the other one has. */
function overlapOf(a: string, b: string): number {
  const [first, second] = [contentWords(a), contentWords(b)];
  const shorter = Math.min(first.length, second.length);
  return shorter === 0 ? 0 : Math.min(1, first.filter((word) => hasWord(second, word)).length / shorter);
}

function haveSameWords(a: string, b: string): boolean {
  const [first, second] = [contentWords(a), contentWords(b)];
  return first.every((word) => hasWord(second, word)) && second.every((word) => hasWord(first, word));
}

/** Whether each has a name that the other lacks: Mars instead of Jupiter, E17 instead of E42. */
function differInNames(a: string, b: string): boolean {
  const lacks = (names: readonly string[], text: string): boolean => {
    const words = wordsOf(text.toLowerCase());
    return names.some((name) => !hasWord(words, name));
  };
  return lacks(namesOf(a), b) && lacks(namesOf(b), a);
}

const kindOf = (text: string): string | undefined =>
  wordsOf(text.toLowerCase()).flatMap((word) => QUESTION_WORDS[word] ?? [])[0];

/** Who wrote it, when was it written: the same subject, but another answer. */
function differInKind(a: string, b: string): boolean {
  const [first, second] = [kindOf(a), kindOf(b)];
  return first !== undefined && second !== undefined && first !== second;
}

function scoreQuestions(a: EmbeddedQuestion, b: EmbeddedQuestion): number {
  if (differInNames(a.text, b.text) || differInKind(a.text, b.text)) return -Infinity;
  const similarity = a.vector === null || b.vector === null ? 0 : cosine(a.vector, b.vector);
  return similarity + OVERLAP_WEIGHT * overlapOf(a.text, b.text);
}

/** The number of words that carry the meaning. */
export const countContentWords = (text: string): number => contentWords(text).length;

/** The same for questions that differ in case, spaces and punctuation only. */
export const plainQuestion = (text: string): string => (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).join(' ');

/** Whether an answer says what a correction of the question says: it has the words that the question lacks. */
export function repeatsCorrection(answer: string, question: string, correction: string): boolean {
  const asked = contentWords(question);
  const added = contentWords(correction).filter((word) => !hasWord(asked, word));
  if (added.length === 0) return plainQuestion(answer) === plainQuestion(correction);
  const said = wordsOf(answer.toLowerCase());
  return added.every((word) => hasWord(said, word));
}

type Embed = (text: string) => Promise<Float32Array | null>;

/** Finds the threshold of an embedder: similarities of two embedders are not comparable. */
export async function createQuestionMatcher(embed: Embed): Promise<QuestionMatcher> {
  const question = async (text: string): Promise<EmbeddedQuestion> => ({ text, vector: await embed(text) });
  // At once: a model embeds them in one batch.
  const groups = await Promise.all(
    EXAMPLES.map(async ({ asked, same, other }) => {
      const [first, ...others] = await Promise.all([asked, ...same, ...other].map(question));
      return others.map((text, i) => ({ score: scoreQuestions(first!, text), isSame: i < same.length }));
    }),
  );
  const scores = groups.flat();
  const near = thresholdOf(scores);
  return {
    score: scoreQuestions,
    near,
    isSame(a, b) {
      const score = scoreQuestions(a, b);
      return score >= Math.max(near, MIN_SAME) || (score >= near && haveSameWords(a.text, b.text));
    },
  };
}

/** Accepts the most paraphrases; another question costs two of them, because a wrong answer is worse than none. */
function thresholdOf(scores: readonly { readonly score: number; readonly isSame: boolean }[]): number {
  const sorted = scores.toSorted((a, b) => b.score - a.score);
  let [balance, best, threshold] = [0, 0, Infinity];
  for (const [i, { score, isSame }] of sorted.entries()) {
    balance += isSame ? 1 : -2;
    if (balance <= best) continue;
    best = balance;
    const next = sorted[i + 1]?.score ?? -1;
    threshold = Math.max(next, -1) + GAP_SHARE * (score - Math.max(next, -1));
  }
  return threshold;
}

/** Questions with paraphrases and with questions on the same or a similar subject, for calibration. */
const EXAMPLES = [
  {
    asked: 'What is the name of my horse?',
    same: ["What's my horse called?", "Do you know my horse's name?"],
    other: ['What is the name of my parrot?', 'How old is my horse?'],
  },
  {
    asked: 'What is the PIN of the alarm?',
    same: ["What's the alarm PIN?", 'Which PIN turns off the alarm?'],
    other: ['What is the PIN of my card?', 'How loud is the alarm?'],
  },
  {
    asked: 'When does the library close?',
    same: ['What is the closing time of the library?', 'Until when is the library open?'],
    other: ['When does the pharmacy close?', 'Where is the library?'],
  },
  {
    asked: 'Who repairs our printer?',
    same: ['Who is responsible for fixing the printer?', 'Which person repairs the printer?'],
    other: ['Who repairs our boiler?', 'Which printer should I buy?'],
  },
  {
    asked: 'What is the capital of Bhutan?',
    same: ['Which city is the capital of Bhutan?', "Name Bhutan's capital."],
    other: ['What is the capital of Malta?', 'How many people live in Bhutan?'],
  },
  {
    asked: 'Who composed the opera Carmen?',
    same: ['Who is the composer of Carmen?', 'Carmen was composed by whom?'],
    other: ['Who composed the opera Tosca?', 'When was Carmen first performed?'],
  },
  {
    asked: 'How tall is the Matterhorn?',
    same: ['What is the height of the Matterhorn?', 'How high is the Matterhorn?'],
    other: ['How tall is the Eiger?', 'Who first climbed the Matterhorn?'],
  },
  {
    asked: 'Where do we store the spare keys?',
    same: ['Where are the spare keys kept?', 'In which place can I find the spare keys?'],
    other: ['Where do we store the old invoices?', 'How many spare keys do we have?'],
  },
] as const;
