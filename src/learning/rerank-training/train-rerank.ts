import { RuvLLMError } from '../../core/errors.ts';
import { createReranker, untrainedState } from '../graph-attention/reranker.ts';
import { type RerankSelection, selectReranker } from '../graph-attention/select.ts';
import { trainingSteps } from '../graph-attention/train.ts';
import type { RankExample, RerankerState } from '../graph-attention/types.ts';

/** Plain data: it is sent to another thread. */
export interface RerankJob {
  readonly dim: number;
  readonly examples: readonly RankExample[];
  /** Active re-ranker; null: similarity. */
  readonly serving: RerankerState | null;
  readonly timeLimitMs: number;
}

export interface RerankOutcome {
  readonly state: RerankerState;
  readonly selection: RerankSelection;
  /** Which of the examples were trained or tuned on. */
  readonly learnedFrom: readonly number[];
}

export interface RerankWork {
  trainReranker(job: RerankJob): Promise<RerankOutcome>;
  /** Stops a run at its next step; it makes no version. */
  cancelRerank(): void;
}

/** Of five parts three train, one decides when to stop, one evaluates. */
const PARTS = { train: 3, tuned: 1, heldOut: 1 } as const;
type Part = keyof typeof PARTS;
const SEED = 1;
/** Interval at which other work of the thread gets a turn. */
const SLICE_MS = 20;

/** Fewer lists cannot give enough for the evaluation. */
export const MIN_LISTS = 100;
/** A fifth of them evaluates, which requires ten. */
export const MIN_GROUPS = 50;

/** Splits whole conversations by the hash of their name, the same way each time. */
export function splitLists(examples: readonly RankExample[]): Readonly<Record<Part, readonly number[]>> {
  const members = new Map<string, number[]>();
  examples.forEach(({ group }, i) => members.set(group, [...(members.get(group) ?? []), i]));
  const names = [...members.keys()].sort((a, b) => hashOf(a) - hashOf(b) || (a < b ? -1 : 1));
  const deal = (Object.keys(PARTS) as Part[]).flatMap((part) => Array.from({ length: PARTS[part] }, () => part));
  const parts: Record<Part, number[]> = { train: [], tuned: [], heldOut: [] };
  names.forEach((name, i) => parts[deal[i % deal.length]!].push(...members.get(name)!));
  return parts;
}

/** Trains re-rankers in short turns: steps of loop A use the same thread. */
export function createRerankWork(now: () => number): RerankWork {
  let numCancelled = 0;
  return {
    cancelRerank: () => void numCancelled++,
    async trainReranker({ dim, examples, serving, timeLimitMs }) {
      const before = numCancelled;
      const endMs = now() + timeLimitMs;
      const parts = splitLists(examples);
      const some = (part: Part): RankExample[] => parts[part].map((i) => examples[i]!);
      const [train, tuned, heldOut] = [some('train'), some('tuned'), some('heldOut')];
      const steps = trainingSteps(untrainedState(dim, SEED), train, tuned, { seed: SEED });
      let sliceEndMs = now() + SLICE_MS;
      for (;;) {
        const { done, value } = steps.next(now() >= endMs);
        if (done) {
          const reranker = createReranker(value.state);
          const trial = { heldOut, tuned, serving: serving === null ? null : createReranker(serving) };
          const learnedFrom = [...parts.train, ...parts.tuned];
          return { state: value.state, selection: selectReranker(reranker, trial), learnedFrom };
        }
        if (numCancelled > before)
          throw new RuvLLMError('aborted', 'training a re-ranking was stopped; nothing came of it');
        if (now() < sliceEndMs) continue;
        await new Promise((resolve) => setTimeout(resolve, 0));
        sliceEndMs = now() + SLICE_MS;
      }
    },
  };
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
