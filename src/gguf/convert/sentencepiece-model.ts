import { invalidFile } from '../failures.ts';
import type { MetadataEntry } from '../types.ts';
import { tokenTypes } from './llama-metadata.ts';

/** Wire types of protocol buffers that `tokenizer.model` uses. */
const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

interface Field {
  readonly id: number;
  readonly number: number;
  readonly bytes: Uint8Array;
}

/** The tokenizer keys of a GGUF file from a SentencePiece `tokenizer.model`; unused ids up to `vocabSize` are filled. */
export function convertSentencePiece(model: Uint8Array, vocabSize: number): MetadataEntry[] {
  const tokens: string[] = [];
  const types: number[] = [];
  const scores: number[] = [];
  let hasSpacePrefix = true;
  for (const { id, bytes } of readFields(model)) {
    if (id === 1) {
      const piece = readPiece(bytes, tokens.length);
      tokens.push(piece.text);
      scores.push(piece.score);
      types.push(piece.type);
    } else if (id === 3) {
      for (const field of readFields(bytes)) if (field.id === 3) hasSpacePrefix = field.number !== 0; // add_dummy_prefix
    }
  }
  if (tokens.length === 0 || tokens.length > vocabSize) {
    invalidFile(`tokenizer.model has ${tokens.length} tokens, the model ${vocabSize}`, {
      numTokens: tokens.length,
      vocabSize,
    });
  }
  while (tokens.length < vocabSize) {
    tokens.push(`[PAD${tokens.length}]`);
    scores.push(-1e4);
    types.push(tokenTypes.unused);
  }
  return [
    { key: 'tokenizer.ggml.model', type: 'string', value: 'llama' },
    { key: 'tokenizer.ggml.pre', type: 'string', value: 'default' },
    { key: 'tokenizer.ggml.tokens', type: 'array<string>', value: tokens },
    { key: 'tokenizer.ggml.scores', type: 'array<f32>', value: Float32Array.from(scores) },
    { key: 'tokenizer.ggml.token_type', type: 'array<i32>', value: Int32Array.from(types) },
    { key: 'tokenizer.ggml.add_space_prefix', type: 'bool', value: hasSpacePrefix },
  ];
}

/** A piece's types have the numbers of `tokenizer.ggml.token_type`. */
function readPiece(bytes: Uint8Array, index: number): { text: string; score: number; type: number } {
  let [text, score, type] = ['', 0, tokenTypes.normal as number];
  for (const field of readFields(bytes)) {
    if (field.id === 1) text = decode(field.bytes, index);
    else if (field.id === 2) score = new DataView(field.bytes.buffer, field.bytes.byteOffset, 4).getFloat32(0, true);
    else if (field.id === 3) type = field.number;
  }
  if (type < tokenTypes.normal || type > tokenTypes.byte)
    invalidFile(`tokenizer.model: piece ${index} has type ${type}`);
  return { text, score, type };
}

function decode(bytes: Uint8Array, index: number): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return invalidFile(`tokenizer.model: piece ${index} is not valid UTF-8`);
  }
}

/** The fields of one message, in order; a truncated one is `invalid_model_file` with its offset. */
function* readFields(bytes: Uint8Array): Generator<Field> {
  let at = 0;
  const need = (count: number): number => {
    const start = at;
    if (count > bytes.length - at)
      invalidFile(`tokenizer.model: a field of ${count} bytes at ${at} of ${bytes.length}`);
    at += count;
    return start;
  };
  const varint = (): number => {
    for (let value = 0, factor = 1; ; factor *= 128) {
      const byte = bytes[need(1)]!;
      value += (byte & 127) * factor;
      if (value > Number.MAX_SAFE_INTEGER) invalidFile(`tokenizer.model: a number at ${at} is too large`);
      if (byte < 128) return value;
    }
  };
  const NONE = new Uint8Array(0);
  while (at < bytes.length) {
    const tag = varint();
    const [id, wire] = [Math.floor(tag / 8), tag % 8];
    if (wire === VARINT) yield { id, number: varint(), bytes: NONE };
    else if (wire === BYTES || wire === FIXED32 || wire === FIXED64) {
      const length = wire === BYTES ? varint() : wire === FIXED32 ? 4 : 8;
      const start = need(length);
      yield { id, number: 0, bytes: bytes.subarray(start, start + length) };
    } else invalidFile(`tokenizer.model: field ${id} at ${at} has the unknown wire type ${wire}`);
  }
}
