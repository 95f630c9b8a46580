import { RuvLLMError } from '../../../core/errors.ts';
import { integerOption, resolveOptions } from '../../../core/options.ts';
import { NUM_FEATURES, NUM_QUERY_FEATURES, type PolicyState, type RouteInput, type SparseVector } from '../types.ts';
import { countTerms, fitRarity, weighTerms } from './hashed-terms.ts';
import { findDirections, project } from './principal-directions.ts';
import { queryFeatures } from './query-features.ts';
import { retrievalFeatures, type RetrievalState, systemFeatures, type SystemState } from './state-features.ts';

/** Numbers of a text, before anything learned from other texts is applied to them. */
export interface TextFeatures {
  /** How often each bucket of terms occurs. */
  readonly counts: ReadonlyMap<number, number>;
  /** f32[32], not scaled. */
  readonly query: Float32Array;
  readonly numTokens: number;
}

export interface RouteRequest {
  /** Turns, oldest first; the last one is to be answered. */
  readonly turns: readonly string[];
  /** Of a request whose text stayed on another node; they take the place of the turns. Default: read from the turns. */
  readonly features?: TextFeatures | undefined;
  /** Sentence vector of the last turn. Default none. */
  readonly vector?: Float32Array | undefined;
  readonly retrieval?: RetrievalState;
  readonly system?: SystemState;
}

export interface EncoderOptions {
  /** Default 16384. */
  readonly numBuckets?: number;
  /** Numbers of the embedding block. Default 16; the three blocks together must be 96. */
  readonly embedding?: number;
  /** Width of the sentence vectors that the router reads. Default 0: it reads none. */
  readonly vector?: number;
  /** Default 48. */
  readonly retrieval?: number;
  /** Default 32. */
  readonly system?: number;
  /** Default 1. */
  readonly seed?: number;
}

/** Encodes requests with statistics of the training texts. */
export interface RouteEncoder {
  /** The space of the sentence vectors that the router reads; null: it reads none. */
  readonly space: string | null;
  /** Computes the text features of a coming request while its caller waits for something else. */
  foresee(turns: readonly string[]): void;
  encode(request: RouteRequest): RouteInput;
  save(): PolicyState;
}

/** A scaled feature further out than this says no more than that it is far out. */
const MAX_SCALED = 4;
const CHARACTERS_PER_TOKEN = 4;
/** Wider than any sentence encoder's. */
const MAX_VECTOR = 8192;
/** Directions of the sentence vectors that routers read: more find no more intents, and cost time at every request. */
const NUM_VECTOR_DIRECTIONS = 192;
const reducedWidth = (vector: number): number => Math.min(NUM_VECTOR_DIRECTIONS, vector);

function resolve(options: EncoderOptions | undefined): Required<EncoderOptions> {
  const resolved = resolveOptions<Required<EncoderOptions>>('route encoder', options, {
    numBuckets: integerOption(1 << 14, 1 << 8, 1 << 18),
    embedding: integerOption(16, 1, NUM_FEATURES - NUM_QUERY_FEATURES),
    vector: integerOption(0, 0, MAX_VECTOR),
    retrieval: integerOption(48, 0, 48),
    system: integerOption(32, 0, 32),
    seed: integerOption(1, 0, 2 ** 32 - 1),
  });
  const sum = NUM_QUERY_FEATURES + resolved.embedding + resolved.retrieval + resolved.system;
  if (sum !== NUM_FEATURES)
    throw new RuvLLMError('invalid_option', `the feature blocks add up to ${sum} numbers, not ${NUM_FEATURES}`);
  return resolved;
}

/** Mean and 1 / deviation by column. */
function fitScale(rows: readonly Float32Array[], width: number): { mean: Float32Array; scale: Float32Array } {
  const mean = new Float32Array(width);
  const scale = new Float32Array(width);
  for (let i = 0; i < width; i++) {
    let sum = 0;
    let squared = 0;
    for (const row of rows) sum += row[i]!;
    mean[i] = sum / rows.length;
    for (const row of rows) squared += (row[i]! - mean[i]!) ** 2;
    const deviation = Math.sqrt(squared / rows.length);
    scale[i] = deviation > 1e-6 ? 1 / deviation : 0;
  }
  return { mean, scale };
}

function unitOf(values: Float32Array): Float32Array {
  const length = Math.hypot(...values);
  return values.map((value) => (length > 0 ? value / length : 0));
}

/** A sentence vector in the form that directions are found for and projected on; refused where it is not as wide as the others. */
function vectorTerms(vector: Float32Array, width: number): SparseVector {
  if (vector.length !== width)
    throw new RuvLLMError('invalid_option', `a request's vector has ${vector.length} numbers, the encoder needs ${width}`); // prettier-ignore
  const bad = vector.findIndex((value) => !Number.isFinite(value));
  if (bad >= 0) throw new RuvLLMError('invalid_option', `number ${bad} of a request's vector is ${vector[bad]}`);
  return { indices: Int32Array.from({ length: width }, (_, i) => i), values: vector };
}

/** Estimated tokens of a text before any model has tokenized it. */
export const expectedTokens = (text: string): number => Math.ceil(text.length / CHARACTERS_PER_TOKEN);

const wholeOf = (turns: readonly string[]): string => turns.at(-1) ?? '';

/** Buckets of terms in routers that are trained on rated requests: collisions cost less than the load time of a larger router. */
export const ROUTER_BUCKETS = 2048;

/** Features of the last turn, or those that came instead of it. */
export function readTextFeatures({ turns, features }: RouteRequest, numBuckets: number): TextFeatures {
  if (features !== undefined) return features;
  const text = wholeOf(turns);
  return {
    counts: countTerms(text, numBuckets),
    query: queryFeatures(text, turns.length),
    numTokens: expectedTokens(text),
  };
}

/** Learns rarity, directions and scales from texts, without looking at any outcome. `space` is that of the requests' vectors. */
export function fitRouteEncoder(
  requests: readonly RouteRequest[],
  options?: EncoderOptions,
  space: string | null = null,
): RouteEncoder {
  const resolved = resolve(options);
  if (requests.length < 2) throw new RuvLLMError('invalid_option', `an encoder cannot be fitted to ${requests.length} requests`); // prettier-ignore
  const texts = requests.map((request) => readTextFeatures(request, resolved.numBuckets));
  const rarity = fitRarity(
    texts.map(({ counts }) => counts),
    resolved.numBuckets,
  );
  const terms = texts.map(({ counts }) => weighTerms(counts, rarity));
  const directions = findDirections(terms, resolved.numBuckets, resolved.embedding, resolved.seed);
  const { vector: width } = resolved;
  const vectors = width === 0 ? [] : requests.flatMap(({ vector }) => (vector === undefined ? [] : [vectorTerms(vector, width)])); // prettier-ignore
  const vectorDirections = findDirections(vectors, width, reducedWidth(width), resolved.seed);
  const rows = texts.map(({ query }, i) => {
    const row = new Float32Array(NUM_QUERY_FEATURES + resolved.embedding);
    row.set(query);
    project(terms[i]!, directions, row.subarray(NUM_QUERY_FEATURES));
    return row;
  });
  const { mean, scale } = fitScale(rows, NUM_QUERY_FEATURES + resolved.embedding);
  return createRouteEncoder(resolved, { rarity, directions, vectorDirections, mean, scale }, space);
}

/** Features that depend on the text alone. */
interface ReadText extends Pick<TextFeatures, 'query' | 'numTokens'> {
  readonly terms: SparseVector;
}

/** Requests that are between being foreseen and encoded at once. */
const MAX_FORESEEN = 64;

interface EncoderArrays {
  /** f32[numBuckets] */
  readonly rarity: Float32Array;
  /** f32[numBuckets × embedding] */
  readonly directions: Float32Array;
  /** f32[vector × min(192, vector)] */
  readonly vectorDirections: Float32Array;
  /** f32[32 + embedding] */
  readonly mean: Float32Array;
  readonly scale: Float32Array;
}

function createRouteEncoder(
  options: Required<EncoderOptions>,
  arrays: EncoderArrays,
  space: string | null,
): RouteEncoder {
  const { numBuckets, embedding: size } = options;
  const { rarity, directions, vectorDirections, mean, scale } = arrays;
  const vectorOf = (query: Float32Array, terms: SparseVector) => {
    const features = new Float32Array(NUM_FEATURES);
    const embedding = new Float32Array(size);
    project(terms, directions, embedding);
    features.set(query);
    features.set(embedding, NUM_QUERY_FEATURES);
    for (let i = 0; i < mean.length; i++) {
      const scaled = (features[i]! - mean[i]!) * scale[i]!;
      features[i] = Math.max(-MAX_SCALED, Math.min(MAX_SCALED, scaled));
    }
    return { features, embedding };
  };
  const reduce = ({ vector }: RouteRequest): Float32Array | undefined => {
    if (vector === undefined || options.vector === 0) return undefined;
    const reduced = new Float32Array(reducedWidth(options.vector));
    project(vectorTerms(vector, options.vector), vectorDirections, reduced);
    return unitOf(reduced);
  };
  const foreseen = new Map<string, ReadText>();
  const keyOf = (turns: readonly string[]): string => `${turns.length} ${wholeOf(turns)}`;
  const read = (request: RouteRequest): ReadText => {
    const { counts, query, numTokens } = readTextFeatures(request, numBuckets);
    return { terms: weighTerms(counts, rarity), query, numTokens };
  };
  return {
    space,
    foresee(turns) {
      if (foreseen.size >= MAX_FORESEEN) foreseen.clear(); // of requests that never came
      foreseen.set(keyOf(turns), read({ turns }));
    },
    encode(request) {
      const { turns, features: ready } = request;
      const { terms, query, numTokens } =
        (ready === undefined ? foreseen.get(keyOf(turns)) : undefined) ?? read(request);
      foreseen.delete(keyOf(turns));
      const { features, embedding } = vectorOf(query, terms);
      const states = NUM_QUERY_FEATURES + size;
      retrievalFeatures(request.retrieval, features.subarray(states, states + options.retrieval));
      systemFeatures(request.system, features.subarray(states + options.retrieval));
      return {
        features,
        query: features.subarray(0, NUM_QUERY_FEATURES),
        terms,
        embedding: unitOf(embedding),
        vector: reduce(request),
        numTokens,
        system: request.system,
      };
    },
    save: () => ({
      kind: 'encoder',
      numbers: { ...options },
      arrays: { rarity, directions, ...(options.vector > 0 ? { vectorDirections } : {}), mean, scale },
      texts: { space: space === null ? [] : [space] },
    }),
  };
}

/** An encoder from what `save` gave. */
export function loadRouteEncoder({ numbers, arrays, texts }: PolicyState): RouteEncoder {
  const options = resolve(numbers as EncoderOptions);
  const width = NUM_QUERY_FEATURES + options.embedding;
  const read = (name: string, length: number): Float32Array => {
    const array = arrays[name];
    if (!(array instanceof Float32Array) || array.length !== length)
      throw new RuvLLMError('invalid_option', `stored encoder: ${name} has ${array?.length ?? 0} values, needs ${length}`); // prettier-ignore
    return array;
  };
  const stored = {
    rarity: read('rarity', options.numBuckets),
    directions: read('directions', options.numBuckets * options.embedding),
    vectorDirections: options.vector === 0 ? new Float32Array() : read('vectorDirections', options.vector * reducedWidth(options.vector)), // prettier-ignore
    mean: read('mean', width),
    scale: read('scale', width),
  };
  return createRouteEncoder(options, stored, texts?.['space']?.[0] ?? null);
}

/** Width of the vectors in the inputs of an encoder. */
export const vectorWidth = ({ numbers }: PolicyState): number => reducedWidth(numbers['vector']!);

/** The same encoder for a router that reads no vectors. */
export function withoutVectors(encoder: RouteEncoder): RouteEncoder {
  const { texts: _, ...state } = encoder.save();
  return loadRouteEncoder({ ...state, numbers: { ...state.numbers, vector: 0 } });
}
