import { invalidFile, quote, unsupportedFile } from '../failures.ts';
import type { MetadataEntry } from '../types.ts';
import { isJsonObject, type Json, show } from './hf-config.ts';
import { tokenTypes } from './llama-metadata.ts';
import { showValue } from '../../core/show-value.ts';

/** Prefix of tokens that begin a word; tokens that continue one lose their prefix instead. */
const WORD_MARK = '\u2581';
/** Metadata keys of tokens with a role, by spelling; "seperator" is the spelling of the format. */
const ROLES: readonly (readonly [string, string])[] = [
  ['bos_token_id', '[CLS]'],
  ['cls_token_id', '[CLS]'],
  ['seperator_token_id', '[SEP]'],
  ['unknown_token_id', '[UNK]'],
  ['padding_token_id', '[PAD]'],
  ['mask_token_id', '[MASK]'],
];
/** Steps our tokenizer always applies. */
const REQUIRED_STEPS = ['clean_text', 'handle_chinese_chars'];

/** The tokenizer keys of a GGUF file, from a parsed tokenizer.json with a WordPiece model; none without one. */
export function convertWordPiece(
  tokenizerJson: unknown,
  { vocabSize, numTokenTypes }: { vocabSize: number; numTokenTypes: number },
): MetadataEntry[] {
  if (tokenizerJson === undefined || tokenizerJson === null) return [];
  if (!isJsonObject(tokenizerJson)) invalidFile('tokenizer.json is not an object');
  const model = tokenizerJson['model'];
  if (!isJsonObject(model)) invalidFile('tokenizer.json: model is not an object');
  if (model['type'] !== 'WordPiece') {
    unsupportedFile(`tokenizer.json: model type ${showValue(model['type'])} is not supported; only WordPiece is`);
  }
  const prefix = model['continuing_subword_prefix'] ?? '##';
  if (typeof prefix !== 'string' || prefix === '')
    invalidFile(`tokenizer.json: continuing_subword_prefix must be a non-empty string, got ${show(prefix)}`);
  const { spellings, types } = readVocabulary(tokenizerJson, model, vocabSize);
  const mark = (spelling: string, id: number): string => {
    if (types[id] !== tokenTypes.normal) return spelling;
    return spelling.startsWith(prefix) ? spelling.slice(prefix.length) : WORD_MARK + spelling;
  };
  const u32 = (key: string, value: number): MetadataEntry => ({ key: `tokenizer.ggml.${key}`, type: 'u32', value });
  return [
    { key: 'tokenizer.ggml.model', type: 'string', value: 'bert' },
    { key: 'tokenizer.ggml.pre', type: 'string', value: 'default' },
    { key: 'tokenizer.ggml.tokens', type: 'array<string>', value: spellings.map(mark) },
    { key: 'tokenizer.ggml.token_type', type: 'array<i32>', value: types },
    u32('token_type_count', numTokenTypes),
    ...ROLES.flatMap(([key, spelling]) => {
      const id = spellings.indexOf(spelling);
      return id < 0 ? [] : [u32(key, id)];
    }),
    ...normalizerEntries(tokenizerJson['normalizer']),
  ];
}

function readVocabulary(json: Json, model: Json, vocabSize: number): { spellings: string[]; types: Int32Array } {
  const { vocab } = model;
  if (!isJsonObject(vocab)) invalidFile('tokenizer.json: model.vocab is not an object');
  const spellings = Array.from({ length: vocabSize }, (_, id) => `[PAD${id}]`);
  const types = new Int32Array(vocabSize).fill(tokenTypes.unused);
  const put = (token: unknown, id: unknown, type: number): void => {
    if (typeof token !== 'string' || !Number.isSafeInteger(id) || (id as number) < 0 || (id as number) >= vocabSize) {
      invalidFile(
        `tokenizer.json: token ${showValue(token)} has id ${showValue(id)}, the model has ${vocabSize} tokens`,
      );
    }
    if (types[id as number] !== tokenTypes.unused && spellings[id as number] !== token) {
      invalidFile(
        `tokenizer.json: tokens ${quote(spellings[id as number]!)} and ${quote(token)} share the id ${id as number}`,
      );
    }
    spellings[id as number] = token;
    types[id as number] = type;
  };
  for (const [token, id] of Object.entries(vocab)) put(token, id, tokenTypes.normal);
  const added: unknown = json['added_tokens'] ?? [];
  if (!Array.isArray(added)) invalidFile('tokenizer.json: added_tokens is not a list');
  for (const token of added as unknown[]) {
    if (!isJsonObject(token)) invalidFile('tokenizer.json: an added token is not an object');
    put(token['content'], token['id'], token['special'] === true ? tokenTypes.control : tokenTypes.userDefined);
  }
  return { spellings, types };
}

/** Written only if it differs from the common default. */
function normalizerEntries(normalizer: unknown): MetadataEntry[] {
  if (!isJsonObject(normalizer) || normalizer['type'] !== 'BertNormalizer') {
    unsupportedFile('tokenizer.json: the normalizer is not a BertNormalizer');
  }
  for (const step of REQUIRED_STEPS) {
    if (normalizer[step] === false) unsupportedFile(`tokenizer.json: the normalizer must enable ${step}`);
  }
  const isLowercase = normalizer['lowercase'] !== false;
  const stripsAccents = normalizer['strip_accents'] ?? isLowercase;
  const flag = (key: string, value: boolean): MetadataEntry => ({
    key: `tokenizer.ggml.normalizer.${key}`,
    type: 'bool',
    value,
  });
  return [
    ...(isLowercase ? [] : [flag('lowercase', false)]),
    ...(stripsAccents === isLowercase ? [] : [flag('strip_accents', stripsAccents === true)]),
  ];
}
