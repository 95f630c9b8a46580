import { refusal } from '../errors.ts';
import type { ChatMessage } from '../../runtime/lower-layers.ts';
import { PLAIN_REQUEST } from '../../runtime/requests/generation-request.ts';
import { type Exchange, json, type RouteCodes } from '../route.ts';
import { loadOf, probeCandidates, questionOf } from '../../runtime/requests/route-request.ts';
import { readFields, schemaOf, stringField, type Values } from '../wire/fields.ts';
import { maxTokensField, tokenLimitOf } from '../wire/token-limit.ts';
import { messagesField } from '../wire/openai/messages.ts';
import { isSamplingOpen, SAMPLING_FIELDS } from '../wire/openai/sampling-fields.ts';

const FIELDS = {
  prompt: stringField(2 ** 20, 1),
  messages: messagesField(2048),
  max_tokens: maxTokensField,
  temperature: SAMPLING_FIELDS.temperature,
  top_p: SAMPLING_FIELDS.top_p,
} as const;
/** More text hardly changes the embedding. */
const MAX_EMBEDDED_CHARS = 16_384;

/** The settings of a request that the decision depends on. */
type RouteFields = Partial<Omit<Values<typeof FIELDS>, 'prompt' | 'messages'>>;

/** The router's decision for a prompt, with its reasons. */
export async function explainRoute(
  { caller, services }: Pick<Exchange, 'caller' | 'services'>,
  asked: string | readonly ChatMessage[],
  { temperature = null, top_p: topP = null, max_tokens = null }: RouteFields,
): Promise<object> {
  const { routing, memory, models, limits } = services;
  if (routing === null) {
    throw refusal(501, 'unsupported', 'this server has no router; start it with --route-config FILE');
  }
  const text = typeof asked === 'string' ? asked : (asked.findLast(({ role }) => role === 'user')?.content ?? '');
  const embedded = text === '' ? null : ((await memory?.embedRequest(text.slice(0, MAX_EMBEDDED_CHARS).toWellFormed())) ?? null); // prettier-ignore
  const maxTokens = tokenLimitOf({ max_tokens }, 'max_tokens')?.maxTokens ?? null;
  const generation = {
    ...PLAIN_REQUEST,
    model: routing.config.alias,
    prompts: [asked],
    options: {
      ...(temperature === null ? {} : { temperature }),
      ...(topP === null ? {} : { topP }),
      ...(maxTokens === null ? {} : { maxTokens }),
    },
    isSamplingOpen: isSamplingOpen({ temperature, top_p: topP }),
  };
  const question = questionOf(generation, { embedded, similarities: [] }, loadOf(models, limits.maxRequests));
  const probed = await probeCandidates(services, routing.config, generation, caller);
  return routing.explain(caller.tenant, { ...question, models: probed });
}

/** `POST /v1/route`: the router's decision for a prompt. */
export const routes = {
  'POST /v1/route': {
    summary: 'The candidate that the router would choose for a prompt, and the reason, without generating.',
    body: schemaOf(FIELDS),
    ignoresUnknownFields: true,
    async handle(exchange) {
      const { prompt, messages, ...fields } = await exchange.readRequest((body) => readFields(body, FIELDS));
      if ((prompt === null) === (messages === null)) {
        throw refusal(400, 'invalid_value', "exactly one of 'prompt' and 'messages' is required", { param: 'prompt' });
      }
      return json({ object: 'route', ...(await explainRoute(exchange, messages ?? prompt!, fields)) });
    },
  },
} satisfies RouteCodes;
