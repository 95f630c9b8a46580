import { readFileSync } from 'node:fs';
import { pick, type RecallSet, untokenize } from './sets.ts';

const MIN_SENTENCES = 4;
const MIN_WORDS = 8;

/** Paragraphs without one of their sentences, which is the question: it has the topic of the paragraph, but few of its words. */
export function readArticles(path: string, numQuestions: number): RecallSet {
  const paragraphs = readFileSync(path, 'utf8')
    .split('\n')
    .map(untokenize)
    .filter((line) => !line.startsWith('='))
    .map((line) => line.split(/(?<=[.!?]) (?=[A-Z"])/))
    .filter(({ length }) => length >= MIN_SENTENCES);
  const texts: string[] = [];
  const questions: { text: string; evidence: number }[] = [];
  for (const [i, sentences] of paragraphs.entries()) {
    const taken = 1 + (i % (sentences.length - 1));
    const text = sentences[taken]!;
    if (text.split(' ').length >= MIN_WORDS) questions.push({ text, evidence: i });
    texts.push(sentences.filter((_, j) => j !== taken).join(' '));
  }
  return { name: 'articles', isHeldOut: false, texts, questions: pick(questions, numQuestions) };
}
