import type { MemoryServices } from '../../memory/common/services.ts';
import type { ExaminedAnswers } from './examined.ts';
import type { ExampleSets } from './examples.ts';
import { prepareSamples } from './prepare-samples.ts';
import { type Probes, sayLikeliest } from './probes.ts';
import type { LearningModel } from './types.ts';

type Examples = ExampleSets['elsewhere'];

interface ExamineContext {
  readonly services: Pick<MemoryServices, 'now'>;
  readonly probes: Probes;
  readonly examined: ExaminedAnswers;
}

interface ExamineRun {
  readonly tenant: string;
  readonly model: LearningModel;
  readonly limitMs: number;
  readonly signal: AbortSignal | null;
}

/** Share of the limit in which answers are examined; training and judging of the LM head take less than the rest. */
const EXAMINING_SHARE = 0.7;
/** Share of the limit after which training is left to the next run, if examining took it. */
const LATE_SHARE = 0.5;
/** Unrated answers to examine, besides the probes. */
const MAX_EXAMINED_ELSEWHERE = 4;

/** The examples of a run. */
export interface GatheredSets extends ExampleSets {
  /** Held-out examples of finished tasks. */
  readonly earlier: Examples;
  /** Unrelated texts whose logits training leaves as they are; the others judge. */
  readonly avoid: Examples;
  /** Answers examined in this run. */
  readonly numExamined: number;
}

/** The sets with hidden states from the serving engine, or how many of them are missing. */
export async function examineSets(
  context: ExamineContext,
  { tenant, model, limitMs, signal }: ExamineRun,
  sets: GatheredSets,
  startMs: number,
): Promise<GatheredSets | { readonly reason: string; readonly isUnfinished: boolean }> {
  const now = (): number => context.services.now();
  const elsewhere = sets.elsewhere.slice(-MAX_EXAMINED_ELSEWHERE);
  const probes = await context.probes.encode(model, sets.isChat);
  const lists = [sets.heldOut, sets.train, elsewhere, sets.earlier, probes];
  const endMs = startMs + limitMs * EXAMINING_SHARE;
  const all = lists.flat();
  const { examples, numReady, numNew } = await prepareSamples({ examined: context.examined, now }, { tenant, model, endMs, signal }, all); // prettier-ignore
  if (examples === null) {
    const reason = `examined ${numReady} of ${all.length} answers, ${numNew} of them in this run; the next run continues`;
    return { reason, isUnfinished: numNew > 0 };
  }
  if (numNew > 0 && now() > startMs + limitMs * LATE_SHARE) {
    const reason = `examined all ${all.length} answers, ${numNew} of them in this run; the next run trains`;
    return { reason, isUnfinished: true };
  }
  const cut = (index: number): Examples => {
    const start = lists.slice(0, index).reduce((sum, list) => sum + list.length, 0);
    return examples.slice(start, start + lists[index]!.length);
  };
  const others = [...cut(2), ...cut(4).map(sayLikeliest)];
  const halfOf = (rest: number): Examples => others.filter((_, i) => i % 2 === rest);
  return { ...sets, heldOut: cut(0), train: cut(1), avoid: halfOf(0), elsewhere: halfOf(1), earlier: cut(3), numExamined: numNew }; // prettier-ignore
}
