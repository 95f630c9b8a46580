import type { RerankResult } from '../../runtime/rerank.ts';
import { RERANK_METHODS } from '../../runtime/rerank-options.ts';
import { refusal } from '../errors.ts';
import { resolveModelName } from '../model-name.ts';
import { json, type RouteCode, type RouteCodes } from '../route.ts';
import {
  booleanField,
  choiceField,
  type Field,
  integerField,
  invalid,
  isObject,
  listField,
  missing,
  readFields,
  requiredField,
  schemaOf,
  stringField,
} from '../wire/fields.ts';
import { modelField } from '../wire/openai/chat-request.ts';

const MAX_DOCUMENTS = 1024;
/** Characters of all pairs: the query is read once per document. */
const MAX_CHARS = 2 ** 20;

/** A text, or an object with one, as in Cohere's API. */
const documentField: Field<string> = {
  schema: { anyOf: [{ type: 'string' }, { type: 'object', properties: { text: { type: 'string' } } }] },
  read(value, path) {
    const text = isObject(value) ? value['text'] : value;
    if (typeof text !== 'string') throw invalid(path, 'a text, or an object with a text', value);
    return text;
  },
};

const documentsField = listField(documentField, MAX_DOCUMENTS, 1);

const FIELDS = {
  model: modelField,
  query: requiredField(stringField(MAX_CHARS, 1)),
  documents: documentsField,
  texts: documentsField,
  top_n: integerField(1, Number.MAX_SAFE_INTEGER),
  return_documents: booleanField,
  return_text: booleanField,
  truncate: booleanField,
  method: choiceField(RERANK_METHODS),
} as const;

function readRerank(body: unknown) {
  const fields = readFields(body, FIELDS);
  const { query, documents, texts } = fields;
  const list = documents ?? texts;
  if (list === null) throw missing('documents');
  const name = documents === null ? 'texts' : 'documents';
  const numChars = list.reduce((sum, { length }) => sum + length + query.length, 0);
  if (numChars > MAX_CHARS) {
    const message = `'${name}' and the query for each of them have ${numChars} characters; the limit is ${MAX_CHARS}`;
    throw refusal(422, 'limit_exceeded', message, { param: name });
  }
  return { ...fields, list, isTei: documents === null };
}

type RerankRequest = ReturnType<typeof readRerank>;

/** The bare list of Text Embeddings Inference, for requests with `texts`, as in llama-server. */
const writeTei = ({ results }: RerankResult, { list, return_text: hasText }: RerankRequest) =>
  results.map(({ index, score }) => ({ index, score, ...(hasText === true ? { text: list[index] } : {}) }));

function writeResults({ results, usage }: RerankResult, model: string, request: RerankRequest) {
  const hasDocuments = request.return_documents ?? request.return_text ?? false;
  return {
    object: 'list',
    model,
    results: results.map(({ index, score }) => ({
      index,
      relevance_score: score,
      ...(hasDocuments ? { document: { text: request.list[index] } } : {}),
    })),
    usage: { prompt_tokens: usage.promptTokens, total_tokens: usage.totalTokens },
  };
}

const rerank: RouteCode = {
  summary:
    'Documents by relevance to a query: scores of a cross-encoder, or of embeddings if the request asks for them.',
  body: schemaOf(FIELDS),
  ignoresUnknownFields: true,
  async handle({ readRequest, services, caller }) {
    const request = await readRequest(readRerank);
    const name = resolveModelName(request.model ?? '', services, caller);
    const { limits, admission, models } = services;
    const leave = admission.enter(caller.tenant);
    try {
      const lease = await models.acquire(name, { ...caller, waitMs: limits.modelWaitMs });
      try {
        const result = await lease.model.rerank(request.query, request.list, {
          tenant: caller.tenant,
          signal: caller.signal,
          method: request.method ?? 'cross-encoder',
          truncate: request.truncate ?? false,
          ...(request.top_n === null ? {} : { topN: request.top_n }),
        });
        return json(request.isTei ? writeTei(result, request) : writeResults(result, lease.id, request));
      } finally {
        lease.release();
      }
    } finally {
      leave();
    }
  },
};

/** All paths that llama-server has for it. */
export const routes = {
  'POST /v1/rerank': rerank,
  'POST /v1/reranking': rerank,
  'POST /rerank': rerank,
  'POST /reranking': rerank,
} satisfies RouteCodes;
