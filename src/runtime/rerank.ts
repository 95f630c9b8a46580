import { RuvLLMError } from '../core/errors.ts';
import { abortError } from '../core/abort.ts';
import type { Pooling } from '../engine/pooling.ts';
import type { ClassifierHead } from '../models/classifier-head.ts';
import { type EmbedContext, normalizeVector, poolAll } from './embeddings.ts';
import {
  type RerankMethod,
  type RerankOptions,
  type ResolvedRerankOptions,
  resolveRerankOptions,
} from './rerank-options.ts';
import { doTextTask } from './text/text-thread.ts';

/** Documents by relevance, the best first. */
export interface RerankResult {
  readonly results: readonly RankedDocument[];
  readonly usage: { readonly promptTokens: number; readonly totalTokens: number };
}

/** The score of one document. */
export interface RankedDocument {
  /** Position in the list of documents. */
  readonly index: number;
  /** The logit of a cross-encoder, in no fixed range, or the cosine of the embeddings. Higher is more relevant. */
  readonly score: number;
}

export interface RerankContext extends EmbedContext {
  /** Null: the model is no cross-encoder. */
  readonly head: ClassifierHead | null;
  /** Of the model's embeddings. */
  readonly pooling: Pooling;
}

/** Scores all documents, or fails and aborts the rest. */
export async function rerankDocuments(
  context: RerankContext,
  query: string,
  documents: readonly string[],
  callOptions: RerankOptions | undefined,
): Promise<RerankResult> {
  const options = resolveRerankOptions(callOptions);
  checkInput(query, documents, options.method);
  if (options.method === 'cross-encoder' && context.head === null) throw noCrossEncoder();
  const { signal } = options;
  if (signal?.aborted) throw abortError(signal);
  const texts = [query, ...documents];
  const { lists } = await doTextTask(context, { kind: 'encode', texts, options: { addSpecial: true } }, options);
  if (signal?.aborted) throw abortError(signal); // aborted during the preparation
  const [queryIds, ...documentIds] = lists as [readonly number[], ...(readonly number[])[]];
  const { scores, promptTokens } =
    options.method === 'embeddings'
      ? await compareEmbeddings(context, queryIds, documentIds, options)
      : await scorePairs(context, queryIds, documentIds, options);
  const results = scores.map((score, index) => ({ index, score })).sort((a, b) => b.score - a.score);
  return { results: results.slice(0, options.topN ?? undefined), usage: { promptTokens, totalTokens: promptTokens } };
}

function checkInput(query: unknown, documents: unknown, method: RerankMethod): void {
  if (typeof query !== 'string') throw new RuvLLMError('invalid_option', 'rerank requires a text as the query');
  if (!Array.isArray(documents) || !documents.every((text) => typeof text === 'string')) {
    throw new RuvLLMError('invalid_option', 'rerank requires a list of texts as the documents');
  }
  if (documents.length === 0) throw new RuvLLMError('empty_prompt', 'no documents to rerank');
  if (query === '') throw new RuvLLMError('empty_prompt', 'the query is empty');
  // A cross-encoder has a score for an empty document; the tokens around one would get an embedding.
  const empty = method === 'embeddings' ? documents.indexOf('') : -1;
  if (empty >= 0) throw new RuvLLMError('empty_prompt', `documents[${empty}] is empty`, { data: { index: empty } });
}

function noCrossEncoder(): RuvLLMError {
  return new RuvLLMError(
    'unsupported',
    'this model is not a cross-encoder: it has no classification head. Use a reranker, or the method "embeddings" to compare embeddings',
  );
}

interface Scores {
  readonly scores: readonly number[];
  readonly promptTokens: number;
}

/** Each pair is one sequence: [CLS] query [SEP] document [SEP]. */
async function scorePairs(
  context: RerankContext,
  queryIds: readonly number[],
  documentIds: readonly (readonly number[])[],
  options: ResolvedRerankOptions,
): Promise<Scores> {
  const { tokenizer, head, maxContext } = context;
  const pairs = documentIds.map((ids, index) => {
    const second = tokenizer.addsBos ? ids.slice(1) : ids;
    return [...queryIds, ...fit(second, { index, room: maxContext - queryIds.length, context, options })];
  });
  const scores = await poolAll(context.client, pairs, { ...options, pooling: 'cls' }, head!);
  return { scores, promptTokens: countTokens(pairs) };
}

/** The cosine of the query's embedding with each document's. */
async function compareEmbeddings(
  context: RerankContext,
  queryIds: readonly number[],
  documentIds: readonly (readonly number[])[],
  options: ResolvedRerankOptions,
): Promise<Scores> {
  const { maxContext, pooling, client } = context;
  fit(queryIds, { index: null, room: maxContext, context, options });
  const lists = [queryIds, ...documentIds.map((ids, index) => fit(ids, { index, room: maxContext, context, options }))];
  const [query, ...others] = (await poolAll(client, lists, { ...options, pooling }, normalizeVector)) as [
    Float32Array,
    ...Float32Array[],
  ];
  const scores = others.map((vector) => vector.reduce((sum, value, i) => sum + value * query[i]!, 0));
  return { scores, promptTokens: countTokens(lists) };
}

const countTokens = (lists: readonly (readonly number[])[]): number =>
  lists.reduce((sum, { length }) => sum + length, 0);

interface Room {
  /** Of the document; null: the query. */
  readonly index: number | null;
  /** Tokens that are left for the document, with its end token. */
  readonly room: number;
  readonly context: RerankContext;
  readonly options: ResolvedRerankOptions;
}

/** The tokens of a document that fit; its end token stays. A query is never truncated. */
function fit(ids: readonly number[], { index, room, context, options }: Room): readonly number[] {
  if (ids.length <= room) return ids;
  const { maxContext, tokenizer } = context;
  const numEnds = tokenizer.addsEos ? 1 : 0;
  const numQuery = maxContext - room;
  const isQueryTooLong = index === null || room <= numEnds;
  if (options.truncate && !isQueryTooLong) {
    return [...ids.slice(0, room - numEnds), ...ids.slice(ids.length - numEnds)];
  }
  const promptTokens = numQuery + ids.length;
  const what =
    index === null ? 'the query' : numQuery === 0 ? `documents[${index}]` : `the query with documents[${index}]`;
  const advice = isQueryTooLong ? 'shorten the query' : 'shorten the document or ask for truncation';
  throw new RuvLLMError(
    'context_overflow',
    `${what} has ${promptTokens} tokens; the context holds ${maxContext}; ${advice}`,
    { data: { promptTokens, maxContext, ...(index === null ? {} : { index }) } },
  );
}
