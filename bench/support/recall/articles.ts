import { readFileSync } from 'node:fs';
import { pick, type RecallQuestion, type RecallSet, untokenize } from './sets.ts';

const MIN_SENTENCES = 4;
const MIN_WORDS = 8;
/** Documents of each size, and questions to each. */
const NUM_DOCUMENTS = 6;
const NUM_QUESTIONS = 4;

interface Gap {
  /** The paragraph without one of its sentences. */
  readonly text: string;
  readonly sentence: string;
}

function readGaps(path: string): Gap[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .map(untokenize)
    .filter((line) => !line.startsWith('='))
    .map((line) => line.split(/(?<=[.!?]) (?=[A-Z"])/))
    .filter(({ length }) => length >= MIN_SENTENCES)
    .map((sentences, i) => {
      const taken = 1 + (i % (sentences.length - 1));
      return { text: sentences.filter((_, j) => j !== taken).join(' '), sentence: sentences[taken]! };
    });
}

const isQuestion = ({ sentence }: Gap): boolean => sentence.split(' ').length >= MIN_WORDS;

/** Paragraphs without one of their sentences, which is the question: it has the topic of the paragraph, but few of its words. */
export function readArticles(path: string, numTexts: number, numQuestions: number): RecallSet {
  const gaps = pick(readGaps(path), numTexts);
  const questions = gaps.flatMap((gap, evidence) => (isQuestion(gap) ? [{ text: gap.sentence, evidence }] : []));
  return { name: 'articles', texts: gaps.map(({ text }) => text), questions: pick(questions, numQuestions) }; // prettier-ignore
}

/** Documents of neighbouring paragraphs, and sentences that were taken out of them. */
export function readDocuments(
  path: string,
  sizesKb: readonly number[],
): readonly {
  readonly name: string;
  readonly sizeKb: number;
  readonly text: string;
  readonly questions: readonly string[];
}[] {
  // prettier-ignore
  const gaps = readGaps(path);
  let at = 0;
  return sizesKb.flatMap((sizeKb) =>
    // Large documents take up the texts quickly.
    Array.from({ length: sizeKb >= 200 ? 2 : NUM_DOCUMENTS }, (_, i) => {
      const paragraphs: Gap[] = [];
      for (let size = 0; size < sizeKb * 1000 && at < gaps.length; at++) {
        paragraphs.push(gaps[at]!);
        size += gaps[at]!.text.length;
      }
      const questions = pick(paragraphs.filter(isQuestion), NUM_QUESTIONS).map(({ sentence }) => sentence);
      return {
        name: `${sizeKb}-kb-${i}.txt`,
        sizeKb,
        text: paragraphs.map(({ text }) => text).join('\n\n'),
        questions,
      };
    }),
  );
}

const TITLE = /^= ([^=]+) =$/;
const REFERRING = /^(?:He|She|It|They|His|Her|Its|Their|This|These) /;
const MAX_FOLLOW_UP_WORDS = 14;

/**
 * Paragraphs of articles without a short sentence that refers to their subject by a pronoun: it is the question, after a
 * conversation that names the article. The paragraphs of the same article are the hard ones.
 */
export function readFollowUps(path: string, numTexts: number, numQuestions: number): RecallSet {
  const texts: string[] = [];
  const questions: RecallQuestion[] = [];
  let title = '';
  let isOpening = true;
  for (const line of readFileSync(path, 'utf8').split('\n').map(untokenize)) {
    const [, heading] = TITLE.exec(line) ?? [];
    if (heading !== undefined) [title, isOpening] = [heading.trim(), true];
    if (line === '' || line.startsWith('=') || title === '') continue;
    const sentences = line.split(/(?<=[.!?]) (?=[A-Z"])/);
    if (sentences.length < MIN_SENTENCES) continue;
    const isQuestion = (sentence: string, i: number): boolean =>
      i > 0 && REFERRING.test(sentence) && sentence.split(' ').length <= MAX_FOLLOW_UP_WORDS;
    const taken = isOpening ? -1 : sentences.findIndex(isQuestion);
    if (taken > 0) {
      const turns = [`What do you know about ${title}?`];
      questions.push({ text: sentences[taken]!, turns, evidence: texts.length });
    }
    isOpening = false;
    texts.push(sentences.filter((_, i) => i !== taken).join(' '));
    if (texts.length === numTexts) break;
  }
  return { name: 'article follow-ups', texts, questions: pick(questions, numQuestions) };
}
