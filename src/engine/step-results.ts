import { RuvLLMError } from '../core/errors.ts';
import type { TopLogits } from '../core/top-logits.ts';
import type { SampledToken, Sampler } from '../sampling/types.ts';
import type { KvCache } from '../kv-cache/kv-cache.ts';
import type { LoadedModel } from '../models/types.ts';
import type { PooledRows } from './pooling.ts';
import { addToken, numBehind, numGenerated, type Sequence } from './sequence.ts';
import type { SequenceTable } from './sequence-table.ts';
import type { PendingSamples } from './pending-samples.ts';
import type { EngineEvent, Progress, Schedule } from './types.ts';

/** Of a sequence that was aborted while the step ran. */
const DECIDED: Pick<Sampler, 'isDecidedBy' | 'sampleAside'> = { isDecidedBy: () => true };

/** Applies the result of a forward pass to its sequences: sample, pool, publish pages. */
export function createStepResults(
  model: LoadedModel,
  { byId, finish, fail }: SequenceTable,
  pending: PendingSamples,
  now: () => number,
  cache: Pick<KvCache, 'promptBlocks'>,
) {
  const { shape } = model;
  let numGeneratedTokens = 0;

  function apply(plan: Schedule, logits: Float32Array, hasTop: boolean): EngineEvent[] {
    const events: EngineEvent[] = [];
    let logitRow = 0;
    let hiddenRow = 0;
    for (const { id, start, numRows, isCaughtUp, hidden, draft = [] } of plan.rows) {
      const firstRow = logitRow;
      if (isCaughtUp) logitRow += 1 + draft.length;
      const firstHidden = hiddenRow;
      hiddenRow += hidden?.numRows ?? 0;
      const sequence = byId.get(id);
      if (sequence === undefined) continue; // aborted while the step ran
      sequence.numComputed = start + numRows - draft.length;
      // One that was preempted meanwhile was only computed again.
      if (isCaughtUp && !pending.has(sequence)) {
        sequence.request.examiner?.takeHidden(hiddenRowsOf(firstHidden, 1));
        const sampleRow = (row: number): EngineEvent[] => {
          const rowLogits = logits.subarray(row * shape.vocabSize, (row + 1) * shape.vocabSize);
          return sampleNext(sequence, rowLogits, hasTop ? model.topOf(row) : undefined);
        };
        sequence.drafts.numProposed += draft.length;
        events.push(...sampleRow(firstRow));
        // A row after a draft is valid if the row before it gave that very token.
        for (let i = 0; isRight(sequence, draft, i); i++) {
          sequence.numComputed++;
          sequence.drafts.numAccepted++;
          events.push(...sampleRow(firstRow + 1 + i));
        }
      }
      if (sequence.pooler !== null) events.push(...pool(sequence, hidden!, firstHidden));
      // Only after sampling: pages that gave bad logits must not be shared.
      if (byId.has(id)) sequence.pages.publish(sequence.cacheKeys, sequence.numComputed);
    }
    return events;
  }

  /** Whether the token of the row before the i-th draft is there, and is that draft. */
  function isRight(sequence: Sequence, draft: readonly number[], i: number): boolean {
    if (byId.get(sequence.request.id) !== sequence || pending.has(sequence)) return false;
    return i < draft.length && sequence.tokenIds.at(-1) === draft[i];
  }

  function sampleNext(sequence: Sequence, logits: Float32Array, top?: TopLogits): EngineEvent[] {
    const { sampler } = sequence.request;
    try {
      const token =
        sampler.sampleAside === undefined
          ? sampler.sample(logits, sequence.tokenIds, top)
          : sampler.sampleAside(logits, sequence.tokenIds);
      if (!(token instanceof Promise)) return take(sequence, token);
      pending.add(sequence, token);
      return [];
    } catch (error) {
      return [fail(sequence, error)];
    }
  }

  /** Adds a token to its sequence. */
  function take(sequence: Sequence, token: SampledToken): EngineEvent[] {
    const { id, stopIds, maxTokens, examiner } = sequence.request;
    try {
      const progress = progressOf(sequence);
      if (stopIds.has(token.tokenId)) {
        finish(sequence);
        return [{ type: 'finished', id, reason: 'stop', stopId: token.tokenId, ...progress }];
      }
      addToken(sequence, token.tokenId);
      if (examiner !== undefined) {
        if (numGenerated(sequence) < maxTokens) return [];
        finish(sequence);
        return [{ type: 'examined', id, tokens: examiner.result(), ...progress }];
      }
      numGeneratedTokens++;
      const promptBlocks = numGenerated(sequence) === 1 ? blocksOf(sequence) : null;
      const blocks = promptBlocks === null ? {} : { promptBlocks };
      const events: EngineEvent[] = [{ type: 'token', id, token, ...progress, ...blocks }];
      if (numGenerated(sequence) === maxTokens) {
        finish(sequence);
        events.push({ type: 'finished', id, reason: 'length', stopId: null, ...progress });
      }
      return events;
    } catch (error) {
      return [fail(sequence, error)];
    }
  }

  /** Null where the cache is not reported. */
  function blocksOf({ request, cacheKeys }: Sequence): readonly string[] | null {
    return cache.promptBlocks(request, cacheKeys.slice(0, request.promptIds.length));
  }

  function progressOf({ startedAtMs, addedAtMs, numCached, drafts }: Sequence): Progress {
    return {
      queuedMs: startedAtMs! - addedAtMs,
      elapsedMs: now() - addedAtMs,
      cachedTokens: numCached!,
      acceptedDraftTokens: drafts.numAccepted,
      rejectedDraftTokens: drafts.numProposed - drafts.numAccepted,
    };
  }

  function hiddenRowsOf(firstRow: number, numRows: number): Float32Array {
    const dim = shape.embeddingDim;
    return model.hiddenStates().subarray(firstRow * dim, (firstRow + numRows) * dim);
  }

  /** Pools the rows of a sequence that generates nothing; the last row ends it. */
  function pool(sequence: Sequence, rows: PooledRows, firstRow: number): EngineEvent[] {
    const pooler = sequence.pooler!;
    pooler.add(rows, hiddenRowsOf(firstRow, rows.numRows));
    if (numBehind(sequence) > 0) return [];
    const embedding = pooler.result();
    if (!embedding.every(Number.isFinite)) {
      return [fail(sequence, new RuvLLMError('bad_logits', 'the hidden states are not finite'))];
    }
    finish(sequence);
    return [{ type: 'embedded', id: sequence.request.id, embedding, ...progressOf(sequence) }];
  }

  const samplersOf = (plan: Schedule): { sampler: Pick<Sampler, 'isDecidedBy' | 'sampleAside'>; numRows: number }[] =>
    plan.rows.flatMap(({ id, isCaughtUp, draft = [] }) => {
      const sequence = isCaughtUp ? byId.get(id) : undefined;
      // The rows of one that was aborted stay in the count.
      return isCaughtUp ? [{ sampler: sequence?.request.sampler ?? DECIDED, numRows: 1 + draft.length }] : [];
    });

  return {
    /** Whether the top logits could decide every token of a step. */
    mayLeaveLogits: (plan: Schedule): boolean =>
      samplersOf(plan).every(({ sampler }) => sampler.sampleAside === undefined && sampler.isDecidedBy !== undefined),
    /** Whether they do. */
    areDecided(plan: Schedule): boolean {
      let row = 0;
      return samplersOf(plan).every(({ sampler, numRows }) => {
        const first = row;
        row += numRows;
        return Array.from({ length: numRows }, (_, i) => model.topOf(first + i)).every((top) =>
          sampler.isDecidedBy!(top, shape.vocabSize),
        );
      });
    },
    get numGeneratedTokens() {
      return numGeneratedTokens;
    },
    apply,
    /** Adds the tokens that other threads have chosen meanwhile. */
    collect(): EngineEvent[] {
      return pending.take().flatMap(({ sequence, result }) => {
        if (byId.get(sequence.request.id) !== sequence) return [];
        return 'token' in result ? take(sequence, result.token) : [fail(sequence, result.error)];
      });
    },
  };
}
