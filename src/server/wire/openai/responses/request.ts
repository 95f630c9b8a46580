import type { ChatMessage } from '../../../../runtime/lower-layers.ts';
import type { GenerationRequest } from '../../../../runtime/requests/generation-request.ts';
import type { ServerLimits } from '../../../limits.ts';
import type { StoredResponse } from '../../../response-store.ts';
import { CHAT_FIELDS, effortField, toChatOptions } from '../../chat-fields.ts';
import {
  booleanField,
  choiceField,
  type Field,
  ignoredFields,
  ignoreField,
  integerField,
  invalid,
  isObject,
  type JsonSchema,
  listField,
  readFields,
  requiredField,
  schemaOf,
  stringField,
  fieldsByLimits,
} from '../../fields.ts';
import { maxTokensField, tokenLimitOf } from '../../token-limit.ts';
import { unsupportedField } from '../../unsupported.ts';
import { metadataField, modelField } from '../chat-request.ts';
import { isSamplingOpen, SAMPLING_FIELDS, toGenerateOptions } from '../sampling-fields.ts';
import { functionChoiceField, functionToolField } from './function-tools.ts';
import { inputField } from './input-items.ts';
import { textField } from './text-format.ts';

export interface ResponseRequest {
  readonly generation: GenerationRequest;
  /** The conversation without instructions, which the next response continues. */
  readonly messages: readonly ChatMessage[];
  /** Owners of the earlier requests of the conversation. */
  readonly owners: StoredResponse['owners'];
  readonly isStream: boolean;
  readonly isStored: boolean;
  /** Fields of the request that the response repeats; the temperature and top-p may be learned. */
  readonly echo: object;
}

const LOGPROBS = 'message.output_text.logprobs';
const IGNORED = ignoredFields(
  'service_tier',
  'safety_identifier',
  'prompt_cache_key',
  'prompt_cache_retention',
  'prompt_cache_options',
  'stream_options',
  'context_management',
);

/** Only `LOGPROBS` has an effect. */
const includeField: Field<readonly string[]> = listField(stringField(128), 16);

/** `reasoning`: the effort. There are no summaries, because the answer contains the reasoning itself. */
const reasoningField = {
  schema: { type: 'object', properties: { effort: effortField.schema } },
  read(value: unknown, path: string) {
    if (!isObject(value)) throw invalid(path, 'an object', value);
    const { effort = null, ...others } = value;
    for (const [name, item] of Object.entries(others)) {
      if (item !== null && item !== 'none' && item !== 'auto') ignoreField(`${path}.${name.slice(0, 80)}`);
    }
    return { effort: effort === null ? null : effortField.read(effort, `${path}.effort`) };
  },
};

const responseFields = fieldsByLimits((limits: ServerLimits) => ({
  ...SAMPLING_FIELDS,
  model: modelField,
  input: requiredField(inputField(limits.maxMessages)),
  instructions: stringField(2 ** 28),
  previous_response_id: stringField(128, 1),
  store: booleanField,
  stream: booleanField,
  max_output_tokens: maxTokensField,
  top_logprobs: integerField(0, 20),
  include: includeField,
  metadata: metadataField,
  text: textField,
  tools: listField(functionToolField, 128),
  tool_choice: functionChoiceField,
  parallel_tool_calls: booleanField,
  truncation: choiceField(['disabled', 'auto']),
  reasoning: reasoningField,
  chat_template_kwargs: CHAT_FIELDS.chat_template_kwargs,
  background: unsupportedField('a response in the background'),
  conversation: unsupportedField('a stored conversation'),
  prompt: unsupportedField('a stored prompt'),
  max_tool_calls: unsupportedField('a limit on built-in tools'),
  moderation: unsupportedField('moderation'),
  ...IGNORED,
}));

/** Reads the body of `POST /v1/responses`; `find` returns the previous response, or throws. */
export function readResponseRequest(
  body: unknown,
  limits: ServerLimits,
  find: (id: string) => StoredResponse,
): ResponseRequest {
  const fields = readFields(body, responseFields(limits));
  const { input, instructions, previous_response_id: previousId } = fields;
  const maxTokens = tokenLimitOf(fields, 'max_output_tokens')?.maxTokens ?? null;
  const previous = previousId === null ? null : find(previousId);
  const messages = previous === null ? input : [...previous.messages, ...input];
  if (messages.length > limits.maxMessages) {
    throw invalid('input', `at most ${limits.maxMessages} messages, including the earlier ones`, messages);
  }
  const hasLogprobs = fields.include?.includes(LOGPROBS) ?? false;
  const generation: GenerationRequest = {
    model: fields.model ?? '',
    prompts: [instructions === null ? messages : [{ role: 'system', content: instructions }, ...messages]],
    numChoices: 1,
    options: {
      ...toGenerateOptions(fields),
      ...toChatOptions({ ...fields, reasoning_effort: fields.reasoning?.effort ?? null }),
      ...(maxTokens === null ? {} : { maxTokens }),
      ...(hasLogprobs ? { topLogprobs: fields.top_logprobs ?? 0 } : {}),
    },
    isSamplingOpen: isSamplingOpen(fields),
    constraint: fields.text?.constraint ?? null,
    tools: fields.tool_choice === 'none' ? [] : (fields.tools ?? []),
    toolChoice: fields.tool_choice ?? 'auto',
    canCallInParallel: fields.parallel_tool_calls ?? true,
    fieldNames: { maxTokens: 'max_output_tokens', reasoning: 'reasoning.effort', grammar: 'text.format' },
  };
  const raw = body as Readonly<Record<string, unknown>>;
  const echo = {
    background: false,
    instructions,
    max_output_tokens: maxTokens,
    max_tool_calls: null,
    metadata: fields.metadata ?? {},
    parallel_tool_calls: generation.canCallInParallel,
    previous_response_id: previousId,
    reasoning: { effort: fields.reasoning?.effort ?? null, summary: null },
    service_tier: 'default',
    store: fields.store ?? true,
    text: raw['text'] ?? { format: { type: 'text' } },
    tool_choice: raw['tool_choice'] ?? 'auto',
    tools: raw['tools'] ?? [],
    top_logprobs: fields.top_logprobs ?? 0,
    truncation: 'disabled',
    ...(fields.user === null ? {} : { user: fields.user }),
  };
  const owners = previous?.owners ?? [];
  return { generation, messages, owners, isStream: fields.stream ?? false, isStored: fields.store ?? true, echo };
}

export const responseRequestSchema = (limits: ServerLimits): JsonSchema => schemaOf(responseFields(limits));
