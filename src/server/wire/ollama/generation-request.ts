import type { GenerateOptions } from '../../../runtime/generate-options.ts';
import {
  type GenerationRequest,
  type OutputConstraint,
  PLAIN_REQUEST,
  type ToolSpec,
} from '../../../runtime/requests/generation-request.ts';
import type { ChatMessage } from '../../../runtime/lower-layers.ts';
import {
  booleanField,
  choiceField,
  type Field,
  invalid,
  isObject,
  objectField,
  requiredField,
  schemaOf,
  stringField,
  type Values,
  ignoreField,
  readFields,
} from '../fields.ts';
import { unsupported } from '../unsupported.ts';
import { keepAliveField } from './duration.ts';
import { anyField } from './any-field.ts';
import { messagesField, readMessages, requireNoImages } from './messages.ts';
import { readOptions } from './options.ts';

const MAX_TEXT = 2 ** 28;
const MAX_TOOLS = 128;
export const modelField = stringField(512, 1);

const formatField: Field<OutputConstraint | 'none'> = {
  schema: { oneOf: [{ type: 'string', enum: ['', 'json'] }, { type: 'object' }] },
  read(value, path) {
    if (value === '') return 'none';
    if (value === 'json') return { kind: 'json_object' };
    if (isObject(value)) return { kind: 'json_schema', name: 'format', schema: value, isStrict: false };
    throw invalid(path, '"json" or a JSON schema', value);
  },
};

const levelField = choiceField(['low', 'medium', 'high']);
const thinkField: Field<'on' | 'none' | 'low' | 'medium' | 'high'> = {
  schema: { oneOf: [{ type: 'boolean' }, levelField.schema] },
  read: (value, path) => (typeof value === 'boolean' ? (value ? 'on' : 'none') : levelField.read(value, path)),
};

const COMMON = {
  model: requiredField(modelField),
  stream: booleanField,
  format: formatField,
  options: objectField,
  keep_alive: keepAliveField,
  think: thinkField,
};
const CHAT = { ...COMMON, messages: messagesField, tools: anyField };
const GENERATE = {
  ...COMMON,
  prompt: stringField(MAX_TEXT),
  suffix: stringField(MAX_TEXT),
  system: stringField(MAX_TEXT),
  template: stringField(MAX_TEXT),
  raw: booleanField,
  images: anyField,
};

export const chatSchema = schemaOf(CHAT);
export const generateSchema = schemaOf(GENERATE);

/** A request to `/api/chat` or `/api/generate`. */
export interface OllamaRequest {
  readonly model: string;
  readonly isStream: boolean;
  /** Null: as before. */
  readonly keepAlive: { readonly idleMs: number | null } | null;
  /** Whether the answer contains the reasoning. */
  readonly hasThinking: boolean;
  /** The context length that it asks for; null: none. */
  readonly numContext: number | null;
  /** The request for the model of that name; null: only load the model. */
  readonly generation: GenerationRequest | null;
}

/** `canUnload`: whether `keep_alive` has an effect. */
export function readChat(body: unknown, canUnload: boolean): OllamaRequest {
  const fields = readFields(body, CHAT);
  const turns = fields.messages === null ? [] : readMessages(fields.messages);
  const tools = fields.tools === null ? [] : readTools(fields.tools);
  return toRequest(fields, canUnload, turns.length === 0 ? null : { prompt: turns, tools });
}

export function readGenerate(body: unknown, canUnload: boolean): OllamaRequest {
  const fields = readFields(body, GENERATE);
  const { prompt, suffix, system, raw } = fields;
  requireNoImages(fields.images, 'images');
  if (fields.template !== null && fields.template !== '') throw unsupported('template', 'a template of the request');
  return toRequest(fields, canUnload, contentOf(prompt ?? '', { suffix, system, isRaw: raw === true }));
}

function contentOf(
  prompt: string,
  { suffix, system, isRaw }: { suffix: string | null; system: string | null; isRaw: boolean },
): Content | null {
  if (prompt === '') return null;
  // The text between prompt and suffix is filled in without a chat template.
  if (suffix !== null && suffix !== '') return { prompt, tools: [], options: { fill: { suffix }, corrections: false } };
  if (isRaw) return { prompt, tools: [] };
  const turn: ChatMessage = { role: 'user', content: prompt };
  return { prompt: system === null || system === '' ? [turn] : [{ role: 'system', content: system }, turn], tools: [] };
}

interface Content {
  readonly prompt: string | ChatMessage[];
  readonly tools: readonly ToolSpec[];
  readonly options?: Partial<GenerateOptions>;
}

function toRequest(fields: Values<typeof COMMON>, canUnload: boolean, content: Content | null): OllamaRequest {
  const options = readOptions(fields.options ?? {});
  if (fields.keep_alive !== null && !canUnload) ignoreField('keep_alive');
  return {
    model: fields.model,
    isStream: fields.stream ?? true,
    keepAlive: canUnload ? fields.keep_alive : null,
    hasThinking: fields.think !== 'none',
    numContext: (fields.options?.['num_ctx'] as number | null | undefined) ?? null,
    generation: content === null ? null : toGeneration(fields, content, options),
  };
}

function toGeneration(
  { model, format, think }: Values<typeof COMMON>,
  { prompt, tools, options: more }: Content,
  options: Partial<GenerateOptions>,
): GenerationRequest {
  return {
    ...PLAIN_REQUEST,
    model,
    prompts: [prompt],
    options: {
      ...options,
      // Without a number, the server lets an answer fill the context.
      ...(options.maxTokens === undefined ? {} : { clampMaxTokens: true }),
      ...more,
      ...(think === null || typeof prompt === 'string' ? {} : { reasoning: think }),
    },
    constraint: format === null || format === 'none' ? null : format,
    tools,
    fieldNames: { maxTokens: 'options.num_predict', reasoning: 'think', grammar: 'format', fill: 'suffix' },
  };
}

const TOOL = { type: stringField(64), function: requiredField(objectField) };
const FUNCTION = {
  name: requiredField(stringField(64, 1)),
  description: stringField(65_536),
  parameters: objectField,
};

function readTools(value: unknown): ToolSpec[] {
  if (!Array.isArray(value) || value.length > MAX_TOOLS) {
    throw invalid('tools', `a list of at most ${MAX_TOOLS}`, value);
  }
  return value.map((item: unknown, index) => {
    const path = `tools[${index}]`;
    const { function: spec } = readFields(item, TOOL, { path });
    const { name, description, parameters } = readFields(spec, FUNCTION, { path: `${path}.function` });
    return { name, description, parameters, isStrict: false };
  });
}
