import type { Model } from '../../runtime/model.ts';
import type { Tokenizer } from '../../runtime/lower-layers.ts';
import { refusal } from '../errors.ts';
import { resolveModelName } from '../model-name.ts';
import { json, type Exchange, type RouteCodes } from '../route.ts';
import { toDefinition } from '../../runtime/requests/generate-answers.ts';
import { textResponse } from '../text-response.ts';
import { CHAT_FIELDS, toChatOptions } from '../wire/chat-fields.ts';
import {
  booleanField,
  integerField,
  listField,
  readFields,
  requiredField,
  schemaOf,
  stringField,
} from '../wire/fields.ts';
import { MAX_TOOLS, modelField } from '../wire/openai/chat-request.ts';
import { messagesField } from '../wire/openai/messages.ts';
import { toolField } from '../wire/openai/tools.ts';

const MAX_CHARS = 2 ** 17;
const MAX_TOKENS = 2 ** 17;

const TOKENIZE = {
  model: modelField,
  content: requiredField(stringField(MAX_CHARS)),
  add_special: booleanField,
  with_pieces: booleanField,
} as const;
const DETOKENIZE = { model: modelField, tokens: requiredField(listField(integerField(0, 2 ** 31 - 1), MAX_TOKENS)) };
const TEMPLATE = {
  model: modelField,
  messages: requiredField(messagesField(2048)),
  tools: listField(toolField, MAX_TOOLS),
  ...CHAT_FIELDS,
} as const;

/** Runs `work` with the named model, or with the only one. */
async function withModel(
  { services, caller }: Exchange,
  name: string | null,
  work: (model: Model) => Promise<Response>,
): Promise<Response> {
  const { limits, admission, models } = services;
  const leave = admission.enter(caller.tenant);
  try {
    const lease = await models.acquire(resolveModelName(name ?? '', services, caller), {
      ...caller,
      waitMs: limits.modelWaitMs,
    });
    try {
      return await work(lease.model);
    } finally {
      lease.release();
    }
  } finally {
    leave();
  }
}

function checkIds(ids: readonly number[], { vocabSize }: Tokenizer): void {
  const index = ids.findIndex((id) => id >= vocabSize);
  if (index < 0) return;
  const message = `'tokens[${index}]' is ${ids[index]}; the vocabulary has ${vocabSize} tokens`;
  throw refusal(400, 'invalid_token', message, { param: `tokens[${index}]` });
}

/** Serializes each distinct token once: 131,072 objects would block the thread for 60 ms. */
function writePieces(ids: readonly number[], tokenizer: Tokenizer): Response {
  const texts = new Map<number, string>();
  const tokens = ids.map((id) => {
    let text = texts.get(id);
    if (text === undefined) texts.set(id, (text = JSON.stringify({ id, piece: tokenizer.piece(id) })));
    return text;
  });
  return textResponse(`{"tokens":[${tokens.join(',')}]}`, {
    status: 200,
    headers: { 'content-type': 'application/json' },
  });
}

/** `/tokenize`, `/detokenize` and `/apply-template`. */
export const routes = {
  'POST /tokenize': {
    summary: 'The tokens of a text.',
    body: schemaOf(TOKENIZE),
    ignoresUnknownFields: true,
    handle: async (exchange) => {
      const fields = await exchange.readRequest((body) => readFields(body, TOKENIZE));
      const { content } = fields;
      const { signal, tenant } = exchange.caller;
      return withModel(exchange, fields.model, async ({ aside, tokenizer }) => {
        const tokens = await aside.encode(content, { addSpecial: fields.add_special ?? false, signal, tenant });
        return fields.with_pieces === true ? writePieces(tokens, tokenizer) : json({ tokens });
      });
    },
  },
  'POST /detokenize': {
    summary: 'The text of tokens.',
    body: schemaOf(DETOKENIZE),
    ignoresUnknownFields: true,
    handle: async (exchange) => {
      const { model, tokens } = await exchange.readRequest((body) => readFields(body, DETOKENIZE));
      const { signal, tenant } = exchange.caller;
      return withModel(exchange, model, async ({ aside, tokenizer }) => {
        checkIds(tokens, tokenizer);
        return json({ content: await aside.decode(tokens, { signal, tenant }) });
      });
    },
  },
  'POST /apply-template': {
    summary: 'The prompt of a conversation.',
    body: schemaOf(TEMPLATE),
    ignoresUnknownFields: true,
    handle: async (exchange) => {
      const fields = await exchange.readRequest((body) => readFields(body, TEMPLATE));
      const { messages } = fields;
      const { signal, tenant } = exchange.caller;
      return withModel(exchange, fields.model, async ({ aside }) => {
        const tools = (fields.tools ?? []).map(toDefinition);
        const tokens = await aside.encodePrompt(messages, {
          ...(tools.length === 0 ? {} : { tools }),
          ...toChatOptions(fields),
          signal,
          tenant,
        });
        return json({ prompt: await aside.decode(tokens, { skipSpecial: false, signal, tenant }), tokens });
      });
    },
  },
} satisfies RouteCodes;
