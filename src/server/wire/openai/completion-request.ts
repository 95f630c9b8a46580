import type { Prompt } from '../../../runtime/prompt.ts';
import { refusal } from '../../errors.ts';
import { type GenerationRequest, PLAIN_REQUEST } from '../../../runtime/requests/generation-request.ts';
import type { ServerLimits } from '../../limits.ts';
import {
  booleanField,
  countField,
  type Field,
  integerField,
  invalid,
  type JsonSchema,
  readFields,
  requiredField,
  schemaOf,
  stringField,
  fieldsByLimits,
} from '../fields.ts';
import { maxTokensField, tokenLimitOf } from '../token-limit.ts';
import { modelField, OPENAI_IGNORED } from './chat-request.ts';
import { predictionField } from './prediction.ts';
import { CONSTRAINT_FIELDS, constraintOf } from './response-format.ts';
import { isSamplingOpen, SAMPLING_FIELDS, toGenerateOptions } from './sampling-fields.ts';
import { streamOptionsField } from './stream-options.ts';

export interface CompletionRequest {
  readonly generation: GenerationRequest;
  readonly isStream: boolean;
  readonly hasUsageChunk: boolean;
  /** Whether the answer starts with the prompt. */
  readonly hasEcho: boolean;
  /** Whether nothing is generated: the answer is the prompt, with its log-probabilities. */
  readonly isPromptOnly: boolean;
}

/** OpenAI's default. */
const DEFAULT_LIMIT = { name: 'max_tokens', maxTokens: 16 };
const MAX_TOKEN_ID = 2 ** 31 - 1;

/** A text, a list of token ids, or a list of either. */
export function promptField(maxPrompts: number): Field<readonly (string | readonly number[])[]> {
  const isIds = (value: unknown): value is readonly number[] =>
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((id) => Number.isInteger(id) && (id as number) >= 0 && (id as number) <= MAX_TOKEN_ID);
  const ids = { type: 'array', items: { type: 'integer', minimum: 0 }, minItems: 1 };
  return {
    schema: {
      oneOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }, ids, { type: 'array', items: ids }],
    },
    read(value, path) {
      if (typeof value === 'string' || isIds(value)) return [value];
      if (!Array.isArray(value) || value.length === 0)
        throw invalid(path, 'a string, token ids or a list of them', value);
      if (value.length > maxPrompts) {
        const message = `'${path}' has ${value.length} prompts; the limit is ${maxPrompts}`;
        throw refusal(422, 'limit_exceeded', message, { param: path });
      }
      for (const [index, prompt] of value.entries()) {
        if (typeof prompt !== 'string' && !isIds(prompt)) {
          throw invalid(`${path}[${index}]`, 'a string or token ids', prompt);
        }
      }
      return value as (string | number[])[];
    },
  };
}

/** 0 scores a prompt without generating. */
const scoringTokensField: Field<number> = {
  schema: { ...maxTokensField.schema, description: '-1, or more than fits: as many tokens as fit; 0 with echo' },
  read: (value, path) => (value === 0 ? 0 : maxTokensField.read(value, path)),
};

const completionFields = fieldsByLimits((limits: ServerLimits) => ({
  model: modelField,
  prompt: requiredField(promptField(limits.maxChoices)),
  max_tokens: scoringTokensField,
  n_predict: scoringTokensField,
  n: countField(1, limits.maxChoices),
  best_of: countField(1, limits.maxChoices),
  echo: booleanField,
  suffix: stringField(2 ** 20),
  logprobs: integerField(0, 5),
  stream: booleanField,
  stream_options: streamOptionsField,
  ...CONSTRAINT_FIELDS,
  prediction: predictionField,
  ...SAMPLING_FIELDS,
  ...OPENAI_IGNORED,
}));

/** Reads the body of `POST /v1/completions`. */
export function readCompletionRequest(body: unknown, limits: ServerLimits): CompletionRequest {
  const fields = readFields(body, completionFields(limits));
  const prompts: readonly Prompt[] = fields.prompt;
  const numChoices = fields.n ?? 1;
  const hasEcho = fields.echo ?? false;
  const { suffix } = fields;
  if (suffix !== null && suffix !== '' && (hasEcho || prompts.some((prompt) => typeof prompt !== 'string'))) {
    throw invalid('suffix', "left out with 'echo' or with token ids as the prompt", suffix);
  }
  if (fields.best_of !== null && fields.best_of !== numChoices) {
    throw invalid(
      'best_of',
      `left out or equal to 'n' (${numChoices}), because choosing among more is not supported`,
      fields.best_of,
    );
  }
  const isScored = hasEcho && fields.logprobs !== null;
  if (isScored && fields.stream === true)
    throw invalid('logprobs', "left out with 'echo' and 'stream'", fields.logprobs);
  if (fields.stream_options !== null && fields.stream !== true) {
    throw invalid('stream_options', "left out unless 'stream' is true", {});
  }
  if (prompts.length * numChoices > limits.maxChoices) {
    const message = `${prompts.length} prompts with ${numChoices} answers each exceed the limit of ${limits.maxChoices}`;
    throw refusal(422, 'limit_exceeded', message, { param: 'n' });
  }
  const { constraint, fieldNames } = constraintOf(fields);
  const { name, maxTokens } = tokenLimitOf(fields, 'max_tokens', 'n_predict') ?? DEFAULT_LIMIT;
  const isPromptOnly = maxTokens === 0;
  if (isPromptOnly && !hasEcho) throw invalid(name, "at least 1 without 'echo'", 0);
  const generation: GenerationRequest = {
    ...PLAIN_REQUEST,
    model: fields.model ?? '',
    prompts,
    numChoices,
    options: {
      ...toGenerateOptions(fields),
      ...(maxTokens === null ? {} : { maxTokens: Math.max(1, maxTokens) }),
      ...(isScored ? { promptLogprobs: true } : {}),
      ...(fields.prediction === null ? {} : { prediction: fields.prediction }),
      ...(suffix === null || suffix === '' ? {} : { fill: { suffix }, corrections: false }),
      ...(fields.logprobs === null ? {} : { topLogprobs: fields.logprobs }),
    },
    isSamplingOpen: isSamplingOpen(fields),
    constraint,
    fieldNames: { maxTokens: name, fill: 'suffix', ...fieldNames },
  };
  return {
    generation,
    isStream: fields.stream ?? false,
    hasUsageChunk: fields.stream_options?.hasUsage ?? false,
    hasEcho,
    isPromptOnly,
  };
}

export const completionRequestSchema = (limits: ServerLimits): JsonSchema => schemaOf(completionFields(limits));
