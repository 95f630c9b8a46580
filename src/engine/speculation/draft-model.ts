import { createKvCache } from '../../kv-cache/kv-cache.ts';
import type { SequencePages } from '../../kv-cache/sequence-pages.ts';
import type { LoadedModel, StepBatch } from '../../models/types.ts';
import type { Sequence } from '../sequence.ts';
import { messageOf } from '../../core/errors.ts';

/** A sequence whose next tokens are wanted. */
export interface DraftRequest {
  readonly sequence: Sequence;
  readonly maxTokens: number;
}

/** A smaller model with the same vocabulary that guesses the next tokens. */
export interface DraftModel {
  /** Smoothed milliseconds per guessed token; 0 before the first. */
  readonly msPerToken: number;
  /** Longest sequence that it can continue. */
  readonly maxContext: number;
  /** Why it guesses no more; null: it works. */
  readonly problem: string | null;
  /** The likeliest next tokens of each sequence; fewer or none where memory or context is short. Never rejects. */
  propose(
    requests: readonly DraftRequest[],
    isRunning: (sequence: Sequence) => boolean,
  ): Promise<(readonly number[])[]>;
  /** Frees the pages of a sequence that ended or waits. */
  release(sequence: Sequence): void;
  eraseTenant(tenant: string): void;
  countTenant(tenant: string): number;
  dispose(): Promise<void>;
}

/** Weight of a new measurement. */
const SMOOTHING = 0.2;

interface State {
  readonly pages: SequencePages;
  /** Tokens whose K and V are in the pages; the last ones may be guesses that turned out wrong. */
  computedIds: number[];
}

/** Pages for several sequences of full length. */
export function createDraftModel(model: LoadedModel, options: { maxContext: number; now: () => number }): DraftModel {
  const { limits, shape } = model;
  const { now } = options;
  const cache = createKvCache({
    memory: model.pages,
    numPages: limits.numPages,
    maxBatchTokens: limits.maxBatchTokens,
    maxContext: options.maxContext,
    modelHash: '',
    policy: '',
    minTokens: 0,
    keepsPrefixes: true,
    spill: null,
    states: null,
  });
  const maxContext = Math.min(options.maxContext, cache.maxTokens, shape.contextLength);
  const states = new Map<Sequence, State>();
  let msPerToken = 0;
  let problem: string | null = null;

  /** Pages for all tokens and the guesses; null: no memory or context is left. */
  function prepare({ sequence, maxTokens }: DraftRequest): State | null {
    const { tokenIds, request } = sequence;
    const numTokens = tokenIds.length + maxTokens;
    if (numTokens > maxContext) return null;
    let state = states.get(sequence);
    if (state === undefined) {
      const { tenant, cachePrefix } = request;
      const pages = cache.openSequence({ tenant, adapterHash: null, cachePrefix, retention: 'ordinary' });
      const numFound = pages.attach(tokenIds, Infinity, states.size + 1);
      if (numFound === null) return null;
      state = { pages, computedIds: tokenIds.slice(0, numFound) };
      states.set(sequence, state);
    }
    // Guesses that were wrong are computed again, in place.
    // The last token is always computed, because its logits are needed.
    const numRight = Math.min(countEqual(state.computedIds, tokenIds), tokenIds.length - 1);
    state.computedIds = state.computedIds.slice(0, numRight);
    state.pages.publish(tokenIds, state.computedIds.length);
    return state.pages.tryGrowTo(numTokens) ? state : null;
  }

  interface Run {
    readonly sequence: Sequence;
    readonly state: State;
    readonly maxTokens: number;
    readonly guesses: number[];
  }

  /** One forward pass over the tokens that each sequence is behind, as many as a step holds. */
  async function advance(runs: readonly Run[]): Promise<void> {
    let budget = limits.maxBatchTokens;
    const rows = runs.map(({ sequence, state, guesses }) => {
      const tokens = [...sequence.tokenIds, ...guesses];
      const start = state.computedIds.length;
      const numRows = Math.min(tokens.length - start, budget);
      budget -= numRows;
      return { tokens, start, numRows, isCaughtUp: start + numRows === tokens.length };
    });
    const batch: StepBatch & { tokenIds: number[]; positions: number[]; slots: number[]; logitRows: number[]; sequences: StepBatch['sequences'][number][] } = { tokenIds: [], positions: [], slots: [], logitRows: [], sequences: [], numTop: 1 }; // prettier-ignore
    for (const [i, { tokens, start, numRows, isCaughtUp }] of rows.entries()) {
      if (numRows === 0) continue;
      const { pages } = runs[i]!.state;
      batch.sequences.push({
        firstRow: batch.tokenIds.length,
        numRows,
        contextTokens: start + numRows,
        pageIds: pages.table(),
      });
      for (let position = start; position < start + numRows; position++) {
        batch.tokenIds.push(tokens[position]!);
        batch.positions.push(position);
        batch.slots.push(pages.slotOf(position));
      }
      if (isCaughtUp) batch.logitRows.push(batch.tokenIds.length - 1);
    }
    await model.forward(batch);
    let logitRow = 0;
    for (const [i, { tokens, start, numRows, isCaughtUp }] of rows.entries()) {
      const { state, guesses } = runs[i]!;
      state.computedIds = tokens.slice(0, start + numRows);
      if (!isCaughtUp || numRows === 0) continue;
      const { ids, numBad } = model.topOf(logitRow++);
      if (numBad > 0) throw new Error(`${numBad} of its logits are not numbers`);
      guesses.push(ids[0]!);
    }
  }

  return {
    get msPerToken() {
      return msPerToken;
    },
    maxContext,
    get problem() {
      return problem;
    },
    async propose(requests, isRunning) {
      const results = requests.map((): number[] => []);
      if (problem !== null) return results;
      try {
        const all = requests.map((request, i): Run | null => {
          const state = prepare(request);
          return state && { sequence: request.sequence, state, maxTokens: request.maxTokens, guesses: results[i]! };
        });
        for (;;) {
          const open = all.filter(
            (run): run is Run => run !== null && run.guesses.length < run.maxTokens && isRunning(run.sequence),
          );
          if (open.length === 0) break;
          const startMs = now();
          const numBefore = open.reduce((sum, { guesses }) => sum + guesses.length, 0);
          const isCatchUp = open.some(({ sequence, state, guesses }) => sequence.tokenIds.length + guesses.length - state.computedIds.length > 1); // prettier-ignore
          await advance(open.slice(0, limits.maxLogitRows));
          const numNew = open.reduce((sum, { guesses }) => sum + guesses.length, 0) - numBefore;
          // The first pass also computes earlier tokens, which says little about the next ones.
          const ms = (now() - startMs) / Math.max(1, numNew);
          if (!isCatchUp) msPerToken = msPerToken === 0 ? ms : msPerToken + SMOOTHING * (ms - msPerToken);
        }
        return results;
      } catch (error) {
        problem = messageOf(error);
        return results.map(() => []);
      }
    },
    release(sequence) {
      const state = states.get(sequence);
      if (state === undefined) return;
      states.delete(sequence);
      state.pages.release(sequence.tokenIds, countEqual(state.computedIds, sequence.tokenIds));
      state.pages.end();
    },
    eraseTenant(tenant) {
      for (const [sequence, { pages }] of states) if (sequence.request.tenant === tenant) pages.makePrivate();
      cache.eraseTenant(tenant, { keepsKey: false });
    },
    countTenant: (tenant) => cache.countTenant(tenant),
    async dispose() {
      for (const { pages } of states.values()) pages.discard();
      states.clear();
      cache.dispose();
      await model.dispose();
    },
  };
}

/** Length of the common start of two lists. */
function countEqual(first: readonly number[], second: readonly number[]): number {
  let count = 0;
  while (count < first.length && first[count] === second[count]) count++;
  return count;
}
