import { RuvLLMError } from '../core/errors.ts';
import {
  booleanOption,
  integerOption,
  numberOption,
  optional,
  resolveOptions,
  stringListOption,
} from '../core/options.ts';
import { showValue } from '../core/show-value.ts';
import type { SamplingParams } from './types.ts';

/** Parameters of one generation; all optional. */
export interface GenerateParams {
  /** Maximum tokens to generate. Default 256. */
  maxTokens?: number;
  /** 0 to 100; 0 is greedy. Default: as the model file recommends, else 0.3 for weights below 4 bits, else 0.7. */
  temperature?: number;
  /** Nucleus sampling, 0 to 1; 1 is off, 0 keeps only the likeliest token. Default: as the model file recommends, else 1. */
  topP?: number;
  /** Keeps the k likeliest tokens; 0 is off. Default: as the model file recommends, else 0. */
  topK?: number;
  /** Keeps tokens at least this fraction as likely as the likeliest, 0 to 1; 0 is off. Default: 0.05, and 0 where the
   * model file recommends its own sampling. */
  minP?: number;
  /** Locally typical sampling, 0 to 1; 1 is off, 0 keeps only the most typical token. Default 1. */
  typicalP?: number;
  /** 0.01 to 10; 1 is off. Default: as the model file recommends, else 1. */
  repetitionPenalty?: number;
  /** -2 to 2. Default 0. */
  presencePenalty?: number;
  /** -2 to 2. Default 0. */
  frequencyPenalty?: number;
  /** How many of the last tokens the penalties consider; 0 is none, -1 all. Default 64. */
  penaltyWindow?: number;
  /** Token id to a value added to its logit, -100 to 100. Default empty. */
  logitBias?: Readonly<Record<number, number>> | ReadonlyMap<number, number>;
  /** The same seed gives the same tokens; null draws a fresh seed. Default null. */
  seed?: number | null;
  /** Up to 16 strings of up to 512 characters that end the text and are not part of it. Default none. */
  stop?: readonly string[];
  /** Up to 64 token ids that end the text like the model's own end-of-text tokens. Default none. */
  stopTokenIds?: readonly number[];
  /** Tokens before which no end-of-text token and none of `stopTokenIds` is generated; a grammar may end earlier. Default 0. */
  minTokens?: number;
  /** Alternatives to report per token, 0 to 20; null reports no log-probabilities. Default null. */
  topLogprobs?: number | null;
  /** Continues after an end-of-text token. Default false. */
  ignoreEos?: boolean;
}

/** `GenerateParams` with every field set. */
export interface ResolvedGenerateParams extends Omit<SamplingParams, 'endBan'> {
  readonly maxTokens: number;
  readonly stop: readonly string[];
  readonly stopTokenIds: readonly number[];
  readonly minTokens: number;
  readonly ignoreEos: boolean;
}

const INT32_MAX = 2_147_483_647;
/** More entries than anyone writes by hand; OpenAI's limit is 300. */
const MAX_BIASES = 4_096;
const MAX_BIAS = 100;
const MAX_STOP_TOKENS = 64;

function readLogitBias(value: unknown, name: string): ReadonlyMap<number, number> {
  if (value === undefined) return new Map();
  const fail = (reason: string): never => {
    throw new RuvLLMError('invalid_option', `option "${name}" ${reason}`, { data: { option: name } });
  };
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return fail('must be an object or a Map from token id to number');
  }
  const size = value instanceof Map ? value.size : Object.keys(value).length;
  if (size > MAX_BIASES) fail(`has ${size} entries, the limit is ${MAX_BIASES}`);
  const biases = new Map<number, number>();
  for (const [key, bias] of value instanceof Map ? value : Object.entries(value)) {
    const id = typeof key === 'string' && /^\d{1,10}$/.test(key) ? Number(key) : key;
    if (!Number.isInteger(id) || id < 0 || id > INT32_MAX) fail(`has a key that is not a token id: ${showValue(key)}`);
    if (typeof bias !== 'number' || !(Math.abs(bias) <= MAX_BIAS)) {
      fail(`of token ${id} must be a number from ${-MAX_BIAS} to ${MAX_BIAS}, got ${showValue(bias)}`);
    }
    biases.set(id as number, bias as number);
  }
  return biases;
}

function readStopTokens(value: unknown, name: string): readonly number[] {
  if (value === undefined) return [];
  const isId = (id: unknown): boolean => Number.isInteger(id) && (id as number) >= 0 && (id as number) <= INT32_MAX;
  if (Array.isArray(value) && value.length <= MAX_STOP_TOKENS && value.every(isId)) return value as number[];
  const message = `option "${name}" must be a list of at most ${MAX_STOP_TOKENS} token ids`;
  throw new RuvLLMError('invalid_option', message, { data: { option: name } });
}

/** Options whose defaults depend on the model. */
export type SamplingDefaults = Pick<
  ResolvedGenerateParams,
  'temperature' | 'topK' | 'topP' | 'minP' | 'repetitionPenalty'
>;

/** Sampling of calls that set none of it, for models that recommend nothing else. */
export const DEFAULT_SAMPLING: SamplingDefaults = {
  temperature: 0.7,
  topK: 0,
  topP: 1,
  minP: 0.05,
  repetitionPenalty: 1,
};

/** Temperature and top-p as generation will use them. */
export const samplingOf = (
  { temperature, topP }: Pick<GenerateParams, 'temperature' | 'topP'>,
  defaults: Pick<SamplingDefaults, 'temperature' | 'topP'> = DEFAULT_SAMPLING,
) => ({ temperature: temperature ?? defaults.temperature, topP: topP ?? defaults.topP });

/** Validates generation parameters once: fills in defaults, rejects unknown names and values out of range. */
export function resolveGenerateParams(
  options?: GenerateParams,
  defaults: SamplingDefaults = DEFAULT_SAMPLING,
): ResolvedGenerateParams {
  return resolveOptions<ResolvedGenerateParams>('generate', options, {
    maxTokens: integerOption(256, 1, INT32_MAX),
    temperature: numberOption(defaults.temperature, 0, 100),
    topP: numberOption(defaults.topP, 0, 1),
    topK: integerOption(defaults.topK, 0, INT32_MAX),
    minP: numberOption(defaults.minP, 0, 1),
    typicalP: numberOption(1, 0, 1),
    repetitionPenalty: numberOption(defaults.repetitionPenalty, 0.01, 10),
    presencePenalty: numberOption(0, -2, 2),
    frequencyPenalty: numberOption(0, -2, 2),
    penaltyWindow: integerOption(64, -1, INT32_MAX),
    logitBias: readLogitBias,
    seed: optional(integerOption(0, 0, Number.MAX_SAFE_INTEGER)),
    stop: stringListOption(16, 512),
    stopTokenIds: readStopTokens,
    minTokens: integerOption(0, 0, INT32_MAX),
    topLogprobs: optional(integerOption(0, 0, 20)),
    ignoreEos: booleanOption(false),
  });
}
