import type { GenerateOptions } from '../../../runtime/generate-options.ts';
import { type Field, integerField, invalid, numberField, readFields, type Values } from '../fields.ts';

const MAX_COUNT = 2 ** 31 - 1;

const stopField: Field<readonly string[]> = {
  schema: { oneOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] },
  read(value, path) {
    const stops: unknown = typeof value === 'string' ? [value] : value;
    if (Array.isArray(stops) && stops.every((stop): stop is string => typeof stop === 'string')) {
      return stops.filter((stop) => stop !== '');
    }
    throw invalid(path, 'a string or a list of strings', value);
  },
};

/** Ollama's `options` that this server can apply to one request. */
const OPTIONS = {
  num_predict: integerField(-2, MAX_COUNT),
  temperature: numberField(0, 100),
  top_k: integerField(-1, MAX_COUNT),
  top_p: numberField(0, 1),
  min_p: numberField(0, 1),
  typical_p: numberField(0, 1),
  seed: integerField(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
  stop: stopField,
  repeat_penalty: numberField(0.01, 10),
  repeat_last_n: integerField(-1, MAX_COUNT),
  presence_penalty: numberField(-2, 2),
  frequency_penalty: numberField(-2, 2),
  // Applied where a model is loaded, not to one request.
  num_ctx: integerField(1, MAX_COUNT),
};

/** The names of the options, for Modelfiles. */
export const OPTION_NAMES: readonly string[] = Object.keys(OPTIONS);

/** The library's options for Ollama's. */
export function readOptions(value: unknown): Partial<GenerateOptions> {
  return toGenerateOptions(readFields(value, OPTIONS, { path: 'options' }));
}

function toGenerateOptions(fields: Values<typeof OPTIONS>): Partial<GenerateOptions> {
  const { num_predict: numPredict, top_k: topK, seed } = fields;
  const options = {
    // Zero and negative numbers mean no limit.
    maxTokens: numPredict !== null && numPredict > 0 ? numPredict : null,
    temperature: fields.temperature,
    topK: topK === null ? null : Math.max(0, topK),
    topP: fields.top_p,
    minP: fields.min_p,
    typicalP: fields.typical_p,
    // The library has no negative seeds.
    seed: seed === null ? null : Math.abs(seed),
    stop: fields.stop,
    repetitionPenalty: fields.repeat_penalty,
    penaltyWindow: fields.repeat_last_n,
    presencePenalty: fields.presence_penalty,
    frequencyPenalty: fields.frequency_penalty,
  };
  return Object.fromEntries(Object.entries(options).filter(([, option]) => option !== null));
}
