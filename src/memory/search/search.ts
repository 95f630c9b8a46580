import { z } from 'zod';
import { RuvLLMError } from '../../core/errors.ts';
import { cosine } from '../common/cosine.ts';
import type { MemoryServices } from '../common/services.ts';
import type { Embedder } from '../embedder-types.ts';
import { MEMORY_FIELDS, type FieldRegistry } from '../fields.ts';
import type { MemoryGraph } from '../graph/graph.ts';
import { embedding, parseWith, space, text, timeMs } from '../schemas/primitives.ts';
import { checkCount } from '../store/check-query.ts';
import { passesFilter } from '../store/filter.ts';
import {
  ANSWER_KINDS,
  SEARCHED_KINDS,
  type FieldCondition,
  type MemoryRecord,
  type MemoryStore,
  type RecordKind,
} from '../types.ts';
import type { EmbeddedText } from './embed-text.ts';
import { feedbackBoosts } from './feedback.ts';
import { contextOf, embedQuestion } from './follow-up.ts';
import { bestOfEach, fuse, inOrder, type MemoryResult, STRONG_LEXICAL } from './fuse.ts';
import { followNames } from './linked-names.ts';
import { type ComparedText, jaccardOf, toCompared } from './min-hash.ts';
import type { PackedContext } from './pack.ts';
import { packResults } from './pack-results.ts';
import { recordText } from './record-text.ts';
import { MAX_RERANKED, type RankCandidates, rescore, type Rerank } from './rerank.ts';

/** Above this the second text is a duplicate. */
const MAX_JACCARD = 0.8;
/** Most records to read when duplicates were dropped. */
const MAX_CANDIDATES = 1000;
const NUM_CANDIDATES = 64;
const NO_BOOSTS: ReadonlyMap<string, number> = new Map();
/** The space without an embedder; no vector has it. */
export const NO_SPACE = 'none';
/** Factor of the score per step along the graph. */
const HOP_FACTOR = 0.8;
/** Added to the score of a record that shares a name with the best results. */
const NAME_BONUS = 0.2;

const memoryQuery = z
  .strictObject({
    /** Searched by words and by meaning. */
    text: text(1 << 20, 1).optional(),
    /** Earlier messages of the user, the oldest first: searched too where the text is a follow-up question. */
    turns: z.array(z.string().max(1 << 20)).max(256).default([]), // prettier-ignore
    /** Searched by meaning instead of the text's own vector. */
    vector: embedding.optional(),
    /** Of the vector. Default: the embedder's. */
    space: space.optional(),
    /** Default: all, without unrated answers of the model. Answers of kinds that are named come after all other results. */
    kinds: z
      .array(z.enum(SEARCHED_KINDS as [RecordKind, ...RecordKind[]]))
      .min(1)
      .max(SEARCHED_KINDS.length)
      .optional(),
    /** Checked by the store. */
    filter: z
      .array(z.custom<FieldCondition>((value) => typeof value === 'object' && value !== null))
      .max(32)
      .default([]),
    fromMs: timeMs.optional(),
    toMs: timeMs.optional(),
    k: z.int().min(1).max(1000).default(10),
    /** Excludes unrated answers of the model. Default: only without `kinds`. */
    onlyTrusted: z.boolean().optional(),
    /** Nearest and best matching records to rank, at least k. Default: 64, or 4 k without re-ranking and graph. */
    numCandidates: z.int().min(1).max(1000).optional(),
    /** Of results without a strong match of words. */
    minSimilarity: z.number().min(-1).max(1).default(-1),
    /** Steps along the graph from the nearest records, and to records that share a rare name with them. */
    expandHops: z.int().min(0).max(3).default(0),
    /** Whether results have their vectors. */
    withVectors: z.boolean().default(false),
    /** Packs the results into a text of at most this many tokens. */
    tokenBudget: z
      .int()
      .min(1)
      .max(1 << 24)
      .optional(),
  })
  .refine((query) => query.text !== undefined || query.vector !== undefined, 'needs text or vector');
/** A search by words and meaning. */
export type MemoryQuery = z.input<typeof memoryQuery>;
type ResolvedQuery = z.output<typeof memoryQuery>;

/** A candidate of a search. */
export interface SearchCandidate {
  readonly id: string;
  readonly similarity: number | null;
  /** Before re-ranking. */
  readonly score: number;
  readonly hops: number;
}

/** The results of a search. */
export interface MemorySearchResult {
  /** The best before re-ranking, at most `MAX_RERANKED`. */
  readonly candidates: readonly SearchCandidate[];
  /** The best first. */
  readonly results: readonly MemoryResult[];
  /** Dropped near-duplicates of better results. */
  readonly numDuplicates: number;
  /** Null without a budget. `isEstimated`: tokens were estimated at four characters each. */
  readonly context: (PackedContext & { readonly isEstimated: boolean }) | null;
}

interface MemorySearchContext {
  readonly store: MemoryStore;
  readonly services: Pick<MemoryServices, 'now'>;
  readonly graph: MemoryGraph;
  /** Null: searches by words only, unless a vector is given. Read by each search, because it may come late. */
  readonly embedder: Embedder | null;
  /** Default: one token per four characters. */
  readonly countTokens?: (text: string) => number;
  /** Default: `MEMORY_FIELDS`. */
  readonly fields?: FieldRegistry;
  /** Re-ranks before duplicates are dropped and the text is packed; null: no re-ranking. */
  readonly rerank?: () => Rerank | null;
}

export type { MemoryResult };

export interface MemorySearch {
  search(tenant: string, query: MemoryQuery): Promise<MemorySearchResult>;
}

function dropDuplicates(
  ranked: readonly MemoryResult[],
  k: number,
): { results: MemoryResult[]; numDuplicates: number } {
  const results: MemoryResult[] = [];
  const texts = new Map<string, ComparedText>();
  let numDuplicates = 0;
  for (const result of ranked) {
    if (results.length === k) break;
    // Exact copies are common, and need no MinHash.
    if (result.text !== '' && texts.has(result.text)) {
      numDuplicates++;
      continue;
    }
    const compared = toCompared(result.text);
    if (result.text !== '' && Array.from(texts.values()).some((other) => jaccardOf(compared, other) > MAX_JACCARD)) {
      numDuplicates++;
      continue;
    }
    texts.set(result.text, compared);
    results.push(result);
  }
  return { results, numDuplicates };
}

export function createMemorySearch(context: MemorySearchContext): MemorySearch {
  const { store, services, graph, fields = MEMORY_FIELDS, rerank } = context;
  const countTokens = context.countTokens ?? ((words: string) => Math.ceil(words.length / 4));

  /** Null: no embedder, or a text without tokens. */
  const toVector = async (query: ResolvedQuery): Promise<EmbeddedText | null> => {
    const { embedder } = context;
    if (query.vector !== undefined) {
      return { vector: query.vector, space: query.space ?? embedder?.fingerprint ?? NO_SPACE };
    }
    if (query.space !== undefined && query.space !== embedder?.fingerprint) {
      throw new RuvLLMError(
        'invalid_option',
        `the embedder has the space ${embedder?.fingerprint ?? NO_SPACE}, not ${query.space}; pass a vector instead of text`,
      );
    }
    return embedQuestion(embedder, query.text!, query.turns);
  };
  const toFilter = (query: ResolvedQuery) => ({
    ...(query.fromMs === undefined ? {} : { createdFromMs: query.fromMs }),
    ...(query.toMs === undefined ? {} : { createdToMs: query.toMs }),
    fields: query.filter,
    onlyTrusted: query.onlyTrusted ?? query.kinds === undefined,
  });
  const isLive = ({ expiresMs }: MemoryRecord): boolean => expiresMs === null || expiresMs > services.now();
  const isLiveHit = ({ record }: { readonly record: MemoryRecord }): boolean => isLive(record);

  const expand = async (
    tenant: string,
    near: readonly MemoryResult[],
    query: ResolvedQuery,
    embedded: EmbeddedText | null,
  ): Promise<MemoryResult[]> => {
    const seeds = new Map(near.map((result) => [result.record.id, result]));
    const reached = await graph.expand(tenant, [...seeds.keys()], { hops: query.expandHops, maxNodes: 1000 });
    const records = reached.length === 0 ? [] : await store.get(tenant, reached.map(({ id }) => id)); // prettier-ignore
    const filter = checkCount({ kinds: query.kinds ?? SEARCHED_KINDS, filter: toFilter(query) }, fields);
    const similarityOf = (record: MemoryRecord): number | null =>
      embedded !== null && record.vector !== null && record.space === embedded.space
        ? cosine(embedded.vector, record.vector)
        : null;
    const toResult = (record: MemoryRecord, score: number, similarity: number | null, hops: number): MemoryResult => {
      const shown = query.withVectors ? record : { ...record, vector: null };
      return { record: shown, text: recordText(record), score, similarity, lexical: null, hops };
    };
    const linked = records.flatMap((record, index) => {
      // The query's conditions hold for reached records too.
      if (record === null || !isLive(record) || !passesFilter(record, filter)) return [];
      const { hops, strength, from } = reached[index]!;
      const similarity = similarityOf(record);
      const inherited = seeds.get(from)!.score * strength * HOP_FACTOR ** hops;
      return [toResult(record, Math.max(similarity ?? -1, inherited), similarity, hops)];
    });
    const { text: words, kinds = SEARCHED_KINDS } = query;
    if (words === undefined) return linked;
    const named = await followNames(store, tenant, near, { text: words, kinds, filter: toFilter(query) });
    const namesakes = named.filter(isLiveHit).map(({ record }) => {
      const similarity = similarityOf(record);
      const direct = seeds.get(record.id);
      const score = NAME_BONUS + (direct?.score ?? similarity ?? 0);
      return direct === undefined ? toResult(record, score, similarity, 1) : { ...direct, score };
    });
    return [...linked, ...namesakes];
  };

  /** The live ones of the nearest and the best matching records; `isMore`: there are further ones. */
  const gather = async (tenant: string, query: ResolvedQuery, embedded: EmbeddedText | null, k: number) => {
    const kinds = query.kinds ?? SEARCHED_KINDS;
    // By words alone, nothing has a similarity.
    const minSimilarity = embedded === null ? -1 : query.minSimilarity;
    const context = query.text === undefined ? '' : contextOf(query.text, query.turns);
    const words = { text: query.text ?? '', ...(context === '' ? {} : { context }) };
    const one = async (filter: ReturnType<typeof toFilter>) => {
      const common = { kinds, k, filter, withVectors: query.withVectors };
      const [near, matches] = await Promise.all([
        embedded === null ? [] : store.nearest(tenant, { ...embedded, ...common }),
        query.text === undefined ? [] : store.match(tenant, { ...words, ...common }),
      ]);
      const isMore =
        (near.length === k && near.at(-1)!.similarity >= minSimilarity) ||
        (matches.length === k && (minSimilarity === -1 || matches.at(-1)!.score >= STRONG_LEXICAL));
      const found = fuse(near.filter(isLiveHit), matches.filter(isLiveHit), minSimilarity);
      return { found, isMore };
    };
    const filter = toFilter(query);
    const first = await one(filter);
    if (filter.onlyTrusted || !kinds.some((kind) => ANSWER_KINDS.includes(kind))) return first;
    // Otherwise many near answers would leave no room for the trusted records that come before them.
    const trusted = await one({ ...filter, onlyTrusted: true });
    const ids = new Set(trusted.found.map(({ record }) => record.id));
    return {
      found: [...trusted.found, ...first.found.filter(({ record }) => !ids.has(record.id))],
      isMore: first.isMore || trusted.isMore,
    };
  };

  /** The best of `numCandidates`; `isMore`: further records could be results too. */
  const look = async (
    tenant: string,
    given: ResolvedQuery,
    embedded: EmbeddedText | null,
    numCandidates: number,
    rank: RankCandidates | null,
  ): Promise<Omit<MemorySearchResult, 'context'> & { readonly isMore: boolean }> => {
    // Re-ranking needs the vectors.
    const query = { ...given, withVectors: given.withVectors || rank !== null };
    const { found: near, isMore } = await gather(tenant, query, embedded, numCandidates);
    const further = query.expandHops === 0 ? [] : await expand(tenant, near, query, embedded);
    const limit = Math.max(MAX_RERANKED, query.k);
    const found = bestOfEach([...near, ...further]);
    const sourceIds = found.slice(0, limit).map(({ record }) => record.id);
    const boosts =
      embedded === null ? NO_BOOSTS : await feedbackBoosts(store, graph, { tenant, ...embedded, sourceIds });
    const boosted = (results: readonly MemoryResult[]): readonly MemoryResult[] =>
      boosts.size === 0
        ? results
        : inOrder(results.map((one) => ({ ...one, score: one.score + (boosts.get(one.record.id) ?? 0) })));
    const present = boosted(found);
    const ranked =
      rank === null || embedded === null
        ? present
        : boosted(inOrder(await rescore(rank, store, services.now(), { tenant, space: embedded.space, query: embedded.vector }, present, limit))); // prettier-ignore
    return {
      ...dropDuplicates(ranked, query.k),
      candidates: present
        .slice(0, MAX_RERANKED)
        .map(({ record: { id }, similarity, score, hops }) => ({ id, similarity, score, hops })),
      isMore,
    };
  };

  return {
    async search(tenant, given) {
      const query = parseWith<ResolvedQuery>(memoryQuery as never, given, 'memory search');
      const embedded = await toVector(query);
      const rank = embedded === null ? null : ((await rerank?.()?.of(tenant, embedded.space)) ?? null);
      // Each candidate is opened and compared, so few are read at first.
      const isOrderKnown = rank === null && query.expandHops === 0;
      const usual = isOrderKnown ? Math.min(NUM_CANDIDATES, 4 * query.k) : NUM_CANDIDATES;
      let numCandidates = Math.max(query.k, query.numCandidates ?? usual);
      let best = await look(tenant, query, embedded, numCandidates, rank);
      // Duplicates and expired records must not hide results a little further away.
      while (best.results.length < query.k && best.isMore && numCandidates < MAX_CANDIDATES) {
        numCandidates = Math.min(MAX_CANDIDATES, 4 * numCandidates);
        best = await look(tenant, query, embedded, numCandidates, rank);
      }
      const { numDuplicates, candidates } = best;
      const results =
        rank === null || query.withVectors
          ? best.results
          : best.results.map((result) => ({ ...result, record: { ...result.record, vector: null } }));
      const { tokenBudget, turns, text: question = '' } = query;
      const packed =
        tokenBudget === undefined
          ? null
          : await packResults(store, tenant, results, {
              tokenBudget,
              countTokens,
              query: `${question} ${contextOf(question, turns)}`,
            });
      const isEstimated = context.countTokens === undefined;
      return { results, candidates, numDuplicates, context: packed && { ...packed, isEstimated } };
    },
  };
}
