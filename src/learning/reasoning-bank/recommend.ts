import { type Sample, welchP } from './welch.ts';

/** Least answers of a model. */
export const MIN_GROUP = 3;
/** Significance level. */
export const MAX_P = 0.05;

export const differ = (a: Sample, b: Sample): boolean =>
  a.count >= MIN_GROUP && b.count >= MIN_GROUP && welchP(a, b) < MAX_P;

/** The model that is significantly better than every other with enough answers; null: none. */
export function recommendModel(models: Readonly<Record<string, Sample>>): string | null {
  const tried = Object.entries(models).filter(([, { count }]) => count >= MIN_GROUP);
  if (tried.length < 2) return null;
  const [best, ...rest] = tried.sort(([, a], [, b]) => b.mean - a.mean);
  return rest.every(([, other]) => differ(best![1], other)) ? best![0] : null;
}
