import { createMicroLora, type MicroLoraConfig } from '../micro-lora/micro-lora.ts';
import type { MicroLora, MicroLoraState, TokenSample } from '../micro-lora/types.ts';
import type { InstantJob, InstantOutcome } from './types.ts';

/** Earlier rated answers that a step is checked against. */
const RING = 8;
/** Tokens of each that are checked: all of them would take longer than the step itself. */
const RING_TOKENS = 4;
/** How much their mean loss may rise in one step. */
const MAX_RISE = 0.25;

interface RatedAnswer {
  readonly samples: readonly TokenSample[];
  readonly isRejected: boolean;
}

interface Learner {
  micro: MicroLora;
  readonly recent: RatedAnswer[];
}

export interface InstantLearner {
  step(job: InstantJob): InstantOutcome;
  forget(key: string): void;
}

/** Learns from single answers; a step that makes earlier ones worse is undone. */
export function createInstantLearner(now: () => number, maxLearners = 64): InstantLearner {
  const learners = new Map<string, Learner>();

  function learnerOf({ key, config, state }: InstantJob): Learner {
    const learner = learners.get(key) ?? { micro: createMicroLora(config, state ?? undefined), recent: [] };
    // Least recently used first; the state of an evicted adapter comes with its next job.
    learners.delete(key);
    learners.set(key, learner);
    if (learners.size > maxLearners) learners.delete(learners.keys().next().value!);
    return learner;
  }

  return {
    step(job) {
      const startMs = now();
      const learner = learnerOf(job);
      const before = learner.micro.state();
      const answer: RatedAnswer = { samples: job.samples, isRejected: job.quality < 0.5 };
      const taken = learner.micro.adapt(job.samples, { quality: job.quality });
      const unchanged = { isApplied: false, update: null, lossBefore: null, lossAfter: null, state: null, factors: [] };
      if (!taken.isApplied) {
        return { ...unchanged, reason: `nothing to learn: ${taken.skipped ?? ''}`, elapsedMs: now() - startMs };
      }
      const update = learner.micro.applyUpdates(job.learningRate);
      const after = learner.micro.state();
      const lossBefore = lossOf(job.config, before, [answer]);
      const lossAfter = lossOf(job.config, after, [answer]);
      const rise = lossOf(job.config, after, learner.recent) - lossOf(job.config, before, learner.recent);
      if (!Number.isFinite(lossAfter) || rise > MAX_RISE) {
        learner.micro = createMicroLora(job.config, before);
        const reason = Number.isFinite(lossAfter)
          ? `refused: earlier answers would lose ${rise.toFixed(3)}, more than ${MAX_RISE}`
          : 'refused: the loss would not be a number';
        return { ...unchanged, reason, lossBefore, lossAfter: null, elapsedMs: now() - startMs };
      }
      learner.recent.push({ ...answer, samples: spread(answer.samples, RING_TOKENS) });
      if (learner.recent.length > RING) learner.recent.shift();
      const reason = `loss ${lossBefore.toFixed(4)} → ${lossAfter.toFixed(4)} over ${taken.numTokens} tokens`;
      const factors = learner.micro.factors();
      return {
        isApplied: true,
        reason,
        update,
        lossBefore,
        lossAfter,
        state: after,
        factors,
        elapsedMs: now() - startMs,
      };
    },
    forget: (key) => void learners.delete(key),
  };
}

/** Evenly spaced elements of a list. */
function spread<T>(list: readonly T[], count: number): readonly T[] {
  if (list.length <= count) return list;
  return Array.from({ length: count }, (_, i) => list[Math.floor((i * list.length) / count)]!);
}

/** Mean over the tokens; 0 without any. */
function lossOf(config: MicroLoraConfig, state: MicroLoraState, answers: readonly RatedAnswer[]): number {
  const { hiddenDim, rank = 2, alpha = 16 } = config;
  const { parameters } = state;
  const bStart = rank * hiddenDim;
  const u = new Float64Array(rank);
  let total = 0;
  let count = 0;
  for (const { samples, isRejected } of answers) {
    for (const { hidden, label, ids, logits, labelLogit = null, logSumExp = null } of samples) {
      for (let r = 0; r < rank; r++) {
        let sum = 0;
        for (let i = 0; i < hiddenDim; i++) sum += parameters[r * hiddenDim + i]! * hidden[i]!;
        u[r] = (sum * alpha) / rank;
      }
      const added = (id: number): number => {
        let sum = 0;
        for (let r = 0; r < rank; r++) sum += parameters[bStart + id * rank + r]! * u[r]!;
        return sum;
      };
      // Tokens without a logit change only through the normalization.
      let own = labelLogit ?? 0;
      let [known, moved, hasLabel] = [0, 0, false];
      const top = logits[0] ?? own;
      const weigh = (id: number, logit: number): void => {
        known += Math.exp(logit - top);
        moved += Math.exp(logit + added(id) - top);
      };
      for (let i = 0; i < ids.length; i++) {
        if (ids[i] === label) [own, hasLabel] = [logits[i]!, true];
        weigh(ids[i]!, logits[i]!);
      }
      if (!hasLabel) weigh(label, own);
      const rest = logSumExp === null ? 0 : Math.max(0, Math.exp(logSumExp - top) - known);
      const logp = own + added(label) - (top + Math.log(moved + rest));
      total += isRejected ? -Math.log(Math.max(1e-12, 1 - Math.exp(Math.min(0, logp)))) : -logp;
      count++;
    }
  }
  return count === 0 ? 0 : total / count;
}
