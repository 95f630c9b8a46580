import type { PolicyParameters } from '../../memory/schemas/policy.ts';
import { createBoundaryDetector } from '../ewc/boundary-detector.ts';
import type { TrainedRequest } from './examples.ts';
import type { EwcState, LearnedAdapter } from './learned-adapter.ts';

/** Settings of elastic weight consolidation: the tenant's `ewc` policy. */
export type EwcSettings = PolicyParameters<'ewc'>;

export interface TrackedTasks extends Omit<EwcState, 'fisher'> {
  /** When the first request of a task was created that these examples began; null: they belong to the current task. */
  readonly boundaryMs: number | null;
}

/**
 * Shows the detector the examples that are new since `serving`. At a boundary the task that `serving` learned is finished: its weights and
 * what mattered to them join the ring. A run trains once, so a second boundary among the same examples finishes nothing.
 */
export function trackTasks(
  serving: LearnedAdapter | null,
  examples: readonly TrainedRequest[],
  { lambda, minSamples, maxTasks }: EwcSettings,
): TrackedTasks {
  const before = serving?.ewc ?? null;
  const space = examples.findLast((one) => one.space !== null)?.space ?? before?.stream?.space ?? null;
  // Another embedder's vectors cannot be compared: the detector starts over.
  const start = before?.stream?.space === space ? before!.stream : null;
  const detector = createBoundaryDetector(minSamples, start);
  const timesMs = start?.recent.map(({ atMs }) => atMs) ?? [];
  let boundaryMs: number | null = null;
  for (const { embedding, createdMs, space: made } of examples) {
    if (embedding === null || made !== space) continue;
    timesMs.push(createdMs);
    const numNew = detector.observe(embedding, createdMs);
    if (numNew > 0 && serving !== null) boundaryMs ??= timesMs.at(-numNew)!;
  }
  const tasks = before?.tasks ?? [];
  const finished = boundaryMs === null ? [] : [{ anchor: serving!.parameters, fisher: before!.fisher }];
  return {
    lambda: before?.lambda ?? lambda,
    tasks: [...tasks, ...finished].slice(-maxTasks),
    boundariesMs: [...(before?.boundariesMs ?? []), ...(boundaryMs === null ? [] : [boundaryMs])].slice(-maxTasks),
    stream: space === null ? null : { space, ...detector.state() },
    boundaryMs,
  };
}
