import type { LiveSnapshot } from '../../api/live.ts';

/** Points that are kept: three minutes at one a second. */
export const MAX_POINTS = 180;

/** What was seen since the page was opened; all lists are equally long. */
export interface History {
  /** Seconds since 1970. */
  readonly at: readonly number[];
  readonly generated: readonly number[];
  readonly prompt: readonly number[];
  readonly batch: readonly number[];
  readonly waiting: readonly number[];
}

export const NO_HISTORY: History = { at: [], generated: [], prompt: [], batch: [], waiting: [] };

/** All models together. */
export function addPoint(history: History, { at, models }: LiveSnapshot): History {
  const sum = (of: (model: LiveSnapshot['models'][number]) => number | undefined): number =>
    models.reduce((total, model) => total + (of(model) ?? 0), 0);
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
