import type { LiveSnapshot } from '../../api/live.ts';

/** Length of the history: three minutes at one point per second. */
export const MAX_POINTS = 180;

/** Measurements since the page was opened; all lists have the same length. */
export interface History {
  /** Unix time in seconds. */
  readonly at: readonly number[];
  readonly generated: readonly number[];
  readonly prompt: readonly number[];
  readonly batch: readonly number[];
  readonly waiting: readonly number[];
}

export const NO_HISTORY: History = { at: [], generated: [], prompt: [], batch: [], waiting: [] };

/** Appends the sums over all models. */
export function addPoint(history: History, { at, models }: LiveSnapshot): History {
  const sum = (read: (model: LiveSnapshot['models'][number]) => number | undefined): number =>
    models.reduce((total, model) => total + (read(model) ?? 0), 0);
  const add = (list: readonly number[], value: number): readonly number[] => [...list, value].slice(-MAX_POINTS);
  return {
    at: add(history.at, at / 1000),
    generated: add(
      history.generated,
      sum((model) => model.tokens_per_second.generated),
    ),
    prompt: add(
      history.prompt,
      sum((model) => model.tokens_per_second.prompt),
    ),
    batch: add(
      history.batch,
      sum((model) => model.engine?.batch),
    ),
    waiting: add(
      history.waiting,
      sum((model) => model.engine?.waiting),
    ),
  };
}
