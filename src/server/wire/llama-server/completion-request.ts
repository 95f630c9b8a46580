import type { ScaledAdapter } from '../../../runtime/adapters.ts';
import type { GenerateOptions } from '../../../runtime/generate-options.ts';
import {
  type GenerationRequest,
  type OutputConstraint,
  PLAIN_REQUEST,
} from '../../../runtime/requests/generation-request.ts';
import { refusal } from '../../errors.ts';
import type { ServerLimits } from '../../limits.ts';
import {
  booleanField,
  type Field,
  fieldsByLimits,
  integerField,
  invalid,
  isObject,
  type JsonSchema,
  listField,
  numberField,
  objectField,
  readFields,
  requiredField,
  schemaOf,
  stringField,
  type Values,
} from '../fields.ts';
import { modelField } from '../openai/chat-request.ts';
import { promptField } from '../openai/completion-request.ts';
import { adapterField, stopField } from '../openai/sampling-fields.ts';

/** A request in the format of llama-server's own routes. */
export interface NativeRequest {
  readonly generation: GenerationRequest;
  readonly isStream: boolean;
  /** Whether the prompt is only computed into the prefix cache: nothing of the answer is sent. */
  readonly isPromptOnly: boolean;
  readonly hasTokens: boolean;
}

const MAX_TEXT = 2 ** 22;
const MAX_BIASES = 4096;
const INT32_MAX = 2 ** 31 - 1;
/** llama-server's bias `false`: the token never appears. */
const NEVER = -100;

/** `[[token, bias], …]` or `{ token: bias }`; `false` forbids a token. */
const biasField: Field<Readonly<Record<string, number>>> = {
  schema: { oneOf: [{ type: 'array', items: { type: 'array' }, maxItems: MAX_BIASES }, { type: 'object' }] },
  read(value, path) {
    const entries = Array.isArray(value) ? (value as unknown[]) : isObject(value) ? Object.entries(value) : null;
    if (entries === null || entries.length > MAX_BIASES) {
      throw invalid(path, `a list of at most ${MAX_BIASES} pairs of token id and number`, value);
    }
    return Object.fromEntries(
      entries.map((entry, index) => {
        const [id, bias] = Array.isArray(entry) ? (entry as unknown[]) : [];
        const token = typeof id === 'string' || typeof id === 'number' ? String(id) : '';
        if (/^\d{1,10}$/.test(token) && bias === false) return [token, NEVER];
        if (!/^\d{1,10}$/.test(token) || typeof bias !== 'number' || Number.isNaN(bias)) {
          throw invalid(`${path}[${index}]`, 'a pair of token id and number', entry);
        }
        return [token, Math.max(NEVER, Math.min(-NEVER, bias))];
      }),
    );
  },
};

/** Adapters by their number in `GET /lora-adapters`. */
export const loraField: Field<readonly { readonly id: number; readonly scale: number | null }[]> = listField(
  {
    schema: { type: 'object', properties: { id: { type: 'integer' }, scale: { type: 'number' } }, required: ['id'] },
    read: (value: unknown, path: string) =>
      readFields(value, { id: requiredField(integerField(0, 1023)), scale: numberField(-100, 100) }, { path }),
  },
  16,
);

const NATIVE_FIELDS = {
  model: modelField,
  n_predict: integerField(-2, INT32_MAX),
  temperature: numberField(0, 100),
  top_k: integerField(-1, INT32_MAX),
  top_p: numberField(0, 1),
  min_p: numberField(0, 1),
  typical_p: numberField(0, 1),
  repeat_penalty: numberField(0.01, 10),
  repeat_last_n: integerField(-1, INT32_MAX),
  presence_penalty: numberField(-2, 2),
  frequency_penalty: numberField(-2, 2),
  seed: integerField(-1, Number.MAX_SAFE_INTEGER),
  stop: stopField,
  logit_bias: biasField,
  ignore_eos: booleanField,
  n_probs: integerField(0, 20),
  grammar: stringField(65_536),
  json_schema: objectField,
  stream: booleanField,
  cache_prompt: booleanField,
  return_tokens: booleanField,
  lora: loraField,
  adapter: adapterField,
};

const completionFields = fieldsByLimits((limits: ServerLimits) => ({
  prompt: requiredField(promptField(limits.maxChoices)),
  ...NATIVE_FIELDS,
}));

const INFILL_FIELDS = {
  input_prefix: requiredField(stringField(MAX_TEXT)),
  input_suffix: requiredField(stringField(MAX_TEXT)),
  input_extra: listField(
    {
      schema: { type: 'object', properties: { filename: { type: 'string' }, text: { type: 'string' } } },
      read: (value: unknown, path: string) =>
        readFields(value, { filename: stringField(4096), text: requiredField(stringField(MAX_TEXT)) }, { path }),
    },
    256,
  ),
  prompt: stringField(MAX_TEXT),
  ...NATIVE_FIELDS,
};

/** llama-server's defaults, where the library's differ. */
const DEFAULTS = { temperature: 0.8, topK: 40, topP: 0.95, minP: 0.05 } as const;

/** Fields of library options with the same values. */
const OPTION_NAMES = {
  temperature: 'temperature',
  topP: 'top_p',
  minP: 'min_p',
  typicalP: 'typical_p',
  repetitionPenalty: 'repeat_penalty',
  penaltyWindow: 'repeat_last_n',
  presencePenalty: 'presence_penalty',
  frequencyPenalty: 'frequency_penalty',
  stop: 'stop',
  logitBias: 'logit_bias',
  ignoreEos: 'ignore_eos',
  cachePrefix: 'cache_prompt',
  adapter: 'adapter',
} as const satisfies Partial<Record<keyof GenerateOptions, keyof typeof NATIVE_FIELDS>>;

function toOptions(fields: Values<typeof NATIVE_FIELDS>): GenerationRequest['options'] {
  const { n_predict: numTokens, top_k: topK, seed, n_probs: numProbs } = fields;
  const entries = Object.entries(OPTION_NAMES).map(([option, name]) => [option, fields[name]] as const);
  return {
    ...DEFAULTS,
    ...Object.fromEntries(entries.filter(([, value]) => value !== null)),
    ...(topK === null ? {} : { topK: Math.max(0, topK) }),
    // -1: a new seed for every request.
    ...(seed === null || seed < 0 ? {} : { seed }),
    ...(numProbs === null || numProbs === 0 ? {} : { topLogprobs: numProbs }),
    // -1 and -2: up to the end of the context.
    ...(numTokens === null || numTokens < 0 ? {} : { maxTokens: Math.max(1, numTokens), clampMaxTokens: true }),
  };
}

function constraintOf({ grammar, json_schema: schema }: Values<typeof NATIVE_FIELDS>): OutputConstraint | null {
  if (grammar !== null && grammar !== '') {
    if (schema !== null) throw invalid('grammar', "left out with 'json_schema'", grammar);
    return { kind: 'grammar', grammar };
  }
  return schema === null ? null : { kind: 'json_schema', name: 'answer', schema, isStrict: true };
}

function toRequest(
  fields: Values<typeof NATIVE_FIELDS>,
  model: string,
  part: Pick<GenerationRequest, 'prompts' | 'options'>,
): NativeRequest {
  const constraint = constraintOf(fields);
  return {
    generation: {
      ...PLAIN_REQUEST,
      model,
      prompts: part.prompts,
      options: { ...toOptions(fields), ...part.options },
      constraint,
      fieldNames: {
        maxTokens: 'n_predict',
        fill: 'input_suffix',
        grammar: constraint?.kind === 'json_schema' ? 'json_schema' : 'grammar',
      },
    },
    isStream: fields.stream ?? false,
    isPromptOnly: fields.n_predict === 0,
    hasTokens: fields.return_tokens ?? false,
  };
}

/** Names a model that a request leaves out, and the adapters that it numbers. */
export interface NativeContext {
  readonly limits: ServerLimits;
  modelOf(name: string | null): string;
  /** Null: there is no adapter of that number. */
  adapterOf(model: string, index: number): string | null;
}

/** The named adapters; those of scale 0 are left out. `nameOf` returns null for a number without an adapter. */
export function scaledAdaptersOf(
  list: ReturnType<typeof loraField.read>,
  path: string,
  nameOf: (id: number) => string | null,
): Required<ScaledAdapter>[] {
  return list.flatMap(({ id, scale }, index) => {
    const name = nameOf(id);
    const param = `${path}[${index}].id`;
    if (name === null)
      throw refusal(400, 'adapter_not_found', `'${param}' is ${id}; see GET /lora-adapters`, { param });
    return scale === 0 ? [] : [{ name, scale: scale ?? 1 }];
  });
}

function adaptersOf({ lora }: Values<typeof NATIVE_FIELDS>, model: string, context: NativeContext) {
  if (lora === null) return {};
  const adapter = scaledAdaptersOf(lora, 'lora', (id) => context.adapterOf(model, id));
  return { adapter: adapter.length === 0 ? null : adapter };
}

/** Reads the body of `POST /completion`. Spelled-out control tokens of a text are control tokens, as in llama-server. */
export function readNativeCompletion(body: unknown, context: NativeContext): NativeRequest {
  const fields = readFields(body, completionFields(context.limits));
  const model = context.modelOf(fields.model);
  const options = { parseSpecial: true, ...adaptersOf(fields, model, context) };
  return toRequest(fields, model, { prompts: fields.prompt, options });
}

/** Reads the body of `POST /infill`. */
export function readInfill(body: unknown, context: NativeContext): NativeRequest {
  const fields = readFields(body, INFILL_FIELDS);
  const model = context.modelOf(fields.model);
  const files = (fields.input_extra ?? []).map(({ filename, text }, index) => ({
    name: filename ?? `file ${index + 1}`,
    text,
  }));
  const fill = { suffix: fields.input_suffix, start: fields.prompt ?? '', files };
  const options = { fill, corrections: false, ...adaptersOf(fields, model, context) };
  return toRequest(fields, model, { prompts: [fields.input_prefix], options });
}

export const nativeCompletionSchema = (limits: ServerLimits): JsonSchema => schemaOf(completionFields(limits));
export const infillSchema: JsonSchema = schemaOf(INFILL_FIELDS);
