import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createMetadata, type MetadataValue } from '../gguf/index.ts';
import { BYTE_CHARACTERS } from './byte-alphabet.ts';
import { createTokenizer, type Tokenizer } from './index.ts';

const NORMAL = 1;
const UNKNOWN = 2;
const CONTROL = 3;
const USER_DEFINED = 4;
const BYTE = 6;

type Token = readonly [text: string, type: number, score?: number];

function build(model: string, tokens: readonly Token[], more: Record<string, MetadataValue> = {}): Tokenizer {
  const values: Record<string, MetadataValue> = {
    'tokenizer.ggml.model': model,
    'tokenizer.ggml.tokens': tokens.map(([text]) => text),
    'tokenizer.ggml.token_type': Int32Array.from(tokens, ([, type]) => type),
    'tokenizer.ggml.scores': Float32Array.from(tokens, ([, , score]) => score ?? 0),
    ...more,
  };
  return createTokenizer(createMetadata(new Map(Object.entries(values))));
}

const byteTokens = Array.from({ length: 256 }, (_, byte): Token => [
  `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
  BYTE,
]);
const spmTokens: Token[] = [
  ['<unk>', UNKNOWN],
  ['<s>', CONTROL],
  ['</s>', CONTROL],
  ...byteTokens,
  ['▁', NORMAL, -1],
  ['a', NORMAL, -2],
  ['b', NORMAL, -3],
  ['ab', NORMAL, -4],
  ['▁ab', NORMAL, -5],
  ['ba', NORMAL, -6],
  ['<', NORMAL, -7],
  ['s', NORMAL, -8],
  ['>', NORMAL, -9],
  ['<s', NORMAL, -10],
  ['b▁', NORMAL, -10.5],
  ['b▁a', NORMAL, -11],
  ['▁▁', NORMAL, -12],
  ['<tag>', USER_DEFINED],
];
const spm = (more?: Record<string, MetadataValue>): Tokenizer => build('llama', spmTokens, more);

const bpeTokens: Token[] = [
  ...BYTE_CHARACTERS.map((character): Token => [character, NORMAL]),
  ['he', NORMAL],
  ['ll', NORMAL],
  ['hell', NORMAL],
  ['Ġhe', NORMAL],
  ['<|end|>', CONTROL],
  ['<x>', USER_DEFINED],
];
const bpeKeys = { 'tokenizer.ggml.pre': 'gpt-2', 'tokenizer.ggml.merges': ['h e', 'l l', 'he ll', 'Ġ he', 'he l'] };
const bpe = (more?: Record<string, MetadataValue>): Tokenizer => build('gpt2', bpeTokens, { ...bpeKeys, ...more });

const pieces = (tokenizer: Tokenizer, ids: readonly number[]): string[] => ids.map((id) => tokenizer.piece(id));
const unicode = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({
    unit: fc.constantFrom('a', 'b', ' ', '<', 's', '>', 'h', 'e', 'l', '\n', '▁', '<s>', '<|end|>', 'é', '😀'),
  }),
);

describe('SPM', () => {
  test('joins the best score first, and ties from the left', () => {
    const tokenizer = spm();
    expect(pieces(tokenizer, tokenizer.encode('ab'))).toEqual(['▁ab']);
    expect(pieces(tokenizer, tokenizer.encode('aba'))).toEqual(['▁ab', 'a']);
    expect(pieces(tokenizer, tokenizer.encode('bba'))).toEqual(['▁', 'b', 'ba']);
  });

  test('splits at spaces only where no token crosses: "b▁a" joins over one', () => {
    const tokenizer = spm();
    expect(pieces(tokenizer, tokenizer.encode('b a'))).toEqual(['▁', 'b▁a']);
    expect(pieces(tokenizer, tokenizer.encode('a  ab'))).toEqual(['▁', 'a', '▁', '▁ab']);
  });

  test('spells unknown characters as byte tokens, or as unknown without those', () => {
    const tokenizer = spm();
    expect(pieces(tokenizer, tokenizer.encode('é'))).toEqual(['▁', '<0xC3>', '<0xA9>']);
    const poor = build(
      'llama',
      spmTokens.filter(([, type]) => type !== BYTE),
    );
    expect(pieces(poor, poor.encode('é'))).toEqual(['▁', '<unk>']);
  });

  test('never encodes text as control or byte tokens, even if merges could', () => {
    const tokenizer = spm();
    expect(pieces(tokenizer, tokenizer.encode('a<s>'))).toEqual(['▁', 'a', '<s', '>']);
    expect(tokenizer.encode('<0x0A>')).not.toContain(tokenizer.idOf('<0x0A>'));
  });

  test('adds a space before text at the start and after special tokens if the file says so', () => {
    const tokenizer = spm();
    expect(pieces(tokenizer, tokenizer.encodeTemplate('ab<s>ab</s>'))).toEqual(['▁ab', '<s>', '▁ab', '</s>']);
    const bare = spm({ 'tokenizer.ggml.add_space_prefix': false });
    expect(pieces(bare, bare.encodeTemplate('ab<s>ab'))).toEqual(['ab', '<s>', 'ab']);
    expect(pieces(tokenizer, tokenizer.encode('ab', { isContinuation: true }))).toEqual(['ab']);
    const continued = tokenizer.encodeTemplate('ab<s>ab', { isContinuation: true });
    expect(pieces(tokenizer, continued)).toEqual(['ab', '<s>', '▁ab']);
  });

  test('adds BOS, and EOS on request', () => {
    expect(spm().encode('', { addSpecial: true })).toEqual([1]);
    const both = spm({ 'tokenizer.ggml.add_eos_token': true });
    expect(pieces(both, both.encode('ab', { addSpecial: true }))).toEqual(['<s>', '▁ab', '</s>']);
  });

  test('decodes to the original text, with and without BOS; a continuation keeps its space', () => {
    const tokenizer = spm();
    fc.assert(
      fc.property(unicode, fc.boolean(), (text, addSpecial) => {
        expect(tokenizer.decode(tokenizer.encode(text, { addSpecial }))).toBe(text.replaceAll('▁', ' '));
      }),
    );
    expect(tokenizer.decode(tokenizer.encode('ab'), { keepLeadingSpace: true })).toBe(' ab');
    expect(tokenizer.decode([1, ...tokenizer.encode('ab'), 2], { skipSpecial: false })).toBe('<s> ab</s>');
  });

  test('encodes a long text without a place to split the same way', () => {
    const ids = spm().encode('ab'.repeat(100_000));
    expect(ids.length).toBe(100_000);
  });
});

describe('BPE', () => {
  test('merges by rank', () => {
    const tokenizer = bpe();
    expect(pieces(tokenizer, tokenizer.encode('hell hel'))).toEqual(['hell', 'Ġhe', 'l']);
  });

  test('spells out a merge whose result is not a token', () => {
    const tokenizer = bpe();
    expect(pieces(tokenizer, tokenizer.encode('hel'))).toEqual(['h', 'e', 'l']);
  });

  test('keeps a word that is a token whole if the family ignores merges', () => {
    const merges = { 'tokenizer.ggml.merges': ['l l'] };
    const plain = bpe(merges);
    expect(pieces(plain, plain.encode('hell'))).toEqual(['h', 'e', 'll']);
    const whole = bpe({ ...merges, 'tokenizer.ggml.pre': 'llama-bpe' });
    expect(pieces(whole, whole.encode('hell'))).toEqual(['hell']);
  });

  test('decodes to exactly the encoded text', () => {
    const tokenizer = bpe();
    fc.assert(
      fc.property(unicode, (text) => {
        expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
      }),
    );
  });

  test('never produces a control token from plain text', () => {
    const tokenizer = bpe();
    fc.assert(
      fc.property(unicode, (text) => {
        expect(tokenizer.encode(text).some(tokenizer.isControl)).toBe(false);
      }),
    );
    expect(tokenizer.encode('<|end|>').length).toBe(7);
    expect(pieces(tokenizer, tokenizer.encode('<x>'))).toEqual(['<x>']);
  });

  test('streaming equals decoding all tokens at once, for any ids', () => {
    const tokenizer = bpe();
    fc.assert(
      fc.property(fc.array(fc.nat({ max: tokenizer.vocabSize - 1 })), fc.boolean(), (ids, skipSpecial) => {
        const decoder = tokenizer.createStreamDecoder({ skipSpecial });
        const streamed = ids.map((id) => decoder.push(id)).join('') + decoder.flush();
        expect(streamed).toBe(tokenizer.decode(ids, { skipSpecial }));
      }),
    );
  });

  test('rejects an unknown pre-tokenizer by name, and uses the default if none is named', () => {
    expect(() => bpe({ 'tokenizer.ggml.pre': 'nonesuch' })).toThrow(/"nonesuch".*known: default, llama-bpe/);
    expect(bpe({ 'tokenizer.ggml.pre': '' }).encode('hell').length).toBe(1);
  });
});

describe('WordPiece', () => {
  const tokens: Token[] = [
    ['[UNK]', UNKNOWN],
    ['[CLS]', CONTROL],
    ['[SEP]', CONTROL],
    ...['▁cafe', '▁ca', 'fe', 's', '▁!', '▁漢', '▁字', '▁a', '▁$'].map((text): Token => [text, NORMAL]),
  ];
  const keys = {
    'tokenizer.ggml.bos_token_id': 1,
    'tokenizer.ggml.seperator_token_id': 2,
    'tokenizer.ggml.unknown_token_id': 0,
  };

  test('normalizes, splits at punctuation and ideographs, and takes the longest token first', () => {
    const tokenizer = build('bert', tokens, keys);
    const encoded = tokenizer.encode('Cafés!漢字\u0000 $a', { addSpecial: true });
    expect(pieces(tokenizer, encoded)).toEqual(['[CLS]', '▁cafe', 's', '▁!', '▁漢', '▁字', '▁$', '▁a', '[SEP]']);
    expect(tokenizer.decode(encoded)).toBe('cafes ! 漢 字 $ a');
  });

  test('a word with an unknown part is unknown as a whole', () => {
    const tokenizer = build('bert', tokens, keys);
    expect(pieces(tokenizer, tokenizer.encode('cafex a'))).toEqual(['[UNK]', '▁a']);
  });

  test('keeps case and accents if the file says so', () => {
    const cased = build('bert', tokens, { ...keys, 'tokenizer.ggml.normalizer.lowercase': false });
    expect(pieces(cased, cased.encode('Cafe cafe café'))).toEqual(['[UNK]', '▁cafe', '[UNK]']);
  });
});

describe('input checks', () => {
  test('rejects a lone surrogate with its index', () => {
    expect(() => bpe().encode('ab\ud800c')).toThrow(
      expect.objectContaining({ code: 'invalid_text', data: { index: 2 } }),
    );
    expect(() => spm().encodeTemplate('\udc00')).toThrow(/lone surrogate \(U\+dc00\) at index 0/);
  });

  test('a guard keeps a special spelling as text and is removed', () => {
    const tokenizer = bpe();
    const guard = '\u{10fffd}';
    const ids = tokenizer.encodeTemplate(`<|end|><${guard}|end|>`, { guard });
    expect(ids).toEqual([tokenizer.idOf('<|end|>'), ...tokenizer.encode('<|end|>')]);
    expect(tokenizer.encodeTemplate(guard, { guard })).toEqual([]);
    expect(() => tokenizer.encodeTemplate('a', { guard: '|' })).toThrow(/occurs in the special token <\|end\|>/);
    expect(() => tokenizer.encodeTemplate('a', { guard: 'ab' })).toThrow(/one character/);
  });

  test('rejects ids outside the vocabulary and unknown options', () => {
    const tokenizer = bpe();
    expect(() => tokenizer.decode([tokenizer.vocabSize])).toThrow(/token id 262 is outside the vocabulary of 262/);
    expect(() => tokenizer.piece(-1)).toThrow(expect.objectContaining({ code: 'invalid_token' }));
    expect(() => tokenizer.encode('a', { addSpecials: true } as object)).toThrow(/unknown option "addSpecials"/);
  });

  test('rejects unsupported families and inconsistent tables by name and number', () => {
    expect(() => build('rwkv', spmTokens)).toThrow(/"rwkv" is not supported \(known: llama, gpt2, gemma4, bert/);
    expect(() => spm({ 'tokenizer.ggml.scores': new Float32Array(3) })).toThrow(/3 scores for 273 tokens/);
    expect(() => spm({ 'tokenizer.ggml.token_type': new Int32Array(4) })).toThrow(/4 token types for 273 tokens/);
  });
});

describe('special tokens', () => {
  const chat: Token[] = [...spmTokens, ['<|im_end|>', NORMAL], ['<|end|>', NORMAL], ['<|channel|>', CONTROL]];

  test('spellings that end a turn are control tokens and end generation, regardless of type', () => {
    const tokenizer = build('llama', chat);
    for (const spelling of ['</s>', '<|im_end|>', '<|end|>']) {
      expect(tokenizer.isEndOfGeneration(tokenizer.idOf(spelling)!), spelling).toBe(true);
      expect(tokenizer.isControl(tokenizer.idOf(spelling)!), spelling).toBe(true);
    }
    expect(tokenizer.isEndOfGeneration(tokenizer.idOf('<s>')!)).toBe(false);
    expect(tokenizer.isControl(tokenizer.idOf('<|channel|>')!)).toBe(false);
    expect(tokenizer.decode([tokenizer.idOf('<|im_end|>')!])).toBe('');
  });

  test('<|end|> closes only a message if <|call|> and <|return|> exist', () => {
    const tokenizer = build('llama', [...chat, ['<|call|>', CONTROL], ['<|return|>', CONTROL]]);
    expect(tokenizer.isEndOfGeneration(tokenizer.idOf('<|end|>')!)).toBe(false);
    expect(tokenizer.isEndOfGeneration(tokenizer.idOf('<|return|>')!)).toBe(true);
  });

  test('EOT and EOM ids in the file end generation; ids out of range are ignored', () => {
    const named = spm({ 'tokenizer.ggml.eot_token_id': 260, 'tokenizer.ggml.eos_token_id': 99_999 });
    expect(named.isEndOfGeneration(260)).toBe(true);
    expect(named.eosId).toBe(2);
  });

  test('token bytes equal those in running text', () => {
    const tokenizer = spm();
    expect([...tokenizer.tokenBytes(tokenizer.idOf('<0xC3>')!)]).toEqual([0xc3]);
    expect([...tokenizer.tokenBytes(tokenizer.idOf('▁ab')!)]).toEqual([0x20, 0x61, 0x62]);
    expect(tokenizer.tokenBytes(1).length).toBe(0);
    expect([...bpe().tokenBytes(bpe().idOf('Ġhe')!)]).toEqual([0x20, 0x68, 0x65]);
  });
});
