import type { Trajectory } from '../../memory/schemas/trajectory.ts';
import type { TrainingExample } from '../lora-training/types.ts';
import type { LearningModel } from './types.ts';

/** Examples of a run. */
export interface ExampleSets {
  readonly train: readonly TrainingExample[];
  readonly heldOut: readonly TrainingExample[];
  /** Unrated answers, without those that are probably bad: their loss must not rise. */
  readonly elsewhere: readonly TrainingExample[];
  /** The request of each example in `train`. */
  readonly trained: readonly TrainedRequest[];
  /** Whether the newest request was a chat. */
  readonly isChat: boolean;
  /** Trajectories without a prompt, or too long. */
  readonly numUnusable: number;
}

export type TrainedRequest = Pick<Trajectory, 'requestId' | 'createdMs' | 'embedding' | 'space'>;

/** Rejections count less than acceptances: a rejected answer says little about the right one. */
const REJECTED_WEIGHT = -0.5;
/** One request of so many is held out. */
const HELD_OUT_SHARE = 5;

/** Estimates up to it are loops, empty answers, broken formats, and unlikely words about something else. */
const MAX_UNPROTECTED = 0.05;

/**
 * Whether an update must not make an unrated answer less likely. An estimate counts where there is no rating, and it can only take an
 * answer out: nothing is trained on it.
 */
export const isProtected = ({ estimate = 1 }: Trajectory): boolean => estimate > MAX_UNPROTECTED;

interface Lesson {
  readonly answer: string;
  readonly weight: number;
}

/** Whether an answer may have ended before the model ended it: learning its end would teach the model to stop there. */
export const isCutOff = ({ correction, isComplete = false }: Trajectory): boolean => correction === null && !isComplete;

/** The answer to learn and its weight; null without a verdict. */
export function lessonOf(trajectory: Trajectory): Lesson | null {
  if (trajectory.correction !== null) return { answer: beginLike(trajectory.correction, trajectory.answer), weight: 1 };
  if (trajectory.verdict === 'success') return { answer: trajectory.answer, weight: 1 };
  if (trajectory.verdict === 'failure') return { answer: trajectory.answer, weight: REJECTED_WEIGHT };
  return null;
}

/** People omit the leading space of a continuation; without it another token would be learned. */
function beginLike(correction: string, answer: string): string {
  return /^\s/.test(correction) ? correction : (/^\s+/.exec(answer)?.[0] ?? '') + correction;
}

/** Depends on the id alone: a request held out once is never trained on. */
export function isHeldOut(requestId: string): boolean {
  let hash = 0x811c9dc5;
  for (let i = 0; i < requestId.length; i++) hash = Math.imul(hash ^ requestId.charCodeAt(i), 0x01000193);
  return (hash >>> 0) % HELD_OUT_SHARE === 0;
}

/** Requests of a model rated good or bad. */
export const ratedOf = (modelId: string) =>
  ({
    conditions: [
      { field: 'model', is: '=', value: modelId },
      { field: 'verdict', is: 'in', values: ['success', 'failure'] },
    ],
  }) as const;

async function encodeLesson(
  model: LearningModel,
  trajectory: Trajectory,
  { answer, weight }: Lesson,
): Promise<TrainingExample | null> {
  const encoded =
    answer === '' ? null : await model.encodeExample(trajectory, answer, { isCutOff: isCutOff(trajectory) });
  return encoded && { ...encoded, weight };
}

/** Examples of the held-out ones among these requests. */
export async function buildHeldOut(
  model: LearningModel,
  rated: readonly Trajectory[],
): Promise<readonly TrainingExample[]> {
  const heldOut: TrainingExample[] = [];
  for (const trajectory of rated.filter(({ requestId }) => isHeldOut(requestId))) {
    const lesson = lessonOf(trajectory);
    const example = lesson && (await encodeLesson(model, trajectory, lesson));
    if (example !== null) heldOut.push(example);
  }
  return heldOut;
}

export async function buildExamples(
  model: LearningModel,
  rated: readonly Trajectory[],
  unrated: readonly Trajectory[],
): Promise<ExampleSets> {
  const train: TrainingExample[] = [];
  const heldOut: TrainingExample[] = [];
  const trained: TrainedRequest[] = [];
  let numUnusable = 0;
  for (const trajectory of rated) {
    const lesson = lessonOf(trajectory);
    if (lesson === null) continue;
    const example = await encodeLesson(model, trajectory, lesson);
    if (example === null) {
      numUnusable++;
      continue;
    }
    if (isHeldOut(trajectory.requestId)) {
      heldOut.push(example);
      continue;
    }
    train.push(example);
    trained.push(trajectory);
  }
  const elsewhere: TrainingExample[] = [];
  for (const trajectory of unrated.filter(isProtected)) {
    const encoded = await encodeLesson(model, trajectory, { answer: trajectory.answer, weight: 1 });
    if (encoded !== null) elsewhere.push(encoded);
  }
  const isChat = Array.isArray(rated.at(-1)?.prompt);
  return { train, heldOut, elsewhere, trained, isChat, numUnusable };
}
