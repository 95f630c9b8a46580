// Shared by all measurements of the router: the questions, read and encoded once, and the output.
import type { RouteExample } from '../../../src/learning/router/index.ts';
import { hasRoutingSuite, type ModelOutcomes, readMmlu, routingSuite } from './routing-data.ts';
import { encodeAll } from './routing-models.ts';
import { findMiniLm, modelVectors } from './routing-vectors.ts';

export interface RoutingOptions {
  readonly log?: (line: string) => void;
  /** Called with each table as soon as it exists. */
  readonly show?: (rows: string[][]) => void;
  /** No networks, fewer shuffles and contestants. */
  readonly isQuick?: boolean;
  /** Contestants in the tables of models, instead of all. */
  readonly only?: readonly string[] | undefined;
  /** Instead of 20, or 10 with `isQuick`. */
  readonly numShuffles?: number | undefined;
}

export interface RoutingPart {
  readonly log: (line: string) => void;
  readonly show: (rows: string[][]) => void;
  readonly isQuick: boolean;
  readonly only: readonly string[] | undefined;
  readonly numShuffles: number;
  /** The questions of all subjects, read once. */
  readonly mmlu: () => Promise<ModelOutcomes[]>;
  /** The same, encoded once. */
  readonly encoded: () => Promise<{ readonly data: ModelOutcomes[]; readonly examples: RouteExample[] }>;
  /** Null if unavailable: then the terms of the texts are used. */
  readonly miniLm: string | null;
}

export function openPart(options: RoutingOptions): RoutingPart {
  const { log = () => {}, show = () => {}, isQuick = false, only, numShuffles = isQuick ? 10 : 20 } = options;
  if (!hasRoutingSuite()) throw new Error(`routing suite not found at ${routingSuite()}`);
  const miniLm = findMiniLm(log);
  let [read, encoded]: [ReturnType<RoutingPart['mmlu']> | null, ReturnType<RoutingPart['encoded']> | null] = [
    null,
    null,
  ];
  const mmlu = (): ReturnType<RoutingPart['mmlu']> => (read ??= withVectors({ miniLm, log }, readMmlu()));
  const encode = async () => {
    const data = await mmlu();
    const examples = encodeAll(data, []).train;
    log(`${data.length} questions encoded`);
    return { data, examples };
  };
  return { log, show, isQuick, only, numShuffles, miniLm, mmlu, encoded: () => (encoded ??= encode()) };
}

export async function withVectors(
  { miniLm, log }: Pick<RoutingPart, 'miniLm' | 'log'>,
  data: readonly ModelOutcomes[],
): Promise<ModelOutcomes[]> {
  if (miniLm === null) return [...data];
  const texts = data.map(({ text }) => text);
  const vectors = await modelVectors(miniLm, texts, log);
  return data.map((one, i) => ({ ...one, vector: vectors[i]! }));
}
