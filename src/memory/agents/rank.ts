import { cosine } from '../common/cosine.ts';
import type { EmbeddedText } from '../search/embed-text.ts';
import { STRONG_LEXICAL } from '../search/fuse.ts';
import type { MatchedRecord, MemoryRecord, NearRecord } from '../types.ts';
import { isSamePerson, personsOf } from './persons.ts';
import { passageFromRecord, type Passage } from './episode-record.ts';
import { factFromRecord } from './fact-record.ts';
import { MIN_STRENGTH, strengthOf } from './strength.ts';
import type { Fact } from './types.ts';

/** A fact or a passage with its worth for a question. */
export interface Candidate {
  readonly fact: Fact | null;
  readonly passage: Passage | null;
  readonly saidMs: number;
  readonly score: number;
}

/** Weights of the score; chosen on the development conversations of `npm run bench -- agents`. */
export const WEIGHTS = {
  lexical: 1,
  /** Taken from words of the model itself, which repeat words of others. */
  assistant: 0.1,
  /** Taken from a passage with a newer one on the same subject, so that the newest truth comes first. */
  outdated: 0.2,
  /** Two passages about one person say the same kind of thing from this similarity on. */
  sameSubject: 0.6,
  /** Added if question and passage are about the same person: the user, or somebody with the same name. */
  person: 0.2,
  /** Part of a fact's score that its strength decides. */
  strength: 0.3,
};
/** Less near records that share few words with the question are unrelated. */
const MIN_SIMILARITY = 0.2;
/** Of the best candidates, which are compared with each other. */
const MAX_COMPARED = 48;

/** Joins the nearest and the best matching records into one order: relevance, strength, and newer before older. */
export function rankCandidates(
  near: readonly NearRecord[],
  matches: readonly MatchedRecord[],
  question: EmbeddedText | null,
  text: string,
  nowMs: number,
): Candidate[] {
  const asked = personsOf(text);
  const lexical = new Map(matches.map(({ record, score }) => [record.id, score]));
  const records = new Map<string, MemoryRecord>();
  for (const { record } of [...near, ...matches]) records.set(record.id, record);
  const scored = [...records.values()].flatMap((record) => {
    const words = lexical.get(record.id) ?? 0;
    const isComparable = question !== null && record.vector !== null && record.space === question.space;
    const similarity = isComparable ? cosine(question.vector, record.vector!) : 0;
    // Without an embedder, nothing has a similarity.
    if (question !== null && similarity < MIN_SIMILARITY && words < STRONG_LEXICAL) return [];
    const relevance = similarity + WEIGHTS.lexical * words;
    const candidate = describe(record, relevance, nowMs);
    const persons = personsOf(candidate.passage?.text ?? '');
    const bonus = candidate.passage !== null && isSamePerson(asked, persons) ? WEIGHTS.person : 0;
    return [{ ...candidate, score: candidate.score + bonus, persons, vector: record.vector, space: record.space }];
  });
  const relevant = scored.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score || b.saidMs - a.saidMs);
  const best = dropRepeated(relevant).slice(0, MAX_COMPARED);
  const isNewerOnSameSubject = (one: (typeof best)[number], other: (typeof best)[number]): boolean =>
    other.passage !== null &&
    other.saidMs > one.saidMs &&
    other.passage.speaker === one.passage!.speaker &&
    other.passage.speakerName === one.passage!.speakerName &&
    other.vector !== null &&
    one.vector !== null &&
    other.space === one.space &&
    isSamePerson(one.persons, other.persons) &&
    cosine(one.vector, other.vector) >= WEIGHTS.sameSubject;
  return best
    .map(({ vector: _, space: _space, persons: _persons, ...candidate }, i) => {
      if (candidate.passage === null) return candidate;
      const isOutdated = best.some((other) => isNewerOnSameSubject(best[i]!, other));
      return isOutdated ? { ...candidate, score: candidate.score - WEIGHTS.outdated } : candidate;
    })
    .sort((a, b) => b.score - a.score || b.saidMs - a.saidMs);
}

/** Of passages with the same words of one speaker, only the newest: people repeat themselves. */
function dropRepeated<T extends Candidate>(candidates: readonly T[]): T[] {
  const keyOf = ({ passage }: T): string | null =>
    passage === null ? null : JSON.stringify([passage.speaker, passage.speakerName, passage.text.toLowerCase()]);
  const newest = new Map<string, T>();
  for (const one of candidates) {
    const key = keyOf(one);
    if (key !== null && one.saidMs > (newest.get(key)?.saidMs ?? -1)) newest.set(key, one);
  }
  return candidates.filter((one) => {
    const key = keyOf(one);
    return key === null || newest.get(key) === one;
  });
}

function describe(record: MemoryRecord, relevance: number, nowMs: number): Candidate {
  if (record.kind === 'fact') {
    const fact = factFromRecord(record);
    const strength = strengthOf(fact, nowMs);
    const factor = strength < MIN_STRENGTH ? 0 : 1 - WEIGHTS.strength * (1 - strength);
    return { fact, passage: null, saidMs: fact.saidMs, score: relevance * factor };
  }
  const passage = passageFromRecord(record);
  const malus = passage.speaker === 'assistant' ? WEIGHTS.assistant : 0;
  return { fact: null, passage, saidMs: passage.saidMs, score: relevance - malus };
}
