import type { AdapterWish } from '../../../runtime/adapters.ts';
import type { GenerateOptions } from '../../../runtime/generate-options.ts';
import {
  booleanField,
  type Field,
  integerField,
  invalid,
  isObject,
  listField,
  numberField,
  objectField,
  stringField,
  type Values,
} from '../fields.ts';
import { oneSpelling } from '../spellings.ts';

const MAX_STOP_LENGTH = 512;
const MAX_STOPS = 16;
const MAX_BIASES = 4096;
const MAX_NAME = 256;
const MAX_STOP_TOKENS = 64;
/** In milliseconds 24.8 days, the longest delay a timer can have. */
const INT32_MAX = 2 ** 31 - 1;

export const stopField: Field<readonly string[]> = {
  schema: {
    oneOf: [{ type: 'string' }, { type: 'array', items: { type: 'string', minLength: 1 }, maxItems: MAX_STOPS }],
  },
  read(value, path) {
    const stops = typeof value === 'string' ? [value] : value;
    const isValid = (stop: unknown): stop is string =>
      typeof stop === 'string' && stop.length > 0 && stop.length <= MAX_STOP_LENGTH;
    if (!Array.isArray(stops) || stops.length > MAX_STOPS || !stops.every(isValid)) {
      throw invalid(path, `a string or a list of at most ${MAX_STOPS}, of 1 to ${MAX_STOP_LENGTH} characters`, value);
    }
    return stops;
  },
};

const biasField: Field<Readonly<Record<string, number>>> = {
  schema: { type: 'object', additionalProperties: { type: 'number', minimum: -100, maximum: 100 } },
  read(value, path) {
    if (!isObject(value)) throw invalid(path, 'an object from token id to number', value);
    const entries = Object.entries(value);
    if (entries.length > MAX_BIASES) throw invalid(path, `at most ${MAX_BIASES} entries`, `${entries.length} entries`);
    for (const [id, bias] of entries) {
      if (!/^\d{1,10}$/.test(id)) throw invalid(path, 'an object whose keys are token ids', id);
      if (typeof bias !== 'number' || !(Math.abs(bias) <= 100)) {
        throw invalid(`${path}.${id}`, 'a number from -100 to 100', bias);
      }
    }
    return Object.fromEntries(entries) as Record<string, number>;
  },
};

const numTokensField = integerField(-1, INT32_MAX);

/** vLLM and llama-server write "off" as -1 or 0. */
const topKField: Field<number> = {
  schema: numTokensField.schema,
  read: (value, path) => Math.max(0, numTokensField.read(value, path)),
};

const ADAPTER_SCHEMA = {
  oneOf: [
    { type: 'string', minLength: 1, maxLength: 64 },
    {
      type: 'object',
      properties: { name: { type: 'string', minLength: 1, maxLength: 64 }, scale: { type: 'number' } },
      required: ['name'],
    },
  ],
} as const;

/** The name of an adapter, or `{ name, scale }`, or a list of them; validated by the runtime. */
export const adapterField: Field<AdapterWish> = {
  schema: { oneOf: [...ADAPTER_SCHEMA.oneOf, { type: 'array', items: ADAPTER_SCHEMA, maxItems: 4 }] },
  read(value, path) {
    const isAdapter = (item: unknown): boolean => typeof item === 'string' || isObject(item);
    if (isAdapter(value) || (Array.isArray(value) && value.every(isAdapter))) return value as AdapterWish;
    throw invalid(path, 'the name of an adapter, { name, scale }, or a list of them', value);
  },
};

const seedField = integerField(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
const repetitionField = numberField(0.01, 10);

/** Sampling and scheduling: OpenAI's fields, those of RuvLLM, and their names in llama-server, vLLM and Mistral's API. */
export const SAMPLING_FIELDS = {
  temperature: numberField(0, 2),
  top_p: numberField(0, 1),
  presence_penalty: numberField(-2, 2),
  frequency_penalty: numberField(-2, 2),
  seed: seedField,
  stop: stopField,
  logit_bias: biasField,
  user: stringField(MAX_NAME),
  top_k: topKField,
  min_p: numberField(0, 1),
  typical_p: numberField(0, 1),
  repetition_penalty: repetitionField,
  ignore_eos: booleanField,
  cache_prefix: booleanField,
  priority: integerField(-10, 10),
  session: stringField(MAX_NAME, 1),
  timeout_ms: integerField(1, INT32_MAX),
  /** Which texts of the memory to recall; validated by the memory. */
  memory: objectField,
  /** Whether corrections of near questions are recalled. */
  corrections: booleanField,
  adapter: adapterField,
  min_tokens: integerField(0, INT32_MAX),
  stop_token_ids: listField(integerField(0, INT32_MAX), MAX_STOP_TOKENS),
  repeat_last_n: numTokensField,
  random_seed: seedField,
  repeat_penalty: repetitionField,
  cache_prompt: booleanField,
};

/** Whether the request sets neither temperature nor top-p. */
export const isSamplingOpen = (fields: Pick<Values<typeof SAMPLING_FIELDS>, 'temperature' | 'top_p'>): boolean =>
  fields.temperature === null && fields.top_p === null;

/** Fields of library options with the same values and one name. */
const OPTION_NAMES = {
  temperature: 'temperature',
  topP: 'top_p',
  presencePenalty: 'presence_penalty',
  frequencyPenalty: 'frequency_penalty',
  stop: 'stop',
  logitBias: 'logit_bias',
  topK: 'top_k',
  minP: 'min_p',
  typicalP: 'typical_p',
  ignoreEos: 'ignore_eos',
  priority: 'priority',
  session: 'session',
  timeoutMs: 'timeout_ms',
  memory: 'memory',
  corrections: 'corrections',
  adapter: 'adapter',
  minTokens: 'min_tokens',
  stopTokenIds: 'stop_token_ids',
} as const satisfies Partial<Record<keyof GenerateOptions, keyof typeof SAMPLING_FIELDS>>;

/** The library's options for these fields. */
export function toGenerateOptions(fields: Values<typeof SAMPLING_FIELDS>): Omit<GenerateOptions, 'signal' | 'tenant'> {
  const { user, presence_penalty: presence, frequency_penalty: frequency, repeat_last_n: window } = fields;
  const seed = oneSpelling(fields, 'seed', 'random_seed');
  const repetition = oneSpelling(fields, 'repetition_penalty', 'repeat_penalty');
  const isCached = oneSpelling(fields, 'cache_prefix', 'cache_prompt');
  const entries = Object.entries(OPTION_NAMES).map(([option, name]) => [option, fields[name]] as const);
  return {
    ...Object.fromEntries(entries.filter(([, value]) => value !== null)),
    // OpenAI allows negative seeds, the library does not.
    ...(seed === null ? {} : { seed: Math.abs(seed.value) }),
    ...(repetition === null ? {} : { repetitionPenalty: repetition.value }),
    ...(isCached === null ? {} : { cachePrefix: isCached.value }),
    ...(user === null || user === '' ? {} : { user }),
    // OpenAI's penalties count all tokens of prompt and answer.
    ...(window !== null
      ? { penaltyWindow: window }
      : presence === null && frequency === null
        ? {}
        : { penaltyWindow: -1 }),
    // An answer may be shorter than requested, but never longer than the context.
    clampMaxTokens: true,
  };
}
