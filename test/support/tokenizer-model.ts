import { randomVocabulary } from './random-vocabulary.ts';

/** Spellings, scores and types of the random vocabulary. */
export function vocabularyParts(vocabSize: number): [tokens: string[], scores: Float32Array, types: Int32Array] {
  const entries = randomVocabulary(vocabSize);
  const value = (key: string) => entries.find((entry) => entry.key === `tokenizer.ggml.${key}`)!.value;
  return [value('tokens') as string[], value('scores') as Float32Array, value('token_type') as Int32Array];
}

const varint = (value: number): number[] => (value < 128 ? [value] : [(value % 128) + 128, ...varint(value >> 7)]);
const field = (tag: number, bytes: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from([tag, ...varint(bytes.length)]), bytes]);

/** The random vocabulary as a SentencePiece model that adds no space before a text. */
export function tokenizerModel(vocabSize: number): Buffer {
  const [tokens, scores, types] = vocabularyParts(vocabSize);
  const pieces = tokens.map((token, i) => {
    const score = Buffer.alloc(4);
    score.writeFloatLE(scores[i]!);
    const parts = [field(10, Buffer.from(token)), Buffer.from([21]), score, Buffer.from([24, types[i]!])];
    return field(10, Buffer.concat(parts));
  });
  return Buffer.concat([...pieces, field(26, Buffer.from([24, 0]))]); // add_dummy_prefix: false
}
