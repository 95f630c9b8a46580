import { assert, RuvLLMError } from '../core/errors.ts';
import { MAX_TOP, PAGE_TOKENS } from '../kernels/contract.ts';
import type { DecoderStep } from './decoder-step.ts';
import { writeCosSin } from './rope.ts';
import type { ModelLimits, StepBatch } from './types.ts';

export interface StepBounds {
  readonly limits: ModelLimits;
  readonly vocabSize: number;
  readonly embeddingDim: number;
  readonly isCausal: boolean;
  readonly maxContextTokens: number;
  /** Packed page ids are below this; 0: there are none. */
  readonly endOfPackedPages: number;
  /** 0: the model has no states. */
  readonly numStates: number;
}

/**
 * Throws before computing: offsets from these numbers are not checked again. Callers' tokens and lengths get typed
 * errors; other faults are engine bugs.
 */
export function checkBatch(batch: StepBatch, bounds: StepBounds): void {
  const { limits, vocabSize, isCausal, maxContextTokens, endOfPackedPages } = bounds;
  const numRows = batch.tokenIds.length;
  const { maxBatchTokens, maxSequences, maxLogitRows, numPages } = limits;
  assert(numRows >= 1 && numRows <= maxBatchTokens, `${numRows} rows in a step, limit ${maxBatchTokens}`);
  assert(
    batch.positions.length === numRows && batch.slots.length === numRows,
    'positions and slots need one entry per row',
  );
  assert(batch.sequences.length <= maxSequences, `${batch.sequences.length} sequences, limit ${maxSequences}`);
  const { hiddenRows = [] } = batch;
  assert(hiddenRows.length <= maxBatchTokens, `${hiddenRows.length} hidden rows, limit ${maxBatchTokens}`);
  assert(batch.logitRows.length <= maxLogitRows, `${batch.logitRows.length} rows with logits, limit ${maxLogitRows}`);
  const { numTop = 0 } = batch;
  assert(isBelow(numTop, Math.min(MAX_TOP, vocabSize) + 1), `the top ${numTop} of ${vocabSize} logits`);
  each(batch.tokenIds, (id) => {
    if (isBelow(id, vocabSize)) return;
    throw new RuvLLMError('invalid_token', `token ${id} is outside the vocabulary of ${vocabSize}`, {
      data: { token: id, vocabSize },
    });
  });
  // Learned positions are rows of a table.
  const endOfPositions = isCausal ? 2 ** 31 : maxContextTokens;
  eachBelow(batch.positions, endOfPositions, (position) => `position ${position}`);
  eachBelow(batch.slots, numPages * PAGE_TOKENS, (slot) => `slot ${slot} of ${numPages} pages`);
  eachBelow(batch.logitRows, numRows, (row) => `logits of row ${row} of ${numRows}`);
  eachBelow(hiddenRows, numRows, (row) => `hidden states of row ${row} of ${numRows}`);
  if (!isCausal) assert(batch.logitRows.length === 0, 'an encoder has no logits');
  checkVectors(batch, bounds);
  checkStates(batch, bounds.numStates);
  for (const { firstRow, numRows: length, contextTokens, pageIds } of batch.sequences) {
    if (contextTokens > maxContextTokens) {
      throw new RuvLLMError(
        'context_overflow',
        `a context of ${contextTokens} tokens exceeds the limit of ${maxContextTokens}`,
        {
          data: { contextTokens, maxContextTokens },
        },
      );
    }
    assert(length >= 1 && isBelow(firstRow, numRows) && firstRow + length <= numRows, `rows ${firstRow} + ${length}`);
    assert(contextTokens >= length, `${length} rows in a context of ${contextTokens}`);
    // The keys of later tokens would be missing.
    assert(isCausal || contextTokens === length, `an encoder step with ${length} of ${contextTokens} tokens`);
    const needed = Math.ceil(contextTokens / PAGE_TOKENS);
    assert(pageIds.length >= needed, `${pageIds.length} pages for a context of ${contextTokens}`);
    const firstWritten = Math.floor((contextTokens - length) / PAGE_TOKENS);
    for (let page = 0; page < needed; page++) {
      const id = pageIds[page]!;
      if (id >= 0) assert(isBelow(id, numPages), `page ${id} of ${numPages}`);
      else {
        assert(isBelow(~id, endOfPackedPages), `packed page ${~id} of ${endOfPackedPages}`);
        assert(page < firstWritten, `packed page ${~id} is read-only, the step writes from page ${firstWritten} on`);
      }
    }
  }
}

/** Words only for a fault: texts for the rows of a prompt take longer than all checks. */
function eachBelow(values: ArrayLike<number>, end: number, describe: (value: number) => string): void {
  for (let i = 0; i < values.length; i++) if (!isBelow(values[i]!, end)) assert(false, describe(values[i]!));
}

/** Vectors beyond the rows of a step would overwrite other buffers. */
function checkVectors({ vectors = [], tokenIds }: StepBatch, { embeddingDim, isCausal }: StepBounds): void {
  assert(isCausal || vectors.length === 0, 'an encoder step with vectors');
  for (const { firstRow, values } of vectors) {
    const numRows = values.length / embeddingDim;
    assert(Number.isInteger(numRows) && numRows >= 1, `${values.length} values for rows of ${embeddingDim}`);
    assert(isBelow(firstRow, tokenIds.length - numRows + 1), `vectors of rows ${firstRow} + ${numRows}`);
  }
}

/** Two sequences on one state would mix their contents. */
function checkStates({ sequences }: StepBatch, numStates: number): void {
  if (numStates === 0) return;
  const used = sequences.flatMap(({ state }) =>
    state?.copy == null ? [state?.index] : [state.index, state.copy.index],
  );
  assert(new Set(used).size === used.length, `states ${used.join(', ')} are used twice`);
  for (const index of used) assert(index !== undefined && isBelow(index, numStates), `state ${index} of ${numStates}`);
  for (const { state, numRows } of sequences) {
    const last = state!.copy?.numRows ?? 1;
    assert(last >= 1 && last <= numRows, `a copy of the state after ${last} of ${numRows} rows`);
  }
}

/** Writes a checked batch into the arena: ids, slots, page tables, and the angles of each rope variant. */
export function writeInputs(step: DecoderStep, batch: StepBatch): void {
  const { pack, buffers, ropes, numTokens } = step;
  const { arena } = pack;
  arena.i32(buffers.ids, numTokens).set(batch.tokenIds);
  arena.i32(buffers.slots, numTokens).set(batch.slots);
  arena.i32(buffers.logitRows, batch.logitRows.length).set(batch.logitRows);
  arena.i32(buffers.hiddenRows, step.numHiddenRows).set(batch.hiddenRows ?? []);
  for (const { firstRow, values } of batch.vectors ?? []) {
    const { embeddingDim } = step.shape;
    arena.f32(buffers.hidden + firstRow * embeddingDim * 4, values.length).set(values);
    const rows = arena.i32(buffers.vectorRows + firstRow * 4, values.length / embeddingDim);
    for (let i = 0; i < rows.length; i++) rows[i] = firstRow + i;
  }
  if (!step.shape.isCausal) arena.i32(buffers.positions, numTokens).set(batch.positions);
  const sequences = arena.i32(buffers.sequences, batch.sequences.length * 4);
  const states = arena.i32(buffers.stateTable, batch.sequences.length * 3);
  let tableIndex = 0;
  for (const [i, { firstRow, numRows, contextTokens, pageIds, state }] of batch.sequences.entries()) {
    const numPages = Math.ceil(contextTokens / PAGE_TOKENS);
    sequences.set([firstRow, numRows, contextTokens, tableIndex], i * 4);
    if (state !== undefined) states.set([state.index, state.copy?.numRows ?? 0, state.copy?.index ?? 0], i * 3);
    const table = arena.i32(buffers.pageTables + tableIndex * 4, numPages);
    for (let page = 0; page < numPages; page++) table[page] = pageIds[page]!;
    tableIndex += numPages;
  }
  for (const [i, rope] of ropes.entries()) {
    writeCosSin(rope, batch.positions, arena.f32(buffers.cosSin[i]!, numTokens * rope.rotaryDim));
  }
}

function isBelow(value: number, end: number): boolean {
  return Number.isInteger(value) && value >= 0 && value < end;
}

function each(values: ArrayLike<number>, check: (value: number) => void): void {
  for (let i = 0; i < values.length; i++) check(values[i]!);
}
