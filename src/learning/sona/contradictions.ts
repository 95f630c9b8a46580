import type { Trajectory } from '../../memory/schemas/trajectory.ts';
import { lessonOf } from './examples.ts';
import { normalizeText } from './same-lesson.ts';

/** Feedback on the same question that says something else. */
export interface Contradictions {
  /** Newer feedback of the same user, which counts instead; null: there is none. */
  readonly replacedBy: Trajectory | null;
  /** Earlier feedback of the same user that this one is the first to contradict. */
  readonly supersedes: readonly Trajectory[];
  /** Other users who corrected the answer differently. */
  readonly numOtherUsers: number;
}

const ratedMs = ({ feedback, createdMs }: Trajectory): number => feedback.at(-1)?.atMs ?? createdMs;

/** Whether two ratings of a question cannot both be followed: different corrections, or one answer accepted and rejected. */
export function isContradiction(one: Trajectory, other: Trajectory): boolean {
  if (one.requestId === other.requestId || normalizeText(one.query) !== normalizeText(other.query)) return false;
  const [a, b] = [lessonOf(one), lessonOf(other)];
  if (a === null || b === null) return false;
  const isSameAnswer = normalizeText(a.answer) === normalizeText(b.answer);
  if (a.weight > 0 !== b.weight > 0) return isSameAnswer;
  return one.correction !== null && other.correction !== null && !isSameAnswer;
}

export function findContradictions(trajectory: Trajectory, rated: readonly Trajectory[]): Contradictions {
  const contradicting = rated.filter((other) => isContradiction(trajectory, other));
  const ofUser = contradicting.filter(({ userId }) => userId === trajectory.userId);
  const isNewer = (one: Trajectory, other: Trajectory): boolean => ratedMs(one) > ratedMs(other);
  const older = ofUser.filter((other) => !isNewer(other, trajectory));
  const isNews = (other: Trajectory): boolean =>
    !rated.some(
      (third) =>
        third.requestId !== trajectory.requestId &&
        third.userId === other.userId &&
        isNewer(third, other) &&
        isContradiction(third, other),
    );
  return {
    replacedBy: ofUser.find((other) => isNewer(other, trajectory)) ?? null,
    supersedes: older.filter(isNews),
    numOtherUsers: new Set(contradicting.filter((other) => !ofUser.includes(other)).map(({ userId }) => userId)).size,
  };
}

/** Without ratings that newer ones of the same user contradict; the order stays. */
export function dropSuperseded(rated: readonly Trajectory[]): readonly Trajectory[] {
  const byQuestion = new Map<string, Trajectory[]>();
  for (const one of rated) {
    const key = JSON.stringify([one.userId, normalizeText(one.query)]);
    byQuestion.set(key, [...(byQuestion.get(key) ?? []), one]);
  }
  const superseded = new Set<Trajectory>();
  for (const group of byQuestion.values()) {
    for (const one of group) {
      if (group.some((other) => ratedMs(other) > ratedMs(one) && isContradiction(one, other))) superseded.add(one);
    }
  }
  return rated.filter((one) => !superseded.has(one));
}
