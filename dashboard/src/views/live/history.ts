import type { LiveHistory, LiveSnapshot } from '../../api/live.ts';

/** The ranges of the charts in seconds, and the least distance of their points. */
export const RANGES = { recent: { seconds: 300, gap: 0 }, hour: { seconds: 3600, gap: 5 } } as const;
export type Range = keyof typeof RANGES;

/** Seconds that shares and counts of requests cover, so that a single request does not make a peak of one second. */
const WINDOW_SECONDS = 60;

/** A model at one moment; null: it was not loaded. */
interface ModelPoint {
  readonly generated: number | null;
  readonly prompt: number | null;
  readonly batch: number | null;
  readonly waiting: number | null;
  readonly usedBytes: number | null;
  readonly budgetBytes: number | null;
  readonly lookups: number | null;
  readonly hits: number | null;
}

interface Point {
  /** Unix time in seconds. */
  readonly at: number;
  readonly answered: number;
  readonly failed: number;
  readonly models: ReadonlyMap<string, ModelPoint>;
}

export type History = Readonly<Record<Range, readonly Point[]>>;

export const NO_HISTORY: History = { recent: [], hour: [] };

/** The samples of the server: they go back to before the page was opened. */
export function pastOf({ at, answered, failed, models }: LiveHistory): History {
  const points = at.map((ms, i) => ({
    at: ms / 1000,
    answered: answered[i]!,
    failed: failed[i]!,
    models: new Map(
      models.map((model) => [
        model.id,
        {
          generated: model.generated[i]!,
          prompt: model.prompt[i]!,
          batch: model.batch[i]!,
          waiting: model.waiting[i]!,
          usedBytes: model.used_bytes[i]!,
          budgetBytes: model.budget_bytes[i]!,
          lookups: model.lookups[i]!,
          hits: model.hits[i]!,
        },
      ]),
    ),
  }));
  return { recent: cutTo('recent', points), hour: cutTo('hour', points) };
}

export function addSnapshot(history: History, snapshot: LiveSnapshot): History {
  const point = pointOf(snapshot);
  const add = (range: Range): readonly Point[] => {
    const last = history[range].at(-1);
    const isNext = last === undefined || point.at - last.at >= RANGES[range].gap;
    return isNext ? cutTo(range, [...history[range], point]) : history[range];
  };
  return { recent: add('recent'), hour: add('hour') };
}

function cutTo(range: Range, points: readonly Point[]): readonly Point[] {
  const start = (points.at(-1)?.at ?? 0) - RANGES[range].seconds;
  return points.filter(({ at }) => at >= start);
}

function pointOf({ at, num_answered: answered, num_failed: failed, models }: LiveSnapshot): Point {
  return {
    at: at / 1000,
    answered,
    failed,
    models: new Map(
      models.map(({ id, tokens_per_second: rates, engine, pool }) => [
        id,
        {
          generated: rates.generated ?? 0,
          prompt: rates.prompt ?? 0,
          batch: engine?.batch ?? null,
          waiting: engine?.waiting ?? null,
          usedBytes: pool?.used_bytes ?? null,
          budgetBytes: pool?.budget_bytes ?? null,
          lookups: pool?.prefix_cache.lookups ?? null,
          hits: pool === null ? null : pool.prefix_cache.hits + pool.prefix_cache.partial_hits,
        },
      ]),
    ),
  };
}

type Values = readonly number[];
type Gaps = readonly (number | null)[];

/** The lines of the charts; all lists have the same length. */
export interface Series {
  readonly at: Values;
  readonly generated: Values;
  readonly prompt: Values;
  readonly batch: Values;
  readonly waiting: Values;
  /** Memory in use as a share of the budget; null: no model was loaded. */
  readonly budgetShare: Gaps;
  /** Prefix cache hits of the last minute; null: no lookups. */
  readonly hitShare: Gaps;
  /** Requests of the last minute, of all models. */
  readonly answered: Values;
  readonly failed: Values;
}

/** The lines of one model; null: the sums over all models. */
export function seriesOf(points: readonly Point[], model: string | null): Series {
  const modelsOf = (point: Point): readonly ModelPoint[] =>
    [...point.models].flatMap(([id, one]) => (model === null || id === model ? [one] : []));
  const sum = (point: Point, name: keyof ModelPoint): number =>
    modelsOf(point).reduce((total, one) => total + (one[name] ?? 0), 0);
  const sums = (name: keyof ModelPoint): number[] => points.map((point) => sum(point, name));
  const since = (read: (point: Point) => number) => {
    let start = 0;
    return points.map((point) => {
      while (points[start]!.at < point.at - WINDOW_SECONDS) start++;
      return Math.max(0, read(point) - read(points[start]!));
    });
  };
  const lookups = since((point) => sum(point, 'lookups'));
  const hits = since((point) => sum(point, 'hits'));
  const budgets = sums('budgetBytes');
  return {
    at: points.map(({ at }) => at),
    generated: sums('generated'),
    prompt: sums('prompt'),
    batch: sums('batch'),
    waiting: sums('waiting'),
    budgetShare: sums('usedBytes').map((used, i) => (budgets[i]! > 0 ? used / budgets[i]! : null)),
    hitShare: hits.map((count, i) => (lookups[i]! > 0 ? Math.min(1, count / lookups[i]!) : null)),
    answered: since(({ answered }) => answered),
    failed: since(({ failed }) => failed),
  };
}
