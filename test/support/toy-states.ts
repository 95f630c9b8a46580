import { assert } from '../../src/core/errors.ts';
import type { SequenceStates, StepBatch } from '../../src/models/types.ts';

const FIRST_HASH = 17;

/** A hash of tokens in order: what the recurrent layer of the toy model remembers. */
export function toyHash(tokens: readonly number[], from = FIRST_HASH): number {
  let hash = from;
  for (const id of tokens) hash = (Math.imul(hash, 31) + id + 1) >>> 0;
  return hash;
}

/** States with the hash and the number of the tokens so far: one of other tokens, or of too many, throws. */
export function createToyStates(numStates: number): SequenceStates & { run(batch: StepBatch): void } {
  const memory = new Uint32Array(numStates * 2).fill(0xdead);
  const wordsOf = (index: number): Uint32Array => {
    assert(index >= 0 && index < numStates, `state ${index} of ${numStates}`);
    return memory.subarray(index * 2, index * 2 + 2);
  };
  return {
    numStates,
    stateBytes: 8,
    bytesOf: (index) => new Uint8Array(memory.buffer, index * 8, 8),
    run({ tokenIds, sequences }) {
      for (const { state, firstRow, numRows, contextTokens } of sequences) {
        assert(state !== undefined, 'a sequence without a state');
        const words = wordsOf(state.index);
        if (contextTokens === numRows) words.set([FIRST_HASH, 0]);
        assert(words[1] === contextTokens - numRows, `a state of ${words[1]} tokens, not ${contextTokens - numRows}`);
        for (let i = 0; i < numRows; i++) {
          words.set([toyHash([tokenIds[firstRow + i]!], words[0]), words[1]! + 1]);
          if (state.copy?.numRows === i + 1) wordsOf(state.copy.index).set(words);
        }
      }
    },
  };
}

/** Throws if the state of a sequence is not that of its context. */
export function checkToyState(states: SequenceStates, index: number, context: readonly number[]): void {
  const [hash] = new Uint32Array(states.bytesOf(index).slice().buffer);
  assert(hash === toyHash(context), `the state ${index} is not that of its ${context.length} tokens`);
}
