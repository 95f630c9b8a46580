import type { Sequence } from '../sequence.ts';
import type { Schedule, ScheduledRows } from '../types.ts';
import { type Acceptance, createAcceptance } from './acceptance.ts';
import { chooseDraftLength } from './draft-length.ts';
import type { DraftModel } from './draft-model.ts';
import { createGrammarDrafts } from './grammar-drafts.ts';
import { createLookupDrafts } from './lookup-drafts.ts';
import type { DraftMemory } from './draft-memory.ts';
import { createStepCosts } from './step-costs.ts';
import { countDrafts, type Draft, type DraftCounts, type DraftSource, type DraftSourceName } from './types.ts';

/** Longest draft of a sequence. */
export const MAX_DRAFT = 8;

/** A draft model that does not pay is asked for one token now and then: texts change. */
const PROBE_EVERY = 64;
/** All guesses of the draft model are estimated together. */
const BY_MODEL = { source: 'model', evidence: 4 } as const;

export interface SpeculatorOptions {
  /** Rows with logits that a step may have. */
  readonly maxLogitRows: number;
  readonly maxBatchTokens: number;
  readonly vocabSize: number;
  readonly learned: Pick<DraftMemory, 'open'>;
  /** Milliseconds on a monotonic clock. */
  readonly now: () => number;
  /** Guesses where the other sources do not; default none. */
  readonly draftModel?: DraftModel | null;
  /** Called with a problem of the draft model. */
  readonly warn?: (message: string) => void;
  /** Further sources of a sequence; default none. */
  readonly openSources?: (sequence: Sequence) => readonly DraftSource[];
  /** Drafts whenever there is a guess, whether it pays or not. Default false. */
  readonly isForced?: boolean;
}

/** Adds drafts to the steps of an engine, as long as they pay. */
export interface Speculator {
  /** Adds drafted rows to sequences that generate, allocates their pages, and drops rows of sequences that ended meanwhile. */
  extend(plan: Schedule, byId: ReadonlyMap<number, Sequence>): Promise<Schedule>;
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

/** Rows and expected tokens of the step so far. */
interface StepRoom {
  numRows: number;
  numTokens: number;
}

export function createSpeculator(options: SpeculatorOptions): Speculator {
  const { maxLogitRows, maxBatchTokens, vocabSize, learned } = options;
  const costs = createStepCosts(maxLogitRows);
  const shared = createAcceptance(null);
  const states = new WeakMap<Sequence, SequenceDrafts>();
  const counts = countDrafts();
  let guesses: Guess[] = [];
  let numSteps = 0;

  function open(sequence: Sequence): SequenceDrafts {
    const { request } = sequence;
    const { sampler, expectedIds = [], promptIds, tenant } = request;
    return {
      sources: [
        ...(sampler.draft === undefined ? [] : [createGrammarDrafts((max) => sampler.draft!(max), options.now)]),
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
      .filter(
        ({ tokens }) => tokens.length > 0 && tokens.every((id) => Number.isInteger(id) && id >= 0 && id < vocabSize),
      )
      .sort((a, b) => acceptance.estimate(b) - acceptance.estimate(a));
  }

  /** The longest draft that its answer and the step have room for; the answer fits into the context. */
  function roomFor({ request, tokenIds }: Sequence, numRows: number): number {
    if (request.examiner !== undefined) return 0;
    const numGenerated = tokenIds.length - request.promptIds.length;
    return Math.min(
      MAX_DRAFT,
      maxLogitRows - numRows,
      maxBatchTokens - numRows,
      // The last token of an answer is never an input.
      request.maxTokens - numGenerated - 1,
    );
  }

  function chooseLength(
    sequence: Sequence,
    draft: Pick<Draft, 'source' | 'evidence'>,
    maxTokens: number,
    step: StepRoom,
    msPerToken: number,
  ): number {
    if (options.isForced === true) return maxTokens;
    const acceptance = draftsOf(sequence).acceptance.estimate(draft);
    return chooseDraftLength({ acceptance, maxTokens, ...step, costs, msPerToken });
  }

  const canDraft = ({ isCaughtUp, numRows }: ScheduledRows): boolean => isCaughtUp && numRows === 1;

  /** Takes a draft into the step if its pages can be had. */
  function send(sequence: Sequence, draft: Draft, length: number, step: StepRoom): readonly number[] {
    const { tokenIds, pages } = sequence;
    const isSent = length > 0 && pages.tryGrowTo(tokenIds.length + length);
    guesses.push({ sequence, draft, start: tokenIds.length, numSent: isSent ? length : 0 });
    if (!isSent) return [];
    step.numRows += length;
    // Later sequences are weighed against a step that this draft has made longer.
    step.numTokens += length * draftsOf(sequence).acceptance.estimate(draft);
    return draft.tokens.slice(0, length);
  }

  /** A draft from the sources that cost next to nothing; empty: none pays. */
  function draftCheaply(sequence: Sequence, step: StepRoom): readonly number[] {
    const maxTokens = roomFor(sequence, step.numRows);
    if (maxTokens < 1) return [];
    const [best, ...others] = guess(sequence, maxTokens);
    if (best === undefined) return [];
    // Never sent, only compared with the answer: that is how a source proves itself.
    for (const draft of others) send(sequence, draft, 0, step);
    const length = chooseLength(sequence, best, Math.min(maxTokens, best.tokens.length), step, 0);
    return send(sequence, best, length, step);
  }

  /** Drafts of the draft model, for the sequences where its time pays. */
  async function draftByModel(
    sequences: readonly Sequence[],
    step: StepRoom,
    isRunning: (sequence: Sequence) => boolean,
  ): Promise<Map<Sequence, readonly number[]>> {
    const drafts = new Map<Sequence, readonly number[]>();
    const { draftModel = null } = options;
    if (draftModel === null || draftModel.problem !== null) return drafts;
    let numRows = step.numRows;
    const requests = sequences.flatMap((sequence) => {
      const maxTokens = roomFor(sequence, numRows);
      const isProbed = numSteps % PROBE_EVERY === 0;
      const length = maxTokens < 1 ? 0 : chooseLength(sequence, BY_MODEL, maxTokens, step, draftModel.msPerToken);
      if (length === 0 && !(isProbed && maxTokens > 0)) return [];
      numRows += Math.max(1, length);
      return [{ sequence, maxTokens: Math.max(1, length) }];
    });
    if (requests.length === 0) return drafts;
    const proposals = await draftModel.propose(requests, isRunning);
    if (draftModel.problem !== null) options.warn?.(`the draft model is not used any more: ${draftModel.problem}`);
    for (const [i, { sequence }] of requests.entries()) {
      const tokens = proposals[i]!;
      if (tokens.length === 0 || !isRunning(sequence)) continue;
      const draft = send(sequence, { ...BY_MODEL, tokens }, tokens.length, step);
      if (draft.length > 0) drafts.set(sequence, draft);
    }
    return drafts;
  }

  return {
    counts,
    async extend(plan, byId) {
      guesses = [];
      // Beside the rows of a prompt, a step's time says nothing about drafts.
      if (!plan.rows.every(canDraft)) return plan;
      const step: StepRoom = { numRows: plan.rows.length, numTokens: plan.rows.length };
      const sequences = plan.rows.map(({ id }) => byId.get(id)!);
      const drafts = new Map<Sequence, readonly number[]>();
      for (const sequence of sequences) {
        const draft = draftCheaply(sequence, step);
        if (draft.length > 0) drafts.set(sequence, draft);
      }
      const isRunning = (sequence: Sequence): boolean => byId.get(sequence.request.id) === sequence;
      const others = sequences.filter((sequence) => !drafts.has(sequence));
      for (const [sequence, draft] of await draftByModel(others, step, isRunning)) drafts.set(sequence, draft);
      // Sequences may have been aborted while the draft model ran.
      const rows = plan.rows.filter((_, i) => isRunning(sequences[i]!));
      return { ...plan, rows: rows.map((scheduled) => withDraft(scheduled, drafts.get(byId.get(scheduled.id)!))) };
    },
    settle(plan, ms) {
      numSteps++;
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

function withDraft(scheduled: ScheduledRows, draft: readonly number[] | undefined): ScheduledRows {
  return draft === undefined ? scheduled : { ...scheduled, numRows: 1 + draft.length, draft };
}
