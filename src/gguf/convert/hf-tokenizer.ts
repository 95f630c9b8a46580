import { invalidFile, quote, unsupportedFile } from '../failures.ts';
import type { MetadataEntry } from '../types.ts';
import { isJsonObject } from './hf-config.ts';
import {
  addsBos,
  bpeEntries,
  isByteLevel,
  isSentencePiece,
  spmEntries,
  startsWithSpace,
  type HfVocabulary,
} from './hf-tokenizer-kinds.ts';
import { tokenTypes } from './llama-metadata.ts';
import { convertSentencePiece } from './sentencepiece-model.ts';
import { showValue } from '../../core/show-value.ts';

type Json = Readonly<Record<string, unknown>>;

/** The model that a tokenizer belongs to. */
export interface TokenizerTarget {
  readonly shape: { readonly vocabSize: number };
  readonly bosId: number | null;
  readonly eosId: number | null;
}

/** The tokenizer files of a checkpoint. */
export interface TokenizerFiles {
  readonly tokenizerJson?: unknown;
  readonly tokenizerModel?: Uint8Array;
  readonly tokenizerConfig?: unknown;
}

/** The tokenizer keys of a GGUF file, from a parsed tokenizer.json, else from a tokenizer.model; none without either. */
export function convertHfTokenizer(
  { tokenizerJson, tokenizerModel, tokenizerConfig }: TokenizerFiles,
  config: TokenizerTarget,
  preTokenizer: string | null,
): MetadataEntry[] {
  if (tokenizerJson === undefined || tokenizerJson === null) {
    if (tokenizerModel === undefined) return [];
    const entries = convertSentencePiece(tokenizerModel, config.shape.vocabSize);
    const tokens = entries.find(({ key }) => key === 'tokenizer.ggml.tokens')!.value as string[];
    const ids = new Map(tokens.map((token, id) => [token, id]));
    return [...entries, ...specialEntries(tokenizerConfig, config, { ids, tokens }, true)];
  }
  if (!isJsonObject(tokenizerJson)) invalidFile('tokenizer.json is not an object');
  const model = tokenizerJson['model'];
  if (!isJsonObject(model)) invalidFile('tokenizer.json: model is not an object');
  if (model['type'] !== 'BPE')
    unsupportedFile(`tokenizer.json: model type ${showValue(model['type'])} is not supported; only BPE is`);
  const vocabulary = readVocabulary(tokenizerJson, model, config.shape.vocabSize);
  const kind = isSentencePiece(tokenizerJson, model)
    ? spmEntries(vocabulary, model, startsWithSpace(tokenizerJson))
    : isByteLevel(tokenizerJson)
      ? bpeEntries(tokenizerJson, vocabulary, preTokenizer)
      : unsupportedFile('tokenizer.json is neither byte-level BPE nor SentencePiece BPE with byte fallback');
  return [...kind, ...specialEntries(tokenizerConfig, config, vocabulary, addsBos(tokenizerJson))];
}

function readVocabulary(json: Json, model: Json, vocabSize: number): HfVocabulary {
  const { vocab, merges } = model;
  if (!isJsonObject(vocab)) invalidFile('tokenizer.json: model.vocab is not an object');
  if (!Array.isArray(merges)) invalidFile('tokenizer.json: model.merges is not a list');
  const tokens: (string | undefined)[] = Array.from({ length: vocabSize });
  const types = new Int32Array(vocabSize).fill(tokenTypes.unused);
  const ids = new Map<string, number>();
  const put = (token: unknown, id: unknown, type: number): void => {
    if (typeof token !== 'string' || !Number.isSafeInteger(id) || (id as number) < 0 || (id as number) >= vocabSize) {
      invalidFile(
        `tokenizer.json: token ${showValue(token)} has id ${showValue(id)}, the model has ${vocabSize} tokens`,
      );
    }
    const before = tokens[id as number];
    if (before !== undefined && before !== token) {
      invalidFile(`tokenizer.json: tokens ${quote(before)} and ${quote(token)} share the id ${id as number}`);
    }
    tokens[id as number] = token;
    types[id as number] = type;
    ids.set(token, id as number);
  };
  for (const [token, id] of Object.entries(vocab)) put(token, id, tokenTypes.normal);
  const added: unknown = json['added_tokens'] ?? [];
  if (!Array.isArray(added)) invalidFile('tokenizer.json: added_tokens is not a list');
  for (const token of added as unknown[]) {
    if (!isJsonObject(token)) invalidFile('tokenizer.json: an added token is not an object');
    put(token['content'], token['id'], token['special'] === true ? tokenTypes.control : tokenTypes.userDefined);
  }
  return {
    tokens: tokens.map((token, id) => token ?? `[PAD${id}]`),
    types,
    ids,
    merges: merges.map(readMerge),
  };
}

/** Older files write "a b", newer ones ["a", "b"]. */
function readMerge(merge: unknown, rank: number): readonly [string, string] {
  const parts: unknown = typeof merge === 'string' ? merge.split(' ') : merge;
  if (!Array.isArray(parts) || parts.length !== 2 || parts.some((part) => typeof part !== 'string' || part === '')) {
    invalidFile(`tokenizer.json: merge ${rank} is not a pair of tokens`);
  }
  return parts as unknown as [string, string];
}

function specialEntries(
  tokenizerConfig: unknown,
  config: TokenizerTarget,
  { ids, tokens }: Pick<HfVocabulary, 'ids' | 'tokens'>,
  addsBosByDefault: boolean,
): MetadataEntry[] {
  const settings = isJsonObject(tokenizerConfig) ? tokenizerConfig : {};
  const entries: MetadataEntry[] = [];
  const addId = (key: string, name: string, fallback: number | null): void => {
    const value = settings[name];
    const content = isJsonObject(value) ? value['content'] : value;
    const id = (typeof content === 'string' ? ids.get(content) : undefined) ?? fallback;
    if (id !== null && id < tokens.length) entries.push({ key: `tokenizer.ggml.${key}`, type: 'u32', value: id });
  };
  // The tokenizer's EOS first: config.json lists the base model's before the one that ends a chat turn.
  addId('bos_token_id', 'bos_token', config.bosId);
  addId('eos_token_id', 'eos_token', config.eosId);
  addId('unknown_token_id', 'unk_token', null);
  addId('padding_token_id', 'pad_token', null);
  const setting = settings['add_bos_token'];
  const value = typeof setting === 'boolean' ? setting : addsBosByDefault;
  entries.push({ key: 'tokenizer.ggml.add_bos_token', type: 'bool', value });
  const template = settings['chat_template'];
  if (typeof template === 'string') entries.push({ key: 'tokenizer.chat_template', type: 'string', value: template });
  return entries;
}
