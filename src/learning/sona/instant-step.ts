import { createAdaptedView } from '../micro-lora/adapted-view.ts';
import { createTokenRows, orthonormal } from '../micro-lora/token-rows.ts';
import type { MicroLoraConfig, MicroLoraState, TokenSample } from '../micro-lora/types.ts';
import { isSameLesson, type LessonText } from './same-lesson.ts';
import type { InstantJob, InstantOutcome } from './types.ts';

/** Earlier rated answers that a step is checked against. */
const RING = 8;
/** Tokens of each that are checked: all of them would take longer than the step itself. */
const RING_TOKENS = 4;
/** How much their mean loss may rise in one step. */
const MAX_RISE = 0.25;
/** A label that is ahead of all other tokens by less, in logits, may be overtaken by the rounding of another batch. */
const SURE_MARGIN = 0.1;
/** How much a step may narrow a margin below `SURE_MARGIN`, in logits: rounding decides which token is said there. */
const MAX_NARROWING = 1e-3;
/** A step must lower the loss of its answer by this, or it is reported as refused. */
const MIN_FALL = 1e-4;
/** Mean divergence from the model's file over the probes, in nats per token, of all steps together. */
const MAX_DIVERGENCE = 0.02;
/** Shares of a step, tried in this order: a shorter one may pass where the whole one does not. */
const SHARES = [1, 0.5, 0.25];

interface RatedAnswer extends LessonText {
  readonly samples: readonly TokenSample[];
  readonly isRejected: boolean;
}

interface Learner {
  /** Directions of the hidden states of every other probe, in which no step goes; the others judge. */
  readonly avoid: readonly Float64Array[];
  state: MicroLoraState;
  recent: readonly RatedAnswer[];
}

export interface InstantLearner {
  step(job: InstantJob): InstantOutcome;
  forget(key: string): void;
}

/** Learns from single answers; a step that would change other answers is undone. */
export function createInstantLearner(now: () => number, maxLearners = 64): InstantLearner {
  const learners = new Map<string, Learner>();

  function createLearner({ config, state, probes }: InstantJob): Learner {
    const axes = orthonormal(probes.filter((_, i) => i % 2 === 1).map(({ hidden }) => hidden));
    const avoid = axes.slice(0, maxAvoided(config));
    return { avoid, state: createTokenRows(config, state, avoid).state(), recent: [] };
  }

  function learnerOf(job: InstantJob): Learner {
    const { key } = job;
    const learner = learners.get(key) ?? createLearner(job);
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
      const { config } = job;
      const before = learner.state;
      const { question, answer: text } = job;
      const answer: RatedAnswer = { question, answer: text, samples: job.samples, isRejected: job.quality < 0.5 };
      const lossBefore = lossOf(config, before, [answer]);
      const end = (
        result: InstantOutcome['result'],
        reason: string,
        rest: Partial<InstantOutcome> = {},
      ): InstantOutcome => ({
        result,
        isApplied: result === 'learned',
        reason,
        update: null,
        lossBefore: result === 'skipped' ? null : lossBefore,
        lossAfter: null,
        state: null,
        factors: [],
        ...rest,
        elapsedMs: now() - startMs,
      });
      const isOther = (earlier: RatedAnswer): boolean => !isSameLesson(earlier, answer);
      // Newer feedback on the same question replaces the old, which must not defend itself.
      const others = learner.recent.filter(isOther);
      const remember = (): void => {
        learner.recent = [...others, { ...answer, samples: spread(answer.samples, RING_TOKENS) }].slice(-RING);
      };
      if (!answer.isRejected && job.samples.length > 0) {
        const margin = leastMargin(config, before, job.samples);
        // A close second in a praised answer was overtaken by rounding: the model gave the answer.
        if (margin >= (job.isPraise ? -SURE_MARGIN : SURE_MARGIN)) {
          remember();
          const { length } = job.samples;
          const lead = margin >= SURE_MARGIN ? `ahead by ${margin.toFixed(2)} or more` : 'likeliest but for rounding';
          const reason = `the model already gives this answer, each of ${length} tokens ${lead}`;
          return end('already-known', reason, { lossAfter: lossBefore });
        }
      }
      const avoid = orthonormal(closeStates(job, before), learner.avoid).slice(0, maxAvoided(config));
      let refusal = '';
      for (const share of SHARES) {
        const micro = createTokenRows(config, before, avoid);
        const taken = micro.adapt(job.samples, { quality: job.quality });
        if (!taken.isApplied) return end('skipped', `nothing to learn: ${taken.skipped ?? ''}`);
        const update = micro.applyUpdates(job.learningRate * share);
        const after = micro.state();
        const lossAfter = lossOf(config, after, [answer]);
        const why =
          Number.isFinite(lossAfter) && lossBefore - lossAfter < MIN_FALL
            ? `the step would not make the answer likelier (loss ${lossBefore.toFixed(4)} → ${lossAfter.toFixed(4)})`
            : whyRefused(job, others, before, after, lossAfter);
        if (why === null) {
          remember();
          learner.state = after;
          const part = share === 1 ? '' : `, ${share} of a step`;
          const reason = `loss ${lossBefore.toFixed(4)} → ${lossAfter.toFixed(4)} over ${taken.numTokens} tokens${part}`;
          return end('learned', reason, { update, lossAfter, state: after, factors: micro.factors() });
        }
        refusal ||= why;
      }
      return end('refused', `refused: ${refusal}`);
    },
    forget: (key) => void learners.delete(key),
  };
}

/** A narrow model would have no direction left to learn in. */
const maxAvoided = ({ hiddenDim }: MicroLoraConfig): number => Math.floor(hiddenDim / 4);

/** Hidden states of praised tokens that any change could replace by another token. */
function closeStates({ config, praised }: InstantJob, state: MicroLoraState): readonly Float32Array[] {
  const view = createAdaptedView(config, state.parameters);
  return praised
    .flatMap(({ samples }) => samples)
    .filter((sample) => Math.abs(view.token(sample).margin) < SURE_MARGIN)
    .map(({ hidden }) => hidden);
}

/** Why a step must be undone; null: it may stay. */
function whyRefused(
  { config, probes, praised }: InstantJob,
  recent: readonly RatedAnswer[],
  before: MicroLoraState,
  after: MicroLoraState,
  lossAfter: number,
): string | null {
  if (!Number.isFinite(lossAfter)) return 'the loss would not be a number';
  const rise = lossOf(config, after, recent) - lossOf(config, before, recent);
  if (rise > MAX_RISE) return `earlier answers would lose ${rise.toFixed(3)}, more than ${MAX_RISE}`;
  const view = createAdaptedView(config, after.parameters);
  const viewBefore = createAdaptedView(config, before.parameters);
  for (const { samples, question } of praised) {
    const isKept = (sample: TokenSample): boolean => {
      const margin = viewBefore.token(sample).margin;
      // The model would not have said this token of a sampled answer by itself.
      if (margin < -SURE_MARGIN) return true;
      const after = view.token(sample).margin;
      return margin < SURE_MARGIN ? after >= margin - MAX_NARROWING : after > 0;
    };
    if (samples.every(isKept)) continue;
    return `the praised answer to ${JSON.stringify(question.slice(0, 60))} would change`;
  }
  const judges = probes.filter((_, i) => i % 2 === 0);
  let divergence = 0;
  let numChanged = 0;
  for (const probe of judges) {
    const token = view.token(probe);
    divergence += token.divergence / judges.length;
    if (token.margin <= 0) numChanged++;
  }
  if (numChanged > 0) return `unrelated answers would change at ${numChanged} of ${judges.length} tokens`;
  if (divergence <= MAX_DIVERGENCE) return null;
  return `unrelated answers would diverge by ${divergence.toFixed(4)} nats per token, more than ${MAX_DIVERGENCE}`;
}

function leastMargin(config: MicroLoraConfig, state: MicroLoraState, samples: readonly TokenSample[]): number {
  const view = createAdaptedView(config, state.parameters);
  return Math.min(...samples.map((sample) => view.token(sample).margin));
}

/** Evenly spaced elements of a list. */
function spread<T>(list: readonly T[], count: number): readonly T[] {
  if (list.length <= count) return list;
  return Array.from({ length: count }, (_, i) => list[Math.floor((i * list.length) / count)]!);
}

/** Mean over the tokens; 0 without any. */
function lossOf(config: MicroLoraConfig, state: MicroLoraState, answers: readonly RatedAnswer[]): number {
  const view = createAdaptedView(config, state.parameters);
  let total = 0;
  let count = 0;
  for (const { samples, isRejected } of answers) {
    for (const sample of samples) {
      const logp = view.logp(sample);
      total += isRejected ? -Math.log(Math.max(1e-12, 1 - Math.exp(Math.min(0, logp)))) : -logp;
      count++;
    }
  }
  return count === 0 ? 0 : total / count;
}
