import type { ChatMessage } from '../../../runtime/lower-layers.ts';
import type { GenerationRequest } from '../../../runtime/requests/generation-request.ts';
import type { ServerLimits } from '../../limits.ts';
import { CHAT_FIELDS, toChatOptions } from '../chat-fields.ts';
import {
  booleanField,
  type Field,
  integerField,
  type JsonSchema,
  listField,
  numberField,
  readFields,
  requiredField,
  schemaOf,
  stringField,
  type Values,
} from '../fields.ts';
import { MAX_MODEL_NAME, maxTokensField } from '../openai/chat-request.ts';
import { isSamplingOpen, SAMPLING_FIELDS, toGenerateOptions } from '../openai/sampling-fields.ts';
import { refusedField, unsupported } from '../unsupported.ts';
import { systemField } from './content-blocks.ts';
import { joinTurns, messageField } from './messages.ts';
import { NO_THINKING, outputConfigField, thinkingField } from './output-config.ts';
import { toolChoiceField, toolField } from './tools.ts';

/** Our own fields, under the names they have in the other API too. */
const { stop: _stop, user: _user, logit_bias: _bias, top_k: _topK, ...OWN_SAMPLING } = SAMPLING_FIELDS;

/** A request for a message: what to generate, and how to answer. */
export interface MessagesRequest {
  readonly generation: GenerationRequest;
  readonly isStream: boolean;
  /** Whether the answer shows what the model thinks. */
  readonly hasThinking: boolean;
}

const MAX_TOOLS = 128;
/** Known, without an effect here: they are about Anthropic's own machines, billing and caches. */
const IGNORED = [
  'cache_control',
  'service_tier',
  'inference_geo',
  'speed',
  'diagnostics',
  'user_profile_id',
  'workspace_id',
] as const;

const metadataField: Field<{ readonly user_id: string | null }> = {
  schema: { type: 'object', properties: { user_id: { type: 'string', maxLength: 512 } } },
  read: (value, path) => readFields(value, { user_id: stringField(512) }, { path }),
};

/** What counting and generating have in common. */
function promptFields(limits: ServerLimits) {
  return {
    model: requiredField(stringField(MAX_MODEL_NAME, 1)),
    messages: requiredField(listField(messageField, limits.maxMessages, 1)),
    system: systemField,
    tools: listField(toolField, MAX_TOOLS),
    tool_choice: toolChoiceField,
    output_config: outputConfigField,
    thinking: thinkingField,
    chat_template_kwargs: CHAT_FIELDS.chat_template_kwargs,
  };
}

function messagesFields(limits: ServerLimits) {
  return {
    ...OWN_SAMPLING,
    ...promptFields(limits),
    max_tokens: requiredField(maxTokensField),
    stop_sequences: listField(stringField(512, 1), 16),
    metadata: metadataField,
    stream: booleanField,
    temperature: numberField(0, 1),
    top_p: numberField(0, 1),
    top_k: integerField(0, 2 ** 31 - 1),
    container: refusedField('a container'),
  };
}

type PromptValues = Values<ReturnType<typeof promptFields>>;

function toPrompt({ messages, system }: PromptValues): readonly ChatMessage[] {
  const turns = joinTurns(messages.flat());
  if (turns.at(-1)!.role === 'assistant') throw unsupported('messages', 'beginning the answer for the model');
  return system === null ? turns : [{ role: 'system', content: system }, ...turns];
}

function toGeneration(given: PromptValues, options: GenerationRequest['options']): GenerationRequest {
  const { choice = 'auto', canCallInParallel = true } = given.tool_choice ?? {};
  return {
    model: given.model,
    prompts: [toPrompt(given)],
    numChoices: 1,
    options: { ...options, ...toChatOptions({ ...given, reasoning_effort: (given.thinking ?? NO_THINKING).wish }) },
    constraint: given.output_config?.constraint ?? null,
    tools: choice === 'none' ? [] : (given.tools ?? []),
    toolChoice: choice,
    canCallInParallel,
    fieldNames: { maxTokens: 'max_tokens', grammar: 'output_config.format' },
  };
}

/** Reads the body of `POST /v1/messages`. */
export function readMessagesRequest(body: unknown, limits: ServerLimits): MessagesRequest {
  const given = readFields(body, messagesFields(limits), { ignored: IGNORED });
  const sampling = { ...given, stop: given.stop_sequences, user: null, logit_bias: null };
  const options = { ...toGenerateOptions(sampling), maxTokens: given.max_tokens };
  const generation = { ...toGeneration(given, options), isSamplingOpen: isSamplingOpen(given) };
  const { isShown: hasThinking } = given.thinking ?? NO_THINKING;
  return { generation, isStream: given.stream ?? false, hasThinking };
}

/** Reads the body of `POST /v1/messages/count_tokens`. */
export function readCountRequest(body: unknown, limits: ServerLimits): GenerationRequest {
  return toGeneration(readFields(body, promptFields(limits), { ignored: IGNORED }), {});
}

/** The documentation of both bodies. */
export const messagesRequestSchema = (limits: ServerLimits): JsonSchema => schemaOf(messagesFields(limits));
export const countRequestSchema = (limits: ServerLimits): JsonSchema => schemaOf(promptFields(limits));
