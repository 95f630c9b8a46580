import { invalidFile, quote, unsupportedFile } from '../failures.ts';
import type { MetadataEntry } from '../types.ts';
import { isJsonObject } from './hf-config.ts';
import { tokenTypes } from './llama-metadata.ts';
import { showValue } from '../../core/show-value.ts';

type Json = Readonly<Record<string, unknown>>;

/** Splitting rules by their regular expression in tokenizer.json. */
const PRE_TOKENIZERS: ReadonlyMap<string, string> = new Map([
  [
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    'llama-bpe',
  ],
  [
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    'qwen2',
  ],
]);

/** A step, or the parts of a sequence: normalizers, pre-tokenizers and post-processors have the same shape. */
function flatten(step: unknown, listKey: string): Json[] {
  if (!isJsonObject(step)) return [];
  const list = step[listKey];
  return step['type'] === 'Sequence' && Array.isArray(list) ? list.filter(isJsonObject) : [step];
}

const preTokenizerSteps = (json: Json): Json[] => flatten(json['pre_tokenizer'], 'pretokenizers');

export function isByteLevel(json: Json): boolean {
  return preTokenizerSteps(json).some((step) => step['type'] === 'ByteLevel');
}

/** SentencePiece BPE in Hugging Face's format: byte fallback, and spaces become U+2581. */
export function isSentencePiece(json: Json, model: Json): boolean {
  const replacesSpaces = flatten(json['normalizer'], 'normalizers').some(
    (step) => step['type'] === 'Replace' && step['content'] === '\u2581',
  );
  return model['byte_fallback'] === true && (replacesSpaces || preTokenizerSteps(json).some(isMetaspace));
}

const isMetaspace = (step: Json): boolean => step['type'] === 'Metaspace';

/** Whether a space is added before a text; Gemma adds none. */
export function startsWithSpace(json: Json): boolean {
  const metaspace = preTokenizerSteps(json).find(isMetaspace);
  if (metaspace !== undefined)
    return metaspace['prepend_scheme'] !== 'never' && metaspace['add_prefix_space'] !== false;
  return flatten(json['normalizer'], 'normalizers').some((step) => step['type'] === 'Prepend');
}

/** Whether BOS is prepended to a single text. */
export function addsBos(json: Json): boolean {
  const templates = flatten(json['post_processor'], 'processors').filter(
    (step) => step['type'] === 'TemplateProcessing',
  );
  const single: unknown = templates[0]?.['single'];
  return Array.isArray(single) && isJsonObject(single[0]) && 'SpecialToken' in single[0];
}

export function bpeEntries(json: Json, vocabulary: HfVocabulary, preTokenizer: string | null): MetadataEntry[] {
  return [
    { key: 'tokenizer.ggml.model', type: 'string', value: 'gpt2' },
    { key: 'tokenizer.ggml.pre', type: 'string', value: preTokenizer ?? detectPreTokenizer(json) },
    { key: 'tokenizer.ggml.tokens', type: 'array<string>', value: vocabulary.tokens },
    { key: 'tokenizer.ggml.token_type', type: 'array<i32>', value: vocabulary.types },
    { key: 'tokenizer.ggml.merges', type: 'array<string>', value: vocabulary.merges.map((pair) => pair.join(' ')) },
  ];
}

function detectPreTokenizer(json: Json): string {
  const steps = preTokenizerSteps(json);
  const splits = steps.filter((step) => step['type'] === 'Split');
  const pattern = isJsonObject(splits[0]?.['pattern']) ? splits[0]['pattern']['Regex'] : undefined;
  const preTokenizer = splits.length === 1 && typeof pattern === 'string' ? PRE_TOKENIZERS.get(pattern) : undefined;
  // Llama 3's rule with merges that count for whole words too, as in OLMo 2 and SmolLM 3.
  const mergesWords = isJsonObject(json['model']) && json['model']['ignore_merges'] === false;
  if (preTokenizer === 'llama-bpe' && mergesWords) return 'dbrx';
  if (preTokenizer !== undefined) return preTokenizer;
  const kinds = steps.map(({ type }) => (typeof type === 'string' ? type : showValue(type))).join(', ');
  // The ByteLevel step has GPT-2's rule built in; SmolLM first splits every digit.
  if (kinds === 'ByteLevel' && steps[0]!['use_regex'] !== false) return 'gpt-2';
  if (kinds === 'Digits, ByteLevel' && steps[0]!['individual_digits'] === true) return 'smollm';
  const label = typeof pattern === 'string' ? quote(pattern) : kinds;
  return unsupportedFile(`tokenizer.json: unknown pre-tokenizer ${label}; set the option "preTokenizer"`);
}

const BYTE_TOKEN = /^<0x[0-9A-F]{2}>$/;
/** For tokens that no merge produces: they must never win over a merged one. */
const UNMERGED_SCORE = -1e9;

/**
 * SentencePiece merges the pair whose token has the best score. tokenizer.json has only the order of merges, so the
 * n-th distinct merged token gets the score -n, which gives the same result.
 */
export function spmEntries(vocabulary: HfVocabulary, model: Json, hasSpacePrefix: boolean): MetadataEntry[] {
  const { tokens, ids, merges } = vocabulary;
  const types = vocabulary.types.slice();
  const scores = new Float32Array(tokens.length);
  const isScored = new Uint8Array(tokens.length);
  let numScored = 0;
  for (const [left, right] of merges) {
    const id = ids.get(left + right);
    if (id === undefined)
      invalidFile(`tokenizer.json: the merge of ${quote(left)} and ${quote(right)} is not in the vocabulary`);
    if (isScored[id] === 1) continue;
    isScored[id] = 1;
    scores[id] = 0 - numScored++;
  }
  tokens.forEach((token, id) => {
    if (types[id] === tokenTypes.normal && BYTE_TOKEN.test(token)) types[id] = tokenTypes.byte;
    else if (types[id] === tokenTypes.normal && isScored[id] === 0) scores[id] = UNMERGED_SCORE;
  });
  const unknown = typeof model['unk_token'] === 'string' ? ids.get(model['unk_token']) : undefined;
  if (unknown !== undefined) types[unknown] = tokenTypes.unknown;
  return [
    { key: 'tokenizer.ggml.model', type: 'string', value: 'llama' },
    { key: 'tokenizer.ggml.pre', type: 'string', value: 'default' },
    { key: 'tokenizer.ggml.tokens', type: 'array<string>', value: tokens },
    { key: 'tokenizer.ggml.add_space_prefix', type: 'bool', value: hasSpacePrefix },
    { key: 'tokenizer.ggml.scores', type: 'array<f32>', value: scores },
    { key: 'tokenizer.ggml.token_type', type: 'array<i32>', value: types },
  ];
}

/** Spellings and types by id, complete for the model. */
export interface HfVocabulary {
  readonly tokens: string[];
  readonly types: Int32Array;
  readonly ids: ReadonlyMap<string, number>;
  readonly merges: readonly (readonly [string, string])[];
}
