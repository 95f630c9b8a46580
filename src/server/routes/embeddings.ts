import type { EmbedInput } from '../../runtime/embeddings.ts';
import { resolveModelName } from '../model-name.ts';
import { type PacedOptions, pacedResponse } from '../paced-response.ts';
import type { RouteCodes } from '../route.ts';
import { textResponse } from '../text-response.ts';
import {
  choiceField,
  type Field,
  ignoredFields,
  integerField,
  invalid,
  readFields,
  requiredField,
  schemaOf,
} from '../wire/fields.ts';
import { modelField } from '../wire/openai/chat-request.ts';
import { type EmbeddingList, isShortList, writeEmbeddingList } from '../wire/openai/embedding-list.ts';

/** As in OpenAI's API. */
const MAX_INPUTS = 2048;
const MAX_TOKENS = 2 ** 17;
/** Characters of all texts. */
const MAX_CHARS = 2 ** 20;
const MAX_DIMENSIONS = 65_536;

const isIds = (value: unknown): value is number[] =>
  Array.isArray(value) && value.every((id) => Number.isSafeInteger(id) && id >= 0);

/** A text, a list of texts, the tokens of one text, or lists of tokens. */
const inputField: Field<EmbedInput> = {
  schema: {
    anyOf: [
      { type: 'string' },
      { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: MAX_INPUTS },
      { type: 'array', items: { type: 'integer' }, minItems: 1 },
      { type: 'array', items: { type: 'array', items: { type: 'integer' } }, minItems: 1, maxItems: MAX_INPUTS },
    ],
  },
  read(value, path) {
    const expected = `a text, a list of 1 to ${MAX_INPUTS} texts, or of tokens`;
    if (typeof value !== 'string' && !(Array.isArray(value) && value.length > 0)) throw invalid(path, expected, value);
    if (typeof value === 'string') return checkChars([value], path);
    if (isIds(value)) return checkTokens([value], path);
    if (value.length > MAX_INPUTS) throw invalid(path, expected, value);
    if (value.every((text): text is string => typeof text === 'string')) return checkChars(value, path);
    if (value.every(isIds)) return checkTokens(value, path);
    throw invalid(path, expected, value);
  },
};

function checkChars(texts: readonly string[], path: string): string[] {
  const numChars = texts.reduce((sum, { length }) => sum + length, 0);
  if (numChars > MAX_CHARS) throw invalid(path, `at most ${MAX_CHARS} characters`, `${numChars} characters`);
  return [...texts];
}

function checkTokens(lists: readonly (readonly number[])[], path: string): number[][] {
  const numTokens = lists.reduce((sum, { length }) => sum + length, 0);
  if (numTokens > MAX_TOKENS) throw invalid(path, `at most ${MAX_TOKENS} tokens`, `${numTokens} tokens`);
  return lists.map((ids) => [...ids]);
}

const FIELDS = {
  model: modelField,
  input: requiredField(inputField),
  encoding_format: choiceField(['float', 'base64']),
  dimensions: integerField(1, MAX_DIMENSIONS),
  ...ignoredFields('user'),
} as const;

/** `POST /v1/embeddings`: from an encoder, or from the hidden states of a decoder. */
export const routes = {
  'POST /v1/embeddings': {
    summary: 'Embeddings of texts.',
    body: schemaOf(FIELDS),
    ignoresUnknownFields: true,
    async handle({ readRequest, services, caller }) {
      const fields = await readRequest((body) => readFields(body, FIELDS));
      const { input } = fields;
      const name = resolveModelName(fields.model ?? '', services, caller);
      const { limits, admission, models } = services;
      const leave = admission.enter(caller.tenant);
      try {
        const lease = await models.acquire(name, { ...caller, waitMs: limits.modelWaitMs });
        try {
          const { embeddings: vectors, usage } = await lease.model.embed(input, {
            tenant: caller.tenant,
            signal: caller.signal,
            ...(caller.priority === undefined ? {} : { priority: caller.priority }),
            ...(fields.dimensions === null ? {} : { dimensions: fields.dimensions }),
          });
          const id = `embd-${caller.requestId}`;
          const list = { id, model: lease.id, vectors, isBase64: fields.encoding_format === 'base64', usage };
          return writeList(list, { clock: services.clock, signal: caller.signal, onEnd: leave });
        } finally {
          lease.release();
        }
      } catch (error) {
        leave();
        throw error;
      }
    },
  },
} satisfies RouteCodes;

/** A long list counts as a running request until it is written. */
function writeList(list: EmbeddingList, pacing: Omit<PacedOptions, 'contentType'>): Response {
  const contentType = 'application/json';
  const pieces = writeEmbeddingList(list);
  if (!isShortList(list)) return pacedResponse(pieces, { contentType, ...pacing });
  pacing.onEnd();
  return textResponse([...pieces].join(''), { status: 200, headers: { 'content-type': contentType } });
}
