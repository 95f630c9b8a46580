import type { MetadataEntry } from '../../src/gguf/index.ts';

const NORMAL = 1;
const UNKNOWN = 2;
const CONTROL = 3;
const BYTE = 6;

/** A SentencePiece vocabulary for any text: control tokens, all bytes, then letters and pairs. */
export function randomVocabulary(vocabSize: number): MetadataEntry[] {
  const tokens = ['<unk>', '<s>', '</s>'];
  const types = [UNKNOWN, CONTROL, CONTROL];
  for (let byte = 0; byte < 256; byte++) {
    tokens.push(`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`);
    types.push(BYTE);
  }
  const letters = ['▁', ...'etaoinshrdlcumwfgypbvkjxqz'];
  const pairs = letters.flatMap((first) => letters.slice(1).map((second) => first + second));
  for (const token of [...letters, ...pairs].slice(0, Math.max(0, vocabSize - tokens.length))) {
    tokens.push(token);
    types.push(NORMAL);
  }
  while (tokens.length < vocabSize) {
    types.push(NORMAL);
    tokens.push(`▁${tokens.length}`);
  }
  const scores = Float32Array.from({ length: vocabSize }, (_, i) => -i);
  return [
    { key: 'tokenizer.ggml.model', type: 'string', value: 'llama' },
    { key: 'tokenizer.ggml.tokens', type: 'array<string>', value: tokens.slice(0, vocabSize) },
    { key: 'tokenizer.ggml.scores', type: 'array<f32>', value: scores },
    { key: 'tokenizer.ggml.token_type', type: 'array<i32>', value: Int32Array.from(types.slice(0, vocabSize)) },
    { key: 'tokenizer.ggml.unknown_token_id', type: 'u32', value: 0 },
    { key: 'tokenizer.ggml.bos_token_id', type: 'u32', value: 1 },
    { key: 'tokenizer.ggml.eos_token_id', type: 'u32', value: 2 },
  ];
}
