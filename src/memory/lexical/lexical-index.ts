import { RuvLLMError } from '../../core/errors.ts';
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
  /** Visits each text that has one of the terms once, in no order. */
  score(terms: readonly WeightedTerm[], averageLength: number, visit: (row: number, score: number) => void): void;
  /** Everything in it, for `createLexicalIndex`. */
  snapshot(): LexicalSnapshot;
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

interface Term {
  readonly number: number;
  readonly text: string;
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
  let scores = new Float64Array(64);
  if (saved !== null) load(saved);

  function addTerm(text: string, capacity: number): Term {
    if (byNumber.length === MAX_NUMBER) throw new RuvLLMError('unsupported', `an index holds ${MAX_NUMBER} terms`);
    const term = { number: byNumber.length, text, postings: new Uint32Array(capacity), numPostings: 0, numTexts: 0 };
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
    [rows, lengths, termsBySlot, byNumber, numTerms, numPostings] = [[], [], [], [], 0, 0];
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
    score(query, averageLength, visit) {
      if (scores.length < rows.length) scores = new Float64Array(2 * rows.length);
      const touched: number[] = [];
      for (const { term: text, idf } of query) {
        const term = terms.get(text);
        if (term === undefined) continue;
        const { postings } = term;
        for (let i = 0; i < term.numPostings; i++) {
          const posting = postings[i]!;
          const slot = posting >>> FREQUENCY_BITS;
          if (rows[slot] === -1) continue;
          if (scores[slot] === 0) touched.push(slot);
          scores[slot]! += termScore(idf, posting & MAX_FREQUENCY, lengths[slot]! / averageLength);
        }
      }
      for (const slot of touched) {
        visit(rows[slot]!, scores[slot]!);
        scores[slot] = 0;
      }
    },
    snapshot,
  };
}
