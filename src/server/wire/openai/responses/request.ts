import type { ChatMessage } from '../../../../runtime/lower-layers.ts';
import type { GenerationRequest } from '../../../../runtime/requests/generation-request.ts';
import type { ServerLimits } from '../../../limits.ts';
import type { StoredResponse } from '../../../response-store.ts';
import { CHAT_FIELDS, effortField, toChatOptions } from '../../chat-fields.ts';
import {
  booleanField,
  choiceField,
  type Field,
  integerField,
  invalid,
  isObject,
  type JsonSchema,
  listField,
  readFields,
  requiredField,
  schemaOf,
  stringField,
} from '../../fields.ts';
import { refusedField, unsupported } from '../../unsupported.ts';
import { MAX_MODEL_NAME, maxTokensField } from '../chat-request.ts';
import { isSamplingOpen, SAMPLING_FIELDS, toGenerateOptions } from '../sampling-fields.ts';
import { functionChoiceField, functionToolField } from './function-tools.ts';
import { inputField } from './input-items.ts';
import { textField } from './text-format.ts';

/** A request for a response: what to generate, what to remember, and how to answer. */
export interface ResponseRequest {
  readonly generation: GenerationRequest;
  /** The conversation that is continued, without instructions: what the next response continues too. */
  readonly messages: readonly ChatMessage[];
  readonly isStream: boolean;
  readonly isStored: boolean;
  readonly hasLogprobs: boolean;
  /** What the response repeats of its request. */
  readonly echo: object;
}

const LOGPROBS = 'message.output_text.logprobs';
const IGNORED = [
  'service_tier',
  'safety_identifier',
  'prompt_cache_key',
  'prompt_cache_retention',
  'prompt_cache_options',
  'stream_options',
] as const;

const metadataField: Field<Readonly<Record<string, string>>> = {
  schema: { type: 'object', maxProperties: 16, additionalProperties: { type: 'string', maxLength: 512 } },
  read(value, path) {
    const isText = ([key, text]: [string, unknown]): boolean =>
      key.length <= 64 && typeof text === 'string' && text.length <= 512;
    if (!isObject(value) || Object.keys(value).length > 16 || !Object.entries(value).every(isText)) {
      throw invalid(path, 'an object of at most 16 texts of 512 characters, under keys of 64', value);
    }
    return value as Readonly<Record<string, string>>;
  },
};

/** `reasoning`: how much to think. There are no summaries: the thoughts themselves are in the answer. */
const reasoningField = {
  schema: { type: 'object', properties: { effort: effortField.schema } },
  read(value: unknown, path: string) {
    if (!isObject(value)) throw invalid(path, 'an object', value);
    const { effort = null, ...rest } = value;
    const asked = Object.entries(rest).find(([, given]) => given !== null && given !== 'none' && given !== 'auto');
    if (asked !== undefined) throw unsupported(`${path}.${asked[0].slice(0, 40)}`, 'this part of reasoning');
    return { effort: effort === null ? null : effortField.read(effort, `${path}.effort`) };
  },
};

function responseFields(limits: ServerLimits) {
  return {
    ...SAMPLING_FIELDS,
    model: requiredField(stringField(MAX_MODEL_NAME, 1)),
    input: requiredField(inputField(limits.maxMessages)),
    instructions: stringField(2 ** 28),
    previous_response_id: stringField(128, 1),
    store: booleanField,
    stream: booleanField,
    max_output_tokens: maxTokensField,
    top_logprobs: integerField(0, 20),
    include: listField(stringField(128), 16),
    metadata: metadataField,
    text: textField,
    tools: listField(functionToolField, 128),
    tool_choice: functionChoiceField,
    parallel_tool_calls: booleanField,
    truncation: choiceField(['disabled']),
    reasoning: reasoningField,
    chat_template_kwargs: CHAT_FIELDS.chat_template_kwargs,
    background: refusedField('a response in the background'),
    conversation: refusedField('a stored conversation'),
    prompt: refusedField('a stored prompt'),
    max_tool_calls: refusedField('a limit on built-in tools'),
    context_management: refusedField('context management'),
    moderation: refusedField('moderation'),
  };
}

/** Reads the body of `POST /v1/responses`; `find` gives the response that is continued, or throws. */
export function readResponseRequest(
  body: unknown,
  limits: ServerLimits,
  find: (id: string) => StoredResponse,
): ResponseRequest {
  const given = readFields(body, responseFields(limits), { ignored: IGNORED });
  const { model, input, instructions, previous_response_id: previousId, max_output_tokens: maxTokens } = given;
  const messages = previousId === null ? input : [...find(previousId).messages, ...input];
  if (messages.length > limits.maxMessages) {
    throw invalid('input', `at most ${limits.maxMessages} messages with those before`, messages);
  }
  const hasLogprobs = given.include?.includes(LOGPROBS) ?? false;
  const generation: GenerationRequest = {
    model,
    prompts: [instructions === null ? messages : [{ role: 'system', content: instructions }, ...messages]],
    numChoices: 1,
    options: {
      ...toGenerateOptions(given),
      ...toChatOptions({ ...given, reasoning_effort: given.reasoning?.effort ?? null }),
      ...(maxTokens === null ? {} : { maxTokens }),
      ...(hasLogprobs ? { topLogprobs: given.top_logprobs ?? 0 } : {}),
    },
    isSamplingOpen: isSamplingOpen(given),
    constraint: given.text?.constraint ?? null,
    tools: given.tool_choice === 'none' ? [] : (given.tools ?? []),
    toolChoice: given.tool_choice ?? 'auto',
    canCallInParallel: given.parallel_tool_calls ?? true,
    fieldNames: { maxTokens: 'max_output_tokens', reasoning: 'reasoning.effort', grammar: 'text.format' },
  };
  const raw = body as Readonly<Record<string, unknown>>;
  const echo = {
    background: false,
    instructions,
    max_output_tokens: maxTokens,
    max_tool_calls: null,
    metadata: given.metadata ?? {},
    parallel_tool_calls: generation.canCallInParallel,
    previous_response_id: previousId,
    reasoning: { effort: given.reasoning?.effort ?? null, summary: null },
    service_tier: 'default',
    store: given.store ?? true,
    temperature: given.temperature ?? 1,
    text: raw['text'] ?? { format: { type: 'text' } },
    tool_choice: raw['tool_choice'] ?? 'auto',
    tools: raw['tools'] ?? [],
    top_logprobs: given.top_logprobs ?? 0,
    top_p: given.top_p ?? 1,
    truncation: 'disabled',
    ...(given.user === null ? {} : { user: given.user }),
  };
  return { generation, messages, isStream: given.stream ?? false, isStored: given.store ?? true, hasLogprobs, echo };
}

/** The documentation of the body. */
export const responseRequestSchema = (limits: ServerLimits): JsonSchema => schemaOf(responseFields(limits));
