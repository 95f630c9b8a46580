import { RuvLLMError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import { DEFAULT_ENCODER, DEFAULT_MODELS } from './default-models.ts';

const [QWEN, SMOLLM, TINYLLAMA] = DEFAULT_MODELS.map(({ reference }) => reference) as [string, string, string];

/**
 * Short names, in the spelling that Ollama's library made common: sizes of a family with the sources of each, preferred
 * ones first. The first size is the one of the bare name.
 */
const FAMILIES: Readonly<Record<string, Readonly<Record<string, string | readonly string[]>>>> = {
  tinyllama: { '1.1b': ['TheBloke/TinyLlama-1.1B-Chat-v1.0-GGUF:Q4_K_M', TINYLLAMA] },
  'qwen2.5': {
    '7b': 'bartowski/Qwen2.5-7B-Instruct-GGUF:Q4_K_M',
    '0.5b': QWEN,
    '1.5b': 'Qwen/Qwen2.5-1.5B-Instruct-GGUF:q4_k_m',
    '3b': 'Qwen/Qwen2.5-3B-Instruct-GGUF:q4_k_m',
    '14b': 'bartowski/Qwen2.5-14B-Instruct-GGUF:Q4_K_M',
    '32b': 'bartowski/Qwen2.5-32B-Instruct-GGUF:Q4_K_M',
  },
  'qwen2.5-coder': {
    '7b': 'bartowski/Qwen2.5-Coder-7B-Instruct-GGUF:Q4_K_M',
    '0.5b': 'Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF:q4_k_m',
    '1.5b': 'Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF:q4_k_m',
    '3b': 'Qwen/Qwen2.5-Coder-3B-Instruct-GGUF:q4_k_m',
    '14b': 'bartowski/Qwen2.5-Coder-14B-Instruct-GGUF:Q4_K_M',
    '32b': 'bartowski/Qwen2.5-Coder-32B-Instruct-GGUF:Q4_K_M',
  },
  qwen3: {
    '8b': 'Qwen/Qwen3-8B-GGUF:Q4_K_M',
    '0.6b': 'Qwen/Qwen3-0.6B-GGUF:Q8_0',
    '1.7b': 'Qwen/Qwen3-1.7B-GGUF:Q8_0',
    '4b': 'Qwen/Qwen3-4B-GGUF:Q4_K_M',
    '14b': 'Qwen/Qwen3-14B-GGUF:Q4_K_M',
  },
  'llama3.2': {
    '3b': 'bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M',
    '1b': 'bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M',
  },
  'llama3.1': { '8b': 'bartowski/Meta-Llama-3.1-8B-Instruct-GGUF:Q4_K_M' },
  llama3: { '8b': 'bartowski/Meta-Llama-3-8B-Instruct-GGUF:Q4_K_M' },
  llama2: { '7b': 'TheBloke/Llama-2-7B-Chat-GGUF:Q4_K_M' },
  smollm2: {
    '1.7b': 'HuggingFaceTB/SmolLM2-1.7B-Instruct-GGUF:q4_k_m',
    '360m': SMOLLM,
    '135m': 'bartowski/SmolLM2-135M-Instruct-GGUF:Q4_K_M',
  },
  gemma3: {
    '4b': 'ggml-org/gemma-3-4b-it-GGUF:Q4_K_M',
    '1b': 'ggml-org/gemma-3-1b-it-GGUF:Q4_K_M',
    '12b': 'ggml-org/gemma-3-12b-it-GGUF:Q4_K_M',
  },
  gemma2: {
    '9b': 'bartowski/gemma-2-9b-it-GGUF:Q4_K_M',
    '2b': 'bartowski/gemma-2-2b-it-GGUF:Q4_K_M',
  },
  phi3: {
    '3.8b': 'bartowski/Phi-3-mini-4k-instruct-GGUF:Q4_K_M',
    mini: 'bartowski/Phi-3-mini-4k-instruct-GGUF:Q4_K_M',
  },
  'phi3.5': { '3.8b': 'bartowski/Phi-3.5-mini-instruct-GGUF:Q4_K_M' },
  mistral: { '7b': 'bartowski/Mistral-7B-Instruct-v0.3-GGUF:Q4_K_M' },
  'deepseek-r1': {
    '7b': 'bartowski/DeepSeek-R1-Distill-Qwen-7B-GGUF:Q4_K_M',
    '1.5b': 'bartowski/DeepSeek-R1-Distill-Qwen-1.5B-GGUF:Q4_K_M',
    '8b': 'bartowski/DeepSeek-R1-Distill-Llama-8B-GGUF:Q4_K_M',
  },
  'all-minilm': { '22m': [DEFAULT_ENCODER.reference, 'second-state/All-MiniLM-L6-v2-Embedding-GGUF:Q8_0'] },
};

/** Names people type whose architecture has no forward pass: a typed error is better than a useless download. */
const UNSUPPORTED: Readonly<Record<string, string>> = {
  'nomic-embed-text': 'nomic-bert',
  llava: 'an image encoder',
  gemma: 'gemma',
  phi4: 'phi4',
};

/** Letters, digits, `.`, `_` and `-`, with an optional tag: neither a path nor `owner/repo`. */
const NAME = /^(?!.*\.\.)[a-z0-9][a-z0-9._-]{0,95}(?::[a-z0-9][a-z0-9._-]{0,63})?$/i;
const TAG = /^([a-z0-9.]+?)(?:-(?:instruct|chat|it|text))?(?:-((?:i?q|b?f)\d[a-z0-9_]*))?$/i;

/** Whether the text can be a short name: `tinyllama`, `qwen2.5:0.5b`. */
export function isModelName(text: string): boolean {
  return typeof text === 'string' && NAME.test(text) && !/\.gguf$/i.test(text) && !/^(?:npm|hf):/i.test(text);
}

/** A short name without the tag `latest`, which means no tag. */
export const plainName = (name: string): string => name.replace(/:latest$/i, '');

/**
 * The references of a short name, preferred ones first; null: the table does not have it. A quantization behind the size
 * is applied to hub references: `llama3.2:1b-instruct-q8_0`.
 */
export function referencesOf(name: string): readonly string[] | null {
  const [family, tag] = plainName(name.toLowerCase()).split(':') as [string, string?];
  if (!Object.hasOwn(FAMILIES, family)) return null;
  const sizes = FAMILIES[family]!;
  const [, size, quant] = tag === undefined ? ['', Object.keys(sizes)[0]!] : (TAG.exec(tag) ?? []);
  if (size === undefined || !Object.hasOwn(sizes, size)) return null;
  const references = [sizes[size]!].flat();
  if (quant === undefined) return references;
  return references.flatMap((reference) =>
    reference.startsWith('npm:') ? [] : [reference.replace(/:[^:]+$/, `:${quant.toUpperCase()}`)],
  );
}

const NAMES: readonly string[] = Object.entries(FAMILIES).flatMap(([family, sizes]) =>
  Object.keys(sizes).flatMap((size, index) => (index === 0 ? [family, `${family}:${size}`] : [`${family}:${size}`])),
);

/** Every short name of the table. */
export const listModelNames = (): readonly string[] => NAMES;

const sourceKey = (reference: string): string => reference.replace(/^hf:/, '').toLowerCase();
const NAME_BY_SOURCE: ReadonlyMap<string, string> = new Map(
  // The shortest name of a source wins, because a later entry of a map replaces an earlier one.
  NAMES.toReversed().flatMap((name) => referencesOf(name)!.map((reference) => [sourceKey(reference), name] as const)),
);

/** The short name of a reference; null: it has none. */
export function shortNameOf(reference: string): string | null {
  return NAME_BY_SOURCE.get(sourceKey(reference)) ?? null;
}

/** The error for a name that is neither in the table nor defined by the user. */
export function unknownName(name: string, otherNames: readonly string[]): RuvLLMError {
  const family = plainName(name.toLowerCase()).split(':')[0]!;
  if (Object.hasOwn(UNSUPPORTED, family)) {
    return new RuvLLMError(
      'unsupported',
      `${name} is not supported: its architecture is ${UNSUPPORTED[family]!}. ${family.includes('embed') ? 'Use all-minilm for embeddings.' : 'Try llama3.2 or qwen2.5.'}`,
      { data: { reference: name } },
    );
  }
  const sizes = Object.hasOwn(FAMILIES, family)
    ? Object.keys(FAMILIES[family]!).map((size) => `${family}:${size}`)
    : [];
  const suggestions = sizes.length > 0 ? sizes : nearest(plainName(name), [...otherNames, ...NAMES]);
  return new RuvLLMError(
    'not_found',
    `model ${JSON.stringify(name)} not found: it is neither a known name nor owner/repo[:QUANT], npm:package, a URL or a path`,
    { data: { reference: name, ...(suggestions.length === 0 ? {} : { suggestions: [...suggestions] }) } },
  );
}
