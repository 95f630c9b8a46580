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
  /** A cross-encoder's logit, which any number may be, or the cosine of the embeddings. Higher is more relevant. */
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
  given: RerankOptions | undefined,
): Promise<RerankResult> {
  const options = resolveRerankOptions(given);
  checkInput(query, documents, options.method);
  if (options.method === 'cross-encoder' && context.head === null) throw noCrossEncoder();
  const { signal } = options;
  if (signal?.aborted) throw abortError(signal);
  const texts = [query, ...documents];
  const { lists } = await doTextTask(context, { kind: 'encode', texts, options: { addSpecial: true } }, signal);
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
    'this model is no cross-encoder: it has no classification head. Use a reranker, or the method "embeddings" to compare embeddings',
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
  if (queryIds.length > maxContext) throw overflow('the query', queryIds.length, maxContext);
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
  readonly index: number;
  /** Tokens that are left for the document, with its end token. */
  readonly room: number;
  readonly context: RerankContext;
  readonly options: ResolvedRerankOptions;
}

/** The tokens of a document that fit; its end token stays. */
function fit(ids: readonly number[], { index, room, context, options }: Room): readonly number[] {
  if (ids.length <= room) return ids;
  const { maxContext, tokenizer } = context;
  const numEnds = tokenizer.addsEos ? 1 : 0;
  if (room <= numEnds) throw overflow('the query', maxContext - room, maxContext);
  if (options.truncate) return [...ids.slice(0, room - numEnds), ...ids.slice(ids.length - numEnds)];
  const what = options.method === 'embeddings' ? `documents[${index}]` : `the query with documents[${index}]`;
  throw overflow(what, maxContext - room + ids.length, maxContext, index);
}

function overflow(what: string, promptTokens: number, maxContext: number, index?: number): RuvLLMError {
  const hint = index === undefined ? '' : '; shorten it or ask for truncation';
  return new RuvLLMError(
    'context_overflow',
    `${what} has ${promptTokens} tokens; the context holds ${maxContext}${hint}`,
    { data: { promptTokens, maxContext, ...(index === undefined ? {} : { index }) } },
  );
}
