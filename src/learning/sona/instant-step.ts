import { createMicroLora, type MicroLoraConfig } from '../micro-lora/micro-lora.ts';
import type { MicroLora, MicroLoraState, TokenSample } from '../micro-lora/types.ts';
import type { InstantJob, InstantOutcome } from './types.ts';

/** Answers that were judged before and must not be unlearned by the next. */
const RING = 8;
/** Tokens of each that are looked at again: all of them would take longer than the step itself. */
const RING_TOKENS = 4;
/** How much the mean loss of those may rise by one step: a flood of nonsense stops here. */
const MAX_RISE = 0.25;

interface Judged {
  readonly samples: readonly TokenSample[];
  readonly isRejected: boolean;
}

interface Pupil {
  micro: MicroLora;
  readonly recent: Judged[];
}

export interface InstantLearner {
  step(job: InstantJob): InstantOutcome;
  forget(key: string): void;
}

/** Learns from single answers; a step that makes earlier ones worse is taken back. */
export function createInstantLearner(now: () => number, maxPupils = 64): InstantLearner {
  const pupils = new Map<string, Pupil>();

  function pupilOf({ key, config, state }: InstantJob): Pupil {
    const known = pupils.get(key);
    const pupil = known ?? { micro: createMicroLora(config, state ?? undefined), recent: [] };
    // The one used last is forgotten last; its state is with whoever sends the jobs.
    pupils.delete(key);
    pupils.set(key, pupil);
    if (pupils.size > maxPupils) pupils.delete(pupils.keys().next().value!);
    return pupil;
  }

  return {
    step(job) {
      const startMs = now();
      const pupil = pupilOf(job);
      const before = pupil.micro.state();
      const judged: Judged = { samples: job.samples, isRejected: job.quality < 0.5 };
      const taken = pupil.micro.adapt(job.samples, { quality: job.quality });
      const nothing = { isApplied: false, update: null, lossBefore: null, lossAfter: null, state: null, factors: [] };
      if (!taken.isApplied) {
        return { ...nothing, reason: `nothing to learn: ${taken.skipped ?? ''}`, elapsedMs: now() - startMs };
      }
      const update = pupil.micro.applyUpdates(job.learningRate);
      const after = pupil.micro.state();
      const lossBefore = lossOf(job.config, before, [judged]);
      const lossAfter = lossOf(job.config, after, [judged]);
      const rise = lossOf(job.config, after, pupil.recent) - lossOf(job.config, before, pupil.recent);
      if (!Number.isFinite(lossAfter) || rise > MAX_RISE) {
        pupil.micro = createMicroLora(job.config, before);
        const reason = Number.isFinite(lossAfter)
          ? `refused: earlier answers would lose ${rise.toFixed(3)}, more than ${MAX_RISE}`
          : 'refused: the loss would not be a number';
        return { ...nothing, reason, lossBefore, lossAfter: null, elapsedMs: now() - startMs };
      }
      pupil.recent.push({ ...judged, samples: spread(judged.samples, RING_TOKENS) });
      if (pupil.recent.length > RING) pupil.recent.shift();
      const reason = `loss ${lossBefore.toFixed(4)} → ${lossAfter.toFixed(4)} over ${taken.numTokens} tokens`;
      const factors = pupil.micro.factors();
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
    forget: (key) => void pupils.delete(key),
  };
}

/** Some of a list, from its whole length. */
function spread<T>(list: readonly T[], count: number): readonly T[] {
  if (list.length <= count) return list;
  return Array.from({ length: count }, (_, i) => list[Math.floor((i * list.length) / count)]!);
}

/** Mean over the tokens; 0 of none. */
function lossOf(config: MicroLoraConfig, state: MicroLoraState, judged: readonly Judged[]): number {
  const { hiddenDim, rank = 2, alpha = 16 } = config;
  const { parameters } = state;
  const bStart = rank * hiddenDim;
  const u = new Float64Array(rank);
  let total = 0;
  let count = 0;
  for (const { samples, isRejected } of judged) {
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
      // Of the tokens that are not known nothing changes but through those that are.
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
