import { z } from 'zod';
import { RuvLLMError } from '../../core/errors.ts';
import { toBase64 } from '../../memory/common/float-packing.ts';
import { name, unit } from '../../memory/schemas/primitives.ts';
import { readTextFeatures, ROUTER_BUCKETS, type RouteRequest, type TextFeatures } from '../router/index.ts';
import { NUM_QUERY_FEATURES } from '../router/types.ts';
import type { RatedRoute } from '../router-training/rated-routes.ts';
import { bytesOf, packVector, unpack, unpackVector } from './packing.ts';

/** Examples of one bundle; more would let one peer outweigh all others. */
export const MAX_SHARED_ROUTES = 1000;
/** Features of the query are logarithms and shares; a larger one would only distort the scale of all others. */
const MAX_FEATURE = 100;
const MAX_VECTOR = 8192;
const MAX_TERMS = 2000;
const MAX_TURNS = 5;

const packed = z.string().max(4 * MAX_VECTOR);

const sharedRoute = z.strictObject({
  /** Position in the list of candidates. */
  candidate: z.int().min(0).max(255),
  quality: unit,
  propensity: z.number().min(0.001).max(1).nullable(),
  /** Conversation within the bundle, as a number without meaning elsewhere. */
  group: z.int().min(0).max(MAX_SHARED_ROUTES),
  numTokens: z.int().min(0).max(1_000_000),
  /** f32[32] */
  query: packed,
  /** Pairs of u16: bucket and count. */
  terms: packed,
  /** i8[width] of the sentence vector. */
  vector: packed.nullable(),
  /** The text itself; only if the sender allows it. */
  turns: z.array(z.string().max(4096)).max(MAX_TURNS).optional(),
});

/** Rated requests of a node as numbers. */
export const routeEvidence = z.strictObject({
  candidates: z.array(name).max(256),
  numBuckets: z.literal(ROUTER_BUCKETS),
  /** Of the sentence vectors. */
  space: name.nullable(),
  examples: z.array(sharedRoute).max(MAX_SHARED_ROUTES),
});
export type RouteEvidence = z.infer<typeof routeEvidence>;

export interface ShareOptions {
  /** Whether the texts themselves are shared. Default false. */
  readonly texts?: boolean;
  /** Whether hashed words are shared: they can be guessed by trying words. Default true. */
  readonly terms?: boolean;
}

function packTerms(counts: ReadonlyMap<number, number>): string {
  const pairs = [...counts].slice(0, MAX_TERMS).sort(([a], [b]) => a - b);
  return toBase64(bytesOf(Uint16Array.from(pairs.flatMap(([bucket, count]) => [bucket, Math.min(65_535, count)]))));
}

function unpackTerms(text: string): Map<number, number> {
  const values = new Uint16Array(unpack(text, 'terms', 4).buffer);
  const counts = new Map<number, number>();
  for (let i = 0; i < values.length; i += 2) {
    const [bucket, count] = [values[i]!, values[i + 1]!];
    if (bucket >= ROUTER_BUCKETS || count === 0)
      throw new RuvLLMError('invalid_option', `bundle: bucket ${bucket} with count ${count} of ${ROUTER_BUCKETS}`);
    counts.set(bucket, count);
  }
  return counts;
}

function unpackQuery(text: string): Float32Array {
  const query = new Float32Array(unpack(text, 'query', 4).buffer);
  if (query.length !== NUM_QUERY_FEATURES)
    throw new RuvLLMError('invalid_option', `bundle: ${query.length} query features, not ${NUM_QUERY_FEATURES}`);
  const bad = query.findIndex((value) => !(Math.abs(value) <= MAX_FEATURE));
  if (bad >= 0)
    throw new RuvLLMError('invalid_option', `bundle: query feature ${bad} is ${query[bad]}, at most ${MAX_FEATURE}`);
  return query;
}

/** The newest examples of a node as numbers; `candidates` are the ids by position. */
export function toRouteEvidence(
  examples: readonly RatedRoute[],
  candidates: readonly string[],
  space: string | null,
  { texts = false, terms = true }: ShareOptions = {},
): RouteEvidence {
  const groups = new Map<string, number>();
  const groupOf = (group: string): number => {
    if (!groups.has(group)) groups.set(group, groups.size);
    return groups.get(group)!;
  };
  return {
    candidates: [...candidates],
    numBuckets: ROUTER_BUCKETS,
    space,
    examples: examples.slice(-MAX_SHARED_ROUTES).map(({ request, candidate, quality, propensity, group }) => {
      const { counts, query, numTokens } = readTextFeatures(request, ROUTER_BUCKETS);
      return {
        candidate,
        quality,
        propensity: propensity === null ? null : Math.max(0.001, propensity),
        group: groupOf(group),
        numTokens,
        query: toBase64(bytesOf(query.slice())),
        terms: terms ? packTerms(counts) : '',
        vector: request.vector === undefined || space === null ? null : packVector(request.vector),
        ...(texts ? { turns: [...request.turns] } : {}),
      };
    }),
  };
}

/** Throws for evidence that cannot be read; done before it is stored. */
export const checkRouteEvidence = (evidence: RouteEvidence): void =>
  void fromRouteEvidence(evidence, evidence.candidates, 'check');

/** Evidence as examples for a router of these candidates; those of other candidates are left out. */
export function fromRouteEvidence(
  { examples, candidates, space }: RouteEvidence,
  ownCandidates: readonly string[],
  peer: string,
  ownSpace: string | null = space,
): RatedRoute[] {
  const places = candidates.map((id) => ownCandidates.indexOf(id));
  return examples.flatMap(({ candidate, quality, propensity, group, numTokens, query, terms, vector, turns }) => {
    if (candidate >= places.length)
      throw new RuvLLMError('invalid_option', `bundle: candidate ${candidate} of ${places.length}`);
    const features: TextFeatures = { counts: unpackTerms(terms), query: unpackQuery(query), numTokens };
    const request: RouteRequest = {
      ...(turns === undefined ? { turns: [], features } : { turns }),
      ...(vector === null || space !== ownSpace ? {} : { vector: unpackVector(vector) }),
    };
    const place = places[candidate]!;
    return place < 0 ? [] : [{ request, candidate: place, quality, propensity, group: `${peer}/${group}` }];
  });
}
