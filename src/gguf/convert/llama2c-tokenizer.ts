import type { ByteSource } from '../../core/byte-source.ts';
import { invalidFile, unsupportedFile } from '../failures.ts';
import { createHeaderCursor } from '../header-cursor.ts';
import type { MetadataEntry } from '../types.ts';
import { decodeUtf8 } from '../utf8.ts';
import { tokenTypes } from './llama-metadata.ts';

/** The longest tokens of real vocabularies have 27 to 128 bytes. */
const MAX_TOKEN_BYTES = 65_536;
/** SentencePiece's fixed ids in every llama2.c tokenizer: unknown, BOS, EOS, then 256 bytes. */
const CONTROLS = ['<unk>', '<s>', '</s>'] as const;
const FIRST_BYTE_ID = CONTROLS.length;
const FIRST_PIECE_ID = FIRST_BYTE_ID + 256;

/**
 * Reads a llama2.c tokenizer.bin: u32 longest token, then per token f32 score, i32 length, bytes. Restores spaces to
 * U+2581 and removes the line breaks that BOS and EOS have for display.
 */
export function readLlama2cTokenizer(source: ByteSource, vocabSize: number): MetadataEntry[] {
  if (vocabSize < FIRST_PIECE_ID) {
    unsupportedFile(`${source.name}: a vocabulary of ${vocabSize} tokens is too small for the 256 byte tokens`);
  }
  const cursor = createHeaderCursor(source, source.sizeBytes);
  const longest = cursor.u32('longest token');
  if (longest > MAX_TOKEN_BYTES)
    invalidFile(`${source.name}: longest token of ${longest} bytes exceeds the limit of 65536`);
  cursor.need(vocabSize * 8, `vocabulary of ${vocabSize}`);
  const scores = new Float32Array(vocabSize);
  const scoreBits = new Uint32Array(scores.buffer);
  const types = new Int32Array(vocabSize);
  const tokens: string[] = [];
  for (let id = 0; id < vocabSize; id++) {
    const byteOffset = cursor.offset;
    scoreBits[id] = cursor.u32(`score of token ${id}`);
    const length = cursor.u32(`length of token ${id}`);
    if (length > longest) {
      invalidFile(
        `${source.name}: token ${id} at byte ${byteOffset} has ${length} bytes, the header allows ${longest}`,
        {
          byteOffset,
        },
      );
    }
    const bytes = cursor.bytes(length, `token ${id}`);
    const token = readToken(id, bytes);
    if (token === null) invalidFile(`${source.name}: token ${id} at byte ${byteOffset} is not UTF-8`, { byteOffset });
    if (typeof token === 'number') {
      unsupportedFile(`${source.name}: token ${id} at byte ${byteOffset} must be the byte token of ${token}`, {
        byteOffset,
      });
    }
    tokens.push(token.text);
    types[id] = token.type;
  }
  if (cursor.offset !== source.sizeBytes) {
    invalidFile(`${source.name}: ${vocabSize} tokens end at byte ${cursor.offset}, the file has ${source.sizeBytes}`);
  }
  return [
    { key: 'tokenizer.ggml.model', type: 'string', value: 'llama' },
    { key: 'tokenizer.ggml.pre', type: 'string', value: 'default' },
    { key: 'tokenizer.ggml.tokens', type: 'array<string>', value: tokens },
    { key: 'tokenizer.ggml.scores', type: 'array<f32>', value: scores },
    { key: 'tokenizer.ggml.token_type', type: 'array<i32>', value: types },
    { key: 'tokenizer.ggml.bos_token_id', type: 'u32', value: 1 },
    { key: 'tokenizer.ggml.eos_token_id', type: 'u32', value: 2 },
    { key: 'tokenizer.ggml.unknown_token_id', type: 'u32', value: 0 },
    { key: 'tokenizer.ggml.add_bos_token', type: 'bool', value: true },
    { key: 'tokenizer.ggml.add_eos_token', type: 'bool', value: false },
  ];
}

/** The token, null for bytes that are not UTF-8, or the byte that the token represents. */
function readToken(id: number, bytes: Uint8Array): { text: string; type: number } | null | number {
  if (id < FIRST_BYTE_ID) {
    return { text: CONTROLS[id]!, type: id === 0 ? tokenTypes.unknown : tokenTypes.control };
  }
  const text = decodeUtf8(bytes, 0, bytes.length);
  if (id < FIRST_PIECE_ID) {
    // Older files have the character of that number (two UTF-8 bytes from 128 on), newer ones its spelling.
    const byte = id - FIRST_BYTE_ID;
    const spelling = `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`;
    return text === spelling || text === String.fromCharCode(byte) ? { text: spelling, type: tokenTypes.byte } : byte;
  }
  return text === null ? null : { text: text.replaceAll(' ', '\u2581'), type: tokenTypes.normal };
}
