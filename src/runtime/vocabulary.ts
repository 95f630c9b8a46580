import type { TokenTableData, VocabularyData } from '../engine/constraints.ts';
import type { Tokenizer } from '../tokenizers/types.ts';
import type { EngineClient } from './engine-client.ts';

/** A thread that prepares the vocabulary of a model file for grammars. */
export interface TableThread {
  /** null: the thread is unavailable; the vocabulary is fine. */
  build(endIds: readonly number[]): Promise<TokenTableData | null>;
  /** Ends the thread; pending calls fail with `not_loaded`. */
  dispose(): Promise<void>;
}

export interface VocabularyContext {
  readonly client: EngineClient;
  readonly tokenizer: Tokenizer;
  readonly endIds: readonly number[];
  readonly tableThread: TableThread | null;
}

/** Engines that have the vocabulary: it has megabytes, and most never need it. */
const informed = new WeakMap<EngineClient, Promise<void>>();

/** Sends an engine the spellings of its tokens, once. */
export function sendVocabulary(context: VocabularyContext): Promise<void> {
  const { client } = context;
  let sent = informed.get(client);
  if (sent === undefined) {
    sent = inform(context);
    informed.set(client, sent);
    sent.catch(() => informed.delete(client)); // the next call tries again; all callers may have left
  }
  return sent;
}

async function inform({ client, tokenizer, endIds, tableThread }: VocabularyContext): Promise<void> {
  const table = (await tableThread?.build(endIds)) ?? null;
  if (table !== null) client.sendTokenTable(table);
  else client.sendVocabulary(flattenVocabulary(tokenizer, endIds));
}

export function flattenVocabulary(tokenizer: Tokenizer, endIds: readonly number[]): VocabularyData {
  const { vocabSize } = tokenizer;
  const encoder = new TextEncoder();
  // Grammars treat a control token's spelling as the token, never as text.
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
