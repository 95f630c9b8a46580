import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createMemorySource } from '../core/byte-source.ts';
import { openGguf } from '../gguf/index.ts';
import { createTokenizer } from './index.ts';

const suites = join(import.meta.dirname, '../../../shared/suites/tokenizers');
const hasSuites = existsSync(suites);
if (!hasSuites) console.log(`skipped: no vocabularies with cases at ${suites}`);

describe.skipIf(!hasSuites).each(['bert-bge', 'gpt-2', 'llama-spm', 'phi-3'])('%s', (name) => {
  const file = join(suites, `ggml-vocab-${name}.gguf`);
  const open = () => createTokenizer(openGguf(createMemorySource(readFileSync(file), name)).metadata);

  test('encodes every case of the suite to the listed ids', () => {
    const tokenizer = open();
    const texts = readFileSync(`${file}.inp`, 'utf8').split('\n__ggml_vocab_test__\n');
    const lines = readFileSync(`${file}.out`, 'utf8').split('\n');
    expect(texts.length).toBeGreaterThan(40);
    expect(lines.length).toBeGreaterThanOrEqual(texts.length);
    texts.forEach((text, i) => {
      const expected = [...lines[i]!.matchAll(/\d+/g)].map(Number);
      expect(tokenizer.encode(text), `case ${i}: ${JSON.stringify(text)}`).toEqual(expected);
    });
  });

  test('never encodes the spelling of a control token in plain text as that token', () => {
    const tokenizer = open();
    for (const spelling of tokenizer.specialSpellings) {
      const id = tokenizer.idOf(spelling)!;
      if (!tokenizer.isControl(id)) continue;
      expect(tokenizer.encodeTemplate(spelling)).toEqual([id]);
      for (const text of [spelling, `a${spelling}b`, ` ${spelling}\n`]) {
        expect(tokenizer.encode(text).filter(tokenizer.isControl), text).toEqual([]);
      }
    }
  });
});

test.skipIf(!hasSuites)('phi-3 strips white space after special tokens in templates but not in plain text', () => {
  const file = readFileSync(join(suites, 'ggml-vocab-phi-3.gguf'));
  const tokenizer = createTokenizer(openGguf(createMemorySource(file)).metadata);
  const assistant = tokenizer.idOf('<|assistant|>')!;
  expect(tokenizer.encodeTemplate('<|assistant|> \n\tHi')).toEqual([assistant, ...tokenizer.encode('Hi')]);
  expect(tokenizer.encodeTemplate('<s> Hi')).toEqual([tokenizer.bosId, ...tokenizer.encode(' Hi')]);
});
