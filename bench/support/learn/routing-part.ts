// Shared by all measurements of the router: the questions, read and encoded once, and the output.
import type { RouteExample } from '../../../src/learning/router/index.ts';
import { hasRoutingSuite, type ModelOutcomes, readMmlu, routingSuite } from './routing-data.ts';
import { encodeAll } from './routing-models.ts';
import { findMiniLm, modelVectors } from './routing-vectors.ts';

const MAX_PER_SUBJECT = 80;

export interface RoutingOptions {
  readonly log?: (line: string) => void;
  /** Called with each table as soon as it exists. */
  readonly show?: (rows: string[][]) => void;
  /** Fewer shuffles. */
  readonly isQuick?: boolean;
  /** Contestants in the tables of models, instead of all. */
  readonly only?: readonly string[] | undefined;
  /** Instead of 10, or 5 with `isQuick`. */
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

export async function openPart(options: RoutingOptions): Promise<RoutingPart> {
  const { log = () => {}, show = () => {}, isQuick = false, only, numShuffles = isQuick ? 5 : 10 } = options;
  if (!hasRoutingSuite()) throw new Error(`routing suite not found at ${routingSuite()}`);
  const miniLm = await findMiniLm(log);
  let [read, encoded]: [ReturnType<RoutingPart['mmlu']> | null, ReturnType<RoutingPart['encoded']> | null] = [
    null,
    null,
  ];
  const mmlu = (): ReturnType<RoutingPart['mmlu']> =>
    (read ??= withVectors({ miniLm, log }, sampleSubjects(readMmlu())));
  const encode = async () => {
    const data = await mmlu();
    const examples = encodeAll(data, []).train;
    log(`${data.length} questions encoded`);
    return { data, examples };
  };
  return { log, show, isQuick, only, numShuffles, miniLm, mmlu, encoded: () => (encoded ??= encode()) };
}

/** Of every third question, up to 80 per subject, so that no subject decides alone; embedding all takes minutes. */
function sampleSubjects(data: readonly ModelOutcomes[]): ModelOutcomes[] {
  const counts = new Map<string, number>();
  return data.filter(({ cluster }, i) => {
    if (i % 3 !== 0 || (counts.get(cluster) ?? 0) === MAX_PER_SUBJECT) return false;
    counts.set(cluster, (counts.get(cluster) ?? 0) + 1);
    return true;
  });
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
