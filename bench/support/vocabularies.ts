// Vocabularies of GGUF files, and a larger one made of several.
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { TokenVocabulary } from '../../src/sampling/grammar/index.ts';
import { importBuilt } from './dist.ts';

const { createMemorySource } = await importBuilt<typeof import('../../src/core/byte-source.ts')>('core/byte-source');
const { openGguf } = await importBuilt<typeof import('../../src/gguf/index.ts')>('gguf/index');
const { createTokenizer } = await importBuilt<typeof import('../../src/tokenizers/index.ts')>('tokenizers/index');
const { createTokenVocabulary } =
  await importBuilt<typeof import('../../src/sampling/grammar/index.ts')>('sampling/grammar/index');

export interface NamedVocabulary {
  readonly name: string;
  readonly vocabulary: TokenVocabulary;
}

export function readVocabulary(file: string): NamedVocabulary {
  const { metadata } = openGguf(createMemorySource(readFileSync(file), file));
  return { name: basename(file, '.gguf'), vocabulary: createTokenVocabulary(createTokenizer(metadata)) };
}

const QUOTED = ['"', '":', '","', '":"', '": "', '"}', '"]', '"},', '"],', '{"', '["', '\\"', '\\n', '\\"}'];
const MIDDLES = ['', ' ', '\n', '"', '{', '[', '{"', '["', '}', ']', ',', ':', ';', ')'];
const ENDS = ['', ' ', '\n', '}', '"', '\n\n', '  '];
const MAX_PAIR_BYTES = 16;

/**
 * All tokens of the vocabularies, punctuation of code and JSON as large vocabularies have it, words in other cases, and
 * pairs of tokens up to the size.
 */
export function combineVocabularies(parts: readonly NamedVocabulary[], size: number): NamedVocabulary {
  const texts = new Map<string, Uint8Array>();
  const add = (bytes: Uint8Array): void => {
    const key = Buffer.from(bytes).toString('latin1');
    if (bytes.length > 0 && texts.size < size - 1 && !texts.has(key)) texts.set(key, bytes);
  };
  for (let byte = 0; byte < 256; byte++) add(Uint8Array.of(byte));
  for (const { vocabulary } of parts) {
    for (let id = 0; id < vocabulary.size; id++) if (!vocabulary.isControl(id)) add(vocabulary.bytes(id));
  }
  const base = [...texts.values()];
  for (const first of QUOTED) {
    for (const middle of MIDDLES) for (const end of ENDS) add(Buffer.from(first + middle + end));
  }
  for (const bytes of base) {
    const text = Buffer.from(bytes).toString();
    if (!/^ ?[a-z]{2,}$/.test(text)) continue;
    add(Buffer.from(text.toUpperCase()));
    add(Buffer.from(text.replace(/[a-z]/, (letter) => letter.toUpperCase())));
  }
  for (let i = 0; texts.size < size - 1; i++) {
    const pair = Buffer.concat([base[(i * 7919) % base.length]!, base[(i * 104_729 + 13) % base.length]!]);
    if (pair.length < MAX_PAIR_BYTES) add(pair);
  }
  const tokens = [...texts.values(), Buffer.from('</s>')];
  const end = tokens.length - 1;
  return {
    name: `combined`,
    vocabulary: {
      size: tokens.length,
      bytes: (id) => tokens[id]!,
      isControl: (id) => id === end,
      endIds: [end],
    },
  };
}
