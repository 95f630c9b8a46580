import type { PromptBlocks } from '../server/fleet/prompt-blocks.ts';
import { TEXT_BLOCK_BYTES } from './text-chain.ts';

/** The block of tokens that a text reaches. */
export interface TextPlace {
  readonly block: string;
  /** Blocks of tokens up to its end. */
  readonly numBlocks: number;
}

export type KnownPlace = readonly [text: string, place: TextPlace];

/** Which blocks of tokens belong to which texts, learned from the answers of nodes. */
export interface TextIndex {
  /** The known places of a text, shortest first. */
  find(texts: readonly string[]): readonly TextPlace[];
  /** A text of `sizeBytes` has these blocks of tokens. Returns the places that were not known before. */
  learn(texts: readonly string[], sizeBytes: number, prompt: PromptBlocks): readonly KnownPlace[];
  /** Adds places that another index has learned. */
  add(places: readonly KnownPlace[]): void;
  readonly size: number;
}

/** Places of a text that are remembered, besides its last two: between this number and twice of it. */
const MIN_PLACES = 16;

/**
 * The blocks of a text that are remembered. A longer one has them further apart, so that an estimate is at most 1/16 of the text too
 * short; a conversation that goes on is found by the end of its last turn.
 */
export function placesOf(numBlocks: number): readonly number[] {
  const stride = 2 ** Math.max(0, Math.floor(Math.log2(numBlocks / MIN_PLACES)));
  const indexes: number[] = [];
  for (let index = stride - 1; index < numBlocks - 2; index += stride) indexes.push(index);
  for (let index = Math.max(0, numBlocks - 2); index < numBlocks; index++) indexes.push(index);
  return indexes;
}

/** Texts that are remembered, the least recently learned dropped first: about 40 MB. */
export const MAX_TEXTS = 200_000;

/**
 * Tokens are spread evenly over the text of a prompt here. That is not exact (a template adds tokens that no text has), so a place is
 * never beyond the block that the share of the text reaches.
 */
export function createTextIndex(maxTexts = MAX_TEXTS): TextIndex {
  const places = new Map<string, TextPlace>();
  function add(known: readonly KnownPlace[]): void {
    for (const [text, place] of known) {
      // Delete first: a map keeps the order of the first insertion.
      places.delete(text);
      places.set(text, place);
    }
    for (const text of places.keys()) {
      if (places.size <= maxTexts) break;
      places.delete(text);
    }
  }
  return {
    find(texts) {
      const found: TextPlace[] = [];
      for (const text of texts) {
        const place = places.get(text);
        // A hash covers all before it: later ones count without earlier ones.
        if (place !== undefined) found.push(place);
      }
      return found;
    },
    learn(texts, sizeBytes, { numBlocks, stride, hashes }) {
      const known = placesOf(texts.length).map((index): KnownPlace => {
        const text = texts[index]!;
        const share = Math.min(1, ((index + 1) * TEXT_BLOCK_BYTES) / sizeBytes);
        const at = Math.floor(Math.floor(share * numBlocks) / stride) - 1;
        const block = hashes[at] ?? '';
        return [text, { block, numBlocks: block === '' ? 0 : (at + 1) * stride }];
      });
      const news = known.filter(([text, { block }]) => places.get(text)?.block !== block);
      add(known);
      return news;
    },
    add,
    get size() {
      return places.size;
    },
  };
}
