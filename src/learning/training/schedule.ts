/** How the learning rate falls after the warm-up. */
export const SCHEDULES = {
  constant: () => 1,
  linear: (done: number) => 1 - done,
  cosine: (done: number) => 0.5 * (1 + Math.cos(Math.PI * done)),
} satisfies Record<string, (done: number) => number>;
export type ScheduleName = keyof typeof SCHEDULES;

export interface Schedule {
  readonly name: ScheduleName;
  /** Steps in which the rate rises from 0 in a straight line. */
  readonly numWarmupSteps: number;
  /** Steps of the whole run: the rate has fallen to its end there. */
  readonly numSteps: number;
}

/** Share of the learning rate for the step after `numDone` steps; the first step of a warm-up is not 0. */
export function rateShare({ name, numWarmupSteps, numSteps }: Schedule, numDone: number): number {
  if (numDone < numWarmupSteps) return (numDone + 1) / (numWarmupSteps + 1);
  const numFalling = Math.max(1, numSteps - numWarmupSteps);
  return SCHEDULES[name](Math.min(1, (numDone - numWarmupSteps) / numFalling));
}
