import { RuvLLMError } from '../../core/errors.ts';
import { createBestHits, type BestHits } from '../vector-index/best-hits.ts';
import { termScore } from './bm25.ts';
import { termsOf } from './terms.ts';

/** Texts by row, for search by words. */
export interface LexicalIndex {
  readonly size: number;
  /** Terms of all texts, repetitions included. */
  readonly numTerms: number;
  /** Approximate. */
  readonly memoryBytes: number;
  /** Adds or replaces a text. */
  set(row: number, text: string): void;
  delete(row: number): boolean;
  has(row: number): boolean;
  rows(): Iterable<number>;
  /** How many texts have a term. */
  numTextsWith(term: string): number;
  /** Offers the texts that have one of the terms, the rarest term first, without those that certainly are not among the best. */
  offerBest(terms: readonly WeightedTerm[], averageLength: number, best: BestHits, filter: RowTest | null): void;
  /** Everything in it, for `createLexicalIndex`. */
  snapshot(): LexicalSnapshot;
}

/** Which rows pass a filter. */
export interface RowTest {
  has(row: number): boolean;
}

export interface WeightedTerm {
  readonly term: string;
  readonly idf: number;
}

/** The texts of an index, without deleted ones. */
export interface LexicalSnapshot {
  readonly terms: readonly string[];
  /** By text. */
  readonly rows: Float64Array;
  /** By text: how many terms it has, repetitions included. */
  readonly lengths: Uint32Array;
  /** By text: how many of `postings` are its own. */
  readonly counts: Uint32Array;
  /** Terms and frequencies, text by text. */
  readonly postings: Uint32Array;
}

/** Postings are numbers of 32 bits: a slot or a term in the upper 24, how often the term occurs in the lower 8. */
const FREQUENCY_BITS = 8;
const MAX_FREQUENCY = 255;
const MAX_NUMBER = 2 ** 24;
/** Deleted texts that stay in the postings before these are rewritten. */
const MIN_DEAD = 1000;
/** Of a term without its postings: the string, the map's entry and the objects. */
const TERM_BYTES = 200;
const TEXT_BYTES = 128;
/** Of a posting, in the lists of its term, which are up to half empty, and of its text. */
const POSTING_BYTES = 10;

/** A term with fewer postings is scored without asking whether it matters. */
const MANY_POSTINGS = 64;
/** Rounding of sums must not drop a text. */
const SLACK = 1 + 1e-9;

interface Term {
  readonly number: number;
  readonly text: string;
  /** Of all its texts, deleted ones included. */
  maxFrequency: number;
  /** The texts that have it, deleted ones included. */
  postings: Uint32Array;
  numPostings: number;
  numTexts: number;
}

const pack = (number: number, frequency: number): number => ((number << FREQUENCY_BITS) | frequency) >>> 0;
const EMPTY = new Uint32Array(0);

/**
 * An inverted index. Each text has a slot; the terms of a slot tell whose counts change when it is deleted. Postings of deleted
 * texts are skipped, and removed once a fifth of all slots is dead.
 */
export function createLexicalIndex(saved: LexicalSnapshot | null = null): LexicalIndex {
  const slots = new Map<number, number>();
  const terms = new Map<string, Term>();
  let byNumber: Term[] = [];
  /** By slot; -1: deleted. */
  let rows: number[] = [];
  let lengths: number[] = [];
  let termsBySlot: Uint32Array[] = [];
  let numTerms = 0;
  let numPostings = 0;
  /** Of all texts since the last rewrite, deleted ones included. */
  let minLength = Infinity;
  let scores = new Float64Array(64);
  if (saved !== null) load(saved);

  function addTerm(text: string, capacity: number): Term {
    if (byNumber.length === MAX_NUMBER) throw new RuvLLMError('unsupported', `an index holds ${MAX_NUMBER} terms`);
    const term = { number: byNumber.length, text, maxFrequency: 0, postings: new Uint32Array(capacity), numPostings: 0, numTexts: 0 }; // prettier-ignore
    terms.set(text, term);
    byNumber.push(term);
    return term;
  }

  function post(term: Term, posting: number): void {
    if (term.numPostings === term.postings.length) {
      const larger = new Uint32Array(2 * term.numPostings);
      larger.set(term.postings);
      term.postings = larger;
    }
    term.postings[term.numPostings++] = posting;
    term.maxFrequency = Math.max(term.maxFrequency, posting & MAX_FREQUENCY);
    term.numTexts++;
  }

  function place(row: number, length: number, packed: Uint32Array): void {
    const slot = rows.length;
    if (slot === MAX_NUMBER) throw new RuvLLMError('unsupported', `an index holds ${MAX_NUMBER} texts`);
    for (const value of packed) post(byNumber[value >>> FREQUENCY_BITS]!, pack(slot, value & MAX_FREQUENCY));
    slots.set(row, slot);
    rows.push(row);
    lengths.push(length);
    termsBySlot.push(packed);
    minLength = Math.min(minLength, length);
    numTerms += length;
    numPostings += packed.length;
  }

  function remove(row: number): boolean {
    const slot = slots.get(row);
    if (slot === undefined) return false;
    for (const packed of termsBySlot[slot]!) byNumber[packed >>> FREQUENCY_BITS]!.numTexts--;
    numTerms -= lengths[slot]!;
    numPostings -= termsBySlot[slot]!.length;
    slots.delete(row);
    rows[slot] = -1;
    termsBySlot[slot] = EMPTY;
    if (rows.length - slots.size > Math.max(MIN_DEAD, slots.size / 4)) load(snapshot());
    return true;
  }

  /** Adds the score of a term to its texts; `isClosed`: only to texts that have a score. */
  function scoreTerm(
    { postings, numPostings: count }: Term,
    idf: number,
    averageLength: number,
    isClosed: boolean,
    touched: number[],
  ): void {
    // prettier-ignore
    for (let i = 0; i < count; i++) {
      const posting = postings[i]!;
      const slot = posting >>> FREQUENCY_BITS;
      if (scores[slot] === 0) {
        if (isClosed || rows[slot] === -1) continue;
        touched.push(slot);
      }
      scores[slot]! += termScore(idf, posting & MAX_FREQUENCY, lengths[slot]! / averageLength);
    }
  }

  /** Those with at least this score; the others count as texts without one. */
  function dropBelow(touched: readonly number[], score: number): number[] {
    return touched.filter((slot) => {
      if (scores[slot]! >= score) return true;
      scores[slot] = 0;
      return false;
    });
  }

  /** A score that k texts reach already. */
  function floorOf(touched: readonly number[], best: BestHits, filter: RowTest | null): number {
    const reached = createBestHits(best.k);
    let floor = -Infinity;
    for (const slot of touched) {
      const score = scores[slot]!;
      if (score <= floor || (filter !== null && !filter.has(rows[slot]!))) continue;
      reached.offer(slot, score);
      ({ floor } = reached);
    }
    return Math.max(floor, best.floor);
  }

  function snapshot(): LexicalSnapshot {
    const used = byNumber.filter(({ numTexts }) => numTexts > 0);
    const newNumbers = new Uint32Array(byNumber.length);
    used.forEach(({ number }, i) => (newNumbers[number] = i));
    const live = [...slots.values()];
    const postings = new Uint32Array(numPostings);
    let at = 0;
    for (const slot of live) {
      for (const value of termsBySlot[slot]!) {
        postings[at++] = pack(newNumbers[value >>> FREQUENCY_BITS]!, value & MAX_FREQUENCY);
      }
    }
    return {
      terms: used.map(({ text }) => text),
      rows: Float64Array.from(live, (slot) => rows[slot]!),
      lengths: Uint32Array.from(live, (slot) => lengths[slot]!),
      counts: Uint32Array.from(live, (slot) => termsBySlot[slot]!.length),
      postings,
    };
  }

  /** Replaces everything. */
  function load({ terms: names, rows: texts, lengths: sizes, counts, postings }: LexicalSnapshot): void {
    [rows, lengths, termsBySlot, byNumber, numTerms, numPostings, minLength] = [[], [], [], [], 0, 0, Infinity];
    terms.clear();
    slots.clear();
    const capacities = new Uint32Array(names.length);
    for (const value of postings) capacities[value >>> FREQUENCY_BITS]!++;
    names.forEach((text, i) => addTerm(text, capacities[i]!));
    let start = 0;
    texts.forEach((row, i) => place(row, sizes[i]!, postings.slice(start, (start += counts[i]!))));
  }

  return {
    get size() {
      return slots.size;
    },
    get numTerms() {
      return numTerms;
    },
    get memoryBytes() {
      return POSTING_BYTES * numPostings + TERM_BYTES * terms.size + TEXT_BYTES * rows.length;
    },
    set(row, text) {
      remove(row);
      const frequencies = new Map<Term, number>();
      const list = termsOf(text);
      for (const name of list) {
        const term = terms.get(name) ?? addTerm(name, 1);
        frequencies.set(term, Math.min(MAX_FREQUENCY, (frequencies.get(term) ?? 0) + 1));
      }
      place(
        row,
        list.length,
        Uint32Array.from(frequencies, ([term, frequency]) => pack(term.number, frequency)),
      );
    },
    delete: remove,
    has: (row) => slots.has(row),
    rows: () => slots.keys(),
    numTextsWith: (term) => terms.get(term)?.numTexts ?? 0,
    offerBest(query, averageLength, best, filter) {
      if (scores.length < rows.length) scores = new Float64Array(2 * rows.length);
      const weighted = query.flatMap(({ term: text, idf }) => {
        const term = terms.get(text);
        return term === undefined ? [] : [{ term, idf, most: termScore(idf, term.maxFrequency, minLength / averageLength) }]; // prettier-ignore
      });
      /** The most that this and all further terms can add. */
      let remaining = SLACK * weighted.reduce((sum, { most }) => sum + most, 0);
      let touched: number[] = [];
      let isClosed = false;
      for (const { term, idf, most } of weighted) {
        if (term.numPostings > MANY_POSTINGS) {
          const floor = floorOf(touched, best, filter);
          // Common terms come last: where they alone make no text one of the best, only texts with rarer ones are scored.
          isClosed ||= remaining < floor;
          if (isClosed) touched = dropBelow(touched, floor - remaining);
        }
        scoreTerm(term, idf, averageLength, isClosed, touched);
        remaining -= most;
      }
      let { floor } = best;
      for (const slot of touched) {
        const score = scores[slot]!;
        scores[slot] = 0;
        const row = rows[slot]!;
        if (score < floor || (filter !== null && !filter.has(row))) continue;
        best.offer(row, score);
        ({ floor } = best);
      }
    },
    snapshot,
  };
}
