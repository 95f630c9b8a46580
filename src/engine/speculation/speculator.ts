import type { Sequence } from '../sequence.ts';
import type { Schedule, ScheduledRows } from '../types.ts';
import { type Acceptance, createAcceptance } from './acceptance.ts';
import { chooseDraftLength } from './draft-length.ts';
import { createLookupDrafts } from './lookup-drafts.ts';
import type { DraftMemory } from './draft-memory.ts';
import { createStepCosts } from './step-costs.ts';
import { countDrafts, type Draft, type DraftCounts, type DraftSource, type DraftSourceName } from './types.ts';

/** Longest draft of a sequence. */
export const MAX_DRAFT = 8;

export interface SpeculatorOptions {
  /** Rows with logits that a step may have. */
  readonly maxLogitRows: number;
  readonly maxBatchTokens: number;
  readonly maxContext: number;
  readonly vocabSize: number;
  readonly learned: Pick<DraftMemory, 'open'>;
  /** Further sources of a sequence; default none. */
  readonly openSources?: (sequence: Sequence) => readonly DraftSource[];
  /** Drafts whenever there is a guess, whether it pays or not. Default false. */
  readonly isForced?: boolean;
}

/** Adds drafts to the steps of an engine, as long as they pay. */
export interface Speculator {
  /** Adds drafted rows to sequences that generate; allocates their pages. */
  extend(plan: Schedule, byId: ReadonlyMap<number, Sequence>): Schedule;
  /** Learns from a step: how long it took, and which guesses were right. */
  settle(plan: Schedule, ms: number): void;
  readonly counts: Readonly<Record<DraftSourceName, DraftCounts>>;
}

interface SequenceDrafts {
  readonly sources: readonly DraftSource[];
  readonly acceptance: Acceptance;
}

/** A guess for the tokens from `start` on; `numSent` of them are verified, the others only compared with what comes. */
interface Guess {
  readonly sequence: Sequence;
  readonly draft: Draft;
  readonly start: number;
  readonly numSent: number;
}

export function createSpeculator(options: SpeculatorOptions): Speculator {
  const { maxLogitRows, maxBatchTokens, maxContext, vocabSize, learned } = options;
  const costs = createStepCosts(maxLogitRows);
  const shared = createAcceptance(null);
  const states = new WeakMap<Sequence, SequenceDrafts>();
  const counts = countDrafts();
  let guesses: Guess[] = [];

  function open(sequence: Sequence): SequenceDrafts {
    const { request } = sequence;
    const { sampler, expectedIds = [], promptIds, tenant } = request;
    const grammar: DraftSource | null =
      sampler.draft === undefined
        ? null
        : {
            propose(_tokens, maxTokens) {
              const tokens = sampler.draft!(maxTokens);
              return tokens.length === 0 ? null : { source: 'grammar', tokens, evidence: Infinity };
            },
          };
    return {
      sources: [
        ...(grammar === null ? [] : [grammar]),
        createLookupDrafts(expectedIds, promptIds.length),
        learned.open(tenant),
        ...(options.openSources?.(sequence) ?? []),
      ],
      acceptance: createAcceptance(shared),
    };
  }

  function draftsOf(sequence: Sequence): SequenceDrafts {
    const drafts = states.get(sequence) ?? open(sequence);
    states.set(sequence, drafts);
    return drafts;
  }

  /** All guesses for a sequence, the most likely first. */
  function guess(sequence: Sequence, maxTokens: number): Draft[] {
    const { sources, acceptance } = draftsOf(sequence);
    return sources
      .flatMap((source) => source.propose(sequence.tokenIds, maxTokens) ?? [])
      .filter(({ tokens }) => tokens.length > 0 && tokens.every((id) => Number.isInteger(id) && id >= 0 && id < vocabSize))
      .sort((a, b) => acceptance.estimate(b) - acceptance.estimate(a));
  }

  /** The longest draft that its answer, the context and the step have room for. */
  function roomFor({ request, tokenIds }: Sequence, numRows: number): number {
    const numGenerated = tokenIds.length - request.promptIds.length;
    return Math.min(
      MAX_DRAFT,
      maxLogitRows - numRows,
      maxBatchTokens - numRows,
      // The last token of an answer is never an input.
      request.maxTokens - numGenerated - 1,
      maxContext - tokenIds.length,
    );
  }

  function choose(sequence: Sequence, draft: Draft, maxTokens: number, numRows: number, numTokens: number): number {
    const most = Math.min(maxTokens, draft.tokens.length);
    if (options.isForced === true) return most;
    const acceptance = draftsOf(sequence).acceptance.estimate(draft);
    return chooseDraftLength({ acceptance, maxTokens: most, numRows, numTokens, costs, msPerToken: 0 });
  }

  const canDraft = ({ isCaughtUp, numRows }: ScheduledRows): boolean => isCaughtUp && numRows === 1;

  return {
    counts,
    extend(plan, byId) {
      guesses = [];
      // Beside the rows of a prompt, a step's time says nothing about drafts.
      if (!plan.rows.every(canDraft)) return plan;
      let numRows = plan.rows.length;
      let numTokens = numRows;
      const rows = plan.rows.map((scheduled): ScheduledRows => {
        const sequence = byId.get(scheduled.id)!;
        const { request, tokenIds, pages } = sequence;
        const maxTokens = roomFor(sequence, numRows);
        if (maxTokens < 1 || request.examiner !== undefined) return scheduled;
        const drafts = guess(sequence, maxTokens);
        const [best] = drafts;
        if (best === undefined) return scheduled;
        const length = choose(sequence, best, maxTokens, numRows, numTokens);
        const isSent = length > 0 && pages.tryGrowTo(tokenIds.length + length);
        for (const draft of drafts) {
          const numSent = isSent && draft === best ? length : 0;
          guesses.push({ sequence, draft, start: tokenIds.length, numSent });
        }
        if (!isSent) return scheduled;
        numRows += length;
        // Later sequences are weighed against a step that this draft has made longer.
        numTokens += length * draftsOf(sequence).acceptance.estimate(best);
        return { ...scheduled, numRows: 1 + length, draft: best.tokens.slice(0, length) };
      });
      return { ...plan, rows };
    },
    settle(plan, ms) {
      if (
        plan.rows.length > 0 &&
        plan.rows.every(({ isCaughtUp, numRows, draft }) => isCaughtUp && numRows === 1 + (draft?.length ?? 0))
      ) {
        costs.record(
          plan.rows.reduce((sum, { numRows }) => sum + numRows, 0),
          ms,
        );
      }
      for (const { sequence, draft, start, numSent } of guesses) {
        const numNew = sequence.tokenIds.length - start;
        const numCompared = Math.min(Math.max(numSent, 1), numNew);
        let numHits = 0;
        while (numHits < numCompared && draft.tokens[numHits] === sequence.tokenIds[start + numHits]) numHits++;
        // A token after a wrong one was not tried; an answer that ended proves nothing.
        const numTrials = Math.min(numHits + 1, numCompared);
        if (numTrials > 0) draftsOf(sequence).acceptance.record(draft, numHits, numTrials);
        if (numSent === 0) continue;
        const count = counts[draft.source];
        count.numProposed += numSent;
        count.numAccepted += numHits;
      }
      guesses = [];
    },
  };
}
