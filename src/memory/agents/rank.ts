import { cosine } from '../common/cosine.ts';
import type { EmbeddedText } from '../search/embed-text.ts';
import { STRONG_LEXICAL } from '../search/fuse.ts';
import type { MatchedRecord, MemoryRecord, NearRecord } from '../types.ts';
import { passageFromRecord, type Passage } from './episode-record.ts';
import { factFromRecord } from './fact-record.ts';
import { isSamePerson, type Persons, personsOf, subjectPersons } from './persons.ts';
import { MIN_STRENGTH, strengthOf } from './strength.ts';
import type { Fact } from './types.ts';

/** A fact or a passage with its worth for a question. */
export interface Candidate {
  readonly id: string;
  readonly fact: Fact | null;
  readonly passage: Passage | null;
  readonly saidMs: number;
  readonly score: number;
  /** Whom the passage or the fact is about. */
  readonly persons: Persons;
  readonly vector: Float32Array | null;
  readonly space: string | null;
}

/** Weights of the score; chosen on the development conversations of `npm run bench -- agents`. */
const WEIGHTS = {
  lexical: 1,
  /** Taken from words of the model itself, which repeat words of others. */
  assistant: 0.1,
  /** Taken from questions, which state nothing. */
  question: 0.2,
  /** Taken from the score that a passage gives to newer ones on its subject; shown are the newest first. */
  newer: 0.2,
  /** Added if question and passage are about the same person: the user, or somebody with the same name. */
  person: 0.2,
  /** Part of a fact's score that its strength decides. */
  strength: 0.3,
};
/** Two passages about one person say the same kind of thing from this similarity on. */
const SAME_SUBJECT = 0.6;
/** Less near records that share few words with the question are unrelated. */
const MIN_SIMILARITY = 0.2;
/** Of the best candidates, which are compared with each other. */
const MAX_COMPARED = 48;

/** The nearest and the best matching records in one order: relevance, person, strength; each text once. */
export function scoreCandidates(
  near: readonly NearRecord[],
  matches: readonly MatchedRecord[],
  question: EmbeddedText | null,
  text: string,
  nowMs: number,
): Candidate[] {
  const asked = personsOf(text);
  const lexical = new Map(matches.map(({ record, score }) => [record.id, score]));
  const records = new Map([...near, ...matches].map(({ record }) => [record.id, record]));
  const scored = [...records.values()].flatMap((record) => {
    const words = lexical.get(record.id) ?? 0;
    const isComparable = question !== null && record.vector !== null && record.space === question.space;
    const similarity = isComparable ? cosine(question.vector, record.vector!) : 0;
    // Without an embedder, nothing has a similarity.
    if (question !== null && similarity < MIN_SIMILARITY && words < STRONG_LEXICAL) return [];
    const candidate = toCandidate(record, similarity + WEIGHTS.lexical * words, nowMs);
    const isAbout = isSamePerson(asked, candidate.persons);
    // A forgotten fact has no score, and gets none.
    return candidate.score <= 0 ? [] : [{ ...candidate, score: candidate.score + (isAbout ? WEIGHTS.person : 0) }];
  });
  return dropRepeated(inOrder(scored)).slice(0, MAX_COMPARED);
}

const inOrder = (candidates: readonly Candidate[]): Candidate[] =>
  candidates.toSorted((a, b) => b.score - a.score || b.saidMs - a.saidMs);

/** Whether the other one was said later, by the same speaker, about the same person and the same kind of thing. */
function isReplacedBy(one: Candidate, other: Candidate): boolean {
  if (one.passage === null || other.passage === null || other.saidMs <= one.saidMs) return false;
  if (other.passage.speaker !== one.passage.speaker || other.passage.speakerName !== one.passage.speakerName) return false; // prettier-ignore
  if (one.vector === null || other.vector === null || other.space !== one.space) return false;
  return isSamePerson(one.persons, other.persons) && cosine(one.vector, other.vector) >= SAME_SUBJECT;
}

/**
 * Gives newer passages on the subject of a candidate almost its score, whatever words they use, so that an old value is not recalled
 * without the new one. `newer`: the records near each of the first candidates that were said later.
 */
export function preferNewest(
  candidates: readonly Candidate[],
  newer: readonly (readonly NearRecord[])[],
  nowMs: number,
): Candidate[] {
  const all = new Map(candidates.map((one) => [one.id, one]));
  for (const [i, records] of newer.entries()) {
    const seed = candidates[i]!;
    for (const { record } of records) {
      const found = all.get(record.id) ?? toCandidate(record, 0, nowMs);
      const score = seed.score - WEIGHTS.newer;
      if (found.score < score && isReplacedBy(seed, found)) all.set(found.id, { ...found, score });
    }
  }
  return dropRepeated(inOrder([...all.values()]));
}

/** Of passages with the same words of one speaker, only the newest: people repeat themselves. */
function dropRepeated(candidates: readonly Candidate[]): Candidate[] {
  const keyOf = ({ id, passage }: Candidate): string =>
    passage === null ? id : JSON.stringify([passage.speaker, passage.speakerName, passage.text.toLowerCase()]);
  const newest = new Map<string, Candidate>();
  for (const one of candidates) {
    const known = newest.get(keyOf(one));
    if (known === undefined || one.saidMs > known.saidMs) newest.set(keyOf(one), one);
  }
  return candidates.filter((one) => newest.get(keyOf(one)) === one);
}

function toCandidate(record: MemoryRecord, relevance: number, nowMs: number): Candidate {
  const { id, vector, space } = record;
  if (record.kind === 'fact') {
    const fact = factFromRecord(record);
    const strength = strengthOf(fact, nowMs);
    const factor = strength < MIN_STRENGTH ? 0 : 1 - WEIGHTS.strength * (1 - strength);
    return { id, fact, passage: null, saidMs: fact.saidMs, score: relevance * factor, persons: subjectPersons(fact.subject), vector, space }; // prettier-ignore
  }
  const passage = passageFromRecord(record);
  const isQuestion = /[?？]["')\]»”]*$/.test(passage.text);
  const score =
    relevance - (passage.speaker === 'assistant' ? WEIGHTS.assistant : 0) - (isQuestion ? WEIGHTS.question : 0);
  return { id, fact: null, passage, saidMs: passage.saidMs, score, persons: personsOf(passage.text), vector, space };
}
