import type { VocabularyData } from '../engine/constraints.ts';
import type { Tokenizer } from '../tokenizers/types.ts';
import type { EngineClient } from './engine-client.ts';

/** Engines that have heard it: it is megabytes, and most never need it. */
const informed = new WeakSet<EngineClient>();

/** Tells an engine, once, how the tokens of its model are spelled. */
export function sendVocabulary(client: EngineClient, tokenizer: Tokenizer, endIds: readonly number[]): void {
  if (informed.has(client)) return;
  client.sendVocabulary(flattenVocabulary(tokenizer, endIds));
  informed.add(client);
}

export function flattenVocabulary(tokenizer: Tokenizer, endIds: readonly number[]): VocabularyData {
  const { vocabSize } = tokenizer;
  const encoder = new TextEncoder();
  // A control token's spelling is known to grammars, which take it as the token and never as text.
  const bytesOf = (id: number): Uint8Array =>
    tokenizer.isControl(id) ? encoder.encode(tokenizer.piece(id)) : tokenizer.tokenBytes(id);
  const tokens = Array.from({ length: vocabSize }, (_, id) => bytesOf(id));
  const offsets = new Int32Array(vocabSize + 1);
  for (const [id, { length }] of tokens.entries()) offsets[id + 1] = offsets[id]! + length;
  const bytes = new Uint8Array(offsets[vocabSize]!);
  for (const [id, token] of tokens.entries()) bytes.set(token, offsets[id]);
  const isControl = Uint8Array.from({ length: vocabSize }, (_, id) => (tokenizer.isControl(id) ? 1 : 0));
  return { bytes, offsets, isControl, endIds };
}
