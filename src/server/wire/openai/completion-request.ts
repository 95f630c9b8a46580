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
} from '../fields.ts';
import { IGNORED_FIELDS, MAX_MODEL_NAME, maxTokensField } from './chat-request.ts';
import { constraintFieldOf, constraintOf, responseFormatField } from './response-format.ts';
import { isSamplingOpen, SAMPLING_FIELDS, toGenerateOptions } from './sampling-fields.ts';
import { streamOptionsField } from './stream-options.ts';

/** A completion request: what to continue, and how to answer. */
export interface CompletionRequest {
  readonly generation: GenerationRequest;
  readonly isStream: boolean;
  readonly hasUsageChunk: boolean;
  /** Whether the answer begins with the prompt. */
  readonly hasEcho: boolean;
}

/** What OpenAI gives when nothing is asked for; a text that is continued has no natural end. */
const DEFAULT_MAX_TOKENS = 16;
const MAX_TOKEN_ID = 2 ** 31 - 1;

/** One text or list of token ids, or a list of either. */
function promptField(maxPrompts: number): Field<readonly (string | readonly number[])[]> {
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
        const message = `'${path}' has ${value.length} prompts, at most ${maxPrompts} are allowed`;
        throw refusal(422, 'limit_exceeded', message, { param: path });
      }
      for (const [index, one] of value.entries()) {
        if (typeof one !== 'string' && !isIds(one)) throw invalid(`${path}[${index}]`, 'a string or token ids', one);
      }
      return value as (string | number[])[];
    },
  };
}

/** OpenAI allows none, to score a prompt; here that would be an answer with nothing in it. */
const someTokensField: Field<number> = {
  schema: maxTokensField.schema,
  read(value, path) {
    if (value !== 0) return maxTokensField.read(value, path);
    throw invalid(
      path,
      "at least 1: scoring a prompt without generating is not supported, also not with 'echo'",
      value,
    );
  },
};

function completionFields(limits: ServerLimits) {
  return {
    model: requiredField(stringField(MAX_MODEL_NAME, 1)),
    prompt: requiredField(promptField(limits.maxChoices)),
    max_tokens: someTokensField,
    n: countField(1, limits.maxChoices),
    best_of: countField(1, limits.maxChoices),
    echo: booleanField,
    suffix: stringField(2 ** 20),
    logprobs: integerField(0, 5),
    stream: booleanField,
    stream_options: streamOptionsField,
    response_format: responseFormatField,
    grammar: stringField(65_536, 1),
    regex: stringField(65_536, 1),
    ...SAMPLING_FIELDS,
  };
}

/** Reads the body of `POST /v1/completions`. */
export function readCompletionRequest(body: unknown, limits: ServerLimits): CompletionRequest {
  const given = readFields(body, completionFields(limits), { ignored: IGNORED_FIELDS });
  const prompts: readonly Prompt[] = given.prompt;
  const numChoices = given.n ?? 1;
  const hasEcho = given.echo ?? false;
  if (given.suffix !== null && given.suffix !== '')
    throw invalid('suffix', 'left out: it is not supported', given.suffix);
  if (given.best_of !== null && given.best_of !== numChoices) {
    throw invalid('best_of', `left out or as 'n', ${numChoices}: choosing among more is not supported`, given.best_of);
  }
  if (hasEcho && given.logprobs !== null) {
    throw invalid('logprobs', "left out with 'echo': those of a prompt are not computed", given.logprobs);
  }
  if (given.stream_options !== null && given.stream !== true) {
    throw invalid('stream_options', "left out unless 'stream' is true", {});
  }
  if (prompts.length * numChoices > limits.maxChoices) {
    const message = `${prompts.length} prompts with ${numChoices} answers each exceed the limit of ${limits.maxChoices}`;
    throw refusal(422, 'limit_exceeded', message, { param: 'n' });
  }
  const constraint = constraintOf(given);
  const generation: GenerationRequest = {
    ...PLAIN_REQUEST,
    model: given.model,
    prompts,
    numChoices,
    options: {
      ...toGenerateOptions(given),
      maxTokens: given.max_tokens ?? DEFAULT_MAX_TOKENS,
      ...(given.logprobs === null ? {} : { topLogprobs: given.logprobs }),
    },
    isSamplingOpen: isSamplingOpen(given),
    constraint,
    fieldNames: { maxTokens: 'max_tokens', ...constraintFieldOf(constraint) },
  };
  return {
    generation,
    isStream: given.stream ?? false,
    hasUsageChunk: given.stream_options?.hasUsage ?? false,
    hasEcho,
  };
}

/** The documentation of the body. */
export const completionRequestSchema = (limits: ServerLimits): JsonSchema => schemaOf(completionFields(limits));
